"""Bounds from one price a GPU type: below every schedule, tight where they should be, and never refused work."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.analysis.bounds import bounds_of, certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.workload import Workload
from shadowprice.models import typed_span
from shadowprice.models.typed_interval_lp import use_of_types
from shadowprice.proofs.lower_bounds import priced_machine, span
from shadowprice.solvers.offline import type_prices
from shadowprice.solvers.offline.bounds import (
    Bound,
    fluid_ticks,
    mean_busy_ticks,
    simple_bounds,
)
from shadowprice.solvers.offline.modes.job_modes import every_kth
from shadowprice.solvers.offline.modes.types import gpu_type_modes
from shadowprice.solvers.offline.type_prices import (
    SpanPrices,
    best_prices,
    best_span_prices,
    busy_price_ticks,
    fluid_price_ticks,
    span_ticks,
)
from shadowprice.solvers.programs.compile import compile_model
from shadowprice.solvers.registry import policy as policy_by_name
from support.typed_jobs import TYPES, least_slotted_costs, slotted_instances, typed_instances


def type_price_bounds(instance: Instance, goal: Objective) -> list[Bound]:
    """Bounds at one price a GPU type."""
    kinds = ("priced-fluid", "priced-mean-busy-time", "priced-span")
    every = bounds_of(instance, goal, BoundEffort(0.0))
    return [bound for bound in every if bound.kind in kinds]


def test_flow_times_are_completions_less_arrivals() -> None:
    """By kind of bound, and no more than the best schedule: each of two jobs starts at once on its fast GPU."""
    jobs = Workload.from_columns(
        arrival_s=[3, 5],
        gpus=[1, 1],
        work=[4, 4],
        weight=[2, 2],
        throughput=[[1, 2]] * 2,
        gpu_types=("k80", "v100"),
    )
    instance = Instance(Cluster.parse("1x1:k80,1x1:v100"), jobs)
    flow, completion = (
        {bound.kind: bound.ticks for bound in type_price_bounds(instance, goal)}
        for goal in (Objective.FLOW, Objective.COMPLETION)
    )
    assert set(flow) == {"priced-fluid", "priced-mean-busy-time"}
    for kind, ticks in flow.items():
        assert ticks == completion[kind] - 2 * (3 + 5) * TICKS_PER_S
        assert ticks <= 2 * (2 + 2) * TICKS_PER_S


POLICIES = (
    "fifo",
    "srtf",
    "las2d",
    "hadar",
    "gavel:max_min_fairness:aware=true,round_s=10",
)


def drawn_prices(data: st.DataObject, pools: int, least: int = 1) -> tuple[int, ...]:
    return tuple(data.draw(st.lists(st.integers(least, 9), min_size=pools, max_size=pools)))


@settings(max_examples=8, deadline=None)
@given(instance=typed_instances(), policy=st.sampled_from(POLICIES), data=st.data())
def test_any_prices_bound_any_policy(instance: Instance, policy: str, data: st.DataObject) -> None:
    schedule = run(instance, policy_by_name(policy)).schedule
    ends = np.zeros(len(instance.workload))
    np.maximum.at(ends, schedule.job, schedule.end_s)
    pairs = zip(instance.workload.weight.tolist(), ends.tolist(), strict=True)
    cost = sum((Fraction(w) * Fraction(end) for w, end in pairs), Fraction(0))
    jobs = gpu_type_modes(instance)
    prices = drawn_prices(data, len(jobs.capacity))
    assert priced_machine.check(instance, cost, prices)
    own = tuple(data.draw(st.lists(st.integers(0, 9), min_size=len(ends), max_size=len(ends))))
    assert span.check(instance, float(ends.max()), SpanPrices(prices, own))
    goals = {Objective.COMPLETION: cost, Objective.MAKESPAN: Fraction(float(ends.max()))}
    origin = Fraction(float(instance.workload.arrival_s.min()))
    for goal, value in goals.items():
        for bound in type_price_bounds(instance, goal):
            shift = origin if goal is Objective.MAKESPAN else 0
            assert bound.ticks / TICKS_PER_S <= value - shift, bound.kind


@settings(max_examples=6, deadline=None)
@given(instance=slotted_instances(), data=st.data())
def test_never_above_exhaustive_search(instance: Instance, data: st.DataObject) -> None:
    least = least_slotted_costs(instance, 7)
    mine = gpu_type_modes(instance)
    prices = drawn_prices(data, len(mine.capacity))
    assert priced_machine.bound(instance, prices) <= least.total_s
    assert max(busy_price_ticks(mine, best_prices(mine)), 0) / TICKS_PER_S <= least.total_s
    assert best_span_prices(mine)[0] / TICKS_PER_S <= least.last_s


@settings(max_examples=15, deadline=None)
@given(instance=typed_instances(max_jobs=6))
def test_the_span_of_jobs_that_are_all_there_is_the_programmes(instance: Instance) -> None:
    """Its dual, rounded and evaluated exactly, loses next to nothing."""
    jobs = instance.workload
    now = Workload.from_columns(
        arrival_s=np.zeros(len(jobs)),
        gpus=jobs.gpus,
        work=jobs.work,
        throughput=jobs.throughput,
        gpu_types=jobs.gpu_types,
    )
    together = Instance(instance.cluster, now)
    sizes = together.cluster.gpus_per_type.astype(np.float64)
    model = typed_span.build(use_of_types(now.gpus, len(sizes)), together.processing_s, sizes)
    least = compile_model(model).solve().objective
    found = float(best_span_prices(gpu_type_modes(together))[0] / TICKS_PER_S)
    assert found == pytest.approx(least, rel=1e-5)
    assert found <= least * (1 + 1e-9)


@settings(max_examples=15, deadline=None)
@given(instance=typed_instances(weights=False))
def test_equal_prices_and_times_are_the_bounds_of_one_pool(instance: Instance) -> None:
    jobs = instance.workload
    alike = Workload.from_columns(
        arrival_s=jobs.arrival_s,
        gpus=jobs.gpus,
        work=jobs.work,
        throughput=np.full((len(jobs), 2), 2.0),
        gpu_types=TYPES[:2],
    )
    mine = gpu_type_modes(Instance(Cluster.parse("1x2:k80,1x2:p100"), alike))
    plain = mine.release.tolist(), mine.time[:, 0].tolist(), alike.gpus.tolist()
    for price in (1, 7):
        assert fluid_price_ticks(mine, [price]) == fluid_ticks(*plain, 4)
        assert busy_price_ticks(mine, [price]) == mean_busy_ticks(*plain, list(mine.weight), 4)
    assert not list(type_price_bounds(Instance(Cluster.parse("2x2:k80"), alike), Objective.FLOW))


def scarce() -> Instance:
    """Forty jobs want eight fast GPUs."""
    n = 40
    jobs = Workload.from_columns(
        arrival_s=np.arange(n) * 20.0,
        gpus=np.ones(n),
        work=np.arange(1, n + 1) * 100,
        throughput=[[0.2, 1.0]] * n,
        gpu_types=("k80", "v100"),
    )
    return Instance(Cluster.parse("2x4:k80,1x8:v100"), jobs)


def test_they_beat_one_pool_where_fast_gpus_are_scarce() -> None:
    instance = scarce()
    for goal, factor in ((Objective.FLOW, 1.15), (Objective.MAKESPAN, 1.5)):
        plain = max(bound.value_s for bound in simple_bounds(instance, goal))
        priced = max(bound.value_s for bound in type_price_bounds(instance, goal))
        assert priced > factor * plain
        again = certified_bounds(instance, (goal,), BoundEffort.of_size(500))[goal]
        assert again.value_s >= priced
        assert again.certified
        found = {bound.kind for bound in bounds_of(instance, goal, BoundEffort(0))}
        assert {bound.kind for bound in type_price_bounds(instance, goal)} <= found


def test_searched_prices_are_no_worse_than_equal_ones() -> None:
    jobs = gpu_type_modes(scarce())
    found, equal = best_prices(jobs), (1,) * len(jobs.capacity)
    assert busy_price_ticks(jobs, found) > 1.2 * busy_price_ticks(jobs, equal)
    assert best_prices(jobs) == found


def test_prices_of_many_jobs_are_those_of_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every second job on half of the GPUs: prices that are nearly as good."""
    jobs = gpu_type_modes(scarce())
    all_of_them = busy_price_ticks(jobs, best_prices(jobs))
    monkeypatch.setattr(type_prices, "SAMPLE", 20)
    some = best_prices(jobs)
    assert some == best_prices(every_kth(jobs, 2))
    assert 0.99 * all_of_them < busy_price_ticks(jobs, some) <= all_of_them * (1 + 1e-3)


def test_late_jobs_alone_may_decide_the_span() -> None:
    """A short job at 0; at 100 ten come that need 10 s each on the one fast GPU, or 20 on the other."""
    jobs = Workload.from_columns(
        arrival_s=[0] + [100] * 10,
        gpus=[1] * 11,
        work=[1] + [10] * 10,
        throughput=[[0.5, 1.0]] * 11,
        gpu_types=TYPES[:2],
    )
    mine = gpu_type_modes(Instance(Cluster.parse("1x1:k80,1x1:p100"), jobs))
    assert float(best_span_prices(mine)[0] / TICKS_PER_S) == pytest.approx(
        100 + 100 / 1.5, rel=1e-6
    )
    # The pool of the faster type comes first.
    found, when = span_ticks(mine, SpanPrices((2, 1), (0,) * 11))
    assert found == (100 + Fraction(200, 3)) * TICKS_PER_S
    assert when == 100 * TICKS_PER_S


@pytest.mark.parametrize("prices", [(1,), (1, 0), (1, -1), (1, 2, 3)])
def test_prices_of_completions_are_positive_and_one_a_pool(prices: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected 2 whole numbers >= 1"):
        busy_price_ticks(gpu_type_modes(scarce()), prices)


@pytest.mark.parametrize(
    ("types", "own", "message"),
    [
        ((1,), (0,) * 40, "expected 2 and 40"),
        ((1, 1), (0,) * 39, "expected 2 and 40"),
        ((1, -1), (0,) * 40, "expected 2 and 40"),
        ((0, 0), (1,) * 40, "expected one above 0"),
    ],
)
def test_prices_of_spans(types: tuple[int, ...], own: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        span_ticks(gpu_type_modes(scarce()), SpanPrices(types, own))
