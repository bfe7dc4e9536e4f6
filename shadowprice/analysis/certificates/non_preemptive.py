"""The least cost of schedules in which each job begins once, or a bound of it, as a record of a certificate.

The record has the cost and, where they help, prices; the checker goes through all lists of jobs by itself and cuts off
those that cannot cost less. Of few jobs that is the optimum, of more what prices say of the first jobs of lists. It has
seen what is proposed here: what would take it too many steps is left out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from shadowprice.analysis.certificates.bound_candidate import BoundCandidate
from shadowprice.analysis.certificates.records import Record, text_of
from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.objective import Objective
from shadowprice.solvers.offline.list_optimum import cheapest_list
from shadowprice.solvers.offline.node_assignment import assign_nodes
from shadowprice.solvers.offline.one_pool import describes_unfailing
from shadowprice.solvers.offline.plan_prices import PlanPrices
from shadowprice.solvers.offline.slot_prices import start_prices

if TYPE_CHECKING:
    from shadowprice.analysis.certificates.checked_class import CheckedClass
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.solvers.offline.list_optimum import ListOptimum


MOST_LISTED = 24
"""Jobs up to which lists are searched without prices."""

MOST_PRICED = 200
"""Jobs up to which starts are priced."""

_AT_ONCE, _FEW, _MANY = 1_000, 10_000, 50_000
"""Beginnings of lists that are looked at without prices: before there are any, and where there are none; with them."""

_STEPS = 8_000_000
"""Beginnings times squares of numbers of jobs that the checker mostly takes; where it does not, a quarter is tried."""


def non_preemptive_bounds(
    instance: Instance, schedules: CheckedClass, goal: Objective, effort_s: float
) -> Iterator[BoundCandidate]:
    """Bounds of schedules in which each job begins once; the last one is optimal if the search came to its end.

    There are none of classes whose jobs go on where they were stopped, of jobs that share GPUs, hold parts of them or
    run as copies, of runs that were stopped, nor of more than ``MOST_PRICED`` jobs.

    Parameters
    ----------
    instance : Instance
        Whose schedules they are; where the models of them know it an optimal bound has one of them.
    effort_s : float
        Time for the search [s]. Without any there are at most bounds that take a second or so, the same on every
        run.
    """
    header, work = schedules.instance.header, schedules.work
    once = "starts" in header or "preemption" in header
    count = len(work.arrival)
    if not (once and work.gangs) or "stopped" in header or max(work.gang) > work.gpus:
        return
    until = time.monotonic() + effort_s
    jobs = schedules.whole_gangs()
    span = goal is Objective.MAKESPAN
    optimum: ListOptimum | None = None
    if count <= MOST_LISTED:
        optimum = cheapest_list(jobs, span=span, most=_FEW if effort_s <= 0 else _AT_ONCE)
        yield from _accepted(instance, schedules, goal, optimum, None)
    if (optimum is not None and optimum.starts is not None) or effort_s <= 0 or count > MOST_PRICED:
        return
    prices = None if span or not max(jobs.weight) else start_prices(jobs, until)
    for most in (_STEPS // count**2, _STEPS // (4 * count**2)):
        optimum = cheapest_list(jobs, span=span, prices=prices, most=min(most, _MANY), until=until)
        accepted = list(_accepted(instance, schedules, goal, optimum, prices))
        yield from accepted
        if accepted:
            return


def _accepted(
    instance: Instance,
    schedules: CheckedClass,
    goal: Objective,
    optimum: ListOptimum,
    prices: PlanPrices | None,
) -> Iterator[BoundCandidate]:
    """The bound as its record has it, if the checker takes it."""
    record: Record = {"kind": "bound", "bound": "list-schedules", "grid": [], "prices": []}
    if prices is not None:
        record |= {"grid": list(prices.grid_ticks), "prices": list(prices.prices)}
    optimal = optimum.starts is not None
    # A bound in long digits is worth no more than one in few.
    ticks = optimum.ticks if optimal else Fraction(math.floor(optimum.ticks))
    proposed = BoundCandidate({**record, "least": text_of(ticks)}, ticks, optimal=optimal)
    try:
        checked = schedules.evaluated(proposed, goal)
    except InputError:
        return
    yield replace(proposed, checked=checked, witness=_schedule(instance, optimum))


def _schedule(instance: Instance, optimum: ListOptimum) -> Schedule | None:
    """The cheapest list as a schedule, of jobs whose speed does not depend on where they run."""
    if optimum.starts is None or not describes_unfailing(instance):
        return None
    return assign_nodes(instance, np.array(optimum.starts, dtype=np.float64) / TICKS_PER_S)
