"""The least cost of schedules in which each job begins once, as a record of a certificate; of few jobs.

The record has the cost and, where they help, prices; the checker goes through all lists of jobs by itself and cuts off
those that cannot cost less. It has seen what is proposed here: what would take it too many steps is left out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from shadowprice.analysis.certificates.found import Found
from shadowprice.analysis.certificates.records import text_of
from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.objective import Objective
from shadowprice.solvers.offline import priced_plans
from shadowprice.solvers.offline.list_optimum import cheapest_list
from shadowprice.solvers.offline.non_preemptive import describes_unfailing
from shadowprice.solvers.offline.on_nodes import on_nodes
from shadowprice.solvers.offline.plan_prices import PlanPrices

if TYPE_CHECKING:
    from shadowprice.analysis.certificates.demands import ClassDemands
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.solvers.offline.bounds import RelaxedJobs
    from shadowprice.solvers.offline.list_optimum import ListOptimum

Record = dict[str, Any]

MOST_LISTED = 24
"""Jobs up to which lists are searched."""

_FEW, _MANY = 10_000, 50_000
"""Beginnings of lists that are looked at without prices, a second or so, and with them."""

_PRICES_SHARE = 0.1
"""Share of the time that is for prices."""


def non_preemptive_bounds(
    instance: Instance, demands: ClassDemands, goal: Objective, effort_s: float
) -> Iterator[Found]:
    """Bounds of schedules in which each job begins once; the last one is optimal if the search came to its end.

    There are none of classes whose jobs go on where they were stopped, of jobs that share GPUs, hold parts of them or
    run as copies, of runs that were stopped, nor of more than ``MOST_LISTED`` jobs.

    Parameters
    ----------
    instance : Instance
        Whose schedules they are; where the models of them know it an optimal bound has one of them.
    effort_s : float
        Time for the search [s]. Without any there are at most bounds that take a second or so, the same on every
        run.
    """
    header = demands.given.header
    once = "starts" in header or "preemption" in header
    few = demands.gangs and len(demands.release) <= MOST_LISTED
    if not (once and few) or "stopped" in header or max(demands.gang) > demands.gpus:
        return
    until = time.monotonic() + effort_s
    jobs = demands.whole_gangs()
    span = goal is Objective.MAKESPAN
    found = cheapest_list(jobs, span=span, most=_FEW)
    yield from _accepted(instance, demands, goal, found, None)
    if found.starts is not None or effort_s <= 0:
        return
    prices = None if span else _prices(jobs, _PRICES_SHARE * effort_s)
    found = cheapest_list(jobs, span=span, prices=prices, most=_MANY, until=until)
    yield from _accepted(instance, demands, goal, found, prices)


def _prices(jobs: RelaxedJobs, effort_s: float) -> PlanPrices | None:
    """The last prices of a search of the best for plans, which make lists cost much as well."""
    priced_plans.prepare()
    best: PlanPrices | None = None
    until = time.monotonic() + effort_s
    for found in priced_plans.search(jobs, effort_s, rigid=False, until=until):
        if isinstance(found.prices, PlanPrices):
            best = found.prices
    return best


def _accepted(
    instance: Instance,
    demands: ClassDemands,
    goal: Objective,
    found: ListOptimum,
    prices: PlanPrices | None,
) -> Iterator[Found]:
    """The bound as its record has it, if the checker takes it."""
    record: Record = {"kind": "bound", "bound": "list-schedules", "grid": [], "prices": []}
    if prices is not None:
        record |= {"grid": list(prices.grid_ticks), "prices": list(prices.prices)}
    optimal = found.starts is not None
    # A bound in long digits is worth no more than one in few.
    ticks = found.ticks if optimal else Fraction(math.floor(found.ticks))
    proposed = Found({**record, "least": text_of(ticks)}, ticks, optimal=optimal)
    try:
        checked = demands.evaluated(proposed, goal)
    except InputError:
        return
    yield replace(proposed, checked=checked, witness=_schedule(instance, found))


def _schedule(instance: Instance, found: ListOptimum) -> Schedule | None:
    """The cheapest list as a schedule, of jobs whose speed does not depend on where they run."""
    if found.starts is None or not describes_unfailing(instance):
        return None
    return on_nodes(instance, np.array(found.starts, dtype=np.float64) / TICKS_PER_S)
