"""Makespan: Gavel (OSDI'20), sec. 4.2, exactly.

Minimise max_m steps_m / throughput(m, X). With t = 1 / makespan this is max-min with the steps
left as needs, one linear programme; Gavel's code bisects feasibility problems to 5 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.models import gavel
from shadowprice.solvers.gavel.allocation import Allocation, nothing
from shadowprice.solvers.gavel.max_min_level import highest_level
from shadowprice.solvers.gavel.policies.max_min_fairness import prices
from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import Rates
from shadowprice.solvers.gavel.spread import spread
from shadowprice.solvers.gavel.workspace import Build, Workspace


@dataclass(frozen=True)
class MinTotalDuration:
    """All jobs that are there finish as soon as possible, if shares stayed as they are.

    Parameters are those of :class:`~shadowprice.solvers.gavel.policies.max_min_fairness.MaxMinFairness`.
    """

    name: str
    aware: bool = True
    packed: bool = False
    model: Build = gavel.max_min

    needs_steps: ClassVar[bool] = True

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """One linear programme, exact; the objective is the makespan [s]."""
        if not len(problem):
            return nothing(self.name, problem)
        rates = Rates.for_levels(problem, aware=self.aware, packed=self.packed)
        programme = Programme.of(self.model, problem, rates, workspace, steps=self.needs_steps)
        level = highest_level(programme, problem.steps)
        return Allocation(
            self.name,
            problem,
            *spread(problem, rates, level.x, level.y),
            1.0 / level.value if level.value > 0 else float("inf"),
            1.0 / level.bound if level.bound > 0 else None,
            prices(level),
        )


ALLOCATIONS = (MinTotalDuration("min_total_duration", aware=False),)
