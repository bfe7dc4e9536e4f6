"""Submissions from outside: what is better is written and has its place said, what is wrong is refused with its row."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from shadowprice.analysis.certify import certify
from shadowprice.analysis.simulate import simulate
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.objective import Objective
from shadowprice.library import submission
from shadowprice.library.collection import library_instance
from shadowprice.library.entries.entry import ENTRIES, Credit, read_about, read_entry
from shadowprice.library.entries.schedule_rows import text_of_schedule
from shadowprice.library.submission import Place, submit_text
from shadowprice.library.tables_of_instance import files_of
from shadowprice.library.verification import verify_entry
from tests.support.first_entries import open_weak

DATE = "2026-11-27"
ADA = Credit("Ada", "first come, in awk", DATE)
NAME = "gangs-10-lognormal-2"
PROGRAM = Path(__file__).parents[2] / "examples/library/first_come.awk"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Entries of an instance: a schedule by SJF, which others are better than, and weak bounds."""
    which = library_instance(NAME)
    folder = tmp_path / "entries"
    open_weak(which, DATE, folder)
    return folder


def one_after_the_other(name: str) -> str:
    """Rows of a schedule of one-node gangs in which no two jobs run at one time."""
    jobs = library_instance(name).instance().workload
    lines, now_s = [f"# instance: {name}", "job,node,gpus,start_s,end_s"], 0.0
    for job in range(len(jobs)):
        begin_s = max(now_s, float(jobs.arrival_s[job]))
        now_s = begin_s + float(jobs.work[job])
        lines.append(f"{job},0,{jobs.gpus[job]},{begin_s:g},{now_s:g}")
    return "\n".join(lines) + "\n"


def flow_place(places: list[Place]) -> Place:
    return next(place for place in places if place.objective is Objective.FLOW)


@pytest.mark.skipif(shutil.which("awk") is None, reason="awk is not installed")
def test_a_schedule_of_twenty_lines_of_awk_verifies_and_has_its_place(
    root: Path, tmp_path: Path
) -> None:
    for file, text in files_of(library_instance(NAME)).items():
        (tmp_path / file).write_text(text)
    done = subprocess.run(
        ["awk", "-v", f"name={NAME}", "-f", PROGRAM, f"{NAME}.nodes.csv", f"{NAME}.jobs.csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    place = flow_place(submit_text(done.stdout, "schedule.csv", ADA, root))
    instance = library_instance(NAME).instance()
    fifo = simulate(instance, policy="fifo")
    assert place.ticks == sum(int(each * 2**20) for each in fifo.jct_s)
    assert place.sentence().startswith(f"{NAME}, flow: costs ")
    program = PROGRAM.read_text().partition("BEGIN")[2]
    assert program.count("\n") <= 25


def test_a_better_schedule_becomes_the_entry(root: Path) -> None:
    which = library_instance(NAME)
    worse = submit_text(one_after_the_other(NAME), "rows.csv", ADA, root)
    assert all(place.folder is None for place in worse)
    assert f"second to the least cost in {root}" in flow_place(worse).sentence()
    before = read_about(NAME, Objective.FLOW, root)
    best = simulate(which.instance(), policy="easy")
    rows = text_of_schedule(best.schedule, {"instance": NAME, "digest": which.digest})
    place = flow_place(submit_text(rows, "rows.csv", ADA, root))
    after = read_entry(NAME, Objective.FLOW, root)
    assert place.folder is not None
    assert place.ticks < before.schedule.exact
    assert after.about.schedule.credit == ADA
    assert f"the least cost in {root}, before it" in place.sentence()
    assert verify_entry(which, Objective.FLOW, after).cost_ticks == place.ticks


def test_a_certificate_becomes_the_bound_of_the_entry(root: Path) -> None:
    which = library_instance(NAME)
    outcome = simulate(which.instance(), policy="sjf")
    weak = read_about(NAME, Objective.FLOW, root).bound.exact
    text = certify(outcome, Objective.FLOW, budget_s=2.0, preemptive=False).text
    (place,) = submit_text(text, "run.jsonl", ADA, root)
    assert place.ticks >= weak
    assert (place.folder is not None) == (place.ticks > weak)
    entry = read_entry(NAME, Objective.FLOW, root)
    assert verify_entry(which, Objective.FLOW, entry).bound_ticks == place.ticks
    forged = text.replace('"bound":', '"bound" :', 1)
    with pytest.raises(VerificationError, match=r"run\.jsonl: "):
        submit_text(forged, "run.jsonl", ADA, root)


def test_a_certificate_of_another_class_objective_or_instance_is_refused(root: Path) -> None:
    preemptive = library_instance("gangs-10-lognormal-1")
    begun_once = simulate(preemptive.instance(), policy="sjf")
    narrow = certify(begun_once, Objective.FLOW, budget_s=0.0, preemptive=False).text
    with pytest.raises(VerificationError, match="is about flow of non-preemptive schedules"):
        submit_text(narrow, "run.jsonl", ADA, root)
    weighted = certify(begun_once, Objective.COMPLETION, budget_s=0.0).text
    with pytest.raises(InputError, match="objective 'completion', expected flow or makespan"):
        submit_text(weighted, "run.jsonl", ADA, root)
    foreign = certify(simulate(begun_once.instance, policy="fifo"), budget_s=0.0).text
    foreign = foreign.replace(preemptive.records_digest, "0" * 64)
    with pytest.raises(InputError, match="expected that of an instance of the library"):
        submit_text(foreign, "run.jsonl", ADA, root)


def _changed(line: int, text: str) -> str:
    lines = one_after_the_other(NAME).splitlines()
    lines[line] = text
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_changed(3, "1,0,4,817,1163"), "row [01] .*node 0"),  # while job 0 holds the node
        (_changed(2, "0,0,4,138,863"), "job '0' runs for 725"),  # too short for its work
        (_changed(2, "0,0,4,0,726"), "row 0 .*'0'"),  # before it arrives
        (_changed(2, "0,0,3,138,864"), "row 0 .*'0'"),  # not its gang
        (_changed(2, "0,7,4,138,864"), "row 0"),  # no such node
        (_changed(2, "10,0,4,138,864"), "row 0"),  # no such job
        (_changed(2, "0,0,4,138,500\n0,0,4,500,864"), "begins again at 500.0 s"),
        (_changed(4, ""), "job '2'"),  # a job is left out
    ],
)
def test_a_schedule_that_breaks_a_rule_is_refused_with_its_row(
    root: Path, text: str, message: str
) -> None:
    before = read_about(NAME, Objective.FLOW, root)
    with pytest.raises(VerificationError, match=f"{NAME}: .*{message}"):
        submit_text(text, "rows.csv", ADA, root)
    assert read_about(NAME, Objective.FLOW, root) == before


def test_a_schedule_for_another_instance_is_refused(root: Path) -> None:
    other = one_after_the_other("gangs-10-lognormal-1").replace("lognormal-1", "lognormal-2")
    with pytest.raises(VerificationError, match=f"{NAME}: .*row 0 "):
        submit_text(other, "rows.csv", ADA, root)
    rows = one_after_the_other(NAME).replace("\n", f"\n# digest: {'0' * 64}\n", 1)
    with pytest.raises(VerificationError, match="is about gangs-10-lognormal-2 of SHA-256 0000"):
        submit_text(rows, "rows.csv", ADA, root)
    with pytest.raises(InputError, match="names no instance, expected a first line"):
        submit_text("job,node,gpus,start_s,end_s\n", "rows.csv", ADA, root)


def test_names_and_dates_of_a_credit_are_looked_at() -> None:
    with pytest.raises(InputError, match=r"credit: .*date"):
        Credit("Ada", "search", "yesterday").checked()
    with pytest.raises(InputError, match="credit: by"):
        Credit("", "search", DATE).checked()


def test_the_entries_of_the_package_are_in_the_folder_of_its_version() -> None:
    assert ENTRIES.parts[-3:] == ("library", "v1", "entries")


def test_what_is_better_than_the_entries_of_the_package_is_written_to_a_folder_of_ones_own(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "ENTRIES", root)
    which, own = library_instance(NAME), tmp_path / "own"
    better = simulate(which.instance(), policy="easy")
    rows = text_of_schedule(better.schedule, {"instance": NAME})
    place = flow_place(submit_text(rows, "rows.csv", ADA, own))
    assert place.folder == own / NAME / "flow"
    before = read_entry(NAME, Objective.FLOW, root)
    assert place.earlier == before.about
    written = read_entry(NAME, Objective.FLOW, own)
    assert written.bound == before.bound
    assert verify_entry(which, Objective.FLOW, written).cost_ticks < before.about.schedule.exact
    again = flow_place(submit_text(rows, "rows.csv", ADA, own))
    assert again.folder is None
    assert f"equals the least cost in {own}, by first come, in awk of Ada" in again.sentence()
