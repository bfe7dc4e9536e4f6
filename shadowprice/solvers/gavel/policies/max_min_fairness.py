"""Least attained service as max-min fairness: Gavel (OSDI'20), sec. 4.1.

Maximise the smallest throughput(m, X) s_m / (w_m throughput(m, X_equal)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.models import gavel
from shadowprice.solvers.gavel.allocation import Allocation, Prices, nothing
from shadowprice.solvers.gavel.max_min_level import KNOWN_ROWS, PricedLevel, highest_level
from shadowprice.solvers.gavel.priced_rows import priced_rows
from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.gavel.spread import spread
from shadowprice.solvers.gavel.workspace import Build, Workspace


@dataclass(frozen=True)
class MaxMinFairness:
    """Every job gets at least the same multiple of its weighted fair share.

    Parameters
    ----------
    aware : bool
        Whether the policy sees that jobs differ in their speed on different types.
    packed : bool
        Whether jobs may share GPUs.
    model : callable
        The programme; edit it, or give one of your own with the same allocation variables.
    """

    name: str
    aware: bool = True
    packed: bool = False
    model: Build = gavel.max_min

    needs_steps: ClassVar[bool] = False

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """One linear programme, exact."""
        if not len(problem):
            return nothing(self.name, problem)
        rates = Rates.for_levels(problem, aware=self.aware, packed=self.packed)
        programme = Programme.of(self.model, problem, rates, workspace, steps=self.needs_steps)
        level = highest_level(programme, fair_share(problem, rates))
        return Allocation(
            self.name,
            problem,
            *spread(problem, rates, level.x, level.y),
            level.value,
            level.bound,
            prices(level),
        )


def fair_share(problem: AllocationProblem, rates: Rates) -> FloatArray:
    """Throughput that counts as 1: w_m throughput(m, X_equal) / s_m [steps/s]."""
    share: FloatArray = problem.weight * rates.proportional / problem.gpus
    return share


def prices(level: PricedLevel) -> Prices:
    """The witness of a level."""
    jobs = len(level.job_price)
    return Prices(
        level.worker_price[None, :],
        level.job_price,
        level.time_price,
        np.full(jobs, level.value),
        np.zeros(jobs, dtype=np.int64),
        level.spare,
        priced_rows(level.solved, jobs, KNOWN_ROWS),
    )


ALLOCATIONS = (MaxMinFairness("max_min_fairness", aware=False),)
