"""Costs of schedules of small worlds. Nothing here is of the package."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from support.small_ways import Choice
from support.small_worlds import TICKS, World

NEVER = Fraction(1 << 60)
"""Cost where there is no schedule."""


@dataclass(frozen=True)
class Least:
    """Least weighted completion time and least last completion [ticks], each with the choices of its schedule."""

    total: Fraction
    last: Fraction
    by_total: tuple[Choice, ...] = ()
    by_last: tuple[Choice, ...] = ()


def cost(world: World, found: Least, objective: str) -> Fraction:
    """Least flow or completion time, weighted, or makespan [ticks] of the jobs that count."""
    jobs = [world.jobs[j] for j in world.counted]
    if objective == "makespan":
        return found.last - min(job.release for job in jobs) * TICKS
    if objective == "completion":
        return found.total
    return found.total - sum((job.weight * job.release for job in jobs), Fraction(0)) * TICKS
