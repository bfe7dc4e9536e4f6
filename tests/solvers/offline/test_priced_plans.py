"""Bounds from cheapest plans: below every schedule, the same in two arithmetics, and better than those they replace."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.bounds import bounds_of
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.execution.engine import run
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.charges import Overheads
from shadowprice.proofs.lower_bounds import configurations as lb_conf
from shadowprice.proofs.lower_bounds import priced_plans as lb_plan
from shadowprice.proofs.lower_bounds import wide_gangs as lb_wide
from shadowprice.solvers.offline.bounds import Relaxation, offset_ticks, simple_bounds
from shadowprice.solvers.offline.lagrangian import PRICE_UNIT, interval_bound
from shadowprice.solvers.offline.plan_prices import GangPrices, PlanPrices, exact_plan_bound
from shadowprice.solvers.offline.priced_plans import plan_bound, search
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
def relaxed_jobs(draw: st.DrawFn, *, most: int = 6, unit: int = 1) -> Relaxation:
    n = draw(st.integers(1, most))
    columns = [
        draw(st.lists(st.integers(low, high), min_size=n, max_size=n))
        for low, high in ((0, 40), (1, 20), (1, 4))
    ]
    weight = draw(st.lists(st.sampled_from([0, 1, 2, 4]), min_size=n, max_size=n))
    release, work, gpus = columns
    return Relaxation(
        [unit * r for r in release],
        [unit * p for p in work],
        gpus,
        [Fraction(w) for w in weight],
        draw(st.integers(4, 6)),
        draw(st.sampled_from([Fraction(1), Fraction(3, 2)])),
    )


@st.composite
def gang_prices(draw: st.DrawFn, jobs: Relaxation, per_s: int = TICKS_PER_S) -> GangPrices:
    """Prices of every width of some jobs on one grid."""
    widths = tuple(sorted(set(jobs.gpus)))
    first = draw(prices(per_s=per_s))
    worth = st.lists(
        st.integers(0, 16), min_size=len(first.prices), max_size=len(first.prices)
    ).map(lambda row: tuple(each * PRICE_UNIT // 2 for each in row))
    return GangPrices(first.grid_ticks, widths, tuple(draw(worth) for _ in widths))


@settings(max_examples=12, deadline=None)
@given(
    instance=instances(max_jobs=6),
    policy=st.sampled_from(POLICIES),
    given_prices=prices(),
    charges=st.sampled_from([Overheads(), Overheads(start_s=2.0, restart_s=1.0, migration_s=3.0)]),
    data=st.data(),
)
def test_any_prices_bound_any_policy(
    instance: Instance,
    policy: str,
    given_prices: PlanPrices,
    charges: Overheads,
    data: st.DataObject,
) -> None:
    charged = Instance(instance.cluster, instance.workload, charges)
    schedule = run(charged, policy_by_name(policy)).schedule
    ends = np.zeros(len(instance.workload))
    np.maximum.at(ends, schedule.job, schedule.end_s)
    pairs = zip(instance.workload.weight.tolist(), ends.tolist(), strict=True)
    cost = sum((Fraction(w) * Fraction(end) for w, end in pairs), Fraction(0))
    assert lb_plan.check(charged, cost, given_prices)
    assert lb_wide.check(charged, cost)
    jobs = Relaxation.of(charged)
    assert lb_conf.check(charged, cost, data.draw(gang_prices(jobs)))
    for found in search(jobs, 0.02, rigid=True):
        assert found.ticks / TICKS_PER_S <= cost


def cheapest_by_force(jobs: Relaxation, j: int, given_prices: PlanPrices) -> Fraction:
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


@settings(max_examples=35, deadline=None)
@given(data=st.data())
def test_every_plan_was_thought_of(data: st.DataObject) -> None:
    jobs = Relaxation(
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


@settings(max_examples=35, deadline=None)
@given(jobs=relaxed_jobs(), given_prices=prices(per_s=1))
def test_two_arithmetics_agree(jobs: Relaxation, given_prices: PlanPrices) -> None:
    """Weights that are powers of two are whole; so are times that are short."""
    assert plan_bound(jobs, given_prices) == exact_plan_bound(jobs, given_prices)


@settings(max_examples=35, deadline=None)
@given(data=st.data())
def test_two_arithmetics_fill_the_cluster_alike(data: st.DataObject) -> None:
    jobs = replace(data.draw(relaxed_jobs(most=8)), speedup=Fraction(1))
    given_prices = data.draw(gang_prices(jobs, per_s=1))
    exact = exact_plan_bound(jobs, given_prices)
    assert plan_bound(jobs, given_prices) == exact
    # The knapsacks by force: sets of jobs that have been released and fit.
    n, unit = len(jobs.gpus), max(jobs.weight) / PRICE_UNIT
    sets = [c for k in range(n + 1) for c in combinations(range(n), k)]
    fit = [c for c in sets if sum(jobs.gpus[j] for j in c) <= jobs.total_gpus]
    paid = 0
    for k, end in enumerate(given_prices.grid_ticks[1:]):
        price = dict(zip(given_prices.widths, (row[k] for row in given_prices.rows), strict=True))
        there = [c for c in fit if all(jobs.release[j] < end for j in c)]
        most = max(sum(price[jobs.gpus[j]] for j in c) for c in there)
        paid += most * (end - given_prices.grid_ticks[k])
    free = replace(jobs, total_gpus=0)  # Nothing fits: nothing is subtracted.
    assert exact == exact_plan_bound(free, given_prices) - unit * paid


@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_gangs_are_worth_no_more_than_their_gpus(data: st.DataObject) -> None:
    jobs = replace(data.draw(relaxed_jobs()), speedup=Fraction(1))
    of_gpus = data.draw(prices(per_s=1))
    widths = tuple(sorted(set(jobs.gpus)))
    rows = tuple(tuple(width * price for price in of_gpus.prices) for width in widths)
    gangs = GangPrices(of_gpus.grid_ticks, widths, rows)
    assert exact_plan_bound(jobs, gangs) >= exact_plan_bound(jobs, of_gpus)


def test_gangs_that_leave_gpus_idle_are_seen() -> None:
    """Of gangs of 5 and 6 one at a time runs on 8 GPUs."""
    jobs = Relaxation(
        [0, 0, 300, 300], [1000, 2000, 500, 700], [5, 6, 5, 6], [Fraction(1)] * 4, 8, Fraction(1)
    )
    found = {each.kind: each.ticks for each in search(jobs, 0.5, rigid=True)}
    alone = Instance(
        sp.Cluster.parse("1x8"),
        sp.Workload.from_columns(
            arrival_s=[0, 0, 300, 300], gpus=[5, 6, 5, 6], work=[1000, 2000, 500, 700]
        ),
    )
    least = lb_wide.bound(alone)
    alone_sum = 1000 + 2000 + 800 + 1000
    gained = found["configurations"] - alone_sum, found["priced-plans"] - alone_sum
    assert gained[0] > Fraction(13, 10) * gained[1]
    assert found["configurations"] <= least
    assert least == 800 + 1500 + 2200 + 4200
    only = search(replace(jobs, speedup=Fraction(3, 2)), 0.5)
    assert {each.kind for each in only} == {"priced-plans"}


def test_equal_wide_gangs_are_one_machine() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0.0] * 40, gpus=[33] * 40, work=[100.0] * 40)
    found = sp.compare(jobs, "8x8", ["srtf"], "flow", budget_s=0.0)
    assert found.rows[0].ratio == 1.0
    assert found.rows[0].bound_kind == "wide-gangs"


def test_wide_gangs_by_hand() -> None:
    """Two of 3 of 8 GPUs at once: sums at double speed, less than one after the other."""
    columns = {"arrival_s": [0, 0, 0, 4], "gpus": [3, 3, 3, 1], "work": [4, 4, 4, 5]}
    plain = Instance(sp.Cluster.parse("1x8"), sp.Workload.from_columns(**columns))
    assert lb_wide.bound(plain) == 3 + 5 + 7 + 9  # mean busy times 1, 3, 5 and half of 4
    heavy = Instance(
        sp.Cluster.parse("1x8"), sp.Workload.from_columns(**columns, weight=[1, 1, 2, 1])
    )
    assert lb_wide.bound(heavy) == 2 * 3 + 5 + 7 + 9


@settings(max_examples=20, deadline=None)
@given(jobs=relaxed_jobs(unit=2**33 + 12_345), given_prices=prices(per_s=2**33))
def test_long_times_are_rounded_so_that_the_bound_falls(
    jobs: Relaxation, given_prices: PlanPrices
) -> None:
    exact, rounded = exact_plan_bound(jobs, given_prices), plan_bound(jobs, given_prices)
    if any(jobs.weight):
        assert rounded <= exact
        # The unit is 2**5 ticks: a job's release and its work are rounded by less than one each.
        paid = max(given_prices.prices) * max(jobs.weight) / PRICE_UNIT
        lost = sum(2**6 * (2 * w + g * paid) for w, g in zip(jobs.weight, jobs.gpus, strict=True))
        assert exact - rounded <= lost


@settings(max_examples=20, deadline=None)
@given(jobs=relaxed_jobs(), given_prices=prices(per_s=1, last=160))
def test_no_less_than_the_interval_relaxation(jobs: Relaxation, given_prices: PlanPrices) -> None:
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


def crowded(n: int = 60) -> Relaxation:
    return Relaxation.of(queue(n))


def test_a_queue_is_seen() -> None:
    """Neither jobs alone nor one fast machine know of the queue; prices that were improved know more."""
    instance = queue(60)
    jobs = Relaxation.of(instance)
    offset = offset_ticks(jobs.weight, jobs.release, Objective.FLOW)
    simple = max(bound.ticks for bound in simple_bounds(instance, Objective.FLOW))
    found = list(search(jobs, 0.2))
    values = [each.ticks - offset for each in found]
    assert values == sorted(set(values))
    assert values[-1] > Fraction(11, 10) * simple
    assert values[-1] > Fraction(101, 100) * values[0]
    kinds = {b.kind for b in bounds_of(instance, "flow", BoundEffort(0.2))}
    assert "priced-plans" in kinds


def test_the_same_on_every_run() -> None:
    first, second = list(search(crowded(), 0.03)), list(search(crowded(), 0.03))
    assert [each.ticks for each in first] == [each.ticks for each in second]
    assert first[-1].prices.prices == second[-1].prices.prices


def test_weights_may_have_any_unit() -> None:
    jobs = crowded(10)
    last = list(search(jobs, 0.03))[-1]
    for factor in (Fraction(1, 2**40), Fraction(3, 7), Fraction(10**6)):
        heavier = Relaxation(
            jobs.release, jobs.work, jobs.gpus, [factor * w for w in jobs.weight], 8, Fraction(1)
        )
        assert list(search(heavier, 0.03))[-1].ticks == factor * last.ticks


def test_nobody_waits_and_nobody_matters() -> None:
    alone = Relaxation([0], [5], [1], [Fraction(1)], 8, Fraction(1))
    assert list(search(alone, 1.0)) == []
    weightless = Relaxation([0, 0], [5, 5], [1, 1], [Fraction(0)] * 2, 1, Fraction(1))
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
    with pytest.raises(ValueError, match=says):
        GangPrices(grid, (1,), (worth,))


def test_every_gang_has_a_price_of_its_own() -> None:
    jobs = crowded(5)
    for widths, rows, says in (
        ((), (), "0 rows of prices"),
        ((1, 2), ((1,),), "expected 2"),
        ((2, 1), ((1,), (1,)), "expected increasing"),
        ((0,), ((1,),), "expected increasing"),
    ):
        with pytest.raises(ValueError, match=says):
            GangPrices((0, 1), widths, rows)
    with pytest.raises(ValueError, match="which have prices"):
        plan_bound(jobs, GangPrices((0, 1), (7,), ((1,),)))
    widths = tuple(sorted(set(jobs.gpus)))
    prices_of_all = GangPrices((0, 1), widths, ((1,),) * len(widths))
    with pytest.raises(ValueError, match="do not share"):
        plan_bound(replace(jobs, speedup=Fraction(2)), prices_of_all)


def test_grids_begin_at_whole_units() -> None:
    jobs = crowded()
    last = list(search(jobs, 0.1))[-1]
    assert plan_bound(jobs, last.prices) == last.ticks
    assert last.ticks <= exact_plan_bound(jobs, last.prices)
