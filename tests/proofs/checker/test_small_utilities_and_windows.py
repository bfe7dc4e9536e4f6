"""Bounds of the total utility and of windows of completions of small instances, worked out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

from shadowprice.proofs.checker import Rejected, check
from shadowprice.proofs.checker.form import PRICE_UNIT
from support.small_certificates import CLASS, certificate, earning, job, least, node, run

TYPES = [node(0, 1), node(1, 1, "b")]
PROFILE = {"kind": "profile", "profile": 0, "cells": [[0, 0, 1]]}


def priced(kind, *rows):
    """Prices of rounds, with a unit of 1."""
    return {**least(kind, None, list(rows)), "unit": 1}


def due(number, ticks, worth, deadline, **more):
    """A job with a deadline."""
    return job(number, ticks, worth=worth, deadline=deadline, **more)


ANY = [*TYPES, due(0, {"a": 10, "b": 10}, 4, 20)]
ONLY = [*TYPES, due(0, {"a": 10}, 4, 20)]
BOUNDS = {
    # All GPUs for 8, and what a job that takes the cheaper type earns over 1.
    "the cheaper of two types": (
        [*ANY, run(0, 0, 10)],
        priced("typed-round-prices", [1, 1], [3, 3]),
        10,
        (4, 11),
    ),
    "a cheaper type that cannot run the job": (
        [*ONLY, run(0, 0, 10)],
        priced("typed-round-prices", [3, 3], [1, 1]),
        10,
        (4, 9),
    ),
    "a cheaper type that cannot run a job with a profile": (
        [PROFILE, *TYPES, due(0, {"a": 10}, 4, 20, profile=0), run(0, 0, 10, [0, 1, 0])],
        priced("typed-round-prices", [3, 3], [1, 1]),
        10,
        (4, 9),
    ),
    # In a round of 5 half of the time on each type: 5 units of work at 1, and 5 more at 3 - 1.
    "the faster of two types": (
        [*TYPES, due(0, {"a": 5, "b": 10}, 8, 5), run(0, 0, 5)],
        priced("typed-round-prices", [3], [1]),
        5,
        (8, 9),
    ),
    # In a round of 10 the slower and cheaper type does it.
    "as fast as need be": (
        [*TYPES, due(0, {"a": 5, "b": 10}, 8, 10), run(0, 0, 5)],
        priced("typed-round-prices", [3], [1]),
        10,
        (8, 11),
    ),
    # Five ticks at 1 / 10 and five at 2 / 10.
    "an arrival within a round": (
        [node(0, 1), due(0, 10, 4, 20, arrival=5), run(0, 5, 15)],
        priced("round-prices", [1, 2]),
        10,
        (4, Fraction(11, 2)),
    ),
    # Ten of twenty ticks that cost least: five of the second round are spare.
    "time to spare": (
        [node(0, 1), due(0, 10, 4, 20, arrival=5), run(0, 5, 15)],
        priced("round-prices", [2, 1]),
        10,
        (4, 3 + 3),
    ),
    "a deadline that ends a round": (
        [node(0, 1), due(0, 10, 4, 10), run(0, 0, 10)],
        priced("round-prices", [0, 0]),
        10,
        (4, 4),
    ),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_of_the_utility_are_what_they_are_by_hand(name):
    records, bound, length, (earned, most) = BOUNDS[name]
    check(earning(*records, bound, earned=earned, bound=most, round=length))
    with pytest.raises(Rejected, match="the bound is"):
        check(earning(*records, bound, earned=earned, bound=most - Fraction(1, 8), round=length))
    with pytest.raises(Rejected, match="the schedule earns"):
        check(earning(*records, bound, earned=earned + Fraction(1, 8), bound=most, round=length))


def test_nothing_is_earned_after_the_run_was_stopped():
    """The round that begins when it was stopped counts no more: of two jobs one can be complete before."""
    given = [node(0, 1), due(0, 10, 4, 20, arrival=5), due(1, 2, 2, 10), run(1, 0, 2)]
    about = f"{CLASS}, counting time until {10 / 2**20!r} s alone"
    header = {"about": about, "stopped": 10, "round": 10}
    check(earning(*given, priced("round-prices", [0]), earned=2, bound=2, **header))


def test_a_deadline_is_of_the_jobs_that_count():
    given = [node(0, 1), due(0, 10, 4, 20), due(1, 10, 2, 20)]
    about = f"{CLASS}, counting jobs 1 to 1 alone"
    header = {"about": about, "window": [1, 2], "round": 10}
    bound = priced("round-prices", [0, 0])
    check(earning(*given, run(1, 0, 10), bound, earned=2, bound=2, **header))
    late = [run(0, 0, 10), run(1, 10, 21)]
    with pytest.raises(Rejected, match="after the end of its work"):
        check(earning(*given, *late, bound, earned=2, bound=2, **header))
    missed = [run(0, 0, 10), run(0, 10, 11), run(1, 11, 21)]
    with pytest.raises(Rejected, match="after the end of its work"):
        check(earning(*given, *missed, bound, earned=2, bound=2, **header))
    with pytest.raises(Rejected, match="the schedule earns 0, not 2"):
        check(earning(*given, run(0, 0, 10), run(1, 11, 21), bound, earned=2, bound=2, **header))


WINDOWS = {**least("completion-windows"), "jobs": [0, 1], "unit": 1}


def part(grid, *rows):
    """A part with prices."""
    return {"kind": "part", "grid": grid, "prices": list(rows)}


LATER = [node(0, 1), job(0, 10), job(1, 10, arrival=50)], [run(0, 0, 10), run(1, 50, 60)]
QUEUE = [node(0, 1), job(0, 10), job(1, 10)], [run(0, 0, 10), run(1, 10, 20)]
CUT = {"kind": "part", "cut": 0, "at": 15, "first": "early"}


@pytest.mark.parametrize(
    ("case", "parts", "value"),
    [
        (LATER, [part([0, 60], [0], [0])], 70),
        # Whoever ends at 20, when all can have ended, has six free ticks and four at 2: 28 x 2 less 30 + 8.
        (QUEUE, [part([0, 10, 14, 30], [3, 2, 0], [3, 2, 0])], 18),
        # Job 0 ends by 15 at a cost of 10, or from it on at one of 15; the other at 10.
        (QUEUE, [CUT, part([0, 20], [0], [0]), part([], *[])], 20),
        # If job 0 ends by 15 the first cell is worth 10 and both cost 20; else no less.
        (QUEUE, [part([0, 10, 20], [1, 0], [1, 0])], 30),
    ],
)
def test_windows_are_what_they_are_by_hand(case, parts, value):
    given, runs = case
    check(certificate(*given, *runs, WINDOWS, *parts, bound=value))
    more = certificate(*given, *runs, WINDOWS, *parts, bound=value + Fraction(1, 2**60))
    with pytest.raises(Rejected, match="the bound is"):
        check(more)


@pytest.mark.parametrize(
    ("changed", "parts", "says"),
    [
        ({"jobs": [0, 2]}, [part([0, 60], [0], [0])], "jobs that there are not"),
        ({"jobs": [1, 0]}, [part([0, 60], [0], [0])], "jobs that there are not"),
        ({"unit": 0}, [part([0, 60], [0], [0])], "prices have no unit"),
        ({}, [part([], *[])], "no prices before these windows"),
        ({}, [part([0], [], [])], "does not increase"),
        ({}, [part([0, 0], [0], [0])], "does not increase"),
        ({}, [part([0, 60], [0])], "not a price of each job in each cell"),
        ({}, [part([0, 60], [0], [])], "not a price of each job in each cell"),
        ({}, [part([0, 60], [0], [0, 0])], "not a price of each job in each cell"),
        ({}, [CUT, part([0, 60], [0], [0])], "some windows have no prices"),
        ({}, [part([0, 60], [0], [0])] * 2, "after all windows have prices"),
        ({"jobs": [1]}, [CUT], "job 0 is cut, which has no windows"),
        ({}, [{**CUT, "first": "never"}], "neither early nor late"),
        ({"bound": "fluid"}, [part([0, 60], [0], [0])], "parts are of windows"),
    ],
)
def test_windows_that_are_no_proof_are_rejected(changed, parts, says):
    given, runs = LATER
    with pytest.raises(Rejected, match=says):
        check(certificate(*given, *runs, {**WINDOWS, **changed}, *parts))


def test_jobs_that_hold_parts_have_no_windows():
    halves = [job(j, 10, part=500) for j in range(2)]
    runs = [run(j, 0, 10, [0, 1, 0]) for j in range(2)]
    about = "preemptive schedules in which no GPU is held by more than all of it"
    parts = [part([0, 10], [0], [0])]
    with pytest.raises(Rejected, match="completion-windows: jobs share GPUs"):
        check(certificate(node(0, 1), *halves, *runs, WINDOWS, *parts, about=about))


@pytest.mark.parametrize(
    ("bound", "header", "says"),
    [
        (least("fluids"), {}, "'fluids', which is unknown"),
        (least(7), {}, "the bound is 7, which is unknown"),
        (least("fluid", [0, 1]), {}, "fluid takes no prices over time"),
        (least("fluid", None, [1]), {}, "fluid takes no prices"),
        (least("area"), {}, "'area' is no bound of that"),
        (least("priced-span", None, [[1], [1, 1]]), {}, "'priced-span' is no bound of that"),
        (least("fluid"), {"objective": "makespan"}, "'fluid' is no bound of that"),
        (least("mean-busy-time"), {"stopped": 60}, "no bound of what was stopped"),
        ({**least("fluid"), "unit": 1}, {}, "fluid has fields unit"),
        ({**least("typed-interval-lp", [0, 1], [[0]])}, {}, "typed-interval-lp has fields"),
        (least("priced-fluid-of-amounts", None, [1]), {}, "no job may grow or has a profile"),
        (
            {**least("priced-fluid-of-nodes", [0, 1], [1]), "rows": []},
            {},
            "takes no prices over time",
        ),
        (
            {**least("priced-fluid-of-pairs", None, [1]), "rows": []},
            {},
            "no two jobs may share GPUs",
        ),
        (least("priced-fluid", None, [0]), {}, "price is 0, not an integer from 1"),
        (least("interval-lp", [0, 60], [PRICE_UNIT, 1]), {}, "does not increase"),
    ],
)
def test_bounds_of_something_else_are_rejected(bound, header, says):
    given, runs = LATER
    with pytest.raises(Rejected, match=says):
        check(certificate(*given, *runs, bound, **header))
