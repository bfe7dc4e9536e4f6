"""Runs that end with a window of jobs: the same as the beginning of a longer run, and verified as such."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shadowprice as sp
from shadowprice.analysis.run_directory.directory import load, save
from shadowprice.analysis.run_metrics import isolated_s
from shadowprice.cli.app import app
from shadowprice.errors import AbandonedRunError, EarlyEndError, InputError, VerificationError
from shadowprice.instances.generators.gavel_published import DISTRIBUTED_TYPES, JOB_TYPES
from shadowprice.instances.grid import to_grid
from shadowprice.proofs.certificate import Violation, verify
from support.printed import without_origin

TYPES = ("k80", "p100", "v100")
TABLE = sp.Throughputs(
    TYPES,
    {
        (model, gang): (1.0 + k % 3, 3.0 + k % 5, gang * (4.0 + k % 7))
        for k, model in enumerate(JOB_TYPES)
        for gang in ((1, 2, 4, 8) if model in DISTRIBUTED_TYPES else (1,))
    },
)
HOMOGENEOUS, TYPED = "4x8", "2x8:v100,1x8:p100,1x8:k80"
FINITE = 90
"""Jobs of a finite trace."""
COLUMNS = ("job", "node", "gpus", "start_s", "end_s", "overhead_s", "partner")

RUNS = {
    "srtf": (HOMOGENEOUS, "srtf", {}),
    "las2d in rounds, with charges": (
        HOMOGENEOUS,
        "las2d",
        {"round_s": 600.0, "overheads": sp.Overheads(start_s=7.0, restart_s=31.0)},
    ),
    "fifo": (HOMOGENEOUS, "fifo", {}),
    "hadar, typed": (TYPED, "hadar:round_s=1200", {}),
    "gavel in rounds": (TYPED, "gavel:max_min_fairness:aware=true,round_s=3600", {}),
    "copies": (HOMOGENEOUS, "hadare:round_s=600", {}),
    "gavel's simulator": (TYPED, "fifo_perf", {"preset": "gavel"}),
    "helios' simulator": (HOMOGENEOUS, "srtf", {"preset": "helios", "round_s": 60.0}),
}


def jobs_of(cluster: str, seed: int, per_hour: float = 8.0) -> sp.EndlessWorkload:
    """Jobs a twentieth as long as the published ones."""
    table = TABLE if cluster == TYPED else None
    jobs = sp.endless("gavel-published", seed=seed, jobs_per_hour=per_hour, throughputs=table)

    def first(count: int) -> sp.Workload:
        found = jobs.first(count)
        return replace(found, work=to_grid(found.work / 20.0))

    return sp.EndlessWorkload(first, jobs.source)


def whole_run(cluster: str, policy: str, given: dict[str, object], seed: int) -> sp.Outcome:
    """A finite trace, run to its end."""
    return sp.simulate(
        jobs_of(cluster, seed).first(FINITE), cluster, policy, sp.RunOptions(**given)
    )


@pytest.mark.parametrize("name", sorted(RUNS))
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10**4), first=st.integers(0, 12), count=st.integers(1, 8))
def test_the_window_is_that_of_a_longer_run(name: str, seed: int, first: int, count: int) -> None:
    """Prefix law: until the window is complete, a run over endless jobs is one over enough of them."""
    cluster, policy, given = RUNS[name]
    window = sp.JobWindow(first, first + count)
    options = sp.RunOptions(**given, until_complete=window)  # type: ignore[arg-type]
    until = sp.simulate(jobs_of(cluster, seed), cluster, policy, options)
    whole = whole_run(cluster, policy, given, seed)
    stop_s = until.schedule.end_s.max()
    assume(stop_s < whole.instance.workload.arrival_s[-1])  # Else the finite trace was too short.
    rows = window.rows
    np.testing.assert_array_equal(until.jct_s[rows], whole.jct_s[rows])
    assert stop_s == whole.end_s[rows].max()
    # All that was done until then is the same, and who is complete.
    there = whole.instance.workload.arrival_s < stop_s
    assert until.instance.workload == whole.instance.workload.select(there)
    np.testing.assert_array_equal(until.complete, whole.end_s[there] <= stop_s)
    assert cut(until.schedule, stop_s) == cut(whole.schedule, stop_s)
    # So it is over the finite trace, if that is told to end there.
    finite = sp.simulate(jobs_of(cluster, seed).first(FINITE), cluster, policy, options)
    assert finite.summary() | {"cpu_s": 0} == until.summary() | {"cpu_s": 0}


def cut(schedule: sp.Schedule, at_s: float) -> set[tuple[float, ...]]:
    """Rows until a time."""
    columns = [getattr(schedule, name) for name in COLUMNS]
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return {
        (*row[:4], min(row[4], at_s), min(row[5], min(row[4], at_s) - row[3]), row[6])
        for row in rows
        if row[3] < at_s
    }


def run(window: sp.JobWindow | None = None, policy: str = "srtf") -> sp.Outcome:
    window = window or sp.JobWindow(10, 20)
    return sp.simulate(
        jobs_of(HOMOGENEOUS, 1, 8.0), "2x8", policy, sp.RunOptions(until_complete=window)
    )


def test_statistics_are_of_the_window() -> None:
    found = run()
    summary, window = found.summary(), found.jct_s[10:20]
    assert summary["avg_jct_s"] == pytest.approx(window.mean(), rel=1e-12)
    assert summary["p50_jct_s"] == np.median(window)
    assert summary["window"] == found.settings["until_complete"] == "10:20"
    assert summary["completed"] == found.complete.sum() < summary["jobs"] == len(found.jct_s)
    assert np.isinf(found.jct_s[~found.complete]).all()
    # Who is not complete is present until the end, for the shares of finish-time fairness.
    arrival_s = found.instance.workload.arrival_s
    left_s = np.minimum(found.end_s, found.schedule.end_s.max())
    present = [
        np.clip(np.minimum(left_s, left_s[k]) - np.maximum(arrival_s, arrival_s[k]), 0, None).sum()
        / (left_s[k] - arrival_s[k])
        for k in range(10, 20)
    ]
    whole = np.ones(len(arrival_s))
    whole[10:20] = present
    fairness = (found.jct_s / isolated_s(found.instance, whole))[10:20]
    assert summary["mean_ftf"] == pytest.approx(fairness.mean(), rel=1e-9)
    gpu_s = (found.schedule.gpus * (found.schedule.end_s - found.schedule.start_s)).sum()
    span_s = found.schedule.end_s.max() - arrival_s[0]
    assert summary["utilization"] == pytest.approx(gpu_s / (16 * span_s), rel=1e-9)


def test_the_verifier_lets_nobody_go_on_and_nobody_in_the_window_be_cut() -> None:
    found = run()
    instance, schedule = found.instance, found.schedule
    assert (verify(instance, schedule) == found.complete).all()
    every = replace(instance, until_complete=None)
    with pytest.raises(VerificationError):
        verify(every, schedule)  # Without a window all jobs have to be complete.
    missed = replace(instance, until_complete=sp.JobWindow(0, len(instance.workload)))
    with pytest.raises(Violation) as refused:
        verify(missed, schedule)
    assert refused.value.rule in ("lost", "work")
    columns = {name: getattr(schedule, name) for name in COLUMNS}
    last = max(
        range(len(schedule)), key=lambda k: (not found.complete[schedule.job[k]], schedule.end_s[k])
    )
    end_s = schedule.end_s.copy()
    end_s[schedule.job == schedule.job[last]] += 64.0
    with pytest.raises(Violation) as refused:
        verify(instance, sp.Schedule(**columns | {"end_s": end_s}))
    assert refused.value.rule == "stop"
    # A job outside the window may do less than its work, never more.
    work = instance.workload.work.copy()
    done = int(np.flatnonzero(found.complete[:10])[0])
    for change, fine in ((2.0, True), (0.5, False)):
        other = work.copy()
        other[done] *= change
        changed = replace(instance, workload=replace(instance.workload, work=other))
        if fine:
            assert not verify(changed, schedule)[done]
        else:
            with pytest.raises(Violation) as refused:
                verify(changed, schedule)
            assert refused.value.rule == "work"


def test_a_run_directory_is_verified_again(tmp_path: Path) -> None:
    found = run()
    save(found, tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.summary() == found.summary()
    described = json.loads((tmp_path / "run" / "instance.json").read_text())
    assert described["until_complete"] == "10:20"


def test_a_trace_that_ends_too_early() -> None:
    jobs = jobs_of(HOMOGENEOUS, 1, 8.0).first(25)
    until = sp.RunOptions(until_complete=sp.JobWindow(10, 20))
    with pytest.raises(
        EarlyEndError, match=r"its last of 25 jobs arrives at .* of jobs 10 to 19 are not"
    ):
        sp.simulate(jobs, "1x8", "las", until)
    with pytest.raises(EarlyEndError, match="has 15 jobs, jobs 10 to 19 are to be complete"):
        sp.simulate(jobs.select(np.arange(15)), "1x8", "las", until)


def test_what_has_no_end() -> None:
    endless = jobs_of(HOMOGENEOUS, 1, 8.0)
    with pytest.raises(InputError, match="never ends, expected a window"):
        sp.simulate(endless, "2x8", "srtf")
    with pytest.raises(
        AbandonedRunError, match=r"given up at .* as asked, with .* of jobs 10 to 19"
    ):
        run(sp.JobWindow(10, 20, latest_s=2000.0))
    with pytest.raises(InputError, match="is told the services of all jobs"):
        run(policy="gittins2d")


@pytest.mark.parametrize(
    "text", ["5", "5:5", "7:3", "-1:3", "a:b", "1:2:x", "1:2:0", "1:2:3:4", ""]
)
def test_windows_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="job window"):
        sp.JobWindow.parse(text)


def test_a_window_is_compared_with_what_its_jobs_cost_at_least() -> None:
    """Whoever comes by its end, policies have the bound of the window in common."""
    arrival_s, work = [0, 1, 2, 65, 95, 130, 999], [50, 60, 10, 10, 10, 20, 10]
    jobs = sp.Workload.from_columns(arrival_s=arrival_s, gpus=1, work=work)
    until = sp.RunOptions(until_complete=sp.JobWindow(0, 3))
    found = sp.compare(jobs, "1x1", ["fifo", "srtf"], "flow", until, budget_s=0.0)
    assert len({len(each.instance.workload) for each in found.outcomes.values()}) == 2
    # SRPT of the three: 10 s from 2 to 12, the first until 60, the second until 120.
    assert [row.bound for row in found.rows] == [10.0 + 60.0 + 119.0] * 2
    assert [row.cost for row in found.rows] == [50.0 + 109.0 + 118.0, 10.0 + 60.0 + 139.0]
    assert "schedules, counting jobs 0 to 2 alone" in found.rows[0].sentence()
    assert found.rows[0].to_dict()["window"] == "0:3"


def test_jobs_without_end_are_compared_until_a_window_is_complete() -> None:
    jobs = sp.endless("gavel-published", seed=1, jobs_per_hour=0.4)
    until = sp.RunOptions(until_complete=sp.JobWindow(10, 20))
    found = sp.compare(jobs, "2x8", ["fifo", "srtf"], "flow", until, budget_s=0.0)
    assert len(found.histories) == 1
    for row in found.rows:
        assert row.certified
        run = sp.simulate(jobs, "2x8", row.policy, until)
        assert row.cost == pytest.approx(run.jct_s[10:20].sum())
        assert row.ratio >= 1.0
    with pytest.raises(InputError, match="never ends, expected a window of jobs"):
        sp.compare(jobs, "2x8", ["fifo"])


def test_the_command_line(tmp_path: Path) -> None:
    words = ["--cluster", "2x8", "--policy", "srtf", "--with", "window:first=10,last=20"]
    endless = ["--endless", "gavel-published:seed=1,jobs_per_hour=0.4"]
    jobs = sp.endless("gavel-published", seed=1, jobs_per_hour=0.4)
    until = sp.RunOptions(until_complete=sp.JobWindow(10, 20))
    table = tmp_path / "jobs.csv"
    done = CliRunner().invoke(
        app, ["simulate", *endless, *words, "--json", "--jobs-out", str(table)]
    )
    assert done.exit_code == 0, done.output
    found, expected = without_origin(done.stdout), sp.simulate(jobs, "2x8", "srtf", until).summary()
    assert found | {"cpu_s": 0} == expected | {"cpu_s": 0}
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == expected["jobs"]
    for bad in ([*words, "x.csv", *endless], words):
        refused = CliRunner().invoke(app, ["simulate", *bad])
        assert isinstance(refused.exception, InputError)
        assert str(refused.exception) == "expected either a trace or --endless GENERATOR"
