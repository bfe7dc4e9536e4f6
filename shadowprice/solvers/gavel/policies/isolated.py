"""Static shares: the same part of every GPU type for each job. Gavel (OSDI'20), sec. 4.1 and its code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import Allocation, nothing
from shadowprice.solvers.gavel.rates import FloatArray
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.narrow_tables import across


def isolated_shares(problem: AllocationProblem) -> FloatArray:
    """X_isolated: W_j / (n s_m), rows scaled down to 1 where they exceed it; shape (jobs, types).

    Types that draw on one accelerator divide its GPUs evenly.
    """
    sharing = np.bincount(problem.accelerators)[list(problem.accelerators)]
    shares = problem.type_capacity / sharing / max(len(problem), 1) / problem.gpus[:, None]
    return np.asarray(shares / np.maximum(across(np.add, shares), 1.0)[:, None])


@dataclass(frozen=True)
class Isolated:
    """One n-th of the cluster for each of n jobs."""

    name: str = "isolated"

    needs_steps: ClassVar[bool] = False
    aware: ClassVar[bool] = False
    packed: ClassVar[bool] = False

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """Closed form."""
        if not len(problem):
            return nothing(self.name, problem)
        return _alone(self.name, problem, isolated_shares(problem))


@dataclass(frozen=True)
class ProportionalShares:
    """All the time of each job, spread over types in proportion to their GPUs.

    This is X_equal, the normaliser of max-min fairness. With fewer jobs than GPUs or wide gangs it
    asks for more GPUs than there are; it is returned all the same, and a note says so.
    """

    name: str = "proportional"

    needs_steps: ClassVar[bool] = False
    aware: ClassVar[bool] = False
    packed: ClassVar[bool] = False

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """Closed form."""
        if not len(problem):
            return nothing(self.name, problem)
        capacity = problem.type_capacity
        if not capacity.sum() > 0:
            raise InputError(f"{problem.source}: the cluster has no GPUs")
        shares = np.repeat((capacity / capacity.sum())[None, :], len(problem), axis=0)
        wanted = float((problem.gpus @ shares).sum())
        over = wanted > capacity.sum() * (1.0 + 1e-12)
        note = f"asks for {wanted:.6g} GPUs of {capacity.sum():.6g}: a normaliser, not a schedule"
        return _alone(self.name, problem, shares, (note,) if over else ())


def _alone(
    name: str, problem: AllocationProblem, shares: FloatArray, notes: tuple[str, ...] = ()
) -> Allocation:
    shared = np.zeros((len(problem.pairs), len(problem.gpu_types)))
    return Allocation(name, problem, shares, shared, notes=notes)


ALLOCATIONS = (Isolated(), ProportionalShares())
