"""Work that every schedule of a class has to do, and what completions cost."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from .form import need


class LeastWork(NamedTuple):
    """Work that every schedule of the class has to do, in columns of the jobs.

    A job needs ``shortest`` ticks at its best speed and ``area`` of the cluster, which gives ``capacity`` of it a
    tick, ``scale`` for a GPU. With ``gangs``, whoever runs holds all of ``gang`` GPUs, and nobody else does.
    Where schedules were stopped ``until`` is when, and a job that is not complete counts until then.
    """

    arrival: list[int]
    weight: list[Fraction]
    shortest: list[int]
    area: list[int]
    gang: list[int]
    gpus: int
    capacity: int
    scale: int
    gangs: bool
    until: int | None = None


def weighted(weight: list[Fraction], values: Iterable[int]) -> Fraction:
    """Sum of weights times whole numbers; weights that are one object are added up first."""
    sums: dict[int, tuple[Fraction, int]] = {}
    for each, value in zip(weight, values, strict=True):
        _, before = sums.get(id(each), (each, 0))
        sums[id(each)] = (each, before + value)
    return sum((each * value for each, value in sums.values()), Fraction(0))


def cost_of(objective: Any, jobs: LeastWork, ends: list[int]) -> tuple[Fraction, Fraction]:
    """Cost of completions in ticks, and what it subtracts from them."""
    known = ("completion", "flow", "makespan")
    fine = type(objective) is str and objective in known
    need(fine, f"objective is {objective!r:.80}, not one of {', '.join(known)}")
    if objective == "makespan":
        offset = Fraction(min(jobs.arrival))
        return max(ends) - offset, offset
    offset = weighted(jobs.weight, jobs.arrival) if objective == "flow" else Fraction(0)
    return weighted(jobs.weight, ends) - offset, offset


def alike(weight: list[Fraction]) -> bool:
    """True if all weights are equal."""
    return all(each is weight[0] or each == weight[0] for each in weight)
