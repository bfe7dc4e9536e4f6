"""Total throughput, alone and per price, with and without SLOs: Gavel (OSDI'20), sec. 4.2.

The paper prints 'Minimize' for total throughput; it is maximised. What Gavel's code calls
throughput normalised by cost is sum_mj T_mj X_mj / price_j, a sum of ratios; the ratio of the
sums, which the paper defines, is :class:`LeastCost`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.models import gavel
from shadowprice.solvers.gavel.allocation import Allocation, nothing
from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.gavel.spread import spread
from shadowprice.solvers.gavel.total import (
    Total,
    Values,
    attainable_slos,
    highest_ratio,
    highest_total,
)
from shadowprice.solvers.gavel.workspace import Build, Workspace
from shadowprice.solvers.programs.solution import Infeasible


@dataclass(frozen=True)
class MaxSumThroughput:
    """The most steps per second in total, optionally per price.

    Parameters
    ----------
    per_price : bool
        Whether steps on a type are divided by its price; types without a price count as free of
        it, price 1.
    slos : bool
        Whether jobs with an SLO must get steps / seconds left. SLOs that cannot be kept are
        named in the notes; as many as possible of the others are.
    aware, packed : bool
        As in :class:`~shadowprice.solvers.gavel.policies.max_min_fairness.MaxMinFairness`.
    model : callable
        The programme; edit it, or give one of your own.
    """

    name: str
    per_price: bool = False
    slos: bool = False
    aware: bool = True
    packed: bool = False
    model: Build = gavel.max_total

    @property
    def needs_steps(self) -> bool:
        """True if SLOs are turned into throughputs."""
        return self.slos

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """One linear programme; with SLOs in conflict a small mixed-integer one before it."""
        if not len(problem):
            return nothing(self.name, problem)
        rates = Rates.of(problem, aware=self.aware, packed=self.packed)
        price = problem.price if self.per_price else np.ones_like(problem.price)
        weight = np.repeat(1.0 / np.where(price > 0, price, 1.0)[None, :], rates.rows, axis=0)
        values = Values.of_throughput(rates, weight)

        programme = Programme.of(self.model, problem, rates, workspace, steps=self.needs_steps)

        def solve(least: FloatArray) -> Total:
            return highest_total(programme, values, least)

        least = _slos(problem) if self.slos else np.zeros(rates.rows)
        return _allocated(self.name, problem, programme, least, solve)


@dataclass(frozen=True)
class LeastCost:
    """The most steps per dollar: total throughput over total cost, a linear-fractional programme.

    Parameters are those of :class:`MaxSumThroughput`.
    """

    name: str
    slos: bool = False
    aware: bool = True
    packed: bool = False
    model: Build = gavel.min_cost

    @property
    def needs_steps(self) -> bool:
        """True if SLOs are turned into throughputs."""
        return self.slos

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """One linear programme after Charnes and Cooper; the objective is steps per dollar."""
        if not len(problem):
            return nothing(self.name, problem)
        rates = Rates.of(problem, aware=self.aware, packed=self.packed)
        if not (problem.price > 0).all():
            free = problem.gpu_types[int((problem.price <= 0).argmax())]
            raise InputError(
                f"{problem.source}: GPU type {free!r} has no price, {self.name} needs one above 0 for all"
            )
        values = Values.of_throughput(rates, np.ones_like(rates.alone))
        costs = Values.of_gpus(rates, problem.price / 3600.0)

        programme = Programme.of(self.model, problem, rates, workspace, steps=self.needs_steps)

        def solve(least: FloatArray) -> Total:
            return highest_ratio(programme, values, costs, least)

        least = _slos(problem) if self.slos else np.zeros(rates.rows)
        return _allocated(self.name, problem, programme, least, solve)


def _slos(problem: AllocationProblem) -> FloatArray:
    """Throughput each SLO asks for [steps/s]; infinite where the time is up."""
    with np.errstate(divide="ignore"):
        return np.asarray(problem.steps / problem.slo_s)


def _allocated(
    name: str,
    problem: AllocationProblem,
    programme: Programme,
    least: FloatArray,
    solve: Callable[[FloatArray], Total],
) -> Allocation:
    """Solve with all SLOs, or with as many as can be kept and a note of the rest.

    Which can be kept is the programme's question as well: see
    :func:`shadowprice.models.gavel.most_slos`.
    """
    rates = programme.rates
    kept = np.where(least > rates.best_there * (1.0 + 1e-9), 0.0, least)
    why = "cannot be kept"
    try:
        total = solve(kept)
    except Infeasible:
        if not kept.any():
            raise
        chosen = replace(programme, build=gavel.most_slos)
        try:
            kept, total = _most_slos(chosen, kept, solve)
        except SolverError:
            kept, total = np.zeros(rates.rows), solve(np.zeros(rates.rows))
            total = replace(total, reached=False)
            why = "is left aside: no search tells which SLOs can be kept, their numbers are too far apart"
    given_up = np.flatnonzero((least > 0) & (kept == 0.0))
    notes = tuple(
        f"job {problem.id[job]!r}: its SLO needs {least[job]:.6g} steps/s and {why}"
        for job in given_up.tolist()
    )
    alone, shared = spread(problem, rates, total.x, total.y)
    return Allocation(
        name,
        problem,
        alone,
        shared,
        total.objective,
        total.bound,
        notes=notes,
        reached=total.reached,
    )


def _most_slos(
    chosen: Programme, least: FloatArray, solve: Callable[[FloatArray], Total]
) -> tuple[FloatArray, Total]:
    """As many SLOs as can be kept, and an allocation that keeps them.

    Raises
    ------
    SolverError
        If they are too far apart for any search.
    """
    # The margin absorbs the integer tolerance of the search that chose them.
    try:
        kept = attainable_slos(chosen, least)
        return kept, solve(kept * (1.0 - 1e-6))
    except SolverError:  # SLOs are too far apart for one search to tell them all from 0.
        kept = attainable_slos(chosen, least, relative=True)
        return kept, solve(kept * (1.0 - 1e-6))


ALLOCATIONS = (
    MaxSumThroughput("max_sum_throughput", aware=False),
    LeastCost("min_cost", aware=False),
)
