"""Metrics and outcomes: by hand, against a second-by-second count, and at a million rows."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis import metrics
from shadowprice.analysis.job_totals import JobTotals
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.strategies import instances
from shadowprice.instances.workload import Workload
from shadowprice.solvers.registry import policy
from support.summary import SUMMARY_KEYS


def schedule_of(rows: list[tuple[int, int, int, float, float]]) -> Schedule:
    """Rows (job, node, gpus, start, end), no overhead."""
    columns = list(zip(*rows, strict=True)) or [()] * 5
    whole = [np.array(column, dtype=np.int64) for column in columns[:3]]
    times = [np.array(column, dtype=np.float64) for column in columns[3:]]
    return Schedule(*whole, *times, np.zeros(len(rows)))


def preempted() -> tuple[Instance, Schedule]:
    """Job a (2 GPUs, 10 s) gives way to b from 4 to 7 s and resumes on two nodes."""
    workload = Workload.from_columns(
        id=["a", "b"], arrival_s=[1.0, 4.0], gpus=[2, 3], work=[10.0, 3.0]
    )
    instance = Instance(Cluster.parse("2x2"), workload)
    rows = [
        (0, 0, 2, 1.0, 4.0),
        (1, 0, 2, 4.0, 7.0),
        (1, 1, 1, 4.0, 7.0),
        (0, 0, 1, 7.0, 14.0),
        (0, 1, 1, 7.0, 14.0),
    ]
    return instance, schedule_of(rows)


def empty() -> tuple[Instance, Schedule]:
    workload = Workload.from_columns(arrival_s=[], gpus=[], work=[])
    return Instance(Cluster.parse("1x2"), workload), schedule_of([])


def test_metrics_of_a_preempted_gang_by_hand() -> None:
    case = preempted()
    assert metrics.end_s(*case).tolist() == [14.0, 7.0]
    assert metrics.first_start_s(*case).tolist() == [1.0, 4.0]
    assert metrics.jct_s(*case).tolist() == [13.0, 3.0]
    assert metrics.preemptions(*case).tolist() == [1, 0]
    totals = JobTotals.of(*case)
    assert metrics.ran_s(*case).tolist() == [10.0, 3.0]
    assert totals.makespan_s(case[0]) == 13.0
    assert totals.utilization(case[0]) == (2 * 3 + 3 * 3 + 2 * 7) / (4 * 13)


def test_the_summary_by_hand_has_exactly_the_promised_keys() -> None:
    summary = Outcome.verified(*preempted(), policy="hand", cpu_s=0.5).summary()
    assert list(summary) == SUMMARY_KEYS
    assert summary == {
        "policy": "hand",
        "jobs": 2,
        "completed": 2,
        "avg_jct_s": 8.0,
        "p50_jct_s": 8.0,
        "p95_jct_s": 12.5,
        "p99_jct_s": 12.9,
        "makespan_s": 13.0,
        "utilization": 29 / 52,
        "preemptions": 1,
        "verified": True,
        "cpu_s": 0.5,
        # On its share, with 16 / 13 jobs present, a takes 10 s; b, three GPUs wide, on a half 3 s x 3 / 2.
        "cru": 29 / 52,
        "ttd_s": 13.0,
        "mean_queueing_s": 1.5,
        "mean_ftf": (13 / 10 + 3 / 4.5) / 2,
        "max_ftf": 1.3,
    }


def test_no_jobs_give_json_without_nan() -> None:
    outcome = Outcome.verified(*empty(), policy="idle")
    summary = outcome.summary()
    json.dumps(summary, allow_nan=False)
    assert [summary[key] for key in SUMMARY_KEYS[1:10]] == [0, 0, *[None] * 4, 0.0, 0.0, 0]
    assert outcome.jobs.empty
    assert "no jobs" in repr(outcome)


@given(instances(), st.sampled_from(["fifo", "srtf", "las:quantum_s=3", "las2d"]))
def test_metrics_equal_a_second_by_second_count(instance: Instance, name: str) -> None:
    schedule = run(instance, policy(name)).schedule
    workload, until = instance.workload, int(schedule.end_s.max())
    held = np.zeros((len(workload), until), dtype=np.int64)
    for job, gpus, start, end in zip(
        schedule.job, schedule.gpus, schedule.start_s, schedule.end_s, strict=True
    ):
        assert start == int(start)
        assert end == int(end)
        held[job, int(start) : int(end)] += gpus
    running = held > 0
    end_s = np.array([np.flatnonzero(row)[-1] + 1 for row in running])
    first = int(workload.arrival_s.min())
    assert metrics.end_s(instance, schedule).tolist() == end_s.tolist()
    assert metrics.first_start_s(instance, schedule).tolist() == running.argmax(axis=1).tolist()
    assert metrics.ran_s(instance, schedule).tolist() == running.sum(axis=1).tolist()
    share = held.sum() / (instance.cluster.total_gpus * (until - first))
    utilization = JobTotals.of(instance, schedule).utilization(instance)
    assert utilization == pytest.approx(share, rel=1e-15)
    assert utilization <= 1


@given(instances(min_jobs=2), st.randoms(use_true_random=False))
def test_the_order_of_rows_is_immaterial(instance: Instance, random: st.RandomType) -> None:
    schedule = run(instance, policy("srtf")).schedule
    order = list(range(len(schedule)))
    random.shuffle(order)
    frame = schedule.to_frame().iloc[order]
    outcomes = [
        Outcome.verified(instance, each, policy="srtf")
        for each in (schedule, Schedule.from_frame(frame))
    ]
    assert outcomes[0].summary() == outcomes[1].summary()
    assert outcomes[0].jobs.equals(outcomes[1].jobs)


def test_jobs_is_one_row_a_job_with_the_promised_columns() -> None:
    jobs = Outcome.verified(*preempted(), policy="hand").jobs
    columns = ["id", "arrival_s", "first_start_s", "end_s", "jct_s", "preemptions"]
    more = ["gpus", "held_gpus", "job_class", "tenant", "model", "gpu_type"]
    times = ["first_wait_s", "queueing_s", "lost_work_s"]
    assert list(jobs.columns) == columns + more + times
    assert jobs[columns].to_numpy().tolist() == [["a", 1, 1, 14, 13, 1], ["b", 4, 4, 7, 3, 0]]


@given(instances(), st.sampled_from(["fifo", "srtf", "las2d"]))
def test_jobs_say_what_became_of_each(instance: Instance, name: str) -> None:
    done = run(instance, policy(name)).schedule
    jobs = Outcome.verified(instance, done, policy=name).jobs
    given, types = instance.workload, instance.cluster.nodes
    for row in range(len(given)):
        mine = done.job == row
        used = sorted({types[node].gpu_type for node in done.node[mine]})
        assert jobs["gpu_type"][row] == "|".join(used)
        assert jobs["first_wait_s"][row] == done.start_s[mine].min() - given.arrival_s[row]
        spans = {*zip(done.start_s[mine], done.end_s[mine], strict=True)}
        ran_s = sum(end - start for start, end in spans)
        assert jobs["queueing_s"][row] == jobs["jct_s"][row] - ran_s
    assert jobs["gpus"].tolist() == given.gpus.tolist()
    assert not jobs["lost_work_s"].any()


def test_no_outcome_of_a_schedule_that_breaks_a_rule() -> None:
    instance, schedule = preempted()
    broken = Schedule.from_frame(schedule.to_frame().iloc[:-1])
    outcome = Outcome.verified(instance, schedule, policy="hand")
    for make in (
        lambda: Outcome.verified(instance, broken, policy="hand"),
        lambda: Outcome(instance, broken, "hand"),
        lambda: replace(outcome, schedule=broken),
    ):
        with pytest.raises(VerificationError, match="gang"):
            make()
    with pytest.raises(FrozenInstanceError):
        outcome.schedule = broken  # type: ignore[misc]


def test_the_table_for_notebooks_escapes_names() -> None:
    html = Outcome.verified(*preempted(), policy="<b>")._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_sums_are_rounded_once_whatever_the_order() -> None:
    values = np.array([2.0**60, 1.0, -(2.0**60), 1.0])
    assert metrics.mean(values) == 0.5
    assert metrics.mean(values[::-1]) == 0.5


def test_metrics_are_vectorised() -> None:
    """A million jobs one after the other on a GPU; a loop over jobs would be slow to notice."""
    jobs = 1_000_000
    start = np.arange(jobs, dtype=np.float64)
    workload = Workload.from_columns(arrival_s=start, gpus=np.ones(jobs), work=np.ones(jobs))
    instance = Instance(Cluster.parse("1x1"), workload)
    row = np.arange(jobs)
    schedule = Schedule(
        row, np.zeros(jobs, np.int64), np.ones(jobs, np.int64), start, start + 1, np.zeros(jobs)
    )
    assert metrics.jct_s(instance, schedule).sum() == jobs
    assert metrics.ran_s(instance, schedule).sum() == jobs
    assert JobTotals.of(instance, schedule).utilization(instance) == 1.0
    assert metrics.preemptions(instance, schedule).sum() == 0
