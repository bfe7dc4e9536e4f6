"""Comparisons: one yardstick for all rows, and what is called an optimum."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.widths import Growth
from shadowprice.proofs.classic import hesrpt
from shadowprice.solvers.classic.fifo import Fifo


def test_a_bound_that_is_attained_is_the_optimum() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 1], gpus=[1, 1], work=[5, 5])
    row = sp.compare(jobs, "1x2", ["fifo", "srtf"], "flow", budget_s=1).rows[0]
    assert (row.cost, row.optimum_s, row.ratio, row.certified) == (10.0, 10.0, 1.0, True)
    assert row.sentence() == "fifo is optimal among preemptive schedules (certified by job)"


def test_policies_that_never_preempt_are_compared_with_their_own_optimum() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 1, 2, 3], gpus=[1, 2, 1, 1], work=[10, 5, 3, 20])
    best = sp.optimum(sp.Instance(sp.Cluster.parse("1x2"), jobs))
    assert best.proven
    for row in sp.compare(jobs, "1x2", ["fifo", "sjf"], "completion", budget_s=20).rows:
        assert row.certified
        assert row.bound <= best.upper_s <= row.cost
        assert row.optimum_s in (None, best.upper_s)
        sharper = row.proven_by if row.sharper is None else row.sharper
        assert (sharper.value_s, str(sharper.holds_for)) == (
            best.upper_s,
            "non-preemptive schedules",
        )


@settings(max_examples=5)
@given(instance=instances(max_jobs=5))
def test_ratios_are_at_least_one(instance: sp.Instance) -> None:
    names = ["fifo", "easy", "srtf", "las2d"]
    for goal in sp.Objective:
        result = sp.compare(instance.workload, instance.cluster, names, goal, budget_s=0.5)
        assert [row.policy for row in result.rows] == names
        assert all(row.ratio >= 1 and row.certified for row in result.rows)
        assert len({row.bound for row in result.rows}) == 1
        assert result.frame["ratio"].min() >= 1
        assert "<li>" in result._repr_html_()


def test_wrong_questions() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[5])
    with pytest.raises(InputError, match="expected one of completion, flow, makespan"):
        sp.compare(jobs, "1x1", ["fifo"], "speed")
    with pytest.raises(InputError, match="different names"):
        sp.compare(jobs, "1x1", ["fifo", "fifo"])
    with pytest.raises(InputError, match="takes the name of one of its policies"):
        sp.simulate(jobs, "1x1", Fifo(), sp.RunOptions(preset="tiresias"))


def test_no_jobs_at_all() -> None:
    empty = sp.Workload.from_columns(arrival_s=[], gpus=[], work=[])
    row = sp.compare(empty, "1x1", ["fifo"], "flow", budget_s=0.1).rows[0]
    assert (row.cost, row.ratio) == (0.0, 1.0)


def test_every_step_is_told() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[2, 1])
    steps: list[str] = []
    sp.compare(jobs, "1x1", ["fifo", "srtf"], budget_s=1.0, progress=steps.append)
    told = [
        "simulating fifo, policy 1 of 2",
        "simulating srtf, policy 2 of 2",
        "bounding the optimum",
    ]
    assert steps == told


def test_jobs_that_grow_have_the_bound_of_their_speedup() -> None:
    """Four jobs on 32 GPUs: what they would do on all GPUs at once says less than their common power of width."""
    jobs = sp.Workload.from_columns(arrival_s=[0] * 4, gpus=[1] * 4, work=[10, 20, 30, 40])
    options = sp.RunOptions(growth=Growth(32, 0.8))
    found = sp.compare(jobs, "1x32", ["hesrpt"], options=options, budget_s=0.0)
    (row,) = found.rows
    assert row.bound_kind == "speed-up-power"
    assert row.holds_for.elastic
    instance = found.outcomes["hesrpt"].instance
    exact = hesrpt.bound(instance) * 2**20
    assert exact * (1 - Fraction(1, 10**6)) < row.proven_by.ticks <= exact
    assert "certified by speed-up-power" in row.sentence()
    # It is about jobs that weigh the same, and completions.
    kinds = [
        bound.kind
        for more in (
            sp.compare(jobs, "1x32", ["hesrpt"], "makespan", options, budget_s=0.0),
            sp.compare(jobs, "1x32", ["srtf"], budget_s=0.0),
        )
        for bound in more.histories[0].bounds
    ]
    assert "speed-up-power" not in kinds
