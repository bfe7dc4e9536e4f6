"""Bounds of modes, and of which modes there are."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from .costs import LeastWork
from .form import PRICE_UNIT, Record, need, rational, rows_of_prices, total, whole
from .instance import CertificateInstance
from .modes import CheckedModes, amount_modes, node_modes, pair_modes, type_modes
from .one_machine import bound_fluid, bound_mean_busy_time
from .prices import common_unit


def on_one_machine(jobs: LeastWork, modes: CheckedModes, prices: list[Any]) -> LeastWork:
    """Work at prices of the resources, and a machine that does what all of them cost: LB-mode (a)."""
    rents = [whole(price, "price", 1) for price in prices]
    rent = modes.rent(rents) * PRICE_UNIT
    area = modes.least(rents, [0] * len(jobs.area))
    shortest = [modes.shortest(j) for j in range(len(jobs.area))]
    area = [each * rent.denominator for each in area]
    return jobs._replace(area=area, shortest=shortest, capacity=rent.numerator)


def fluid_of_modes(jobs: LeastWork, modes: CheckedModes, bound: Record) -> Fraction:
    """SRPT on a machine at prices of resources."""
    return bound_fluid(on_one_machine(jobs, modes, bound["prices"]), bound)


def busy_of_modes(jobs: LeastWork, modes: CheckedModes, bound: Record) -> Fraction:
    """Mean busy times on a machine at prices of resources."""
    return bound_mean_busy_time(on_one_machine(jobs, modes, bound["prices"]), bound)


def span_of_modes(jobs: LeastWork, modes: CheckedModes, bound: Record) -> Fraction:
    """Lower bound on the last end, at prices of resources and of each job's own time: LB-mode (b)."""
    prices, own = rows_of_prices(bound["prices"])
    rent, worth, best = modes.rent(prices) * PRICE_UNIT, 0, Fraction(0)
    need(rent and len(own) == len(jobs.area), "there are no prices of resources or of jobs' time")
    least = modes.least(prices, own)
    for j in sorted(range(len(own)), key=lambda j: -jobs.arrival[j]):
        worth, rent = worth + least[j], rent + own[j] * PRICE_UNIT
        best = max(best, jobs.arrival[j] + max(worth / rent, Fraction(modes.shortest(j))))
    return best


def interval_of_modes(jobs: LeastWork, modes: CheckedModes, bound: Record) -> Fraction:
    """Every job's value of its work, less what it gains where time and resources cost less: LB-mode (c)."""
    grid = [whole(at, "grid") for at in bound["grid"]]
    prices = rows_of_prices(bound["prices"])
    fine = len(grid) == len(prices) + 1 and all(a < b for a, b in pairwise(grid))
    need(fine, "the grid does not increase")
    need(grid[0] <= min(jobs.arrival), "the grid begins too late")
    need(len(bound["values"]) == len(jobs.area), "there are no values of all jobs' work")
    lengths = [b - a for a, b in pairwise(grid)]
    spent = sum((modes.rent(row) * n for row, n in zip(prices, lengths, strict=True)), Fraction(0))
    modes.affordable(len(prices))
    rents = [modes.rents(row) for row in prices]
    terms = [-spent / PRICE_UNIT]
    for j, value in enumerate(bound["values"]):
        weight = jobs.weight[j]
        alpha = min(rational(value, "value of a job"), weight * grid[-1])
        gained = gain(
            jobs.arrival[j], weight, alpha, modes.time[j], grid, [r[modes.kind[j]] for r in rents]
        )
        terms.append(
            alpha + weight * Fraction(modes.shortest(j), 2) - Fraction(gained, PRICE_UNIT**2)
        )
    return total(terms, common_unit(jobs))


def gain(
    arrival: int,
    weight: Fraction,
    alpha: Fraction,
    times: tuple[int, ...],
    grid: list[int],
    rents: list[list[int]],
) -> int:
    """Most that a job gains in all pieces of intervals over the value of its work, in units of 1 / PRICE_UNIT^2."""
    shortest, longest = min(t for t in times if t), max(times)
    common = weight.denominator * alpha.denominator
    value, delay = int(alpha * common), int(weight * common)
    gained = 0
    for (a, b), rent in zip(pairwise(grid), rents, strict=True):
        begin = max(a, arrival)
        if b <= begin:
            continue
        if delay * begin >= value:
            break
        u, v = min(b - begin, shortest), min(b - begin, longest)
        cuts = 0, (u + 1) // 2, (u + v + 1) // 2, v
        for (early, late), charge in zip(pairwise(cuts), (0, u, v), strict=True):
            left = value - delay * (begin + charge)
            if late > early and left > 0:
                offers = (
                    -((-left * PRICE_UNIT**2) // (t * common)) - r
                    for t, r in zip(times, rent, strict=True)
                    if t
                )
                gained += (late - early) * max(0, *offers)
    return gained


Evaluation = Callable[[LeastWork, CheckedModes, Record], Fraction]
Builder = Callable[[CertificateInstance, LeastWork, Record], CheckedModes]


class ModeBound(NamedTuple):
    """A bound of modes: its value, its modes, fields that it has, and whether it is of the last end."""

    evaluate: Evaluation
    modes: Builder
    fields: set[str]
    last: bool


MODE_BOUND_KINDS: list[tuple[str, Evaluation, set[str], bool]] = [
    ("priced-fluid", fluid_of_modes, set(), False),
    ("priced-mean-busy-time", busy_of_modes, set(), False),
    ("priced-span", span_of_modes, set(), True),
    ("interval-lp", interval_of_modes, {"values"}, False),
]
SUBJECTS: list[tuple[str, Builder, set[str]]] = [
    ("nodes", node_modes, {"rows"}),
    ("pairs", pair_modes, {"rows"}),
    ("amounts", amount_modes, set()),
]
MODE_BOUNDS = {
    f"{kind}-of-{subject}": ModeBound(evaluate, modes, mine | theirs, last)
    for kind, evaluate, mine, last in MODE_BOUND_KINDS
    for subject, modes, theirs in SUBJECTS
}
MODE_BOUNDS["typed-interval-lp"] = ModeBound(interval_of_modes, type_modes, {"values"}, False)
