"""The result of an allocation policy: fractions of time, what they are worth, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.errors import VerificationError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.priced_rows import PricedRow
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.gavel.reached import CLOSE, off
from shadowprice.solvers.gavel.workspace import Workspace

NOT_PROVEN = "not proven"
"""Status of an answer whose objective misses its bound, or is not reached: the first words of its note."""

FEASIBLE = 1e-6
"""Relative excess of time or GPUs that is rounding of a solver."""


@dataclass(frozen=True, eq=False, repr=False)
class Prices(Brief):
    """Dual prices of a programme, in units of its objective.

    Parameters
    ----------
    worker : ndarray, shape (stages, accelerators)
        What one more GPU of each accelerator would add, in each stage of water filling; else one row.
    job : ndarray, shape (jobs,)
        What one step per second less to each job would add; 0 for a job that holds nobody back.
    time : ndarray, shape (jobs,)
        What more of the job's own time would add: above 0 if it runs all the time.
    level : ndarray, shape (jobs,)
        Level at which each job was settled: all the same for max-min, rising for water filling.
    stage : ndarray of int, shape (jobs,)
        Row of ``worker`` prices that settled it, for water filling; otherwise 0.
    spare : ndarray of bool, shape (jobs,)
        Jobs that get more than their level asks for.
    rows : tuple of PricedRow
        Further rows of the model that have a price.
    """

    worker: FloatArray
    job: FloatArray
    time: FloatArray
    level: FloatArray
    stage: NDArray[np.int64]
    spare: NDArray[np.bool_]
    rows: tuple[PricedRow, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Allocation(Brief):
    """Fractions of time for jobs and pairs.

    Parameters
    ----------
    policy : str
        Name of the policy.
    problem : AllocationProblem
    alone : ndarray, shape (jobs, types)
        Fraction of time each job runs alone on each type.
    shared : ndarray, shape (pairs, types)
        Fraction of time each pair of ``problem.pairs`` shares GPUs.
    objective : float, optional
        Value of the policy's objective; None for a rule without one.
    bound : float, optional
        What no allocation can beat, where prices prove it.
    prices : Prices, optional
        The witness, for max-min policies.
    notes : tuple of str
        What the reader should know: objectives that were given up, gangs that can never be placed.
    certified : bool
        Whether the answers of all programmes were shown to be optimal, not by a solver's word.
    reached : bool
        Whether jobs have the throughputs that the objective says or asks for, evaluated from the fractions.
    solver_s, total_s : float
        CPU time inside the solver, and in all [s].
    """

    policy: str
    problem: AllocationProblem
    alone: FloatArray
    shared: FloatArray
    objective: float | None = None
    bound: float | None = None
    prices: Prices | None = None
    notes: tuple[str, ...] = ()
    certified: bool = True
    reached: bool = True
    solver_s: float = field(default=0.0, repr=False)
    total_s: float = field(default=0.0, repr=False)

    @property
    def proven(self) -> bool:
        """False if the objective misses its bound, or is not reached, by more than a share of :data:`CLOSE`.

        Always True for a rule, which has no objective.
        """
        if self.objective is None:
            return True
        near = self.bound is None or off(self.objective, self.bound) <= CLOSE
        return bool(self.reached and math.isfinite(self.objective) and near)

    @property
    def effective_throughput(self) -> FloatArray:
        """Steps per second of each job under the allocation, at its real rates."""
        problem = self.problem
        rates = Rates(
            problem.throughput,
            problem.gpus.astype(np.float64),
            problem.capacity,
            problem.accelerators,
            problem.pairs,
            problem.id,
            problem.gpu_types,
            problem.entity,
        )
        return rates.throughput(self.alone, self.shared)

    def rows(self, least: float = 0.0) -> Iterator[tuple[tuple[str, ...], FloatArray]]:
        """Jobs, then pairs with a fraction above ``least``, and their fractions by type."""
        names = self.problem.id
        for name, fractions in zip(names.tolist(), self.alone, strict=True):
            yield (name,), fractions
        pairs = self.problem.pairs
        for k in np.flatnonzero((self.shared > least).any(axis=1)).tolist():
            yield (names[pairs.first[k]], names[pairs.second[k]]), self.shared[k]

    def verify(self) -> None:
        """Check that it is an allocation, from nothing but the problem; O(entries).

        Raises
        ------
        VerificationError
            Naming the job or accelerator and the excess.
        """
        problem, pairs = self.problem, self.problem.pairs
        jobs, types = len(problem), len(problem.gpu_types)
        for part, shape in ((self.alone, (jobs, types)), (self.shared, (len(pairs), types))):
            if part.shape != shape or not np.isfinite(part).all() or (part < -FEASIBLE).any():
                raise VerificationError(f"{self.policy}: fractions are not a table of shares")
        time = self.alone.sum(axis=1)
        both = self.shared.sum(axis=1)
        time = time + np.bincount(pairs.first, both, jobs) + np.bincount(pairs.second, both, jobs)
        if (time > 1.0 + FEASIBLE).any():
            job = int(time.argmax())
            raise VerificationError(
                f"{self.policy}: job {problem.id[job]!r} runs {time[job]} of the time, expected at most 1"
            )
        per_type = problem.gpus @ self.alone
        per_type = per_type + problem.gpus[pairs.first] @ self.shared
        used = np.bincount(problem.accelerators, per_type, len(problem.capacity))
        over = used > problem.capacity * (1.0 + FEASIBLE) + FEASIBLE
        if over.any():
            k = int(over.argmax())
            name = problem.gpu_types[problem.accelerators.index(k)]
            raise VerificationError(
                f"{self.policy}: {used[k]} GPUs of {name} are used, there are {problem.capacity[k]}"
            )


@runtime_checkable
class AllocationPolicy(Protocol):
    """A rule that says which share of each GPU type every job should get.

    Usually a small frozen dataclass in a file of :mod:`shadowprice.solvers.gavel.policies` whose
    module lists ready-made ones in ``ALLOCATIONS``.
    """

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def needs_steps(self) -> bool:
        """True if it uses the steps left, which only a clairvoyant scheduler knows."""

    @property
    def packed(self) -> bool:
        """True if it lets pairs of jobs share GPUs."""

    @property
    def aware(self) -> bool:
        """True if it is heterogeneity-aware: it knows that GPU types differ."""

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """Allocate; the workspace keeps compiled programmes from call to call."""


def nothing(policy: str, problem: AllocationProblem) -> Allocation:
    """The allocation of a problem without jobs."""
    types = len(problem.gpu_types)
    return Allocation(policy, problem, np.zeros((0, types)), np.zeros((0, types)))
