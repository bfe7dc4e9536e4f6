"""Instances whose optimum a bound attains: the checker takes ratio 1, and no larger bound.

Of such an instance a bound that were computed too low would not prove the ratio, and one that were computed too high
would exceed the cost of a schedule that there is, which the checker refuses.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from shadowprice.proofs import checker
from shadowprice.proofs.checker import Rejected, check
from shadowprice.proofs.checker.form import PRICE_UNIT
from support.certificate_text import records_of, signed
from support.small_certificates import CLASS, PARTS, certificate, earning, job, least, node, run

LATE = 2**99
HALVES = [job(0, 10, 2), job(1, 10, 2)]
WIDE = [job(0, 10, 3), job(1, 10, 3)]
SIDE_BY_SIDE = [run(0, 0, 10, [0, 2]), run(1, 0, 10, [0, 2])]
ONE_BY_ONE = [run(0, 0, 10, [0, 3]), run(1, 10, 20, [0, 3])]
UNEQUAL = [job(0, 4, weight=8), job(1, 2)]

TIGHT = {
    "shortest first on one GPU": (
        [node(0, 1), job(0, 10), job(1, 4, arrival=2)],
        [run(0, 0, 2), run(1, 2, 6), run(0, 6, 14)],
        {"fluid": 20},
    ),
    "jobs that arrive when others end": (
        [node(0, 1), job(0, 3), job(1, 3, arrival=3), job(2, 3, arrival=9)],
        [run(0, 0, 3), run(1, 3, 6), run(2, 9, 12)],
        {"fluid": 21, "mean-busy-time": 21},
    ),
    "a job long after the others": (
        [node(0, 4), job(0, 8, 4, arrival=LATE)],
        [run(0, LATE, LATE + 8, [0, 4])],
        {"fluid": LATE + 8, "mean-busy-time": LATE + 8, "wide-gangs": LATE + 8},
    ),
    "the most weight for its work first": (
        [node(0, 1), *UNEQUAL],
        [run(0, 0, 4), run(1, 4, 6)],
        {"mean-busy-time": 38, "wide-gangs": 38},
    ),
    "gangs of half of all GPUs run together": (
        [node(0, 4), *HALVES],
        SIDE_BY_SIDE,
        {"wide-gangs": 20},
    ),
    "gangs of more than half of all GPUs do not": (
        [node(0, 4), *WIDE],
        ONE_BY_ONE,
        {"wide-gangs": 30},
    ),
}
TIGHT_SPANS = {
    "gangs of half of all GPUs run together": ([node(0, 4), *HALVES], SIDE_BY_SIDE, 10),
    "gangs of more than half of all GPUs do not": ([node(0, 4), *WIDE], ONE_BY_ONE, 20),
    "all work after the last arrival": (
        [node(0, 2), job(0, 4, arrival=1), job(1, 9, 2, arrival=6)],
        [run(0, 1, 5), run(1, 6, 15, [0, 2])],
        14,
    ),
    "work that does not fill its last tick": (
        [node(0, 2), job(0, 3), job(1, 3), job(2, 3)],
        [run(0, 0, 3), run(1, 0, 3), run(2, 3, 6)],
        5,
    ),
}


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, (_, _, found) in TIGHT.items() for kind in found]
)
def test_bounds_without_prices_are_tight(name, kind):
    given, runs, values = TIGHT[name]
    check(certificate(*given, *runs, least(kind), bound=values[kind]))
    with pytest.raises(Rejected, match="the bound is"):
        check(certificate(*given, *runs, least(kind), bound=values[kind] + Fraction(1, 2**60)))


@pytest.mark.parametrize("name", TIGHT_SPANS)
def test_the_area_of_all_work_is_tight(name):
    given, runs, value = TIGHT_SPANS[name]
    header = {"objective": "makespan"}
    check(certificate(*given, *runs, least("area"), bound=value, **header))
    with pytest.raises(Rejected, match="the bound is"):
        check(certificate(*given, *runs, least("area"), bound=value + 1, **header))


HALF = PRICE_UNIT // 2
IN_TURN = [node(0, 1), job(0, 10), job(1, 10)], [run(0, 0, 10), run(1, 10, 20)]
TOGETHER = [node(0, 4), *HALVES], SIDE_BY_SIDE
ALONE = [node(0, 4), *WIDE], ONE_BY_ONE
UNTIL = {"stopped": 12, "about": f"{CLASS}, counting time until {12 / 2**20!r} s alone"}


ROW = [node(0, 1), *(job(j, 1) for j in range(3))], [run(j, j, j + 1) for j in range(3)]
EVERY = [PRICE_UNIT * k for k in (2, 1, 0)]
IN_HALVES = (
    [node(0, 1), *(job(j, 1, part=500) for j in range(4))],
    [run(j, j // 2, j // 2 + 1, [0, 1, 0]) for j in range(4)],
)
AFTER = [node(0, 1), job(0, 2, arrival=5)], [run(0, 5, 7)]
LONG = [node(0, 1), job(0, 4)], [run(0, 0, 4)]
LONE = [node(0, 4), job(0, 10)], [run(0, 0, 10)]
FOUR = (
    [node(0, 1), *(job(j, 10) for j in range(4))],
    [run(j, 10 * j, 10 * j + 10) for j in range(4)],
)
DEAR = [PRICE_UNIT * k for k in (3, 2, 0)]
NOTHING = [node(0, 1), job(0, 10), job(1, 10, weight=0)], [run(0, 0, 10), run(1, 10, 20)]
DOWN = [PRICE_UNIT * k for k in (3, 2, 1)]


@pytest.mark.parametrize(
    ("case", "bound", "value", "more"),
    [
        (TOGETHER, least("interval-lp", [0, 20], [0]), 20, {}),
        (TOGETHER, least("priced-plans", [0, 10], [0]), 20, {}),
        (TOGETHER, least("configurations", [0, 10], [[0]]), 20, {}),
        (IN_TURN, least("priced-plans", [0, 10], [PRICE_UNIT]), 30, {}),
        (IN_TURN, least("configurations", [0, 10], [[PRICE_UNIT]]), 30, {}),
        (ALONE, least("configurations", [0, 10], [[PRICE_UNIT]]), 30, {}),
        (TOGETHER, least("configurations", [0, 10], [[PRICE_UNIT]]), 20, {}),
        # The cheapest ten ticks of a job: six and four give way to free ones, so 24 x 2 less 30 + 8.
        (IN_TURN, least("priced-plans", [0, 10, 14, 30], DEAR), 48 - 38, {}),
        (NOTHING, least("priced-plans", [0, 10], [PRICE_UNIT // 10]), 10, {}),
        (LONE, least("configurations", [0, 10], [[PRICE_UNIT]]), 10, {}),
        (FOUR, least("priced-plans", [0, 10, 20, 30], DOWN), 100, {}),
        (FOUR, least("configurations", [0, 10, 20, 30], [DOWN]), 100, {}),
        # Half a tick of each job before the best that jobs of a tick can have.
        (ROW, least("interval-lp", [0, 1, 2, 3], EVERY), Fraction(9, 2), {}),
        (IN_HALVES, least("interval-lp", [0, 1, 4], [2 * PRICE_UNIT, 0]), 4, {"about": PARTS}),
        (AFTER, least("interval-lp", [0, 2, 5, 7], [0, 0, 0]), 7, {}),
        # Of four ticks one at 0 and one at 2 in the first cell, and two at 2 and the price in the other.
        (LONG, least("interval-lp", [0, 2, 6], [0, PRICE_UNIT]), Fraction(3, 2), {}),
        (IN_TURN, least("fluid"), 22, UNTIL),
        (IN_TURN, least("interval-lp", [0, 20], [0]), 20, UNTIL),
    ],
)
def test_bounds_at_prices_are_tight(case, bound, value, more):
    given, runs = case
    if "stopped" in more:
        runs = [{**each, "end": min(each["end"], more["stopped"])} for each in runs]
    check(certificate(*given, *runs, bound, bound=value, **more))
    with pytest.raises(Rejected, match="the bound is"):
        check(certificate(*given, *runs, bound, bound=value + Fraction(1, 2**60), **more))


@pytest.mark.parametrize("weights", [(1, 2), (2, 1), (1, 1, 2), (2, 1, 1), ("1/3", "1/2")])
def test_weights_that_differ_have_no_fluid_bound(weights):
    jobs = [job(j, 2, weight=weight) for j, weight in enumerate(weights)]
    runs = [run(j, 2 * j, 2 * j + 2) for j in range(len(weights))]
    with pytest.raises(Rejected, match="fluid: weights differ"):
        check(certificate(node(0, 1), *jobs, *runs))


def test_half_gangs_that_share_gpus_are_not_wide():
    """Two that hold half a GPU run together, so that no bound of gangs one at a time is about them."""
    halves = [job(j, 10, part=500) for j in range(2)]
    runs = [run(j, 0, 10, [0, 1, 0]) for j in range(2)]
    about = "preemptive schedules in which no GPU is held by more than all of it"
    check(certificate(node(0, 1), *halves, *runs, least("fluid"), about=about, bound=15))
    for bound in (least("wide-gangs"), least("configurations", [0, 10], [[0]])):
        with pytest.raises(Rejected, match="jobs share GPUs, hold parts of them or run as copies"):
            check(certificate(node(0, 1), *halves, *runs, bound, about=about, bound=20))


def test_the_cost_is_neither_less_nor_more_than_claimed():
    given, runs = IN_TURN
    for cost in (29, 31):
        with pytest.raises(Rejected, match=f"the schedule costs 30, not {cost}"):
            check(certificate(*given, *runs, cost=cost))


def test_bounds_beyond_what_there_is_are_refused(monkeypatch):
    """A bound above the cost of a schedule is a fault of the checker itself, and proves nothing."""
    given, runs = IN_TURN
    monkeypatch.setattr(checker.claim, "bound_of", lambda *_: Fraction(31))
    with pytest.raises(Rejected, match="costs 30, less than any can \\(31\\)"):
        check(certificate(*given, *runs, bound=30))
    monkeypatch.setattr(checker.claim, "bound_utility", lambda *_: Fraction(1))
    given = [node(0, 1), *(job(j, 10, worth=1, deadline=20) for j in range(2))]
    found = earning(*given, *runs, round=10, earned=2, bound=2)
    with pytest.raises(Rejected, match="earns 2, more than any can \\(1\\)"):
        check(found)


NETWORK = {"kind": "network", "intra": 1, "nic": 1, "gpus": 1, "sharing": "per-job"}
GRAPH = {"kind": "graph", "graph": 0, "microbatches": 1, "stages": [[1, 1, 0, 0]], "links": []}


@pytest.mark.parametrize("given", [[], [node(0, 1)], [NETWORK, GRAPH, job(0, {}, graph=0, work=1)]])
def test_there_are_jobs_and_nodes(given):
    for bound in (least("fluid"), {**least("completion-windows"), "jobs": [0], "unit": 1}):
        with pytest.raises(Rejected, match="there are no jobs or no nodes"):
            check(certificate(*given, bound, cost=1))


def test_a_claim_is_no_more_than_what_was_proven():
    given, runs = IN_TURN
    found = records_of(certificate(*given, *runs, bound=15))
    check(signed(found))
    classes = (CLASS[:-1], f"{CLASS}s", "all schedules", "schedules")
    for changed, says in (
        *(({"class": each}, "the class is") for each in classes),
        ({"ratio": "19/10"}, "the cost 30 is not 19/10 x 15"),
        ({"earned": 30}, "what the objective is not"),
    ):
        with pytest.raises(Rejected, match=says):
            check(signed([*found[:-1], {**found[-1], **changed}]))


def test_a_claim_of_utility_is_no_more_than_what_was_proven():
    given = [node(0, 1), job(0, 10, worth=4, deadline=20), job(1, 10, worth=2, deadline=10)]
    prices = {**least("round-prices", None, [[0, 0]]), "unit": 1}
    runs = [run(0, 0, 10), run(1, 10, 20)]
    found = records_of(earning(*given, *runs, prices, round=10, earned=4, bound=6))
    check(signed(found))
    for changed, says in (
        ({"ratio": "4/3"}, "the bound 6 is not 4/3 x 4"),
        ({"ratio": "1/2"}, "no schedule earns more than the best"),
        ({"cost": 30}, "what the objective is not"),
    ):
        with pytest.raises(Rejected, match=says):
            check(signed([*found[:-1], {**found[-1], **changed}]))
