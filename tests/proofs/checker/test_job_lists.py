"""Lists of jobs that begin once: the checker and the search find what trying every start finds, at any prices."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import lcm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.proofs.checker import Rejected, lists
from shadowprice.proofs.checker.costs import LeastWork
from shadowprice.proofs.checker.form import PRICE_UNIT
from shadowprice.proofs.checker.instance import CertificateInstance
from shadowprice.proofs.checker.limits import MOST_STEPS, Effort
from shadowprice.proofs.checker.lists import ListSchedules, ListState, bound_lists
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.list_optimum import cheapest_list
from shadowprice.solvers.offline.plan_prices import PlanPrices
from support.begun_once import FewJobs

WEIGHTS = st.sampled_from([Fraction(w) for w in (0, 1, 1, 2, Fraction(1, 3), Fraction(7, 2))])
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 4))


@st.composite
def few_jobs(draw, most=4):
    """Some of one length and gang among them, of which lists prefer those that came first and weigh more."""
    shape = st.sampled_from(draw(st.lists(SHAPES, min_size=1, max_size=most)))
    row = st.tuples(st.integers(0, 4), shape, WEIGHTS)
    rows = draw(st.lists(row, min_size=1, max_size=most))
    release, shapes, weight = (list(column) for column in zip(*rows, strict=True))
    length, gang = (list(column) for column in zip(*shapes, strict=True))
    return FewJobs(release, length, gang, weight, 4)


@st.composite
def markets(draw):
    """A grid and prices, or none."""
    grid = sorted(draw(st.sets(st.integers(0, 15), max_size=6)))
    if not grid:
        return [], []
    cells = len(grid) - 1
    price = st.sampled_from([0, 2**18, 2**19 + 1, 2**22])
    return grid, draw(st.lists(price, min_size=cells, max_size=cells))


def asked(jobs, value, goal="completion", market=((), ()), start=0):
    """What the checker is asked of a cost that is claimed of lists of jobs, of whose lengths so much is their start."""
    area = [g * t for g, t in zip(jobs.gang, jobs.length, strict=True)]
    instance = CertificateInstance()
    instance.header = {"objective": goal, "start": start, "starts": "once"}
    work = LeastWork(
        jobs.release, jobs.weight, jobs.length, area, jobs.gang, jobs.gpus, jobs.gpus, 1, True
    )
    number = int(value) if value.denominator == 1 else str(value)
    grid, prices = map(list, market)
    bound = {"bound": "list-schedules", "grid": grid, "prices": prices, "least": number}
    return instance, work, bound


def lists_cost(*arguments, **options):
    """What the checker makes of it."""
    return bound_lists(*asked(*arguments, **options))


def relaxed(jobs):
    columns = jobs.release, jobs.length, jobs.gang, jobs.weight
    return Relaxation(*columns, jobs.gpus, Fraction(1))


def prices_of(market):
    grid, prices = market
    return PlanPrices(tuple(grid), tuple(prices)) if len(grid) > 1 else None


@settings(max_examples=18, deadline=None)
@given(few_jobs(), markets(), st.integers(0, 1))
def test_lists_cost_what_the_best_of_all_starts_does_at_any_prices(jobs, market, start):
    best = jobs.least(jobs.total)
    assert lists_cost(jobs, best, market=market, start=start) == best
    with pytest.raises(Rejected, match="a list of jobs costs less"):
        lists_cost(jobs, best + Fraction(1, 2**30), market=market, start=start)
    found = cheapest_list(relaxed(jobs), prices=prices_of(market))
    assert found.ticks == best == jobs.total(list(found.starts))
    assert jobs.fit(list(found.starts))


@settings(max_examples=30, deadline=None)
@given(few_jobs())
def test_the_last_end_is_that_of_the_best_of_all_starts(jobs):
    best = jobs.least(jobs.last)
    assert lists_cost(jobs, best, "makespan") == best
    with pytest.raises(Rejected, match="a list of jobs costs less"):
        lists_cost(jobs, best + Fraction(1, 2**30), "makespan")
    found = cheapest_list(relaxed(jobs), span=True)
    assert found.ticks == best == jobs.last(list(found.starts))


@settings(max_examples=35, deadline=None)
@given(few_jobs(), markets(), st.integers(0, 6), st.booleans())
def test_a_search_that_ends_early_bounds_what_it_did_not_see(jobs, market, most, span):
    best = jobs.least(jobs.last if span else jobs.total)
    found = cheapest_list(relaxed(jobs), span=span, prices=prices_of(market), most=most)
    assert found.ticks <= best
    assert found.starts is None or found.ticks == best
    goal = "makespan" if span else "completion"
    assert lists_cost(jobs, found.ticks, goal, ((), ()) if span else market) == found.ticks


@settings(max_examples=12, deadline=None)
@given(few_jobs(most=7), markets())
def test_two_programs_find_the_same_of_more_jobs(jobs, market):
    found = cheapest_list(relaxed(jobs), prices=prices_of(market))
    assert lists_cost(jobs, found.ticks, market=market) == found.ticks
    with pytest.raises(Rejected, match="a list of jobs costs less"):
        lists_cost(jobs, found.ticks + Fraction(1, 2**30), market=market)


def eight(seed):
    """Jobs of which many run side by side, and prices that fall as those do at which GPUs are let."""
    draw = np.random.default_rng(seed)
    columns = (draw.integers(low, high, 8).tolist() for low, high in ((0, 12), (1, 9), (1, 5)))
    weight = [Fraction(each) for each in draw.integers(1, 4, 8).tolist()]
    grid = list(range(0, 33, 4))
    return FewJobs(*columns, weight, 6), (grid, [2**17 * max(5 - k, 0) for k in range(8)])


@pytest.mark.parametrize("seed", range(40))
def test_two_programs_find_the_same_of_eight_jobs(seed):
    jobs, market = eight(seed)
    plain, priced = (cheapest_list(relaxed(jobs), prices=p) for p in (None, prices_of(market)))
    last = cheapest_list(relaxed(jobs), span=True)
    assert plain.ticks == priced.ticks == jobs.total(list(priced.starts))
    assert last.ticks == jobs.last(list(last.starts))
    cases = (plain, "completion", ((), ())), (plain, "completion", market)
    for found, goal, prices in (*cases, (last, "makespan", ((), ()))):
        assert lists_cost(jobs, found.ticks, goal, prices) == found.ticks
        with pytest.raises(Rejected, match="a list of jobs costs less"):
            lists_cost(jobs, found.ticks + 1, goal, prices)


def test_prices_spare_the_search_most_lists():
    looked_at = [0, 0]
    for seed in range(10):
        jobs, market = eight(seed)
        for k, prices in enumerate((None, prices_of(market))):
            looked_at[k] += cheapest_list(relaxed(jobs), prices=prices).looked_at
    assert looked_at[1] < 0.75 * looked_at[0]


def test_few_lists_are_looked_at():
    """What is left out is left out: numbers are those at hand, and may be less."""
    steps = looked_at = 0
    for seed in range(10):
        jobs, market = eight(seed)
        for found, goal in (
            (cheapest_list(relaxed(jobs)), "completion"),
            (cheapest_list(relaxed(jobs), span=True), "makespan"),
        ):
            looked_at += found.looked_at
            prices = market if goal == "completion" else ((), ())
            one = ListSchedules(*asked(jobs, found.ticks, goal, prices))
            assert one.nothing_less()
            steps += MOST_STEPS - one.effort.left
    assert 49_900 < steps <= 50_009
    assert looked_at <= 1_867
    same = FewJobs([0] * 12, [3] * 12, [2] * 12, [Fraction(1)] * 12, 5)
    assert cheapest_list(relaxed(same)).looked_at == 12


def test_the_search_ends_when_it_is_told_to():
    jobs, _ = eight(1)
    for options in ({"most": 3}, {"until": 0.0}):
        found = cheapest_list(relaxed(jobs), **options)
        assert found.starts is None
        assert found.looked_at == options.get("most", 0)
        assert 0 <= found.ticks <= cheapest_list(relaxed(jobs)).ticks


@settings(max_examples=60, deadline=None)
@given(few_jobs(), markets(), st.integers(0, 20))
def test_prices_are_those_of_the_cells_tick_by_tick(jobs, market, now):
    grid, prices = market if len(market[0]) > 1 else ([3, 7], [5])
    found = ListSchedules(*asked(jobs, Fraction(0), market=(grid, prices)))
    scale = PRICE_UNIT * lcm(*(w.denominator for w in jobs.weight))
    unit = max(jobs.weight) / PRICE_UNIT * scale

    def rent(begin, end):
        return sum(
            unit * price
            for price, cell in zip(prices, pairwise(grid), strict=True)
            for tick in range(*cell)
            if begin <= tick < end
        )

    for j, (release, length) in enumerate(zip(jobs.release, jobs.length, strict=True)):
        costs = [
            jobs.weight[j] * scale * (at + length) + jobs.gang[j] * rent(at, at + length)
            for at in range(max(now, release), 25)
        ]
        assert found.cheapest(j, now) == min(costs)
    left, held = list(range(len(jobs.release))), ((now + 1, 1), (now + 4, 2))
    alone = sum(
        w * scale * (max(now, release) + length)
        for w, release, length in zip(jobs.weight, jobs.release, jobs.length, strict=True)
    )
    free = jobs.gpus * rent(now, 99) - rent(now, now + 1) - 2 * rent(now, now + 4)
    planned = sum(found.cheapest(j, now) for j in left) - free
    state = ListState(7, now, held)
    assert found.at_least(state, left) == 7 + max(alone, planned)
    last = ListSchedules(*asked(jobs, Fraction(0), "makespan"))
    area = 1 + 2 * 4 + sum(g * n for g, n in zip(jobs.gang, jobs.length, strict=True))
    ends = [max(now, r) + n for r, n in zip(jobs.release, jobs.length, strict=True)]
    assert last.at_least(state, left) == max(7, now + -(-area // jobs.gpus), *ends)


def test_a_job_may_best_end_where_prices_rise_again():
    jobs = FewJobs([0], [3], [1], [Fraction(1)], 1)
    ten = 10 * PRICE_UNIT
    given_prices = [0, 4, 6, 20], [ten, 0, ten]
    found = ListSchedules(*asked(jobs, Fraction(0), market=given_prices))
    # From 3 to 6, of which the last two cost nothing; later the same at a later end, or at no price.
    assert [found.cheapest(0, now) for now in (0, 3, 4, 5, 18)] == [
        cost * PRICE_UNIT for cost in (6 + 10, 6 + 10, 7 + 10, 23, 23)
    ]


def test_a_beginning_allows_what_another_allows_if_it_is_no_worse_in_anything():
    this = ListState(10, 5, ((7, 2), (9, 1)))
    assert this.allows(this)
    assert this.allows(ListState(11, 6, ((7, 2), (9, 1))))
    assert this.allows(ListState(10, 5, ((9, 3),)))
    assert not this.allows(ListState(9, 5, ((9, 3),)))
    assert not this.allows(ListState(10, 4, ((9, 3),)))
    assert not this.allows(ListState(10, 5, ((6, 2), (9, 1))))
    assert not this.allows(ListState(10, 5, ((7, 2), (8, 1))))
    assert not this.allows(ListState(10, 5, ((9, 1),)))
    # What is over by the other's last start does not matter.
    assert this.allows(ListState(10, 8, ((9, 1),)))


def test_prices_are_of_totals_alone():
    jobs = FewJobs([0], [1], [1], [Fraction(1)], 1)
    with pytest.raises(Rejected, match="takes no prices for the last end"):
        lists_cost(jobs, Fraction(1), "makespan", ([0, 1], [1]))


def test_a_gang_that_is_too_large_is_refused():
    jobs = FewJobs([0], [1], [2], [Fraction(1)], 1)
    with pytest.raises(Rejected, match="a gang is of more GPUs than there are"):
        lists_cost(jobs, Fraction(1))


@pytest.mark.parametrize("weight", [[1] * 40, list(range(1, 41)), list(range(40, 0, -1))])
def test_jobs_that_are_alike_are_taken_in_one_order(monkeypatch, weight):
    """However many sets of them there are."""
    monkeypatch.setattr(lists, "Effort", partial(Effort, most=10**6))
    jobs = FewJobs([0] * 40, [3] * 40, [2] * 40, [Fraction(w) for w in weight], 3)
    best = sum(3 * k * w for k, w in enumerate(sorted(weight, reverse=True), 1))
    assert lists_cost(jobs, Fraction(best)) == best
    with pytest.raises(Rejected, match="a list of jobs costs less"):
        lists_cost(jobs, Fraction(best + 1))


@pytest.mark.parametrize(
    ("release", "weight", "best"),
    [
        ([0, 1], [1, 10], 4 * 10 + 7),  # The later one first: it weighs more.
        ([0, 1], [10, 1], 3 * 10 + 6),
        ([1, 0], [1, 1], 3 + 6),
        ([0, 0], [1, 10], 3 * 10 + 6),
    ],
)
def test_of_two_that_are_alike_the_one_that_came_first_and_weighs_more_is_first(
    release, weight, best
):
    jobs = FewJobs(release, [3, 3], [1, 1], [Fraction(w) for w in weight], 1)
    assert jobs.least(jobs.total) == best
    assert lists_cost(jobs, Fraction(best)) == best
    with pytest.raises(Rejected, match="a list of jobs costs less"):
        lists_cost(jobs, Fraction(best + 1))


def test_lists_of_many_jobs_are_too_many(monkeypatch):
    many = 30_000
    jobs = FewJobs([0] * many, [1] * many, [1] * many, [Fraction(1)] * many, 1)
    with pytest.raises(Rejected, match="takes too many steps"):
        lists_cost(jobs, Fraction(1))
    few = FewJobs([0] * 50, [1] * 50, [1] * 50, [Fraction(1)] * 50, 1)
    with pytest.raises(Rejected, match="takes too many steps"):
        lists_cost(few, Fraction(1), market=(range(30_001), [0] * 30_000))
    monkeypatch.setattr(lists, "Effort", partial(Effort, most=10**5))
    lengths = range(1, 31)
    jobs = FewJobs(
        [0] * 30, [9 * k for k in lengths], [k % 5 + 1 for k in lengths], [Fraction(1)] * 30, 8
    )
    with pytest.raises(Rejected, match="takes too many steps"):
        lists_cost(jobs, Fraction(10**6))
