"""Measures of runs for scores, beside their definitions moment by moment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.simulate import execute
from shadowprice.errors import InputError
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import merged
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.window import JobWindow
from shadowprice.library.score.measures import Pauses, ScoreMeasures, idle_gpu_ticks
from shadowprice.proofs.testing import cases
from shadowprice.proofs.testing.subject import Case

POLICIES = st.sampled_from(["fifo", "srtf", "las:quantum_s=5", "easy"])


def run(case: Case, policy: str) -> Outcome:
    return execute(prepare_run(case.instance, None, policy))


def moments(outcome: Outcome) -> list[float]:
    """All times at which anything changes."""
    s, failures = outcome.schedule, outcome.instance.failures
    times = {*outcome.instance.workload.arrival_s.tolist(), *s.start_s.tolist(), *s.end_s.tolist()}
    if failures is not None:
        times |= {t for t in (*failures.down_s.tolist(), *failures.up_s.tolist()) if np.isfinite(t)}
    return sorted(times)


def waiting(outcome: Outcome, at_s: float) -> Iterator[int]:
    """Jobs that are there and hold nothing."""
    s = outcome.schedule
    for job, arrival_s in enumerate(outcome.instance.workload.arrival_s.tolist()):
        runs = (s.job == job) & (s.start_s <= at_s) & (at_s < s.end_s)
        if arrival_s <= at_s < outcome.end_s[job] and not runs.any():
            yield job


def free_by_type(outcome: Outcome, at_s: float) -> dict[str, int]:
    """GPUs that nobody holds, of nodes that are up, by type; of one type where jobs do not tell them apart."""
    instance, s = outcome.instance, outcome.schedule
    failures = instance.failures
    free: dict[str, int] = {}
    for node, each in enumerate(instance.cluster.nodes):
        holds = (s.node == node) & (s.start_s <= at_s) & (at_s < s.end_s)
        down = failures is not None and bool(
            ((failures.node == node) & (failures.down_s <= at_s) & (at_s < failures.up_s)).any()
        )
        name = "" if instance.workload.throughput is None else each.gpu_type
        left = 0 if down else each.gpus - int(s.gpus[holds].sum())
        free[name] = free.get(name, 0) + left
    return free


def idle_by_definition(outcome: Outcome) -> Fraction:
    """GPU time, of each type, that is free while a job waits that could run there and fits [GPU-s]."""
    instance, total = outcome.instance, Fraction(0)
    types = list(instance.cluster.gpu_types)
    times = moments(outcome)
    for begin_s, end_s in pairwise(times):
        for name, free in free_by_type(outcome, begin_s).items():
            fits = any(
                instance.workload.gpus[job] <= free
                and (not name or np.isfinite(instance.processing_s[job, types.index(name)]))
                for job in waiting(outcome, begin_s)
            )
            total += fits * free * (Fraction(end_s) - Fraction(begin_s))
    return total


@given(st.one_of(cases.plain(), cases.charged(), cases.failing(), cases.typed()), POLICIES)
def test_idle_gpus_and_pauses_are_what_they_are_moment_by_moment(case: Case, policy: str) -> None:
    outcome = run(case, policy)
    pauses = Pauses.of(outcome)
    assert Fraction(idle_gpu_ticks(outcome, pauses), TICKS_PER_S) == idle_by_definition(outcome)
    waited = np.zeros(len(outcome.jct_s))
    np.add.at(waited, pauses.job, (pauses.end - pauses.begin) / TICKS_PER_S)
    assert waited.tolist() == outcome.jobs["queueing_s"].tolist()
    times = moments(outcome)
    by_moment = [Fraction(0)] * len(waited)
    for begin_s, end_s in pairwise(times):
        for job in waiting(outcome, begin_s):
            by_moment[job] += Fraction(end_s) - Fraction(begin_s)
    assert [float(each) for each in by_moment] == waited.tolist()


@given(st.one_of(cases.plain(), cases.charged(), cases.failing(), cases.typed()), POLICIES)
def test_measures_agree_with_those_of_the_run(case: Case, policy: str) -> None:
    outcome = run(case, policy)
    m, table, summary = ScoreMeasures.of(outcome), outcome.jobs, outcome.summary()
    assert m.mean_wait_s == pytest.approx(table["queueing_s"].mean(), rel=1e-12)
    assert m.longest_wait_s == table["queueing_s"].max()
    assert m.longest_pause_s <= m.longest_wait_s
    assert (m.mean_ftf, m.largest_ftf) == (summary["mean_ftf"], summary["max_ftf"])
    assert m.preemptions == summary["preemptions"]
    assert m.lost_gpu_s == summary.get("lost_gpu_s", 0.0)
    parts = m.mean_wait_s + m.mean_slower_s + float(outcome.instance.shortest_s.mean())
    owed = np.zeros(len(table))
    runs = outcome.schedule.runs
    np.add.at(owed, outcome.schedule.job[runs], outcome.schedule.overhead_s[runs])
    parts += float(owed.mean()) + float(table["lost_work_s"].mean())
    assert table["jct_s"].mean() == pytest.approx(parts, rel=1e-9)
    if outcome.instance.failures is None and outcome.instance.workload.throughput is None:
        assert m.mean_slower_s == 0.0
    slow = (table["jct_s"] / outcome.instance.shortest_s).to_numpy()
    assert m.largest_slowdown == slow.max()
    assert m.slowed_tenfold == int((slow >= 10).sum())
    assert 0 <= m.waiting_of_top_tenth <= 1
    assert m.idle_gpu_s <= m.gpu_s


def test_two_jobs_by_hand() -> None:
    """A gang of 2 waits 10 s for a single GPU's job, and the other GPU idles; nobody waits who would fit."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 2], work=[10, 5], source="test")
    m = ScoreMeasures.of(sp.simulate(jobs, "1x2", "fifo"))
    assert (m.mean_wait_s, m.longest_wait_s, m.idle_gpu_s, m.gpu_s) == (5.0, 10.0, 0.0, 30.0)
    assert (m.mean_slowdown, m.largest_slowdown) == (2.0, 3.0)
    assert [(each.job_id, each.wait_s) for each in m.longest] == [("1", 10.0)]
    assert (m.wide_gpus, m.wide_jobs) == (0, 0)  # 1 is half of 2.
    late = sp.Workload.from_columns(
        arrival_s=[0, 0, 1], gpus=[1, 2, 1], work=[10, 5, 4], source="t"
    )
    m = ScoreMeasures.of(sp.simulate(late, "1x2", "fifo"))
    assert m.idle_gpu_s == 9.0  # The third job would fit from 1 s to 10 s.


def test_a_slowdown_of_ten_is_tenfold() -> None:
    for late_s, count in ((9, 1), (8, 0)):
        jobs = sp.Workload.from_columns(
            arrival_s=[0, 0], gpus=[2, 2], work=[late_s, 1], source="test"
        )
        m = ScoreMeasures.of(sp.simulate(jobs, "1x2", "fifo"))
        assert (m.largest_slowdown, m.slowed_tenfold) == (late_s + 1, count)


def test_gpus_of_a_node_that_is_down_do_not_idle() -> None:
    """A job of two GPUs waits while one of two nodes is down: only the other's GPUs are free, and are too few."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 1], gpus=[1, 2], work=[20, 5], source="test")
    failures = merged(
        np.array([1]), np.array([0.0]), np.array([10.0]), "test", Checkpointing(math.inf, 0.0)
    )
    instance = replace(Instance(sp.Cluster.parse("2x2"), jobs), failures=failures)
    m = ScoreMeasures.of(sp.simulate(instance, policy="fifo"))
    assert (m.longest_wait_s, m.idle_gpu_s) == (9.0, 0.0)


def test_what_is_not_understood_is_refused() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[10], source="test")
    outcome = sp.simulate(jobs, "1x2", "fifo")
    windowed = replace(outcome.instance, until_complete=JobWindow(0, 1))
    with pytest.raises(InputError, match="scores"):
        ScoreMeasures.of(replace(outcome, instance=windowed))
