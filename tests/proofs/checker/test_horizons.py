"""What a bound supposes of an instance: where it does not hold, no prices prove anything."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.proofs.checker import Rejected, check
from shadowprice.proofs.checker.bounds import BOUNDS, bound_of
from shadowprice.proofs.checker.costs import LeastWork
from shadowprice.proofs.checker.form import PRICE_UNIT
from shadowprice.proofs.checker.instance import CertificateInstance
from shadowprice.proofs.checker.speeds import slower
from shadowprice.proofs.checker.windows import WindowTree
from support.small_certificates import CLASS, PAIRS, certificate, job, least, node, run

LATE = 10**6
"""When the only job begins, which arrives at 0: it costs about a thousand times what it might."""

WIDE = {"kind": "widths", "widths": 0, "speeds": list(range(1, 11))}
ROUNDS = {"kind": "copies", "round": 10**4, "restart": 0, "aggregation": 0, "most": 1}
NOBODY = {"sort": 0, "beside": {"a": {"7": 2}}}
STEPS = {"steps": 2001, "rate": {"a": 1}}

FORGERIES = {
    "a job that is faster on more GPUs than there are": (
        [node(0, 1), WIDE, job(0, 1000, widths=0), run(0, LATE, LATE + 1000)],
        f"{CLASS} and gangs may grow",
        100,
        1000,
        1112,
    ),
    "times of copies that are rounded down": (
        [
            ROUNDS,
            node(0, 2),
            job(0, {}, **STEPS),
            run(0, LATE, LATE + 1001, [0, 2], copy=0, steps=2001),
        ],
        "schedules in which a job is at most 1 copies on whole nodes",
        1000,
        1001,
        10**6,
    ),
    "a job that is faster beside a sort that nobody is of": (
        [node(0, 1), job(0, 1000, **NOBODY), run(0, LATE, LATE + 1000)],
        PAIRS,
        2,
        1000,
        1002,
    ),
}
"""Records, class, shortest time and true least cost of the only job, and a price that makes the bound a million."""


def dear(end: int, price: int):
    """A price of GPUs up to an end."""
    return least("interval-lp", [0, end], [price * PRICE_UNIT])


@pytest.mark.parametrize("name", FORGERIES)
def test_no_prices_make_a_late_schedule_good(name):
    """More work than the cluster does in a job's shortest time made prices of that time worth anything."""
    records, about, shortest, cost, price = FORGERIES[name]
    check(certificate(*records, dear(cost, 0), about=about, bound=shortest))
    for end, dearer in product((shortest, cost), (price, 1, 2**40)):
        for claimed in (LATE - 100, cost + 1):
            with pytest.raises(Rejected, match=r"the bound is|the grid ends too early"):
                check(certificate(*records, dear(end, dearer), about=about, bound=claimed))


@pytest.mark.parametrize("name", FORGERIES)
def test_bounds_of_more_work_than_fits_are_no_larger_than_the_optimum(name):
    records, about, shortest, cost, price = FORGERIES[name]
    for kind, prices in (
        ("fluid", []),
        ("mean-busy-time", []),
        ("priced-plans", [PRICE_UNIT]),
        ("priced-plans", [price * PRICE_UNIT]),
    ):
        bound = least(kind, [0, shortest] if prices else None, prices)
        with pytest.raises(Rejected, match="the bound is"):
            check(certificate(*records, bound, about=about, bound=cost + 1))


@pytest.mark.parametrize(("area", "fits"), [(20, True), (21, False)])
def test_the_interval_lp_is_of_jobs_that_the_cluster_can_run_at_their_best(area, fits):
    one = [Fraction(1)]
    jobs = LeastWork([0], one, [10], [area], [2], 2, 2, 1, True)
    bound = least("interval-lp", [0, 10], [PRICE_UNIT])
    if fits:
        assert BOUNDS["interval-lp"](jobs, bound) == 10
        return
    with pytest.raises(Rejected, match="a job has more work than the cluster does in its shortest"):
        BOUNDS["interval-lp"](jobs, bound)


@pytest.mark.parametrize(("gang", "fits"), [(2, True), (3, False)])
def test_windows_are_of_gangs_that_fit(gang, fits):
    """Of a gang that never runs no window has an end."""
    jobs = LeastWork([0], [Fraction(1)], [10], [20], [gang], 2, 2, 1, True)
    if fits:
        WindowTree(jobs, {"jobs": [0], "unit": 1})
        return
    with pytest.raises(Rejected, match="a gang is of more GPUs than there are"):
        WindowTree(jobs, {"jobs": [0], "unit": 1})


@pytest.mark.parametrize("ticks", [2**53 + 3, 2**80 + 1, 2**60 - 1])
@pytest.mark.parametrize(
    ("more", "records"),
    [
        (NOBODY, []),
        ({"spread": "1/2"}, []),
        ({"widths": 0}, [{**WIDE, "speeds": [1, 1]}]),
        ({"profile": 0}, [{"kind": "profile", "profile": 0, "cells": [[0, 0, 1]]}]),
    ],
)
def test_run_times_at_speeds_are_doubles(more, records, ticks):
    """Divided by a speed of 1 others were rounded up: bounds were above what such a run takes."""
    held = [0, 1, 0] if "profile" in more else [0, 1]
    given = [*records, node(0, 1), job(0, ticks, **more), run(0, 9, 9 + ticks, held)]
    with pytest.raises(Rejected, match=r"run time of job 0 is \d+, and no double up to 2\^53"):
        check(
            certificate(*given, bound=int(float(ticks)), about=PAIRS if "sort" in more else CLASS)
        )


def test_run_times_beside_others_are_doubles():
    beside = {"sort": 0, "beside": {"a": {"0": 2**53 + 1}}}
    with pytest.raises(Rejected, match=r"run time of job 0 is \d+, and no double up to 2\^53"):
        check(certificate(node(0, 1), job(0, 10, **beside), run(0, 0, 10), about=PAIRS))


def least_cost(times, arrivals, weights, gpus):
    """Least weighted completion time of two jobs, tick by tick: ``times`` has ticks of all of a job by its GPUs."""

    @cache
    def rest(now, left):
        if not any(left):
            return 0
        best = None
        ways = [[0] for _ in left]
        for j, (lacks, by_width) in enumerate(zip(left, times, strict=True)):
            if lacks and arrivals[j] <= now:
                ways[j] += [w for w in by_width if w <= gpus]
        for held in product(*ways):
            idle = not any(held) and now >= max(arrivals)
            if sum(held) > gpus or idle:
                continue
            after, paid = list(left), 0
            for j, w in enumerate(held):
                if w:
                    after[j] = max(left[j] - Fraction(1, times[j][w]), 0)
                    paid += 0 if after[j] else weights[j] * (now + 1)
            found = paid + rest(now + 1, tuple(after))
            best = found if best is None else min(best, found)
        return best

    return rest(0, (Fraction(1),) * len(times))


SPEEDS = st.sampled_from([[2, 3, 4], [2, 4, 6, 8]]) | st.lists(st.integers(1, 8), min_size=1)
ROW = st.tuples(
    st.sampled_from([0, 0, 0, 1, 2]),
    st.integers(1, 3),
    st.integers(1, 5),
    SPEEDS,
    st.none() | SPEEDS,
)
PRICES = st.lists(st.integers(0, 40), min_size=3, max_size=3)
LEVEL = st.integers(8, 40).map(lambda price: [price] * 3)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 2), st.lists(ROW, min_size=2, max_size=2), PRICES | LEVEL)
def test_bounds_hold_where_jobs_are_said_to_be_faster_than_they_can_be(gpus, rows, prices):
    """On more GPUs than there are, or beside a sort that nobody is of: against all schedules, tick by tick."""
    header = {"objective": "completion", "restart": [[1, 0]], "start": 0, "migration": 0}
    instance = CertificateInstance()
    instance.take_header({**header, "policy": "none"})
    instance.take_node({"node": 0, "gpus": gpus, "type": "a"})
    times = []
    for k, (_, _, ticks, speeds, _) in enumerate(rows):
        instance.take_widths({"widths": k, "speeds": [1, *speeds]})
        times.append({w: slower(ticks, s) for w, s in enumerate([1, *speeds], 1)})
    for j, (arrival, weight, ticks, _, beside) in enumerate(rows):
        more = {"sort": j, "beside": {"a": {str(9 + k): t for k, t in enumerate(beside or ())}}}
        plain = {"id": str(j), "gpus": 1, "arrival": arrival, "weight": weight}
        mine = more if beside else {}
        instance.take_job({"job": j, **plain, "run": {"a": ticks}, "widths": j, **mine})
    arrivals, weights = [row[0] for row in rows], [row[1] for row in rows]
    least_total = least_cost(times, arrivals, weights, gpus)
    jobs = instance.relaxed()
    last = max(arrivals) + sum(jobs.shortest)
    grid = sorted({0, 1, min(2, last), last})
    dear = [price * PRICE_UNIT // 4 for price in prices[: len(grid) - 1]]
    for bound in (
        least("mean-busy-time"),
        least("interval-lp", grid, dear),
        least("priced-plans", grid, dear),
        {**least("speed-up-power"), "exponent": prices[0] * PRICE_UNIT // 41},
        *([least("configurations", grid, [dear]), least("wide-gangs")] if jobs.gangs else []),
        *([least("fluid")] if weights[0] == weights[1] else []),
    ):
        if bound["bound"] != "speed-up-power" or jobs.gangs:
            record = {key: value for key, value in bound.items() if key != "kind"}
            assert bound_of(instance, jobs, record, None) <= least_total, bound
    end = least_cost(times, arrivals, [1, 1], gpus)
    assert end >= max(a + p for a, p in zip(arrivals, jobs.shortest, strict=True))
