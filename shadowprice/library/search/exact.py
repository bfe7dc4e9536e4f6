"""Schedules of a solver in which each job begins once, of gangs on GPUs that are all alike."""

from __future__ import annotations

from collections.abc import Iterator

from shadowprice.analysis.optimum import optimum
from shadowprice.errors import ShadowpriceError
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule

MOST_FOR_SOLVERS = 200
"""Jobs up to which the solver is asked."""


def by_solver(
    instance: Instance, goal: Objective, *, preemptive: bool, seconds: float
) -> Iterator[tuple[str, Schedule]]:
    """A schedule of CP-SAT and its origin, if it knows the instance.

    The makespan of what never stops a job may be the best of those that do as well.
    """
    if preemptive and goal is not Objective.MAKESPAN:
        return
    if len(instance.workload) > MOST_FOR_SOLVERS:
        return
    try:
        found = optimum(instance, objective=goal, method="cp-sat", budget_s=seconds)
    except ShadowpriceError:
        return
    if found.schedule is not None:
        yield f"CP-SAT, {seconds:g} s", found.schedule
