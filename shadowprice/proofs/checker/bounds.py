"""Lower bounds by name."""

from __future__ import annotations

from fractions import Fraction

from .costs import LeastWork
from .form import FIELDS, Record, need
from .instance import CertificateInstance
from .lists import LISTS, bound_lists
from .mode_bounds import MODE_BOUNDS
from .one_machine import (
    bound_area,
    bound_fluid,
    bound_job,
    bound_mean_busy_time,
    bound_wide_gangs,
)
from .prices import bound_configurations, bound_interval_lp, bound_priced_plans
from .speed_up import bound_speed_up_power
from .windows import WINDOWS, WindowTree

BOUNDS = {"fluid": bound_fluid, "mean-busy-time": bound_mean_busy_time, "area": bound_area}
BOUNDS |= {"wide-gangs": bound_wide_gangs, "job": bound_job}
PRICED = {"interval-lp": bound_interval_lp, "priced-plans": bound_priced_plans}
PRICED["configurations"] = bound_configurations
BOUNDS.update(PRICED)
BY_TYPE = {f"priced-{kind}": BOUNDS[kind] for kind in ("fluid", "mean-busy-time")}
SPAN = "priced-span"
POWER = "speed-up-power"
MORE_OF = {WINDOWS: {"jobs", "unit"}, POWER: {"exponent"}, LISTS: {"least"}}
MORE_OF |= {kind: each.fields for kind, each in MODE_BOUNDS.items()}
"""Fields of bounds beyond grid and prices."""
OF_STOPPED = {"fluid", "interval-lp", "priced-plans"}
"""Bounds of schedules that were stopped."""


def bound_of(
    instance: CertificateInstance, jobs: LeastWork, bound: Record, tree: WindowTree | None
) -> Fraction:
    """Lower bound on completions, or on the last one, in ticks."""
    kind, prices = bound["bound"], bound["prices"]
    known = type(kind) is str and kind in {
        *BOUNDS,
        *BY_TYPE,
        *MODE_BOUNDS,
        SPAN,
        POWER,
        WINDOWS,
        LISTS,
    }
    need(known, f"the bound is {kind!r:.80}, which is unknown")
    more = bound.keys() - FIELDS["bound"][0]
    need(more == MORE_OF.get(kind, set()), f"{kind} has fields {', '.join(sorted(more))}")
    last = instance.header["objective"] == "makespan"
    mine = MODE_BOUNDS.get(kind)
    of_last = kind in ("area", SPAN) if mine is None else mine.last
    need(of_last == last or kind == LISTS, f"{kind!r} is no bound of that")
    need(jobs.until is None or kind in OF_STOPPED, f"{kind!r} is no bound of what was stopped")
    if kind == LISTS:
        return bound_lists(instance, jobs, bound)
    if mine is not None:
        need("values" in more or not bound["grid"], f"{kind} takes no prices over time")
        return mine.evaluate(jobs, mine.modes(instance, jobs, bound), bound)
    need(kind in (*PRICED, POWER) or not bound["grid"], f"{kind} takes no prices over time")
    if kind in BY_TYPE:
        return BY_TYPE[kind](instance.at_prices(jobs, prices), bound)
    if kind == SPAN:
        return instance.span_at_prices(jobs, prices)
    need(kind in PRICED or not prices, f"{kind} takes no prices")
    if kind == POWER:
        return bound_speed_up_power(instance, jobs, bound)
    if tree is not None:
        return tree.bound()
    return BOUNDS[kind](jobs, bound)
