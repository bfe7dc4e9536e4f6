"""Bounds from cheapest plans: below every schedule, the same in two arithmetics, and better than those they replace."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.execution.engine import run
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance, Overheads
from shadowprice.instances.objective import Objective
from shadowprice.instances.strategies import instances
from shadowprice.proofs.lower_bounds import priced_plans as lb_plan
from shadowprice.solvers.offline.bounds import RelaxedJobs, offset_ticks, simple_bounds
from shadowprice.solvers.offline.lagrangian import PRICE_UNIT, interval_bound
from shadowprice.solvers.offline.priced_plans import (
    PlanPrices,
    exact_plan_bound,
    plan_bound,
    search,
)
from shadowprice.solvers.offline.strongest import lower_bounds
from shadowprice.solvers.registry import policy as policy_by_name

POLICIES = ("fifo", "srtf", "srsf", "las", "easy")


@st.composite
def prices(draw: st.DrawFn, per_s: int = TICKS_PER_S, last: int = 60) -> PlanPrices:
    """A grid of a few whole seconds and prices up to 4 a second."""
    bounds = sorted(draw(st.sets(st.integers(0, last), min_size=2, max_size=8)))
    worth = st.lists(st.integers(0, 16), min_size=len(bounds) - 1, max_size=len(bounds) - 1)
    whole = tuple(each * PRICE_UNIT // 4 for each in draw(worth))
    return PlanPrices(tuple(bound * per_s for bound in bounds), whole)


@st.composite
def relaxed_jobs(draw: st.DrawFn, *, most: int = 6, unit: int = 1) -> RelaxedJobs:
    n = draw(st.integers(1, most))
    columns = [
        draw(st.lists(st.integers(low, high), min_size=n, max_size=n))
        for low, high in ((0, 40), (1, 20), (1, 4))
    ]
    weight = draw(st.lists(st.sampled_from([0, 1, 2, 4]), min_size=n, max_size=n))
    release, work, gpus = columns
    return RelaxedJobs(
        [unit * r for r in release],
        [unit * p for p in work],
        gpus,
        [Fraction(w) for w in weight],
        draw(st.integers(4, 6)),
        draw(st.sampled_from([Fraction(1), Fraction(3, 2)])),
    )


@settings(max_examples=20, deadline=None)
@given(
    instance=instances(max_jobs=6),
    policy=st.sampled_from(POLICIES),
    given_prices=prices(),
    charges=st.sampled_from([Overheads(), Overheads(start_s=2.0, restart_s=1.0, migration_s=3.0)]),
)
def test_any_prices_bound_any_policy(
    instance: Instance, policy: str, given_prices: PlanPrices, charges: Overheads
) -> None:
    charged = Instance(instance.cluster, instance.workload, charges)
    schedule = run(charged, policy_by_name(policy)).schedule
    ends = np.zeros(len(instance.workload))
    np.maximum.at(ends, schedule.job, schedule.end_s)
    pairs = zip(instance.workload.weight.tolist(), ends.tolist(), strict=True)
    cost = sum((Fraction(w) * Fraction(end) for w, end in pairs), Fraction(0))
    assert lb_plan.check(charged, cost, given_prices)
    jobs = RelaxedJobs.of(charged)
    for found in search(jobs, 0.02):
        assert found.ticks / TICKS_PER_S <= cost


def cheapest_by_force(jobs: RelaxedJobs, j: int, given_prices: PlanPrices) -> Fraction:
    """Least cost of a job's plans in whole units, by trying all."""
    unit = max(jobs.weight) / PRICE_UNIT
    r, p, last = jobs.release[j], jobs.work[j], given_prices.grid_ticks[-1]

    def price(t: int) -> int:
        inside = [
            cost
            for start, end, cost in zip(
                given_prices.grid_ticks,
                given_prices.grid_ticks[1:],
                given_prices.prices,
                strict=False,
            )
            if start <= t < end
        ]
        return inside[0] if inside else 0

    plans = combinations(range(r, max(r, last) + p), p)
    return min(
        jobs.weight[j] * (plan[-1] + 1) + jobs.gpus[j] * unit * sum(map(price, plan))
        for plan in plans
    )


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_plan_was_thought_of(data: st.DataObject) -> None:
    jobs = RelaxedJobs(
        [data.draw(st.integers(0, 6))],
        [data.draw(st.integers(1, 4))],
        [data.draw(st.integers(1, 3))],
        [Fraction(data.draw(st.integers(1, 3)))],
        4,
        Fraction(1),
    )
    given_prices = data.draw(prices(per_s=1, last=9))
    spans = zip(given_prices.grid_ticks, given_prices.grid_ticks[1:], strict=False)
    paid = sum(p * (b - a) for p, (a, b) in zip(given_prices.prices, spans, strict=True))
    rent = 4 * paid * jobs.weight[0] / PRICE_UNIT
    assert exact_plan_bound(jobs, given_prices) == cheapest_by_force(jobs, 0, given_prices) - rent


@settings(max_examples=60, deadline=None)
@given(jobs=relaxed_jobs(), given_prices=prices(per_s=1))
def test_two_arithmetics_agree(jobs: RelaxedJobs, given_prices: PlanPrices) -> None:
    """Weights that are powers of two are whole; so are times that are short."""
    assert plan_bound(jobs, given_prices) == exact_plan_bound(jobs, given_prices)


@settings(max_examples=30, deadline=None)
@given(jobs=relaxed_jobs(unit=2**33 + 12_345), given_prices=prices(per_s=2**33))
def test_long_times_are_rounded_so_that_the_bound_falls(
    jobs: RelaxedJobs, given_prices: PlanPrices
) -> None:
    exact, rounded = exact_plan_bound(jobs, given_prices), plan_bound(jobs, given_prices)
    if any(jobs.weight):
        assert rounded <= exact
        # The unit is 2**5 ticks: a job's release and its work are rounded by less than one each.
        paid = max(given_prices.prices) * max(jobs.weight) / PRICE_UNIT
        lost = sum(2**6 * (2 * w + g * paid) for w, g in zip(jobs.weight, jobs.gpus, strict=True))
        assert exact - rounded <= lost


@settings(max_examples=30, deadline=None)
@given(jobs=relaxed_jobs(), given_prices=prices(per_s=1, last=160))
def test_no_less_than_the_interval_relaxation(jobs: RelaxedJobs, given_prices: PlanPrices) -> None:
    # Both grids have to cover everything for the other bound to hold; its prices are of weight 1.
    largest = max(jobs.weight)
    end = max(jobs.release) + sum(jobs.work) + 200
    grid = (0, *[b for b in given_prices.grid_ticks if b > 0], end)
    worth = [*([0] if given_prices.grid_ticks[0] > 0 else []), *given_prices.prices, 0]
    scaled = np.array([int(w * largest) for w in worth], dtype=np.int64)
    other = interval_bound(
        jobs.release, jobs.work, jobs.gpus, jobs.weight, jobs.capacity, list(grid), scaled
    )
    assert exact_plan_bound(jobs, PlanPrices(grid, tuple(worth))) >= other - len(jobs.work)


def queue(n: int) -> Instance:
    jobs = sp.generate("lognormal", jobs=n, seed=1, gpus_total=8, load=3.0)
    return Instance(sp.Cluster.parse("2x4"), jobs)


def crowded(n: int = 60) -> RelaxedJobs:
    return RelaxedJobs.of(queue(n))


def test_a_queue_is_seen() -> None:
    """Neither jobs alone nor one fast machine know of the queue; prices that were improved know more."""
    instance = queue(60)
    jobs = RelaxedJobs.of(instance)
    offset = offset_ticks(jobs.weight, jobs.release, Objective.FLOW)
    simple = max(bound.ticks for bound in simple_bounds(instance, Objective.FLOW))
    found = list(search(jobs, 0.2))
    values = [each.ticks - offset for each in found]
    assert values == sorted(set(values))
    assert values[-1] > Fraction(11, 10) * simple
    assert values[-1] > Fraction(101, 100) * values[0]
    kinds = {b.kind for b in lower_bounds(instance, "flow", preemptive=True, budget_s=0.2)}
    assert "priced-plans" in kinds


def test_the_same_on_every_run() -> None:
    first, second = list(search(crowded(), 0.1)), list(search(crowded(), 0.1))
    assert [each.ticks for each in first] == [each.ticks for each in second]
    assert first[-1].prices.prices == second[-1].prices.prices


def test_weights_may_have_any_unit() -> None:
    jobs = crowded(20)
    last = list(search(jobs, 0.1))[-1]
    for factor in (Fraction(1, 2**40), Fraction(3, 7), Fraction(10**6)):
        heavier = RelaxedJobs(
            jobs.release, jobs.work, jobs.gpus, [factor * w for w in jobs.weight], 8, Fraction(1)
        )
        assert list(search(heavier, 0.1))[-1].ticks == factor * last.ticks


def test_nobody_waits_and_nobody_matters() -> None:
    alone = RelaxedJobs([0], [5], [1], [Fraction(1)], 8, Fraction(1))
    assert list(search(alone, 1.0)) == []
    weightless = RelaxedJobs([0, 0], [5, 5], [1, 1], [Fraction(0)] * 2, 1, Fraction(1))
    assert list(search(weightless, 1.0)) == []
    assert plan_bound(weightless, PlanPrices((0, 1), (0,))) == 0
    assert list(search(crowded(), 0.0)) == []


def test_the_search_ends_when_it_is_told_to() -> None:
    assert len(list(search(crowded(), 5.0, until=0.0))) == 1


def test_prices_that_do_not_fit_are_counted_in_full() -> None:
    jobs = crowded(5)
    dear = PlanPrices((0, 2**40), (2**61,))
    assert plan_bound(jobs, dear) == exact_plan_bound(jobs, dear)
    within = PlanPrices((0, 2**40 + 1), (1,))
    assert plan_bound(jobs, within) <= exact_plan_bound(jobs, within)


@pytest.mark.parametrize(
    ("grid", "worth", "says"),
    [
        ((0, 1), (), "0 prices"),
        ((0, 1), (1, 2), "2 prices"),
        ((0, 0), (1,), "not increasing"),
        ((0, 2), (-1,), "price -1"),
    ],
)
def test_prices_have_a_grid(grid: tuple[int, ...], worth: tuple[int, ...], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        PlanPrices(grid, worth)


def test_grids_begin_at_whole_units() -> None:
    jobs = crowded()
    last = list(search(jobs, 0.1))[-1]
    assert plan_bound(jobs, last.prices) == last.ticks
    assert last.ticks <= exact_plan_bound(jobs, last.prices)
