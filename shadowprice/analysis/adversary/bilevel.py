"""Adversary by an exact search: the worst instance of a list policy within whole limits."""

from __future__ import annotations

from shadowprice.analysis.adversary.family import FamilyInstance, FamilyJob
from shadowprice.analysis.adversary.judge import Trail
from shadowprice.errors import InputError
from shadowprice.instances.objective import Objective
from shadowprice.models.bilevel import RULES, InstanceLimits
from shadowprice.solvers.offline.worst_case import worst_list
from shadowprice.solvers.registry import registered_name


def search(trail: Trail) -> None:
    """Find the worst case with exactly the family's number of jobs; note whether it is proven.

    Raises
    ------
    InputError
        If the policy is not one of those that ``models/bilevel.py`` covers, or the objective is the
        makespan.
    """
    judge, family = trail.judge, trail.judge.family
    if judge.objective is Objective.MAKESPAN:
        raise InputError("method bilevel: the objective is makespan, expected completion or flow")
    limits = InstanceLimits(
        family.jobs, family.gpus, family.max_arrival, family.max_work, family.widest
    )
    covered = registered_name(judge.acting)
    if covered is None:
        raise InputError(
            f"method bilevel: policy {judge.name!r} is none of ours, expected one of {', '.join(RULES)}"
        )
    found = worst_list(
        covered,
        limits,
        flow=judge.objective is Objective.FLOW,
        budget_s=trail.effort.budget_s,
    )
    columns = zip(found.arrival, found.work, found.gpus, strict=True)
    trail.look(
        FamilyInstance.of([FamilyJob(arrival, work, gpus) for arrival, work, gpus in columns])
    )
    trail.notes["worst_of_family"] = found.proven
