"""Runs that go to disk as they arise: the same runs, the same metrics; partial ones say so."""

from __future__ import annotations

import json
import runpy
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.job_totals import JobTotals, TotalsOfSegments
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_directory import directory as run_directory
from shadowprice.analysis.run_directory import schedule_file
from shadowprice.analysis.run_directory.directory import INSTANCE, RUN, SCHEDULE, check, load, save
from shadowprice.analysis.run_directory.streamed import stream
from shadowprice.analysis.streamed_outcome import StreamedOutcome
from shadowprice.errors import InputError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.execution.kernel import run as kernel
from shadowprice.instances.objective import Objective
from shadowprice.instances.strategies import instances
from shadowprice.proofs.verification import segments as verification
from shadowprice.solvers.registry import policy
from support.paths import ROOT
from support.schedule_segments import Cut
from support.watches import StopAt

CHARGED = sp.RunOptions(overheads=sp.Overheads(start_s=1.0, restart_s=3.0, migration_s=2.0))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Pieces of everything, though runs are short."""
    monkeypatch.setattr(kernel, "_ROWS_AT_A_TIME", 64)
    monkeypatch.setattr(schedule_file, "ROWS_OF_A_GROUP", 100)
    monkeypatch.setattr(run_directory, "MOST_ROWS_AT_ONCE", 50)
    defaults = verification.verify_segments.__defaults__
    monkeypatch.setattr(verification.verify_segments, "__defaults__", (*defaults[:-1], 130))


@pytest.fixture
def jobs() -> sp.Workload:
    return sp.generate("lognormal", jobs=300, seed=3, load=1.1, gpus_total=16)


def streamed(jobs, directory, name="srtf", options=None, watch=None) -> StreamedOutcome:
    outcome = stream(prepare_run(jobs, "4x4", name, options), directory, watch)
    assert outcome is not None
    return outcome


def told(outcome) -> dict[str, object]:
    return {key: value for key, value in outcome.summary().items() if key != "cpu_s"}


@pytest.mark.parametrize("name", ["fifo", "srtf", "las2d", "easy"])
@pytest.mark.parametrize("options", [None, CHARGED])
def test_the_same_run_and_the_same_metrics(jobs, tmp_path, name, options):
    outcome = streamed(jobs, tmp_path / "run", name, options)
    whole = sp.simulate(jobs, "4x4", name, options)
    assert told(outcome) == told(whole)
    assert outcome.jobs.equals(whole.jobs)
    again = load(tmp_path / "run")
    assert np.array_equal(again.schedule.to_frame(), whole.schedule.to_frame())
    groups = pq.read_metadata(tmp_path / "run" / SCHEDULE).num_row_groups
    assert groups > 3
    checked = check(tmp_path / "run")
    assert isinstance(checked, StreamedOutcome)
    assert checked.summary() == outcome.summary()
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted(
        [INSTANCE, RUN, SCHEDULE, "workload.parquet"]
    )


@settings(max_examples=25, deadline=None)
@given(instances(max_jobs=7), st.sampled_from(["fifo", "srtf", "las2d"]), st.data())
def test_totals_of_segments_are_those_of_the_whole(instance, name, data):
    schedule = run(instance, policy(name)).schedule
    cuts = sorted(data.draw(st.lists(st.integers(0, len(schedule)), max_size=3)))
    parts, found = Cut(schedule, cuts), TotalsOfSegments(instance)
    for segment in data.draw(st.permutations(range(len(cuts) + 1))):
        found.add(parts.read(segment))
    expected = JobTotals.of(instance, schedule)
    for each in fields(JobTotals):
        one, other = getattr(found.whole(), each.name), getattr(expected, each.name)
        assert np.array_equal(one, other), each.name


def test_what_was_saved_in_one_piece_is_checked_in_parts(jobs, tmp_path):
    whole = sp.simulate(jobs, "4x4", "srtf")
    save(whole, tmp_path / "run")
    assert isinstance(check(tmp_path / "run"), StreamedOutcome)
    frame = pq.read_table(tmp_path / "run" / SCHEDULE).to_pandas()
    shuffled = sp.Schedule.from_frame(frame.sample(frac=1.0, random_state=1))
    kept = Outcome.verified(whole.instance, shuffled, policy="srtf")
    save(kept, tmp_path / "shuffled")
    assert isinstance(check(tmp_path / "shuffled"), Outcome)


def test_a_row_that_was_changed_is_found(jobs, tmp_path):
    streamed(jobs, tmp_path / "run")
    path = tmp_path / "run" / SCHEDULE
    frame = pq.read_table(path).to_pandas()
    frame.loc[200, "gpus"] += 1
    frame.to_parquet(path, index=False)
    with pytest.raises(VerificationError, match=r"schedule.parquet: (gang|capacity): row \d+ "):
        check(tmp_path / "run")


def test_columns_of_another_type_are_refused(jobs, tmp_path):
    streamed(jobs, tmp_path / "run")
    path = tmp_path / "run" / SCHEDULE
    frame = pq.read_table(path).to_pandas()
    frame["node"] = frame["node"].astype(float)
    frame.to_parquet(path, index=False)
    with pytest.raises(InputError, match="expected job, node, gpus, start_s"):
        check(tmp_path / "run")


def test_a_stopped_run_is_a_partial_one_and_says_so(jobs, tmp_path):
    watch = StopAt(3)
    outcome = streamed(jobs, tmp_path / "run", watch=watch)
    summary = outcome.summary()
    done = watch.told[3][0]
    assert 0 < summary["completed"] == done < 300
    assert summary["jobs"] == 300
    assert summary["completed"] + summary["arrived_not_completed"] + summary["not_arrived"] == 300
    for name in ("avg_jct_s", "p99_jct_s", "makespan_s", "mean_queueing_s", "mean_ftf", "ttd_s"):
        assert summary[name] is None
    complete = outcome.jct_s[outcome.complete]
    assert summary["avg_jct_of_completed_s"] == complete.mean()
    assert outcome.missing() is not None
    assert f"{done} of 300 jobs are complete" in outcome.missing()
    for found in (check(tmp_path / "run"), load(tmp_path / "run")):
        assert found.summary() == summary
        assert found.missing() == outcome.missing()


def test_a_partial_run_does_not_pass_for_a_whole_one(jobs, tmp_path):
    streamed(jobs, tmp_path / "run", watch=StopAt(3))
    path = tmp_path / "run" / INSTANCE
    described = json.loads(path.read_text())
    del described["stopped_s"]
    path.write_text(json.dumps(described))
    with pytest.raises(VerificationError, match=r"lost|work"):
        check(tmp_path / "run")


def test_a_partial_run_is_bounded_until_it_was_stopped(jobs):
    outcome = sp.simulate(jobs, "4x4", "srtf", watch=StopAt(30))
    assert outcome.instance.stopped_s is not None
    bound = sp.strongest_bound(outcome.instance, objective="flow", preemptive=True, budget_s=0.0)
    assert 0 < bound.ticks <= exact_cost(outcome.instance, Objective.FLOW, outcome.end_s)
    with pytest.raises(InputError, match=r"was stopped at .* and has no makespan"):
        sp.strongest_bound(outcome.instance, objective="makespan", preemptive=True, budget_s=0.0)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gavel:max_min_fairness", None),
        ("hadare", None),
        ("srtf", sp.RunOptions(until_complete=sp.JobWindow(0, 3))),
    ],
)
def test_other_runs_are_not_streamed(jobs, tmp_path, name, options):
    run = prepare_run(jobs, "4x4", name, options)
    assert stream(run, tmp_path / "run") is None
    assert not (tmp_path / "run").exists()


def test_what_is_no_run_is_not_replaced(jobs, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"has 'notes.txt' in it"):
        streamed(jobs, tmp_path)
    assert [path.name for path in Path(tmp_path).iterdir()] == ["notes.txt"]


def test_an_interrupt_leaves_an_earlier_run_as_it_was(jobs, tmp_path):
    streamed(jobs, tmp_path / "run")
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}

    class Interrupted(StopAt):
        def stops(self, done: int, total: int) -> bool:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        streamed(jobs, tmp_path / "run", "fifo", watch=Interrupted(0))
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_the_benchmark_of_long_runs_measures(tmp_path):
    benchmark = runpy.run_path(str(ROOT / "benchmarks" / "scale.py"))
    cost = benchmark["measure"](400, "srtf", tmp_path)
    assert all(number > 0 for number in cost.values())
    assert set(cost) == {"engine_s", "verifier_s", "whole_s", "peak_gb", "disk_mb"}
