"""Max-min fairness to the last job: water filling and hierarchies. Gavel (OSDI'20), sec. 4.3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import Allocation, Prices, nothing
from shadowprice.solvers.gavel.policies.entities import Entities, Entity
from shadowprice.solvers.gavel.policies.filling import Filled, Flat, fill
from shadowprice.solvers.gavel.rates import Rates
from shadowprice.solvers.gavel.spread import spread
from shadowprice.solvers.gavel.workspace import Workspace


@dataclass(frozen=True)
class WaterFilling:
    """Lexicographic max-min: after the smallest level the second smallest, and so on.

    Parameters
    ----------
    aware, packed : bool
        As in :class:`~shadowprice.solvers.gavel.policies.max_min_fairness.MaxMinFairness`.
    entity_weights : mapping of str to float
        Weights of entities; if given, jobs are grouped by the ``entity`` column.
    inside : mapping of str to str
        ``fairness`` (default) or ``fifo`` inside each entity.
    """

    name: str
    aware: bool = True
    packed: bool = False
    entity_weights: Mapping[str, float] = field(default_factory=dict)
    inside: Mapping[str, str] = field(default_factory=dict)

    needs_steps: ClassVar[bool] = False

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """A few linear programmes a stage; the objective is the smallest level over weight."""
        if not len(problem):
            return nothing(self.name, problem)
        rates = Rates.for_levels(problem, aware=self.aware, packed=self.packed)
        norm = rates.proportional / problem.gpus
        path = Entities(self._entities(problem)) if self.entity_weights else Flat(problem.weight)
        filled = fill(rates, norm, path, workspace)
        smallest = float((filled.levels / problem.weight).min())
        return Allocation(
            self.name, problem, *spread(problem, rates, filled.last.x, filled.last.y),
            smallest, None, _prices(filled),
        )  # fmt: skip

    def _entities(self, problem: AllocationProblem) -> tuple[Entity, ...]:
        found = []
        for name in dict.fromkeys(problem.entity.tolist()):
            if name not in self.entity_weights:
                raise InputError(
                    f"{problem.source}: entity {name!r} has no weight, expected one of "
                    f"{', '.join(self.entity_weights)}"
                )
            jobs = np.flatnonzero(problem.entity == name)
            inside = self.inside.get(name, "fairness")
            found.append(Entity(jobs, self.entity_weights[name], problem.weight[jobs], inside))
        return tuple(found)


def _prices(filled: Filled) -> Prices:
    """Prices of the stage that settled each job."""
    jobs, stages = len(filled.levels), len(filled.prices)
    job, time = np.zeros(jobs), np.zeros(jobs)
    accelerators = len(filled.last.worker_price)
    worker = np.zeros((max(stages, 1), accelerators))
    for k, level in enumerate(filled.prices):
        mine = filled.stage == k
        job[mine], time[mine] = level.job_price[mine], level.time_price[mine]
        worker[k] = level.worker_price
    return Prices(worker, job, time, filled.levels, filled.stage)


ALLOCATIONS = (
    WaterFilling("max_min_fairness_water_filling", aware=False),
    WaterFilling("max_min_fairness_water_filling_perf"),
    WaterFilling("max_min_fairness_water_filling_packed", packed=True),
    WaterFilling("max_min_fairness_water_filling_agnostic_packed", aware=False, packed=True),
)
