r"""Finish-time fairness (Themis): Gavel (OSDI'20), sec. 4.2, exactly.

Minimise max_m rho_m, rho_m = (t_m + steps_m / throughput(m, X)) / D_m with
D_m = isolated_m + steps_m / throughput(m, X_isolated). rho_m <= R asks for

.. math:: \text{throughput}(m, X) \ge \text{need}_m(R) = \frac{\text{steps}_m}{R D_m - t_m},

so R is feasible if the highest level with these needs reaches 1. At an R that is too low the
prices y of the level prove sum_m y_m throughput(m, X) <= V for all X, hence
sum_m y_m need_m(R') <= V for every feasible R': solving this for R' gives a lower bound, exceeding
R, at which to go on. That is Newton's method on a convex decreasing function: from below, monotone,
usually four to six steps; the result has a lower bound beside it (derived).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from shadowprice.errors import SolverError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.allocation.allocation import Allocation, nothing
from shadowprice.solvers.allocation.isolated import isolated_shares
from shadowprice.solvers.allocation.level import highest_level
from shadowprice.solvers.allocation.max_min_fairness import prices
from shadowprice.solvers.allocation.prices import Level
from shadowprice.solvers.allocation.rates import Numbers, Rates
from shadowprice.solvers.allocation.spread import spread
from shadowprice.solvers.allocation.workspace import Workspace
from shadowprice.solvers.threads import one_blas_thread

REACHED = 1e-8
"""Relative distance of a level from 1 that is rounding of a solver."""

MAX_STEPS = 60


@dataclass(frozen=True)
class FinishTimeFairness:
    """No job finishes much later than in an isolated share of the cluster, relatively.

    Parameters are those of :class:`~shadowprice.solvers.allocation.max_min_fairness.MaxMinFairness`.
    """

    name: str
    aware: bool = True
    packed: bool = False

    needs_steps: ClassVar[bool] = True

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """A few linear programmes; the objective is the largest rho, the bound proves it least."""
        if not len(problem):
            return nothing(self.name, problem)
        rates = Rates.for_levels(problem, aware=self.aware, packed=self.packed)
        shares = isolated_shares(problem)
        if not self.aware:
            shares = shares.sum(axis=1, keepdims=True)
        isolated = (rates.alone * shares).sum(axis=1)
        due = problem.isolated_s + problem.steps / isolated
        ratio = max(float(((problem.elapsed_s + problem.steps / rates.best) / due).max()), 0.0)
        for _ in range(MAX_STEPS):
            need = problem.steps / (ratio * due - problem.elapsed_s)
            level = highest_level(rates, need, workspace)
            if level.value >= 1.0 - REACHED or level.bound >= 1.0:
                break
            ratio = _cut(problem, due, level, ratio)
        else:
            raise SolverError(f"{self.name}: no fair level after {MAX_STEPS} steps")
        reached = rates.throughput(level.x, level.y)
        worst = float(((problem.elapsed_s + problem.steps / reached) / due).max())
        return Allocation(
            self.name, problem, *spread(problem, rates, level.x, level.y),
            worst, ratio, prices(level),
        )  # fmt: skip


@one_blas_thread
def _cut(problem: AllocationProblem, due: Numbers, level: Level, ratio: float) -> float:
    """The ratio below which the prices of a level rule out every allocation."""
    held = level.job_price > 0
    price, steps = level.job_price[held], problem.steps[held]
    due, elapsed = due[held], problem.elapsed_s[held]

    def excess(candidate: float) -> float:
        return float(price @ (steps / (candidate * due - elapsed))) - level.bound

    high = ratio
    while excess(high) > 0:
        high = 2.0 * high + 1e-300
    return float(brentq(excess, ratio, high, xtol=1e-300, rtol=4 * np.finfo(float).eps))


ALLOCATIONS = (
    FinishTimeFairness("finish_time_fairness", aware=False),
    FinishTimeFairness("finish_time_fairness_perf"),
    FinishTimeFairness("finish_time_fairness_packed", packed=True),
    FinishTimeFairness("finish_time_fairness_agnostic_packed", aware=False, packed=True),
)
