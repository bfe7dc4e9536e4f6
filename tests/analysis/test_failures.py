"""Runs on nodes that fail, from the switch to the metrics: bounds, run directories, the command line."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shadowprice as sp
from shadowprice.analysis import availability
from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certify import certify
from shadowprice.analysis.certify_utility import certify_utility
from shadowprice.analysis.guarantees.lookup import (
    UnmetHypotheses,
    describe,
    guarantee,
    known_bound,
)
from shadowprice.analysis.limits import Measure, limit
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_directory.directory import load, save
from shadowprice.analysis.run_directory.files import INSTANCE
from shadowprice.cli.app import app
from shadowprice.errors import InputError, PolicyError, VerificationError
from shadowprice.execution.kernel.run import run_fastest, serves
from shadowprice.instances.failures import node_failures
from shadowprice.instances.failures.fault_file import FaultTable
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.objective import Objective
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.offline.bounds import simple_bounds
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.registry import policy
from support.failing_nodes import instance_of, least_total_completion_s
from support.written_failures import failures_of

LAW = "mtbf_s=3000,repair_s=200,seed=4"


def jobs(n: int = 40, seed: int = 0) -> sp.Workload:
    rng = np.random.default_rng(seed)
    return sp.Workload.from_columns(
        arrival_s=np.sort(rng.integers(0, 4000, n)),
        gpus=rng.choice([1, 2, 4, 8], n),
        work=rng.integers(10, 900, n),
    )


def failing(text: str = LAW, **given: object) -> sp.RunOptions:
    return sp.RunOptions(failures=failures_of(text, 100.0, 5.0), **given)  # type: ignore[arg-type]


# Bounds.


@settings(max_examples=12, deadline=None)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 2), st.just(1), st.integers(1, 3)), min_size=1, max_size=3
    ),
    nodes=st.integers(1, 2),
    faults=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(1, 3)), max_size=3),
)
def test_bounds_are_below_the_best_that_faults_allow(
    jobs: list[tuple[int, int, int]], nodes: int, faults: list[tuple[int, int, int]]
) -> None:
    """Faults only restrict: bound <= optimum of who knows all faults <= cost of each policy."""
    spans = [(node, float(at), float(at + up)) for node, at, up in faults if node < nodes]
    instance = instance_of(sorted(jobs), [1] * nodes, spans)
    best_s = least_total_completion_s(instance)
    goal = Objective.COMPLETION
    largest = certified_bounds(instance, [goal], BoundEffort.of_size(500))[goal]
    for bound in (*simple_bounds(instance, goal), largest):
        assert not bound.certified or bound.ticks <= best_s * TICKS_PER_S
    for name in ("fifo", "srtf", "las2d"):
        schedule = run_fastest(instance, policy(name)).schedule
        verify(instance, schedule)
        ends_s = np.zeros(len(instance.workload))
        np.maximum.at(ends_s, schedule.job, schedule.end_s)
        assert goal.cost_s(instance.workload, ends_s) >= best_s


def test_a_bound_says_that_it_is_about_nodes_that_never_fail() -> None:
    found = sp.compare(jobs(), "4x4", ("srtf", "fifo"), options=failing(), budget_s=0.0)
    sound = sp.compare(jobs(), "4x4", ("srtf", "fifo"), budget_s=0.0)
    for row, other in zip(found.rows, sound.rows, strict=True):
        assert "preemptive schedules on nodes that never fail" in row.sentence()
        assert row.to_dict()["bound_on_nodes"] == "that never fail"
        assert "never fail" not in other.sentence()
        assert "bound_on_nodes" not in other.to_dict()
        assert row.cost > other.cost
    assert {row.proven_by.ticks for row in found.rows} == {
        row.proven_by.ticks for row in sound.rows
    }


def test_a_limit_says_that_it_is_about_nodes_that_never_fail() -> None:
    failed = limit(sp.simulate(jobs(), "4x4", "srtf", failing()), Measure.MEAN_JCT)
    sound = limit(sp.simulate(jobs(), "4x4", "srtf"), Measure.MEAN_JCT)
    assert "none of all preemptive schedules on nodes that never fail is" in failed.sentence()
    assert failed.to_dict()["bound_on_nodes"] == "that never fail"
    assert "never fail" not in sound.sentence()
    assert failed.bound_ticks == sound.bound_ticks


def test_theorems_are_not_about_nodes_that_fail_and_certificates_are() -> None:
    outcome = sp.simulate(jobs(), "4x4", "asrpt", failing())
    told = certify(outcome, budget_s=0).sentence()
    assert "on nodes that fail" in told
    assert told.endswith(", a bound of nodes that never fail)")
    utility = certify_utility(outcome, "effective_throughput", budget_s=0).sentence()
    assert utility.endswith(", a bound of nodes that never fail)")
    sound = sp.simulate(jobs(), "4x4", "asrpt")
    assert "fail" not in certify(sound, budget_s=0).sentence()
    assert "fail" not in certify_utility(sound, "effective_throughput", budget_s=0).sentence()
    seen = describe(prepare_run(jobs(), "4x4", "asrpt", failing()), Objective.COMPLETION)
    assert seen is not None
    stated = guarantee(outcome, seen)
    assert isinstance(stated, UnmetHypotheses)
    assert stated.missing == ("there are nodes that fail",)
    assert known_bound(outcome, seen) is None
    with pytest.raises(InputError, match="nodes that fail, not known to bounds of ut"):
        sp.compare_utility(jobs(), "4x4", ("hadar",), options=failing(), budget_s=0.1)


# Runs.


def test_policies_meet_the_same_faults() -> None:
    """Common random numbers: what was drawn for longer runs begins with what was drawn for shorter ones."""
    tables = []
    for name in ("fifo", "srtf", "las2d"):
        found = sp.simulate(jobs(), "4x4", name, failing()).instance.failures
        assert found is not None
        tables.append(list(zip(found.node.tolist(), found.down_s.tolist(), strict=True)))
    least = min(map(len, tables))
    assert least > 3
    assert len({tuple(table[:least]) for table in tables}) == 1


def test_without_faults_and_checkpoints_nothing_changes() -> None:
    nothing = sp.RunOptions(failures=sp.Failures(FaultTable("none")), round_s=60.0)
    for name in ("fifo", "srtf", "easy"):
        one = sp.simulate(jobs(), "4x4", name, nothing).schedule.to_frame()
        assert one.equals(
            sp.simulate(jobs(), "4x4", name, sp.RunOptions(round_s=60.0)).schedule.to_frame()
        )


def test_the_compiled_loop_leaves_runs_on_nodes_that_fail_to_the_engine() -> None:
    instance = prepare_run(jobs(), "4x4", "srtf", failing()).instance
    assert not serves(instance, Count())
    assert serves(replace(instance, failures=None), Count())
    done = run_fastest(instance, policy("srtf"), least_jobs=1)
    verify(done.instance, done.schedule)


@pytest.mark.parametrize("limit", ["las2d:thresholds_gpu_s", "b-scaling:first_s"])
def test_nobody_is_woken_again_and_again_while_a_checkpoint_is_written(limit: str) -> None:
    """The first job crosses its limit 2**-10 s after its first checkpoint, which takes from 4 to 6 s."""
    table = FaultTable("t", np.array([1]), np.array([50.0]), np.array([51.0]))
    rule = sp.Failures(table, failures_of("law=none", 4.0, 2.0).checkpoints)
    work = sp.Workload.from_columns(arrival_s=[0, 1], gpus=[2, 2], work=[10, 10])
    crosses_s = 4.0 + 2.0**-10
    gpus = 2 if limit.startswith("las2d") else 1
    outcome = sp.simulate(work, "2x1", f"{limit}={crosses_s * gpus}", sp.RunOptions(failures=rule))
    assert crosses_s + 2.0 in outcome.schedule.end_s
    assert outcome.decisions <= 12


def test_numbers_of_a_small_run() -> None:
    """Two nodes of one GPU, a job of 10 s a node; node 0 is down from 5 to 9 and loses 2 s of work."""
    table = FaultTable("t", np.array([0]), np.array([5.0]), np.array([9.0]))
    rule = sp.Failures(table, failures_of("law=none", 2.0, 1.0).checkpoints)
    work = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[10, 10])
    outcome = sp.simulate(work, "2x1", "fifo", sp.RunOptions(failures=rule))
    # 2 s, a checkpoint, and 2 s that are lost; then 8 s with three checkpoints.
    frame = outcome.schedule.to_frame()
    assert list(zip(frame.job, frame.start_s, frame.end_s, strict=True)) == [
        (0, 0.0, 5.0),
        (1, 0.0, 14.0),
        (0, 9.0, 20.0),
    ]
    table_of_jobs = outcome.jobs
    assert table_of_jobs.failures.tolist() == [1, 0]
    assert table_of_jobs.lost_work_s.tolist() == [2.0, 0.0]
    assert table_of_jobs.preemptions.tolist() == [0, 0]
    summary = outcome.summary()
    assert summary["faults"] == summary["failed_runs"] == 1
    assert summary["lost_gpu_s"] == 2.0
    assert summary["checkpoint_gpu_s"] == 1.0 + 3.0 + 4.0
    assert summary["availability"] == 1.0 - 4.0 / 40.0
    assert summary["goodput"] == 20.0 / 40.0


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), name=st.sampled_from(("fifo", "srtf", "las")))
def test_all_gpu_time_that_is_held_is_kept_or_accounted_for(seed: int, name: str) -> None:
    charged = failing(f"mtbf_s=900,repair_s=100,seed={seed}", overheads=sp.Overheads(2.0, 3.0))
    outcome = sp.simulate(jobs(15, seed), "4x4", name, charged)
    found = availability.of_schedule(outcome.instance, outcome.schedule)
    assert found is not None
    span_gpu_s = float(outcome.summary()["makespan_s"]) * 16  # type: ignore[arg-type]
    s = outcome.schedule
    held = math.fsum(((s.end_s - s.start_s) * s.gpus).tolist())
    overhead = math.fsum((s.overhead_s * s.gpus).tolist())
    work = math.fsum((outcome.instance.workload.work * outcome.instance.workload.gpus).tolist())
    assert found.goodput * span_gpu_s == pytest.approx(work)
    assert held == pytest.approx(work + overhead + found.checkpoint_gpu_s + found.lost_gpu_s)
    assert 0 < found.goodput <= found.availability <= 1


def test_jobs_that_hold_parts_of_gpus_lose_them_with_their_node() -> None:
    rng = np.random.default_rng(2)
    parts = sp.Workload.from_columns(
        arrival_s=np.sort(rng.integers(0, 500, 30)),
        gpus=np.ones(30, dtype=np.int64),
        gpu_milli=rng.choice([200, 300, 500, 1000], 30),
        work=rng.integers(50, 400, 30),
    )
    law = failing("mtbf_s=300,repair_s=50,seed=1")
    for name in ("fifo", "srtf", "las"):
        outcome = sp.simulate(parts, "2x2", name, law)
        summary = outcome.summary()
        assert summary["failed_runs"] > 3  # type: ignore[operator]
        work = (parts.work * parts.gpu_milli / 1000).sum()
        span_gpu_s = 4 * float(summary["makespan_s"])  # type: ignore[arg-type]
        assert summary["goodput"] == pytest.approx(work / span_gpu_s)


@pytest.mark.parametrize(("name", "placement"), [("srtf", None), ("asrpt-early", "heavy-edge")])
def test_jobs_with_graphs_lose_what_they_did_since_their_checkpoints(
    name: str, placement: str | None
) -> None:
    recurrent = sp.generate("recurrent", jobs=30, seed=3)
    network = Network(300e9, 12.5e9, 4)
    law = failing("mtbf_s=600,repair_s=100,seed=4", network=network, placement=placement)
    outcome = sp.simulate(recurrent, "4x4", name, law)
    summary, table = outcome.summary(), outcome.jobs
    assert table["failures"].sum() == summary["failed_runs"] > 3  # type: ignore[operator]
    # No more than what is done between two checkpoints, each time.
    assert (table["lost_work_s"] <= 100.0 * table["failures"]).all()
    assert table["lost_work_s"].any()
    sound = sp.simulate(recurrent, "4x4", name, sp.RunOptions(network=network, placement=placement))
    assert summary["makespan_s"] > sound.summary()["makespan_s"]  # type: ignore[operator]


def test_a_window_of_jobs_ends_runs_on_nodes_that_fail() -> None:
    whole = sp.simulate(jobs(), "4x4", "srtf", failing())
    window = sp.simulate(jobs(), "4x4", "srtf", failing(until_complete=sp.JobWindow(5, 15)))
    assert window.complete[5:15].all()
    assert window.jct_s[5:15].tolist() == whole.jct_s[5:15].tolist()


def test_jobs_that_nodes_never_let_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_failures, "MOST_FAULTS", 2000)
    law = failures_of("mtbf_s=1,repair_s=100,seed=1")
    with pytest.raises(InputError, match=r"jobs are not complete after .* faults"):
        sp.simulate(jobs(3), "4x4", "srtf", sp.RunOptions(failures=law))
    work = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[10])
    gone = FaultTable("t", np.array([0]), np.array([5.0]), np.array([math.inf]))
    with pytest.raises(PolicyError, match="1 jobs wait for ever, 1 of 1 nodes stay down"):
        sp.simulate(work, "1x1", "fifo", sp.RunOptions(failures=sp.Failures(gone)))


def test_who_has_no_rule_of_lost_work_is_refused() -> None:
    with pytest.raises(InputError, match="jobs run as copies and write checkpoints every 100 s"):
        sp.simulate(jobs(), "4x4", "hadare", failing())
    with pytest.raises(
        InputError, match=r"has nodes that fail, not known to .* as hadar-committed"
    ):
        sp.simulate(jobs(), "4x4", "hadar-committed", failing())


# On disk, and on the command line.


def test_run_directories_keep_faults_and_are_verified_with_them(tmp_path: Path) -> None:
    for text in (LAW, "law=none"):
        outcome = sp.simulate(jobs(), "4x4", "srtf", failing(text))
        save(outcome, tmp_path / "run")
        again = load(tmp_path / "run")
        assert again.summary() == outcome.summary()
        one, other = again.instance.failures, outcome.instance.failures
        assert one is not None
        assert other is not None
        assert np.array_equal(one.up_s, other.up_s)
        assert (one.checkpoints, one.known_until_s) == (other.checkpoints, other.known_until_s)
    save(sp.simulate(jobs(), "4x4", "srtf"), tmp_path / "run")
    assert "failures" not in json.loads((tmp_path / "run" / INSTANCE).read_text())


def test_a_run_directory_whose_checkpoints_were_changed_is_refused(tmp_path: Path) -> None:
    save(sp.simulate(jobs(), "4x4", "srtf", failing()), tmp_path)
    described = json.loads((tmp_path / INSTANCE).read_text())
    described["failures"]["checkpoint_interval_s"] = None
    described["failures"]["checkpoint_cost_s"] = 0.0
    (tmp_path / INSTANCE).write_text(json.dumps(described))
    with pytest.raises(VerificationError, match="work"):
        load(tmp_path)


def test_the_command_line(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    jobs().to_frame().to_csv(trace, index=False)
    base = ["simulate", str(trace), "--cluster", "4x4", "--policy", "srtf", "--json"]
    law = f"failures:{LAW}"
    more = ["--with", f"{law},interval_s=100,cost_s=5"]
    found = json.loads(CliRunner().invoke(app, base + more).stdout)
    expected = sp.simulate(jobs(), "4x4", "srtf", failing()).summary()
    expected = {key: value for key, value in expected.items() if key != "cpu_s"}
    assert {key: found[key] for key in expected} == expected
    for wrong, message in (
        (["--with", "failures:interval_s=5"], "law exponential has no mtbf_s"),
        (
            ["--with", "failures:law=weekly"],
            "law is 'weekly', expected one of exponential, weibull",
        ),
        (["--with", f"{law},cost_s=5"], "without an interval"),
    ):
        refused = CliRunner().invoke(app, base + wrong)
        assert isinstance(refused.exception, InputError)
        assert message in str(refused.exception)
