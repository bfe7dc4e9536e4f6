"""Lower bounds of every instance: those of the offline solvers where these know it, else those of certificates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shadowprice.analysis.certificates.cascade import KNOWS as CHECKED_KNOWS
from shadowprice.analysis.certificates.cascade import checked_bounds
from shadowprice.analysis.given import Given, Problem, Where
from shadowprice.instances.features import missing, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.solvers.offline.bounds import Bound
from shadowprice.solvers.offline.strongest import KNOWS as SOLVERS_KNOWS
from shadowprice.solvers.offline.strongest import lower_bounds, repeatable_bounds

KNOWS = CHECKED_KNOWS
"""What an instance may have that is bounded at all."""


def bounds_of(
    instance: Instance,
    objective: Objective | str,
    *,
    preemptive: bool,
    budget_s: float,
    consolidated: bool = False,
) -> Iterator[Bound]:
    """All bounds that a time budget allows, one of which at least is certified.

    Of an instance with features that the offline solvers do not know they are those that a certificate of it would
    have: of preemptive schedules, and evaluated by the program that checks certificates.

    Parameters
    ----------
    preemptive : bool
        Whether they must hold for schedules that preempt; else the non-preemptive optimum may be tried too.
    budget_s : float
        Time for prices and searches [s].
    consolidated : bool
        Whether they need only hold for schedules that place every gang on as few nodes as it fits on.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``, or of the makespan of a run that was stopped.
    """
    require(instance, KNOWS, "bounds")
    goal, instance = Objective(objective), instance.undelayed
    if missing(instance, SOLVERS_KNOWS):
        yield from checked_bounds(instance, goal, budget_s=budget_s, consolidated=consolidated)
        return
    yield from lower_bounds(
        instance, goal, preemptive=preemptive, budget_s=budget_s, consolidated=consolidated
    )


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
    found = bounds_of(
        Given.of(jobs, cluster).as_instance(),
        objective,
        preemptive=preemptive,
        budget_s=budget_s,
        consolidated=consolidated,
    )
    return max(found, key=lambda bound: (bound.ticks, bound.certified))


def repeatable_bounds_of(
    instance: Instance, objectives: Iterable[Objective], *, columns: int
) -> dict[Objective, Bound]:
    """The largest bounds for preemptive schedules of a fixed effort: the same on every run.

    Parameters
    ----------
    columns : int
        Size of the interval LPs, where the offline solvers know the instance.

    Raises
    ------
    InputError
        As :func:`bounds_of`.
    """
    require(instance, KNOWS, "bounds")
    instance = instance.undelayed
    if not missing(instance, SOLVERS_KNOWS):
        return repeatable_bounds(instance, objectives, columns=columns)
    found = {goal: list(checked_bounds(instance, goal, budget_s=0.0)) for goal in objectives}
    return {goal: next(each for each in mine if each.certified) for goal, mine in found.items()}
