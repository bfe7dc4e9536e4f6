r"""Finish-time fairness (Themis): Gavel (OSDI'20), sec. 4.2, exactly.

Minimise max_m rho_m, rho_m = (t_m + u_m steps_m / throughput(m, X)) / D_m with
D_m = isolated_m + steps_m / throughput(m, X_isolated). rho_m <= R asks for

.. math:: \text{throughput}(m, X) \ge \text{need}_m(R) = \frac{u_m \, \text{steps}_m}{R D_m - t_m},

so R is feasible if the highest level with these needs reaches 1. At an R that is too low the
prices y of the level prove sum_m y_m throughput(m, X) <= V for all X, hence
sum_m y_m need_m(R') <= V for every feasible R': solving this for R' gives a lower bound, exceeding
R, at which to go on. That is Newton's method on a convex decreasing function: from below, monotone,
usually four to six steps; the result has a lower bound beside it (derived).

u_m is 1 in the paper's formula. Gavel's code (read) has no weights either without space sharing (a
TODO), and divides throughputs, but not those of the isolated share, by the weight with it:
u_m = w_m. Here ``weighted`` says which, and a note where weights are left aside. With u_m other than 1
rho_m is a priority, no longer a ratio of two finish times, and a job of much weight has a large one in
every allocation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shadowprice.errors import SolverError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.models import gavel
from shadowprice.solvers.gavel.allocation import Allocation, nothing
from shadowprice.solvers.gavel.crossing import crossing
from shadowprice.solvers.gavel.max_min_level import PricedLevel, highest_level, require_levels
from shadowprice.solvers.gavel.policies.isolated import isolated_shares
from shadowprice.solvers.gavel.policies.max_min_fairness import prices
from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.gavel.reached import CLOSE, off
from shadowprice.solvers.gavel.spread import spread
from shadowprice.solvers.gavel.workspace import Build, Workspace
from shadowprice.solvers.narrow_tables import across
from shadowprice.solvers.threads import one_blas_thread

REACHED = 1e-8
"""Relative distance of a level from 1 that is rounding of a solver."""

ABOVE = 1e-6
"""Relative distance above its bound of a ratio that is as good: a fifth of what an optimum may miss."""

MAX_STEPS = 60


@dataclass(frozen=True)
class FinishTimeFairness:
    """No job finishes much later than in an isolated share of the cluster, relatively.

    Parameters
    ----------
    aware, packed : bool
        As in :class:`~shadowprice.solvers.gavel.policies.max_min_fairness.MaxMinFairness`.
    weighted : bool
        Whether the time left counts times the job's weight, u_m = w_m; else u_m = 1.
    model : callable
        The programme of a level; edit it, or give one of your own.
    """

    name: str
    aware: bool = True
    packed: bool = False
    weighted: bool = False
    model: Build = gavel.max_min

    needs_steps: ClassVar[bool] = True

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """A few linear programmes; the objective is the largest rho, the bound proves it least."""
        if not len(problem):
            return nothing(self.name, problem)
        rates = Rates.for_levels(problem, aware=self.aware, packed=self.packed)
        shares = isolated_shares(problem)
        if not self.aware:
            shares = shares.sum(axis=1, keepdims=True)
        isolated = across(np.add, rates.alone * shares)
        due = problem.isolated_s + problem.steps / isolated
        work = problem.steps * problem.weight if self.weighted else problem.steps
        least_s = work / rates.best
        ratio = max(float(((problem.elapsed_s + least_s) / due).max()), 0.0)
        programme = Programme.of(self.model, problem, rates, workspace, steps=self.needs_steps)
        for step in range(MAX_STEPS):
            need = _needs(work, ratio * due - problem.elapsed_s, least_s)
            level = highest_level(programme, need)
            if not step:
                require_levels(level.solved, self.name)
            if level.value >= 1.0 - REACHED or level.bound >= 1.0:
                break
            before, ratio = ratio, _cut(work, due, problem.elapsed_s, level, ratio, least_s)
            if ratio <= before * (1.0 + 1e-15):
                break
        else:
            raise SolverError(f"{self.name}: no fair level after {MAX_STEPS} steps")

        def worst(level: PricedLevel) -> float:
            with np.errstate(divide="ignore"):
                left_s = work / rates.throughput(level.x, level.y)
            return float(((problem.elapsed_s + left_s) / due).max())

        if self.model is gavel.max_min and off(worst(level), ratio) > CLOSE:
            # Little work after a long time: needs that fall by decades within a rounding error of the ratio.
            above = ratio * (1.0 + ABOVE)
            need = _needs(work, above * due - problem.elapsed_s, least_s)
            level = min(level, highest_level(programme, need), key=worst)
        return Allocation(
            self.name,
            problem,
            *spread(problem, rates, level.x, level.y),
            worst(level),
            ratio,
            prices(level),
            self._notes(problem),
        )

    def _notes(self, problem: AllocationProblem) -> tuple[str, ...]:
        if self.weighted or (problem.weight == 1.0).all():
            return ()
        return (
            "weights are left aside, as in Gavel's code without space sharing; weighted=true counts them",
        )


def _needs(work: FloatArray, left_s: FloatArray, least_s: FloatArray) -> FloatArray:
    """Throughputs that do the work in the time left; a job's best where rounding leaves it less than that takes."""
    return np.asarray(work / np.maximum(left_s, least_s))


@one_blas_thread
def _cut(
    work: FloatArray,
    due: FloatArray,
    elapsed_s: FloatArray,
    level: PricedLevel,
    ratio: float,
    least_s: FloatArray,
) -> float:
    """The ratio below which the prices of a level rule out every allocation."""
    held = level.job_price > 0
    price, work, due, elapsed_s = level.job_price[held], work[held], due[held], elapsed_s[held]
    least_s = least_s[held]

    def excess(candidate: float) -> float:
        return float(price @ _needs(work, candidate * due - elapsed_s, least_s)) - level.bound

    high = ratio
    while excess(high) > 0:
        high = 2.0 * high + 1e-300
    return crossing(excess, ratio, high)


ALLOCATIONS = (FinishTimeFairness("finish_time_fairness", aware=False),)
