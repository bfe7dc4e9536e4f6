"""Optima of few gangs by the models and searches of the package, as schedules."""

from __future__ import annotations

from collections.abc import Iterator

from shadowprice.analysis.optimum import optimum, preemptive_optimum
from shadowprice.errors import ShadowpriceError
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.solvers.offline.completions.completion_search import MOST_SEARCHED
from shadowprice.solvers.offline.non_preemptive import Method

MOST_FOR_SOLVERS = 200
"""Jobs up to which solvers are asked for a schedule in which each job begins once."""
_METHODS: tuple[Method, ...] = ("cp-sat", "milp")


def exact_schedules(
    instance: Instance, goal: Objective, *, preemptive: bool, seconds: float
) -> Iterator[tuple[str, Schedule]]:
    """Schedules of exact searches that know the instance, and their names."""
    few = len(instance.workload) <= MOST_SEARCHED
    if preemptive and few and goal is not Objective.MAKESPAN:
        try:
            yield (
                "search over windows of completions",
                preemptive_optimum(instance, objective=goal, budget_s=seconds).schedule,
            )
        except ShadowpriceError:
            pass  # It is for plain gangs.
    # What never stops a job may be the best makespan of those that do.
    if (preemptive and goal is not Objective.MAKESPAN) or len(
        instance.workload
    ) > MOST_FOR_SOLVERS:
        return
    for method in _METHODS:
        try:
            found = optimum(instance, objective=goal, method=method, budget_s=seconds)
        except ShadowpriceError:
            continue
        if found.schedule is not None:
            yield f"{method}, {seconds:g} s", found.schedule
