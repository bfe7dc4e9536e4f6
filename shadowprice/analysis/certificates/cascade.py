"""Bounds of every instance, in one cascade: of the work that its jobs have to do, and of modes in which they run.

The checker computes what the jobs have to do (:mod:`shadowprice.analysis.certificates.checked_class`). Searches
propose multipliers of its bounds; what is called certified was evaluated by the checker, from the instance as records
have it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from shadowprice.analysis.certificates.bound_candidate import BoundCandidate
from shadowprice.analysis.certificates.checked_class import KNOWS as CLASS_KNOWS
from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.effort import BoundEffort, Timer
from shadowprice.analysis.certificates.measured_jobs import (
    measured_instance,
    stopped_bounds,
)
from shadowprice.analysis.certificates.modes import (
    CertificateModes,
    certificate_modes,
    interval_bounds,
    steady_bounds,
    type_modes,
)
from shadowprice.analysis.certificates.non_preemptive import non_preemptive_bounds
from shadowprice.analysis.certificates.records import Record
from shadowprice.analysis.certificates.speed_up import speed_up_bounds
from shadowprice.analysis.certificates.speeds import plain_gangs
from shadowprice.analysis.certificates.windows import window_bounds
from shadowprice.errors import InputError, SolverError
from shadowprice.instances.features import require
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.solvers.offline import priced_plans
from shadowprice.solvers.offline.bounds import (
    fluid_ticks,
    mean_busy_of_areas,
    offset_ticks,
    wide_gang_ticks,
)
from shadowprice.solvers.offline.interval_prices import interval_prices
from shadowprice.solvers.offline.lagrangian import interval_bound
from shadowprice.solvers.offline.plan_prices import PlanPrices
from shadowprice.solvers.offline.typed_bound import FEWEST_INTERVALS, MOST_COLUMNS

KNOWS = CLASS_KNOWS
"""What every certified bound is of; one that knows less is left out."""


_MOST_TICKS = 2**62
"""Largest time for which the interval LP is tried, whose grid has 64 bits."""
PLANS_SHARE, PLANS_SHARE_WITH_MODES = 0.5, 0.15
"""Share of a budget for the search of prices at which jobs plan; where jobs have several modes."""
_MOST_FOR_PLANS = 0.85
"""Share of the time that is left which that search may take on a slow machine, where an interval LP comes after it."""
_WINDOWS_SHARE = 0.9
"""Share of a budget for windows of completions of few jobs whose speeds do not differ; other bounds know less."""
_MOST_STEPS = 10**8
"""GPUs times prices of gangs up to which the checker is asked to fill the cluster anew in each cell."""
_BITS = 128
"""Bits of a denominator up to which a bound is written as it is; longer ones are rounded down to so many digits."""
_MOST_TYPED_JOBS = 50_000
"""Jobs up to which prices by GPU type are searched."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Of what bounds are asked: an instance, its work in a class, and modes of its jobs.

    Parameters
    ----------
    instance : Instance
        The jobs that count, without what only restricts schedules.
    schedules : CheckedClass
    modes : tuple of CertificateModes
    stopped_s : float or None
        When the run was stopped.
    """

    instance: Instance
    schedules: CheckedClass
    modes: tuple[CertificateModes, ...]
    stopped_s: float | None

    @classmethod
    def of(
        cls, instance: Instance, *, consolidated: bool = False, preemptive: bool = True
    ) -> Asked:
        """All schedules that an instance allows, whose jobs need not all be complete.

        Parameters
        ----------
        consolidated : bool
            Whether bounds of schedules on as few nodes as gangs fit on may be among them.
        preemptive : bool
            Whether bounds are of schedules that may stop and resume jobs; else each begins once.

        Raises
        ------
        InputError
            If the instance has features that a checked class does not know, or the checker takes no such
            records.
        """
        require(instance, KNOWS, "certificates")
        pairs = ScheduleClass.allowed(instance, preemptive=True).sharing
        schedules = CheckedClass.of(instance, pairs=pairs, preemptive=preemptive)
        counted = measured_instance(instance)
        modes: tuple[CertificateModes, ...] = ()
        # Partners that are not counted have no modes.
        alone = not pairs or instance.all_complete
        if alone and len(instance.workload) <= _MOST_TYPED_JOBS:
            modes = tuple(
                certificate_modes(counted, schedules, pairs=pairs, consolidated=consolidated)
            )
            types = type_modes(counted, schedules)
            modes = modes if types is None else (*modes, types)
        return cls(counted, schedules, modes, instance.stopped_s)

    def offset(self, goal: Objective) -> Fraction:
        """Constant that an objective subtracts from completions [ticks]."""
        return offset_ticks(self.schedules.work.weight, self.schedules.work.arrival, goal)

    def candidates(
        self, goal: Objective, effort: BoundEffort, enough: Fraction | None = None
    ) -> list[BoundCandidate]:
        """Bounds on completions, or on the last one, in the order in which they were found.

        Parameters
        ----------
        enough : Fraction, optional
            What a schedule costs [ticks]: once a bound says as much no more is searched.
        """
        most = None if enough is None else enough + self.offset(goal)
        if self.stopped_s is None:
            every = self._every(goal, effort)
        else:
            every = stopped_bounds(self.schedules, self.stopped_s, effort)
        proposed: list[BoundCandidate] = []
        for each in every:
            proposed.append(each)
            if most is not None and each.ticks >= most:
                break
        return proposed

    def _every(self, goal: Objective, effort: BoundEffort) -> Iterator[BoundCandidate]:
        """Those of lists of jobs, which may be optimal, and then all others."""
        timer = effort.begin()
        lists_s = 0.0 if effort.repeatable else timer.left_s / 2
        for candidate in non_preemptive_bounds(self.instance, self.schedules, goal, lists_s):
            yield candidate
            if candidate.optimal:
                return  # All others bound the same schedules, or more.
        yield from _bounds(self, goal, effort if effort.repeatable else BoundEffort(timer.left_s))

    def evaluated(self, candidates: Sequence[BoundCandidate], goal: Objective) -> CheckedBound:
        """Searches say what their multipliers are worth; the checker evaluates the best until one stays the best.

        Raises
        ------
        InputError
            If the checker takes none of the bounds.
        """
        value = {number: each.ticks for number, each in enumerate(candidates)}
        refused: InputError | None = None
        while value:
            best = max(value, key=value.__getitem__)
            try:
                ticks = candidates[best].checked
                if ticks is None:
                    ticks = self.schedules.evaluated(candidates[best], goal)
            except InputError as error:
                refused = error
                del value[best]
                continue
            if ticks >= value[best]:
                least = max(ticks - self.offset(goal), Fraction(0))
                return CheckedBound(candidates[best], _written(least))
            value[best] = ticks
        raise refused or InputError(f"{self.schedules.source}: has no certified bound")


@dataclass(frozen=True, eq=False)
class CheckedBound:
    """The best of some bounds, and its value in the objective [ticks], as the checker has it and a certificate can."""

    candidate: BoundCandidate
    ticks: Fraction


def _written(value: Fraction) -> Fraction:
    """A number that is no larger, and not much smaller, whose digits are few."""
    if value.denominator.bit_length() <= _BITS:
        return value
    scale = max(_BITS - int(value).bit_length(), 0)
    while value and int(value * 2**scale).bit_length() < _BITS:
        scale += _BITS
    return Fraction(math.floor(value * 2**scale), 2**scale)


def expect_end(stopped_s: float | None, goal: Objective) -> None:
    """Raise InputError for the makespan of a run that was stopped: it has none, and no bound."""
    if stopped_s is not None and goal is Objective.MAKESPAN:
        raise InputError(
            f"objective {str(goal)!r}: the run was stopped at {stopped_s!r} s and has no makespan, "
            f"expected {Objective.FLOW} or {Objective.COMPLETION}"
        )


_PLAIN: Record = {"kind": "bound", "grid": [], "prices": []}
_LP: Record = {"kind": "bound", "bound": "interval-lp"}


def _bounds(asked: Asked, goal: Objective, effort: BoundEffort) -> Iterator[BoundCandidate]:
    """Bounds on completions, in ticks."""
    yield from _plain_bounds(asked, goal)
    schedules, work = asked.schedules, asked.schedules.work
    searched = effort.programmes or effort.plans_s > 0
    if goal is Objective.MAKESPAN or not searched or _one_gpu_alike(schedules):
        return
    if max(work.arrival) + sum(work.shortest) >= _MOST_TICKS:
        return
    timer = effort.begin()
    if effort.plans_s > 0:
        yield from _plans(schedules, effort.plans_s, timer)
    if not effort.programmes:
        return
    if effort.columns is None:
        share = PLANS_SHARE_WITH_MODES if asked.modes else PLANS_SHARE
        if work.gangs:
            plain = plain_gangs(asked.instance)
            mine = timer.share(_WINDOWS_SHARE if plain else share)
            for candidate in window_bounds(asked.instance, schedules.whole_gangs(), mine.left_s):
                # What is optimal where jobs may resume need not be where each begins once.
                yield replace(candidate, optimal=candidate.optimal and not schedules.once)
                if candidate.optimal and plain:
                    return  # All that follows bounds the same schedules.
        small = FEWEST_INTERVALS * 2 * len(work.arrival) <= MOST_COLUMNS
        # Where no interval LP is small enough, all the time is for prices of plans.
        # What few jobs need not is compiled, or read, only here: its time is not the search's.
        priced_plans.prepare()
        # The effort of prices is a number of steps, the same on every run of a machine that is quick enough.
        effort_s = share * timer.left_s
        yield from _plans(schedules, effort_s, timer.share(_MOST_FOR_PLANS if small else 1.0))
    yield from _interval_prices(schedules, timer.share(0.1 if asked.modes else 1.0))
    for number, modes in enumerate(asked.modes):
        yield from interval_bounds(modes, timer.share(1 / (len(asked.modes) - number)))


def _plain_bounds(asked: Asked, goal: Objective) -> Iterator[BoundCandidate]:
    """Bounds that need no search over time."""
    schedules, work = asked.schedules, asked.schedules.work
    release, weight = work.arrival, work.weight
    if goal is Objective.MAKESPAN:
        yield BoundCandidate({**_PLAIN, "bound": "area"}, _span(schedules))
    else:
        ends = (w * (r + p) for r, p, w in zip(release, work.shortest, weight, strict=True))
        yield BoundCandidate({**_PLAIN, "bound": "job"}, sum(ends, Fraction(0)))
        if len(set(weight)) == 1:
            each = [1] * len(release)
            fluid = fluid_ticks(release, work.area, each, work.capacity)
            yield BoundCandidate({**_PLAIN, "bound": "fluid"}, weight[0] * fluid)
        busy = mean_busy_of_areas(release, work.shortest, work.area, weight, work.capacity)
        yield BoundCandidate({**_PLAIN, "bound": "mean-busy-time"}, Fraction(busy))
        if work.gangs:
            yield BoundCandidate(
                {**_PLAIN, "bound": "wide-gangs"}, wide_gang_ticks(schedules.whole_gangs())
            )
        yield from speed_up_bounds(asked.instance, schedules)
    for modes in asked.modes:
        yield from steady_bounds(modes, goal)


def _one_gpu_alike(schedules: CheckedClass) -> bool:
    """True if SRPT attains the fluid bound of one GPU; no more is worth trying."""
    work = schedules.work
    alike = len(set(work.weight)) == 1
    return alike and work.gangs and work.gpus == 1 and work.area == work.shortest


def _plans(schedules: CheckedClass, effort_s: float, timer: Timer) -> Iterator[BoundCandidate]:
    """Bounds of prices at which jobs plan."""
    (jobs, parts), work = schedules.searched(), schedules.work
    # Of a job that grows with no loss the least area is that of its shortest time, and no gang.
    rigid_as_searched = work.gangs and parts == 1 and list(jobs.gpus) == work.gang
    ways = [(jobs, parts, rigid_as_searched)]
    if work.gangs and not rigid_as_searched:
        ways.append((schedules.whole_gangs(), 1, True))
    for number, (relaxed, each, rigid) in enumerate(ways):
        mine = timer.share(1 / (len(ways) - number))
        for better in priced_plans.search(
            relaxed, effort_s / len(ways), rigid=rigid, until=mine.end
        ):
            grid, rows = better.prices.grid_ticks, better.prices.rows
            plain: Record = {**_PLAIN, "bound": better.kind, "grid": grid}
            if isinstance(better.prices, PlanPrices):
                # Of a part of a GPU.
                record = {**plain, "prices": [each * price for price in rows[0]]}
                yield BoundCandidate(record, better.ticks)
            elif len(rows) * len(rows[0]) * work.gpus <= _MOST_STEPS:
                yield BoundCandidate({**plain, "prices": rows}, better.ticks)


def _interval_prices(schedules: CheckedClass, timer: Timer) -> Iterator[BoundCandidate]:
    """The bound of the interval LP, if it is not too large."""
    (jobs, parts), work = schedules.searched(), schedules.work
    last = max(work.arrival) + sum(work.shortest)
    try:
        solved = interval_prices(jobs, timer.left_s, timer.columns)
        if solved is None or not bool((solved.prices >= 0).all()):
            return
        grid, prices = list(solved.grid_ticks), solved.prices
        if grid[-1] < last:
            grid, prices = [*grid, last], np.append(prices, np.zeros(1, prices.dtype))
        value = interval_bound(
            work.arrival, work.shortest, jobs.gpus, work.weight, jobs.capacity, grid, prices
        )
        record = {**_LP, "grid": grid, "prices": [parts * each for each in prices.tolist()]}
        yield BoundCandidate(record, value)
    except (SolverError, OverflowError):
        return  # The bounds that need no solver are there.


def _span(schedules: CheckedClass) -> Fraction:
    """Lower bound on the end of the last job: work released from some time on, or gangs that exclude each other."""
    work = schedules.work
    best, area, lone = Fraction(0), 0, 0
    rows = zip(work.arrival, work.shortest, work.area, work.gang, strict=True)
    for release, shortest, mine, gang in sorted(rows, reverse=True):
        area += mine
        lone += shortest if work.gangs and 2 * gang > work.gpus else 0
        best = max(
            best, release + max(Fraction(area, work.capacity), Fraction(max(lone, shortest)))
        )
    return best
