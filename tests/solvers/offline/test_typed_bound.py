"""Bounds with prices by GPU type: below every schedule, and no weaker than those of one pool."""

from __future__ import annotations

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
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import Workload
from shadowprice.solvers.offline import lagrangian
from shadowprice.solvers.offline.modes.job_modes import ModeTable
from shadowprice.solvers.offline.modes.types import gpu_type_modes
from shadowprice.solvers.offline.typed_bound import (
    TypedPrices,
    typed_bound,
    typed_prices,
    work_values,
)
from shadowprice.solvers.registry import policies
from shadowprice.solvers.registry import policy as policy_by_name
from support.typed_jobs import TYPES, least_slotted_costs, slotted_instances, typed_instances

POLICIES = (
    "fifo",
    "srtf",
    "las2d",
    "hadar",
    "gavel:max_min_fairness:aware=true,round_s=10",
)


def ends_s(instance: Instance, schedule: object) -> np.ndarray:
    ends = np.zeros(len(instance.workload))
    np.maximum.at(ends, schedule.job, schedule.end_s)  # type: ignore[attr-defined]
    return ends


def cost_s(instance: Instance, schedule: object) -> float:
    """Weighted completion time, and what the verifier's two ticks of work a run can be worth."""
    slack = 4 * len(schedule) / TICKS_PER_S  # type: ignore[arg-type]
    weight, ends = instance.workload.weight, ends_s(instance, schedule)
    return float(weight @ (ends + slack)) * (1 + 1e-12)


def prices_of(draw: st.DataObject, jobs: ModeTable, end_s: int = 200) -> TypedPrices:
    inner = draw.draw(st.lists(st.integers(1, end_s), max_size=12, unique=True))
    first = int(jobs.release.min())
    bounds = np.array([first, *(first + TICKS_PER_S * t for t in sorted(inner))])
    bounds = np.append(bounds, bounds[-1] + TICKS_PER_S)
    shape = len(bounds) - 1, len(jobs.capacity)
    size = shape[0] * shape[1]
    drawn = draw.draw(st.lists(st.floats(0, 9), min_size=size, max_size=size))
    return TypedPrices(bounds, lagrangian.exact_prices(np.array(drawn).reshape(shape)))


@settings(max_examples=25, deadline=None)
@given(instance=typed_instances(), policy=st.sampled_from(POLICIES), data=st.data())
def test_any_prices_bound_any_policy(instance: Instance, policy: str, data: st.DataObject) -> None:
    schedule = run(instance, policy_by_name(policy)).schedule
    jobs = gpu_type_modes(instance)
    found = typed_bound(jobs, prices_of(data, jobs)) / TICKS_PER_S
    assert found <= cost_s(instance, schedule)


@settings(max_examples=8, deadline=None)
@given(instance=typed_instances())
def test_the_programme_bounds_every_policy(instance: Instance) -> None:
    prices = typed_prices(gpu_type_modes(instance), 0.5)
    if prices is None:
        return
    found = typed_bound(gpu_type_modes(instance), prices) / TICKS_PER_S
    for name in ("srtf", "hadar", "fifo"):
        assert found <= cost_s(instance, run(instance, policies()[name]).schedule)


@settings(max_examples=6, deadline=None)
@given(instance=slotted_instances(), data=st.data())
def test_never_above_exhaustive_search(instance: Instance, data: st.DataObject) -> None:
    least = least_slotted_costs(instance, 7).total_s
    mine = gpu_type_modes(instance)
    found = [prices_of(data, mine, 10), typed_prices(mine, 1.0)]
    for prices in found:
        if prices is not None:
            assert typed_bound(mine, prices) / TICKS_PER_S <= least


@pytest.mark.parametrize(("table", "least"), [([[1, 2]], 5.0), ([[4, 1]], 2.5)])
def test_a_job_alone_on_an_aligned_grid_is_bound_exactly(
    table: list[list[float]], least: float
) -> None:
    jobs = Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[10], throughput=table, gpu_types=TYPES[:2]
    )
    mine = gpu_type_modes(Instance(Cluster.parse("1x1:k80,1x1:p100"), jobs))
    prices = TypedPrices(np.array([0, 20]) * TICKS_PER_S, np.zeros((1, 2), dtype=np.int64))
    assert float(typed_bound(mine, prices) / TICKS_PER_S) == pytest.approx(least, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(instance=typed_instances(), data=st.data())
def test_equal_types_are_one_pool(instance: Instance, data: st.DataObject) -> None:
    """On one pool the bound is that of the interval LP for the same prices."""
    jobs = instance.workload
    alike = Workload.from_columns(
        arrival_s=jobs.arrival_s,
        gpus=jobs.gpus,
        work=jobs.work,
        weight=jobs.weight,
        throughput=np.repeat(np.full((len(jobs), 1), 2.0), 2, axis=1),
        gpu_types=TYPES[:2],
    )
    equal = Instance(Cluster.parse("1x2:k80,1x2:p100"), alike)
    mine = gpu_type_modes(equal)
    assert mine.capacity.tolist() == [4]
    given_ = prices_of(data, mine)
    wide = np.append(given_.bounds, given_.bounds[-1] + 10_000 * TICKS_PER_S)
    given_ = TypedPrices(wide, np.vstack((given_.prices, np.zeros((1, 1), dtype=np.int64))))
    one_pool = lagrangian.interval_bound(
        mine.release.tolist(),
        mine.time[:, 0].tolist(),
        equal.workload.gpus.tolist(),
        list(mine.weight),
        4,
        wide.tolist(),
        given_.prices[:, 0],
    )
    assert float(typed_bound(mine, given_) / TICKS_PER_S) == pytest.approx(
        float(one_pool / TICKS_PER_S), abs=1e-3
    )
    assert typed_prices(mine, 1.0) is None


def test_it_beats_one_pool_where_fast_gpus_are_scarce() -> None:
    """Fifteen jobs want three fast GPUs; all GPUs as fast as the fastest is far from possible."""
    n = 15
    jobs = Workload.from_columns(
        arrival_s=np.zeros(n),
        gpus=np.ones(n),
        work=np.arange(1, n + 1) * 100,
        throughput=[[0.2, 1.0]] * n,
        gpu_types=("k80", "v100"),
    )
    instance = Instance(Cluster.parse("1x3:k80,1x3:v100"), jobs)
    found = {bound.kind: bound for bound in bounds_of(instance, "completion", BoundEffort(6))}
    typed = found.pop("typed-interval-lp")
    assert typed.certified
    assert typed.holds_for.preemptive
    cost = Objective.COMPLETION.cost_s(
        jobs, ends_s(instance, run(instance, policies()["srtf"]).schedule)
    )
    assert typed.value_s <= cost
    # Prices that stay as they are do nearly as well here; one pool does not.
    still = found.pop("priced-mean-busy-time"), found.pop("priced-fluid")
    assert typed.value_s > max(bound.value_s for bound in still)
    assert typed.value_s > 1.25 * max(bound.value_s for bound in found.values())
    fixed = [
        certified_bounds(
            instance, (Objective.COMPLETION, Objective.FLOW), BoundEffort.of_size(10000)
        )
        for _ in range(2)
    ]
    assert fixed[0] == fixed[1]
    assert fixed[0][Objective.FLOW].kind == "typed-interval-lp"
    assert fixed[0][Objective.FLOW].value_s == fixed[0][Objective.COMPLETION].value_s <= cost


@settings(max_examples=15, deadline=None)
@given(
    instance=typed_instances(max_jobs=4),
    data=st.data(),
    efficiency=st.sampled_from([0.6, 0.9, 1.0]),
)
def test_jobs_that_grow(instance: Instance, efficiency: float, data: st.DataObject) -> None:
    """GPU use is at least gang x progress: jobs one after the other, each as wide as it may be."""
    jobs, cluster = instance.workload, instance.cluster
    n = len(jobs)
    widest = np.maximum(jobs.gpus, 2)
    grown = Elasticity(widest, np.full(n, efficiency))
    wide = Instance(cluster, jobs, elasticity=grown)
    mine = gpu_type_modes(wide)
    speed = grown.speed(np.arange(len(jobs)), jobs.gpus, grown.widest)
    fastest = instance.plain_processing_s.min(axis=1)
    now, ends = 0.0, np.zeros(n)
    for j in range(n):
        now = max(now, float(jobs.arrival_s[j])) + float(fastest[j] / speed[j]) + 2 / TICKS_PER_S
        ends[j] = now
    found = typed_bound(mine, prices_of(data, mine)) / TICKS_PER_S
    assert found <= float(jobs.weight @ ends) * (1 + 1e-12) + 1e-9


def test_values_of_work_are_the_best() -> None:
    """The bisection finds, to rounding, the values at which the bound is greatest."""
    rng = np.random.default_rng(5)
    jobs = Workload.from_columns(
        arrival_s=rng.integers(0, 50, 6),
        gpus=rng.choice([1, 2], 6),
        work=rng.integers(5, 60, 6),
        throughput=rng.choice([0.5, 1.0, 3.0], (6, 2)),
        gpu_types=TYPES[:2],
    )
    mine = gpu_type_modes(Instance(Cluster.parse("1x2:k80,1x2:p100"), jobs))
    bounds = np.arange(0, 400, 10) * TICKS_PER_S
    prices = TypedPrices(bounds, lagrangian.exact_prices(rng.uniform(0, 3, (39, 2))))
    values, best = work_values(mine, prices), typed_bound(mine, prices)
    for factor in (0.9, 0.99, 1.01, 1.1):
        assert typed_bound(mine, prices, values * factor) < best


def test_a_grid_must_increase_and_prices_be_no_less_than_zero() -> None:
    jobs = Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[1], throughput=[[1, 2]], gpu_types=TYPES[:2]
    )
    mine = gpu_type_modes(Instance(Cluster.parse("1x1:k80,1x1:p100"), jobs))
    for bounds, price in (([0, 3, 2], 0), ([0, 1, 2], -1)):
        with pytest.raises(ValueError, match="not increasing, or a price"):
            typed_bound(mine, TypedPrices(np.array(bounds), np.full((2, 2), price)))
