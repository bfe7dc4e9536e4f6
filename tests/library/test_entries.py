"""Entries: what is stored is read again, verified, and refused where it was tampered with."""

from __future__ import annotations

import io
import json
import lzma
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.simulate import simulate
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.library.collection import library_instance
from shadowprice.library.entries.entry import (
    BOUND,
    ENTRY,
    SCHEDULE,
    Credit,
    folder_of,
    read_entry,
    write_entry,
)
from shadowprice.library.entries.schedule_rows import schedule_of_text, text_of_schedule
from shadowprice.library.entries.stored_bound import StoredBound
from shadowprice.library.search.improve import largest_bound
from shadowprice.library.submission import submit_bound, submit_schedule
from shadowprice.library.verification import (
    VerifiedEntry,
    gap_text,
    verified_outcome,
    verify_entry,
)
from shadowprice.proofs import checker
from shadowprice.solvers.offline.bounds import Bound
from tests.support.first_entries import open_weak

DATE = "2026-11-27"
NAME = "gangs-10-lognormal-2"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("entries")
    open_weak(library_instance(NAME), DATE, root)
    return root


@pytest.mark.parametrize("goal", [Objective.FLOW, Objective.MAKESPAN])
def test_a_stored_entry_verifies_at_its_values(opened: Path, goal: Objective) -> None:
    which = library_instance(NAME)
    entry = read_entry(NAME, goal, opened)
    found = verify_entry(which, goal, entry)
    assert found.cost_ticks == entry.about.schedule.exact
    assert found.bound_ticks == entry.about.bound.exact > 0
    assert found.gap >= 0


def test_reading_and_writing_keep_the_bytes(opened: Path, tmp_path: Path) -> None:
    write_entry(read_entry(NAME, Objective.FLOW, opened), tmp_path)
    for file in (ENTRY, SCHEDULE, BOUND):
        before = folder_of(NAME, Objective.FLOW, opened) / file
        after = folder_of(NAME, Objective.FLOW, tmp_path) / file
        assert before.read_bytes() == after.read_bytes()


def test_what_an_entry_says_is_compared_with_what_it_is(opened: Path) -> None:
    which = library_instance(NAME)
    entry = read_entry(NAME, Objective.FLOW, opened)
    lower = msgspec.structs.replace(entry.about.schedule, ticks=1)
    forged = replace(entry, about=msgspec.structs.replace(entry.about, schedule=lower))
    with pytest.raises(VerificationError, match=r"the schedule costs .* ticks, entry.json says 1"):
        verify_entry(which, Objective.FLOW, forged)
    larger = replace(entry.bound, ticks=entry.bound.ticks + 1)
    with pytest.raises(VerificationError, match="the bound is"):
        verify_entry(which, Objective.FLOW, replace(entry, bound=larger))


def test_the_same_bound_of_a_stored_one_makes_a_certificate(opened: Path) -> None:
    which = library_instance(NAME)
    entry = read_entry(NAME, Objective.FLOW, opened)
    instance = which.instance()
    outcome = verified_outcome(which, instance, entry.schedule)
    file = io.StringIO(newline="\n")
    entry.bound.write_certificate(outcome, Objective.FLOW, file)
    claim = checker.check(file.getvalue())
    assert Fraction(claim["bound"]) == entry.bound.ticks
    assert claim["instance"] == which.records_digest
    again = StoredBound.of_certificate(
        file.getvalue(), instance, Objective.FLOW, preemptive=False, where="file"
    )
    assert again == entry.bound
    other = library_instance("gangs-10-lognormal-1").instance()
    with pytest.raises(VerificationError, match="is about another instance"):
        StoredBound.of_certificate(
            file.getvalue(), other, Objective.FLOW, preemptive=False, where="file"
        )
    with pytest.raises(VerificationError, match="is about flow of non-preemptive"):
        StoredBound.of_certificate(
            file.getvalue(), instance, Objective.FLOW, preemptive=True, where="file"
        )


def test_rows_of_schedules_are_read_as_they_were_written(opened: Path) -> None:
    schedule = read_entry(NAME, Objective.FLOW, opened).schedule
    text = text_of_schedule(schedule, {"instance": NAME})
    found = schedule_of_text(text, "rows")
    assert found.about == {"instance": NAME}
    assert found.schedule.to_frame().equals(schedule.to_frame())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "rows: is empty, expected columns job, node"),
        ("job,node\n0,0\n", "rows: column 'gpus' is missing"),
        ("job,node,gpus,start_s,end_s,colour\n", "rows: column 'colour', expected each once of"),
        ("# a: b\njob,node,gpus,start_s,end_s\n0,0,1,zero,1\n", "rows: line 3, column 'start_s'"),
        ("job,node,gpus,start_s,end_s\n0,0,1\n", "rows: line 2: has 3 values, expected 5"),
        ("job,node,gpus,start_s,end_s\n0,0,1,0.1,1\n", "multiple of 2"),
    ],
)
def test_rows_that_are_none_are_refused_with_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        schedule_of_text(text, "rows")


def test_a_worse_schedule_is_placed_and_not_written(opened: Path) -> None:
    which, credit = library_instance(NAME), Credit("Ada", "again", DATE)
    entry = read_entry(NAME, Objective.FLOW, opened)
    before = (folder_of(NAME, Objective.FLOW, opened) / ENTRY).read_bytes()
    places = submit_schedule(which, entry.schedule, credit, root=opened)
    assert [place.folder for place in places] == [None, None]
    assert (folder_of(NAME, Objective.FLOW, opened) / ENTRY).read_bytes() == before
    place = submit_bound(which, Objective.FLOW, entry.bound, credit, root=opened)
    assert place.folder is None


def test_a_file_that_is_cut_short_is_refused(opened: Path, tmp_path: Path) -> None:
    write_entry(read_entry(NAME, Objective.FLOW, opened), tmp_path)
    path = folder_of(NAME, Objective.FLOW, tmp_path) / SCHEDULE
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(InputError, match=r"schedule\.csv\.xz: "):
        read_entry(NAME, Objective.FLOW, tmp_path)
    path.write_bytes(lzma.compress(b"\xff"))
    with pytest.raises(InputError, match=r"schedule\.csv\.xz: "):
        read_entry(NAME, Objective.FLOW, tmp_path)


ROWS = (
    "# instance: gangs-10-lognormal-2\njob,node,gpus,start_s,end_s\n0,0,4,138,864\n1,1,4,817,1163\n"
)


@given(
    at=st.integers(0, len(ROWS)),
    cut=st.integers(0, 12),
    text=st.text(alphabet='0123456789.,-e"# \n\r:abjnaif\x00é', max_size=8),
)
def test_whatever_rows_are_they_are_read_or_refused(at: int, cut: int, text: str) -> None:
    with suppress(InputError):
        schedule_of_text(ROWS[:at] + text + ROWS[at + cut :], "rows")


@given(st.data())
def test_the_order_of_rows_and_columns_does_not_matter(data: st.DataObject) -> None:
    about, head, *rows = ROWS.splitlines()
    columns = data.draw(st.permutations(range(5)))
    mixed = [
        ",".join(row.split(",")[k] for k in columns)
        for row in (head, *data.draw(st.permutations(rows)))
    ]
    found = schedule_of_text("\n".join((about, *mixed)), "rows").schedule
    expected = schedule_of_text(ROWS, "rows").schedule
    assert text_of_schedule(found, {}) == text_of_schedule(expected, {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"kind":"head"}',
        '{"kind":"head","starts":"any","class":"c","bound":"1e99"}\n{"kind":"bound","bound":"job"}',
        '{"kind":"head","starts":"any","class":"c","bound":1}\n{"kind":"run"}',
        '{"kind":"head","starts":"any","class":"c","bound":1}\n5',
    ],
)
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^file: "):
        StoredBound.of_text(text, "file")


@pytest.mark.parametrize("ticks", ["-1", "1/0", "1e9", "x", -1, 1.5])
def test_a_value_that_is_no_number_of_ticks_is_refused(
    opened: Path, tmp_path: Path, ticks: object
) -> None:
    folder = folder_of(NAME, Objective.FLOW, tmp_path)
    write_entry(read_entry(NAME, Objective.FLOW, opened), tmp_path)
    about = json.loads((folder / ENTRY).read_text())
    about["bound"]["ticks"] = ticks
    (folder / ENTRY).write_text(json.dumps(about))
    with pytest.raises(InputError, match=r"entry\.json: .*ticks"):
        read_entry(NAME, Objective.FLOW, tmp_path)


def test_a_bound_of_fewer_schedules_than_the_instance_allows_is_refused() -> None:
    which = library_instance("gangs-10-lognormal-1")
    instance = which.instance()
    outcome = simulate(instance, policy="sjf")
    once = StoredBound.of_bound(largest_bound(instance, Objective.FLOW, 0.0, preemptive=False))
    once.check(outcome, Objective.FLOW, preemptive=False)
    with pytest.raises(VerificationError, match="each job begins once, expected one of preemptive"):
        once.check(outcome, Objective.FLOW, preemptive=which.preemptive)
    wider = replace(once, starts_once=False)
    with pytest.raises(VerificationError, match="bound of flow: "):
        wider.check(outcome, Objective.FLOW, preemptive=True)
    kind = replace(ScheduleClass.allowed(instance, preemptive=True), consolidated=True)
    narrow = Bound(Fraction(1), "job", kind, certified=True, record={"kind": "bound"})
    with pytest.raises(InputError, match="expected one of all"):
        StoredBound.of_bound(narrow)
    with pytest.raises(InputError, match="is not certified"):
        StoredBound.of_bound(replace(narrow, certified=False))


def test_an_entry_is_of_the_instance_by_name_and_digest(opened: Path) -> None:
    which = library_instance(NAME)
    entry = read_entry(NAME, Objective.FLOW, opened)
    other = msgspec.structs.replace(entry.about, digest="0" * 64)
    with pytest.raises(VerificationError, match=f"is about SHA-256 {'0' * 64}, expected"):
        verify_entry(which, Objective.FLOW, replace(entry, about=other))
    with pytest.raises(VerificationError, match=f"makespan: is about {NAME}, flow"):
        verify_entry(which, Objective.MAKESPAN, entry)


@pytest.mark.parametrize(
    ("cost", "bound", "closed", "text"),
    [
        (300, Fraction(300), True, "closed"),
        (300, Fraction(599, 2), True, "closed"),  # no schedule costs 299.5 ticks
        (300, Fraction(299), False, "0.34 %"),
        (300, Fraction(0), False, "no bound"),
        (0, Fraction(0), True, "closed"),
    ],
)
def test_a_gap_is_closed_where_no_whole_number_of_ticks_is_between(
    cost: int, bound: Fraction, closed: bool, text: str
) -> None:
    found = VerifiedEntry(Fraction(cost), bound)
    assert found.closed is closed
    assert gap_text(found) == text
