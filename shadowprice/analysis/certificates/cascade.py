"""Bounds of every instance, in one cascade: of the work that its jobs have to do, and of modes in which they run.

What the jobs have to do is said by the checker (:mod:`shadowprice.analysis.certificates.demands`). Searches propose
multipliers of its bounds; what is called certified was evaluated by the checker, from the instance as records have it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from shadowprice.analysis.certificates.counted import (
    counted_instance,
    stopped_bounds,
)
from shadowprice.analysis.certificates.demands import KNOWS as DEMANDS_KNOWS
from shadowprice.analysis.certificates.demands import ClassDemands
from shadowprice.analysis.certificates.found import Found
from shadowprice.analysis.certificates.modes import (
    WrittenModes,
    interval_bounds,
    steady_bounds,
    type_modes,
    written_modes,
)
from shadowprice.analysis.certificates.non_preemptive import non_preemptive_bounds
from shadowprice.analysis.certificates.speed_up import speed_up_bounds
from shadowprice.analysis.certificates.speeds import plain_gangs
from shadowprice.analysis.certificates.windows import window_bounds
from shadowprice.analysis.optimum import counted_rows
from shadowprice.errors import InputError, SolverError
from shadowprice.instances.features import DECLARED_KNOWS, Feature, missing, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.solvers.offline import priced_plans
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.offline.bounds import (
    Bound,
    bound_of,
    fluid_ticks,
    mean_busy_of_areas,
    offset_ticks,
    wide_gang_ticks,
)
from shadowprice.solvers.offline.lagrangian import interval_bound
from shadowprice.solvers.offline.plan_prices import PlanPrices
from shadowprice.solvers.offline.strongest import PLANS_SHARE, interval_prices

KNOWS = DEMANDS_KNOWS | DECLARED_KNOWS | {Feature.OWN}
"""What every certified bound is of; one that knows less is left out."""

Record = dict[str, Any]

_MOST_TICKS = 2**62
"""Largest time for which the interval LP is tried, whose grid has 64 bits."""
_WINDOWS_SHARE = 0.9
"""Share of a budget for windows of completions of few jobs whose speeds do not differ; other bounds know less."""
_MOST_STEPS = 10**8
"""GPUs times prices of gangs up to which the checker is asked to fill the cluster anew in each cell."""
_MOST_TYPED_JOBS = 50_000
"""Jobs up to which prices by GPU type are searched."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Of what bounds are asked: an instance, its work in a class, an objective, and modes of its jobs.

    Parameters
    ----------
    instance : Instance
        The jobs that count, without what only restricts schedules.
    demands : ClassDemands
    goal : Objective
    modes : tuple of WrittenModes
    stopped_s : float or None
        When the run was stopped.
    """

    instance: Instance
    demands: ClassDemands
    goal: Objective
    modes: tuple[WrittenModes, ...]
    stopped_s: float | None

    @classmethod
    def of(
        cls,
        instance: Instance,
        goal: Objective,
        *,
        pairs: bool,
        modes: bool,
        consolidated: bool,
        preemptive: bool = True,
    ) -> Asked:
        """An instance whose jobs need not all be complete.

        Parameters
        ----------
        pairs : bool
            Whether two jobs may share GPUs.
        modes : bool
            Whether bounds may be of modes, unless there are very many jobs.
        consolidated : bool
            Whether bounds of schedules on as few nodes as gangs fit on may be among them.
        preemptive : bool
            Whether bounds are of schedules that may stop and resume jobs; else each begins once.

        Raises
        ------
        InputError
            If the instance has features that the demands of classes do not know, or of the makespan of a run that
            was stopped.
        """
        require(instance, DEMANDS_KNOWS, "certificates")
        expect_end(instance, goal)
        demands = ClassDemands.of(instance, pairs=pairs, preemptive=preemptive)
        counted = counted_instance(instance)
        found: tuple[WrittenModes, ...] = ()
        # Partners that are not counted have no modes.
        alone = not pairs or instance.all_complete
        if modes and alone and len(instance.workload) <= _MOST_TYPED_JOBS:
            found = tuple(written_modes(counted, demands, pairs=pairs, consolidated=consolidated))
            types = type_modes(counted) if demands.gangs else None
            found = found if types is None else (*found, types)
        return cls(counted, demands, goal, found, instance.stopped_s)

    @property
    def offset(self) -> Fraction:
        """Constant that the objective subtracts from completions [ticks]."""
        return offset_ticks(self.demands.weight, self.demands.release, self.goal)

    def found(self, budget_s: float) -> list[Found]:
        """Bounds on completions, or on the last one, in the order in which they were found."""
        if self.stopped_s is None:
            listed = list(non_preemptive_bounds(self.demands, self.goal, budget_s / 2))
            if listed and listed[-1].optimal:
                return listed  # All others bound the same schedules, or more.
            return [*listed, *_bounds(self, budget_s / 2 if listed else budget_s)]
        return list(stopped_bounds(self.demands, self.stopped_s, budget_s))


def expect_end(instance: Instance, goal: Objective) -> None:
    """Raise InputError for the makespan of a run that was stopped: it has none, and no bound."""
    if instance.stopped_s is not None and goal is Objective.MAKESPAN:
        raise InputError(
            f"objective {str(goal)!r}: the run was stopped at {instance.stopped_s!r} s and has no makespan, "
            f"expected {Objective.FLOW} or {Objective.COMPLETION}"
        )


def checked_bounds(
    instance: Instance, goal: Objective, *, budget_s: float, consolidated: bool = False
) -> Iterator[Bound]:
    """Bounds of all preemptive schedules that an instance allows; the largest is certified, by the checker.

    Parameters
    ----------
    budget_s : float
        Time for prices [s]; with 0 the bounds are the same on every run.
    consolidated : bool
        Whether they may be of schedules alone that place every gang on as few nodes as it fits on.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``, of the makespan of a run that was stopped, or if the
        checker takes none of the bounds.
    """
    require(instance, KNOWS, "certificates")
    instance = instance.undelayed
    every = ScheduleClass.allowed(instance, preemptive=True)
    expect_end(instance, goal)
    if not len(counted_rows(instance)):
        yield bound_of(0, "job", every)
        return
    asked = Asked.of(instance, goal, pairs=every.sharing, modes=True, consolidated=consolidated)
    offset, found = asked.offset, asked.found(budget_s)
    # Searches say what their multipliers are worth; the checker evaluates the best until one stays the best.
    value = {number: each.ticks for number, each in enumerate(found)}
    refused: InputError | None = None
    while value:
        best = max(value, key=value.__getitem__)
        try:
            ticks = asked.demands.evaluated(found[best], goal)
        except InputError as error:
            refused = error
            del value[best]
            continue
        if ticks >= value[best]:
            break
        value[best] = ticks
    if not value:
        raise refused or InputError(f"{instance.workload.source}: has no certified bound")
    for number, ticks in value.items():
        few = replace(every, consolidated=found[number].consolidated)
        yield bound_of(ticks - offset, found[number].kind, few, certified=number == best)


_PLAIN: Record = {"kind": "bound", "grid": [], "prices": []}
_LP: Record = {"kind": "bound", "bound": "interval-lp"}


def _bounds(asked: Asked, budget_s: float) -> Iterator[Found]:
    """Bounds on completions, in ticks."""
    instance, demands, goal = asked.instance, asked.demands, asked.goal
    release, work, weight = demands.release, demands.shortest, demands.weight
    if goal is Objective.MAKESPAN:
        yield Found({**_PLAIN, "bound": "area"}, _span(demands))
        for modes in asked.modes:
            yield from steady_bounds(modes, goal)
        return
    busy = mean_busy_of_areas(release, work, demands.area, weight, demands.capacity)
    yield Found({**_PLAIN, "bound": "mean-busy-time"}, Fraction(busy))
    if len(set(weight)) == 1:
        each = [1] * len(release)
        fluid = fluid_ticks(release, demands.area, each, demands.capacity)
        yield Found({**_PLAIN, "bound": "fluid"}, weight[0] * fluid)
    if demands.gangs:
        yield Found({**_PLAIN, "bound": "wide-gangs"}, wide_gang_ticks(demands.whole_gangs()))
    yield from speed_up_bounds(instance, demands)
    # Prices of 0 say that no job ends before it could alone; of odd run times half a tick is lost.
    last = max(release) + sum(work)
    halves = ((2 * (r + p) - p % 2, w) for r, p, w in zip(release, work, weight, strict=True))
    alone = sum((w * twice for twice, w in halves), Fraction(0)) / 2
    yield Found({**_LP, "grid": [min(release), last], "prices": [0]}, alone)
    for modes in asked.modes:
        yield from steady_bounds(modes, goal)
    if budget_s <= 0 or last >= _MOST_TICKS:
        return
    priced_plans.prepare()
    until = time.monotonic() + budget_s
    if demands.gangs:
        plain = plain_gangs(instance)
        share = _WINDOWS_SHARE if plain else PLANS_SHARE
        for found in window_bounds(demands.whole_gangs(), share * budget_s):
            yield found
            if found.optimal and plain:
                return  # All that follows bounds the same schedules.
    left = until - time.monotonic()
    yield from _plans(demands, PLANS_SHARE * left, until - (1 - PLANS_SHARE) * left)
    left = until - time.monotonic()
    enough = time.monotonic() + 0.1 * left if asked.modes else until
    yield from _interval_prices(instance, demands, enough)
    for number, modes in enumerate(asked.modes):
        left = until - time.monotonic()
        yield from interval_bounds(modes, left / (len(asked.modes) - number))


def _plans(demands: ClassDemands, effort_s: float, until: float) -> Iterator[Found]:
    """Bounds of prices at which jobs plan."""
    jobs, parts = demands.searched()
    # Of a job that grows with no loss the least area is that of its shortest time, and no gang.
    rigid_as_searched = demands.gangs and parts == 1 and list(jobs.gpus) == demands.gang
    ways = [(jobs, parts, rigid_as_searched)]
    if demands.gangs and not rigid_as_searched:
        ways.append((demands.whole_gangs(), 1, True))
    for relaxed, each, rigid in ways:
        left = (until - time.monotonic()) / len(ways)
        effort = effort_s / len(ways)
        for better in priced_plans.search(
            relaxed, effort, rigid=rigid, until=time.monotonic() + left
        ):
            grid, rows = better.prices.grid_ticks, better.prices.rows
            found: Record = {**_PLAIN, "bound": better.kind, "grid": grid}
            if isinstance(better.prices, PlanPrices):
                # Of a part of a GPU.
                record = {**found, "prices": [each * price for price in rows[0]]}
                yield Found(record, better.ticks)
            elif len(rows) * len(rows[0]) * demands.gpus <= _MOST_STEPS:
                yield Found({**found, "prices": rows}, better.ticks)


def _interval_prices(instance: Instance, demands: ClassDemands, until: float) -> Iterator[Found]:
    """The bound of the interval LP, unless its solver does not know the instance."""
    if missing(instance, RELAXED_KNOWS):
        return
    (jobs, parts), release, work = demands.searched(), demands.release, demands.shortest
    last = max(release) + sum(work)
    try:
        found = interval_prices(instance, max(until - time.monotonic(), 0.0))
        if found is None or not bool((found.prices >= 0).all()):
            return
        grid, prices = list(found.grid_ticks), found.prices // parts
        if grid[-1] < last:
            # Where jobs may share, the programme knew of less work than a run alone has.
            grid, prices = [*grid, last], np.append(prices, np.zeros(1, prices.dtype))
        value = interval_bound(
            release, work, jobs.gpus, demands.weight, jobs.capacity, grid, prices
        )
        record = {**_LP, "grid": grid, "prices": [parts * each for each in prices.tolist()]}
        yield Found(record, value)
    except (SolverError, OverflowError):
        return  # The bounds that need no solver are there.


def _span(demands: ClassDemands) -> Fraction:
    """Lower bound on the end of the last job: work released from some time on, or gangs that exclude each other."""
    best, area, lone = Fraction(0), 0, 0
    rows = zip(demands.release, demands.shortest, demands.area, demands.gang, strict=True)
    for release, shortest, mine, gang in sorted(rows, reverse=True):
        area += mine
        lone += shortest if demands.gangs and 2 * gang > demands.gpus else 0
        best = max(best, release + max(area / demands.capacity, Fraction(max(lone, shortest))))
    return best
