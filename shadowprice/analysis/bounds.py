"""Lower bounds of every instance, in one cascade: what is compared, certified and limited is bounded here.

The bound that is certified was evaluated by the program that checks certificates, from the instance as records have it.
Searches only propose its multipliers; what they say of others, or a solver of a schedule without preemption, is found
and not certified.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from shadowprice.analysis.certificates.bound_candidate import BoundCandidate
from shadowprice.analysis.certificates.cascade import KNOWS as CERTIFIED_KNOWS
from shadowprice.analysis.certificates.cascade import Asked, CheckedBound, expect_end
from shadowprice.analysis.certificates.checked_class import CONSOLIDATED
from shadowprice.analysis.certificates.effort import BoundEffort, Timer
from shadowprice.analysis.certificates.exact_cost import measured_rows
from shadowprice.analysis.jobs_and_cluster import JobsAndCluster, Problem, Where
from shadowprice.errors import SolverError
from shadowprice.instances.features import DECLARED_KNOWS, Feature, require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.solvers.offline.bounds import Bound, bound_of
from shadowprice.solvers.offline.one_pool import describes_unfailing

if TYPE_CHECKING:
    from shadowprice.solvers.offline.non_preemptive import Method

KNOWS = CERTIFIED_KNOWS | DECLARED_KNOWS | {Feature.OWN}
"""What an instance may have that is bounded at all."""

_FEW = 100
"""Jobs up to which solvers are asked for an optimum without preemption."""
_SHARE_OF_SOLVERS = 0.5
"""Part of an effort that is theirs, where no bound says all before."""
_METHODS: dict[Method, float] = {"cp-sat": 0.3, "milp": 0.6}
"""Solvers of schedules without preemption, and their parts of the time that is left."""


def bounds_of(
    instance: Instance,
    objective: Objective | str,
    effort: BoundEffort,
    *,
    preemptive: bool = True,
    consolidated: bool = False,
    enough: Fraction | None = None,
) -> Iterator[Bound]:
    """All bounds that an effort allows, of which one is certified, of each relaxation of the instance.

    Parameters
    ----------
    effort : BoundEffort
        For prices and searches.
    preemptive : bool
        Whether they must hold for schedules that preempt; else solvers say what is possible to others, too.
    consolidated : bool
        Whether they need only hold for schedules that place every gang on as few nodes as it fits on.
    enough : Fraction, optional
        Cost of a schedule [ticks]: no more is searched once a bound says as much.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``, or of the makespan of a run that was stopped.
    """
    require(instance, KNOWS, "bounds")
    goal = Objective.of(objective)
    for each in instance.relaxations:
        yield from _bounds_of(each, goal, effort, preemptive, consolidated, enough)


def _bounds_of(
    instance: Instance,
    goal: Objective,
    effort: BoundEffort,
    preemptive: bool,
    consolidated: bool,
    enough: Fraction | None,
) -> Iterator[Bound]:
    """Bounds of an instance without declared terms."""
    every = ScheduleClass.allowed(instance, preemptive=preemptive or not _begins_once(instance))
    expect_end(instance.stopped_s, goal)
    if not len(measured_rows(instance)):
        yield bound_of(0, "job", every)
        return
    asked = Asked.of(instance, consolidated=consolidated, preemptive=every.preemptive)
    solvers = not preemptive and not effort.repeatable and _described(instance)
    timer = effort.begin()
    mine = BoundEffort(effort.seconds * (1 - _SHARE_OF_SOLVERS)) if solvers else effort
    candidates = asked.candidates(goal, mine, enough)
    best = asked.evaluated(candidates, goal)
    if solvers and not best.candidate.optimal and (enough is None or best.ticks < enough):
        yield from _by_solvers(instance, goal, timer)
    for each in candidates:
        yield (
            _certified(instance, asked, every, best)
            if each is best.candidate
            else _proposed(asked, every, each, goal)
        )


def _begins_once(instance: Instance) -> bool:
    """True if there may be schedules in which each job begins once."""
    return instance.failures is None and instance.copies is None


def _described(instance: Instance) -> bool:
    """True if solvers of schedules without preemption know an instance, and it is no larger than they are asked of."""
    return len(instance.workload) <= _FEW and describes_unfailing(instance)


def _certified(instance: Instance, asked: Asked, every: ScheduleClass, best: CheckedBound) -> Bound:
    candidate = best.candidate
    return Bound(
        best.ticks,
        candidate.kind,
        _class_of(every, candidate),
        certified=True,
        # Else it is a schedule of the jobs alone that count.
        witness=candidate.witness if instance.all_complete else None,
        record=candidate.record,
        parts=candidate.parts,
        of_class=asked.schedules.name + (CONSOLIDATED if candidate.consolidated else ""),
    )


def _proposed(
    asked: Asked, every: ScheduleClass, candidate: BoundCandidate, goal: Objective
) -> Bound:
    """A bound that is no larger than the certified one, as the search has it."""
    ticks = max(candidate.ticks - asked.offset(goal), Fraction(0))
    holds_for = _class_of(every, candidate)
    return Bound(ticks, candidate.kind, holds_for, certified=False, record=candidate.record)


def _class_of(every: ScheduleClass, candidate: BoundCandidate) -> ScheduleClass:
    return replace(every, consolidated=candidate.consolidated)


def certified_and_largest(bounds: Iterable[Bound]) -> tuple[Bound, Bound | None]:
    """The bound that is certified, and the largest of all if that is larger still.

    Raises
    ------
    ValueError
        If none is certified.
    """
    known = list(bounds)
    certified = max((bound for bound in known if bound.certified), key=lambda bound: bound.ticks)
    largest = max(known, key=lambda bound: bound.ticks)
    return certified, largest if largest.ticks > certified.ticks else None


def strongest_bound(
    jobs: Problem,
    cluster: Where | None = None,
    objective: Objective | str = Objective.FLOW,
    *,
    preemptive: bool,
    budget_s: float,
    consolidated: bool = False,
) -> Bound:
    """The largest lower bound found within a time budget [s]; among equals a certified one.

    Parameters
    ----------
    jobs, cluster
        Jobs and the cluster, or an instance alone, as in :func:`shadowprice.simulate`; what follows an instance is
        given by name.
    preemptive : bool
        Whether the bound must hold for schedules that preempt. If not, the non-preemptive
        optimum is tried too.
    consolidated : bool
        Whether it need only hold for schedules that place every gang on as few nodes as it fits on.

    Raises
    ------
    InputError
        As :func:`bounds_of`.
    """
    bounds = bounds_of(
        JobsAndCluster.of(jobs, cluster).as_instance(),
        objective,
        BoundEffort(budget_s),
        preemptive=preemptive,
        consolidated=consolidated,
    )
    return max(bounds, key=lambda bound: (bound.ticks, bound.certified))


def certified_bounds(
    instance: Instance, objectives: Iterable[Objective], effort: BoundEffort
) -> dict[Objective, Bound]:
    """The certified bound of preemptive schedules in several objectives, of which each has the effort.

    Raises
    ------
    InputError
        As :func:`bounds_of`.
    """
    require(instance, KNOWS, "bounds")
    goals, bounds = list(objectives), list[dict[Objective, Bound]]()
    for each in instance.relaxations:
        bounds.append(_certified_bounds(each, goals, effort))
    return {goal: max((of[goal] for of in bounds), key=lambda b: b.ticks) for goal in goals}


def _certified_bounds(
    instance: Instance, goals: list[Objective], effort: BoundEffort
) -> dict[Objective, Bound]:
    """Those of an instance without declared terms."""
    every = ScheduleClass.allowed(instance, preemptive=True)
    for goal in goals:
        expect_end(instance.stopped_s, goal)
    if not len(measured_rows(instance)):
        return dict.fromkeys(goals, bound_of(0, "job", every))
    asked, known = Asked.of(instance), dict[bool, list[BoundCandidate]]()
    best = {}
    for goal in goals:
        last = goal is Objective.MAKESPAN  # Others differ by a constant.
        if last not in known:
            known[last] = asked.candidates(goal, effort)
        best[goal] = _certified(instance, asked, every, asked.evaluated(known[last], goal))
    return best


def _by_solvers(instance: Instance, goal: Objective, timer: Timer) -> Iterator[Bound]:
    """Optima of schedules without preemption, by the word of solvers; one that fails is left out."""
    from shadowprice.models import time_indexed
    from shadowprice.solvers.offline.non_preemptive import optimum
    from shadowprice.solvers.programs.published import falls_back

    left_aside = "its optimum is none of schedules, and is left aside as a bound"
    # Nodes that fail only restrict: an optimum without them is a bound with them.
    sound = replace(instance, failures=None)
    if falls_back(time_indexed.build, left_aside):
        return
    for method, share in _METHODS.items():
        if timer.left_s <= 0:
            return
        try:
            solved = optimum(sound, goal, method=method, budget_s=share * timer.left_s)
        except SolverError:
            continue
        every = ScheduleClass.allowed(instance, preemptive=False)
        lower = Fraction(solved.lower_s) * TICKS_PER_S
        yield Bound(lower, method, every, certified=False, witness=solved.schedule)
        if solved.proven:
            # Asking the other would end where this ended.
            return
