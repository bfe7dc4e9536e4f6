"""Bounds at prices of small instances, worked out by hand: the checker takes their value, and no more."""

from __future__ import annotations

from fractions import Fraction

import pytest

from shadowprice.proofs.checker import Rejected, check
from shadowprice.proofs.checker.form import PRICE_UNIT
from support.small_certificates import CLASS, PAIRS, certificate, job, least, node, run

HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
GROW = f"{CLASS} and gangs may grow"
FEW = f"{CLASS}, on as few nodes as gangs fit on"
COPIES = "schedules in which a job is at most 2 copies on whole nodes"


def of_modes(subject, bound, **fields):
    """The bound of a subject."""
    return {**bound, "bound": f"{bound['bound']}-of-{subject}", **fields}


# One GPU of each of two types, each of which one job can use: prices of 1 and 1.
APART = (
    [node(0, 1), node(1, 1, "b"), job(0, {"a": 10}), job(1, {"b": 10})],
    [run(0, 0, 10), run(1, 0, 10, [1, 1])],
)
QUEUE = [node(0, 1), job(0, 10), job(1, 10)], [run(0, 0, 10), run(1, 10, 20)]
# Gangs of two on nodes of three GPUs, which hold one of them each.
THREES = (
    [node(0, 3), node(1, 3), *(job(j, 10, 2) for j in range(4))],
    [run(j, j // 2 * 10, j // 2 * 10 + 10, [j % 2, 2]) for j in range(4)],
)
ROW_OF_THREES = {"rows": [[0, 3, [PRICE_UNIT], 0]]}
# A gang that no node holds is never spread more than it must be.
ACROSS = (
    [node(0, 2), node(1, 2), job(0, 10, 3, spread="1/2")],
    [run(0, 0, 10, [0, 2], [1, 1])],
)
SPREAD = (
    [node(0, 2), node(1, 2), job(0, 10, 2, spread="1/2")],
    [run(0, 0, 10, [0, 2])],
)
TWICE = {"kind": "profile", "profile": 0, "cells": [[0, 0, 2]]}
FASTER = (
    [node(0, 1), node(1, 1), TWICE, job(0, 10, 2, profile=0)],
    [run(0, 0, 5, [0, 1, 0], [1, 1, 0])],
)
# Ten ticks with half a CPU and a quarter of the memory, or twenty with less.
CELLS = {"kind": "profile", "profile": 0, "cells": [[500, 250, 1], [0, 125, "1/2"]]}
MACHINE = node(0, 2, cpus=1000, memory=1000)
AMOUNTS = (
    [MACHINE, CELLS, job(0, 10, profile=0), job(1, 10, profile=0)],
    [run(0, 0, 10, [0, 1, 0]), run(1, 0, 10, [0, 1, 0])],
)
WIDER = {"kind": "widths", "widths": 0, "speeds": [1, 2]}
GROWING = (
    [MACHINE, WIDER, CELLS, job(0, 10, profile=0, widths=0), job(1, 10, widths=0)],
    [run(0, 0, 5, [0, 2, 0]), run(1, 5, 10, [0, 2])],
)
BESIDE = {"sort": 0, "beside": {"a": {"0": 8}}}
SHARED = (
    [node(0, 2), *(job(j, 10, **BESIDE) for j in range(2))],
    [run(j, 0, 8, [0, 1], partner=1 - j) for j in range(2)],
)
LONG = [node(0, 1), job(0, 3)], [run(0, 0, 3)]
EITHER = [node(0, 1), node(1, 1, "b"), job(0, {"a": 3, "b": 6})], [run(0, 0, 3)]
RULES = {"kind": "copies", "round": 100, "restart": 2, "aggregation": 3, "most": 2}
COPIED = (
    [RULES, node(0, 2), node(1, 2, "b"), job(0, {}, steps=20, rate={"a": 1})],
    [run(0, 0, 10, [0, 2], copy=0, steps=20)],
)
FLUID, BUSY = (least(f"priced-{kind}", None, [1]) for kind in ("fluid", "mean-busy-time"))
TWO, THREE = [1, 1], [1, 1, 1]

CASES = {
    "prices by type, fluid": (APART, least("priced-fluid", None, TWO), 15, {}),
    "prices by type, busy": (APART, least("priced-mean-busy-time", None, TWO), 20, {}),
    "copies, fluid": (COPIED, least("fluid"), 5, {"about": COPIES}),
    "copies, busy": (COPIED, least("mean-busy-time"), Fraction(15, 2), {"about": COPIES}),
    "nodes, fluid": (
        THREES,
        of_modes("nodes", least("priced-fluid", None, TWO), **ROW_OF_THREES),
        Fraction(75, 2),
        {"about": FEW, "placement": "consolidated"},
    ),
    "nodes that gangs may be across, fluid": (
        THREES,
        of_modes("nodes", least("priced-fluid", None, TWO), **ROW_OF_THREES),
        25,
        {},
    ),
    "a gang across nodes, fluid": (ACROSS, of_modes("nodes", FLUID, rows=[]), 15 * HALF, {}),
    "a gang across nodes, busy": (ACROSS, of_modes("nodes", BUSY, rows=[]), 35 * QUARTER, {}),
    "a gang on a node, fluid": (SPREAD, of_modes("nodes", FLUID, rows=[]), 5, {}),
    "a gang that CPUs make faster": (FASTER, of_modes("nodes", FLUID, rows=[]), 5, {}),
    "amounts, fluid": (
        AMOUNTS,
        of_modes("amounts", least("priced-fluid", None, THREE)),
        Fraction(105, 8),
        {},
    ),
    "amounts, busy": (
        AMOUNTS,
        of_modes("amounts", least("priced-mean-busy-time", None, THREE)),
        Fraction(75, 4),
        {},
    ),
    # The job that grows costs 5 x (2 + 1 + 1/2), the other 10; the rent is 4.
    "amounts of jobs that grow, fluid": (
        GROWING,
        of_modes("amounts", least("priced-fluid", None, THREE)),
        Fraction(10, 4) + Fraction(55, 8),
        {"about": GROW},
    ),
    "pairs, fluid": (
        SHARED,
        of_modes("pairs", FLUID, rows=[[0, [PRICE_UNIT // 2]]]),
        6,
        {"about": PAIRS},
    ),
    # Of three ticks two begin at 0 and one at 3; the work is worth as much as the delay of the latter.
    "values over time": (
        LONG,
        {**least("typed-interval-lp", [0, 3], [[0]]), "values": [3]},
        5 * HALF,
        {},
    ),
    "values over time, of two types": (
        EITHER,
        {**least("typed-interval-lp", [0, 6], [[0, 0]]), "values": [6]},
        HALF,
        {},
    ),
}
SPANS = {
    "prices by type": (QUEUE, least("priced-span", None, [[1], [0, 0]]), 20),
    "prices of jobs' time": (QUEUE, least("priced-span", None, [[1], [1, 1]]), Fraction(40, 3)),
    "prices of amounts": (
        AMOUNTS,
        of_modes("amounts", least("priced-span", None, [[0, 1, 0], [0, 0]])),
        10,
    ),
    # Both jobs cost 10 x (1/2 + 2) of a rent of 1 + 2 x 2.
    "prices of amounts and of jobs' time": (
        AMOUNTS,
        of_modes("amounts", least("priced-span", None, [[0, 1, 0], [2, 2]])),
        10,
    ),
    "prices of a queue and of jobs' time": (
        QUEUE,
        of_modes("nodes", least("priced-span", None, [[1], [1, 1]]), rows=[]),
        Fraction(40, 3),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_at_prices_are_what_they_are_by_hand(name):
    (given, runs), bound, value, more = CASES[name]
    check(certificate(*given, *runs, bound, bound=value, **more))
    with pytest.raises(Rejected, match="the bound is"):
        check(certificate(*given, *runs, bound, bound=value + Fraction(1, 2**60), **more))


@pytest.mark.parametrize("name", SPANS)
def test_bounds_of_the_last_end_are_what_they_are_by_hand(name):
    (given, runs), bound, value = SPANS[name]
    header = {"objective": "makespan"}
    check(certificate(*given, *runs, bound, bound=value, **header))
    with pytest.raises(Rejected, match="the bound is"):
        check(certificate(*given, *runs, bound, bound=value + Fraction(1, 2**60), **header))


@pytest.mark.parametrize(
    ("case", "bound", "says"),
    [
        (QUEUE, least("priced-span", None, [[1], [1]]), "no prices of GPUs or of jobs' time"),
        (QUEUE, least("priced-span", None, [[0], [1, 1]]), "no prices of GPUs or of jobs' time"),
        (
            QUEUE,
            of_modes("nodes", least("priced-span", None, [[1], [1]]), rows=[]),
            "no prices of resources or of jobs' time",
        ),
        (
            QUEUE,
            of_modes("nodes", least("priced-span", None, [[0], [1, 1]]), rows=[]),
            "no prices of resources or of jobs' time",
        ),
    ],
)
def test_prices_of_the_last_end_are_of_all_jobs_and_of_something(case, bound, says):
    given, runs = case
    with pytest.raises(Rejected, match=says):
        check(certificate(*given, *runs, bound, objective="makespan"))


@pytest.mark.parametrize(
    ("grid", "prices", "values", "says"),
    [
        ([0, 0], [[0]], [3], "does not increase"),
        ([0, 3], [[0], [0]], [3], "does not increase"),
        ([0, 2, 3], [[0]], [3], "does not increase"),
        ([0, 2, 1], [[0], [0]], [3], "does not increase"),
        ([1, 3], [[0]], [3], "begins too late"),
        ([0, 3], [[0]], [3, 3], "no values of all jobs' work"),
        ([0, 3], [[0, 0]], [3], "no prices for 1 resources"),
    ],
)
def test_values_over_time_have_a_grid(grid, prices, values, says):
    given, runs = LONG
    bound = {**least("typed-interval-lp", grid, prices), "values": values}
    with pytest.raises(Rejected, match=says):
        check(certificate(*given, *runs, bound))
