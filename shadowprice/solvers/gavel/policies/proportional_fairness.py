"""Proportional fairness: no other allocation gives jobs more on average, each job's gain in per cent of what it has.

Source: Kelly, Maulloo and Tan, J. Operational Research Society 49, 1998; as a scheduler that knows no run times, Im,
Kulkarni and Munagala, J. ACM 65, 2018 (recalled). Maximise the weighted sum of log throughput(m, X); the objective
that is told is the weighted geometric mean of throughput over each job's best, which is largest where the sum is.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import Allocation, Prices, nothing
from shadowprice.solvers.gavel.market import equilibrium
from shadowprice.solvers.gavel.rates import Rates
from shadowprice.solvers.gavel.spread import spread
from shadowprice.solvers.gavel.workspace import Workspace


@dataclass(frozen=True)
class ProportionalFairness:
    """Shares of a market in which jobs spend their weights on GPUs.

    The prices are those of the market, not of the objective: all of them times what there is add up to the
    weights of the jobs.

    Parameters
    ----------
    aware : bool
        Whether the policy sees that jobs differ in their speed on different types.
    """

    name: str
    aware: bool = True

    needs_steps: ClassVar[bool] = False
    packed: ClassVar[bool] = False

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """The equilibrium, with prices that show that no objective is larger by more than a hundred-millionth."""
        if not len(problem):
            return nothing(self.name, problem)
        rates = Rates.for_levels(problem, aware=self.aware, packed=False)
        began = time.process_time()
        found = equilibrium(rates, problem.weight)
        workspace.solver_s += time.process_time() - began
        workspace.solves += 1
        level = found.throughput / rates.best
        total = problem.weight.sum()
        mean = float(np.exp(problem.weight @ np.log(level) / total))
        return Allocation(
            self.name,
            problem,
            *spread(problem, rates, found.x, np.zeros((0, found.x.shape[1]))),
            mean,
            mean * float(np.exp(max(found.gap, 0.0) / total)),
            Prices(
                found.worker[None, :],
                problem.weight / found.throughput,
                found.time,
                level,
                np.zeros(len(problem), dtype=np.int64),
                np.zeros(len(problem), dtype=np.bool_),
            ),
        )


ALLOCATIONS = (ProportionalFairness("proportional_fairness", aware=False),)
