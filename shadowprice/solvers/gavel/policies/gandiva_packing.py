"""Gandiva's packing as Gavel (OSDI'20) compares with it: random pairs, kept where they help.

Gavel's code adds a pair's normalised throughputs over all GPU types before it compares with 1, so
it hardly ever drops one; here a pair is kept on the types where the two together do at least as
much as one alone (spec of Gandiva, OSDI'18, sec. 3.3: packing is undone when it does not help).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import Allocation, nothing
from shadowprice.solvers.gavel.policies.isolated import isolated_shares
from shadowprice.solvers.gavel.rates import FloatArray
from shadowprice.solvers.gavel.workspace import Workspace


@dataclass(frozen=True)
class GandivaPacking:
    """Equal shares; when there are more jobs than GPUs, random pairs of equal gangs share theirs.

    Parameters
    ----------
    seed : int
        Of the random pairs.
    """

    name: str = "gandiva"
    seed: int = 0

    needs_steps: ClassVar[bool] = False
    aware: ClassVar[bool] = True
    packed: ClassVar[bool] = True

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """Random matching; O(pairs x types)."""
        if not len(problem):
            return nothing(self.name, problem)
        shared = np.zeros((len(problem.pairs), len(problem.gpu_types)))
        if problem.gpus.sum() <= problem.capacity.sum() or not len(problem.pairs):
            return Allocation(self.name, problem, isolated_shares(problem), shared)
        matched = _matching(problem, np.random.default_rng(self.seed))
        single = np.ones(len(problem), dtype=bool)
        single[problem.pairs.first[matched]] = single[problem.pairs.second[matched]] = False
        gangs = np.concatenate((problem.gpus[single], problem.gpus[problem.pairs.first[matched]]))
        shares = _equal(problem, gangs)
        alone = np.zeros_like(problem.throughput)
        alone[single] = shares[: single.sum()]
        _share(problem, matched, shares[single.sum() :], alone, shared)
        return Allocation(self.name, problem, alone, shared)


def _matching(problem: AllocationProblem, draw: np.random.Generator) -> NDArray[np.int64]:
    """Random disjoint pairs, each of which helps on some type."""
    helps = _worth(problem).max(axis=1) >= 1.0
    taken = np.zeros(len(problem), dtype=bool)
    chosen = []
    for k in draw.permutation(np.flatnonzero(helps)).tolist():
        a, b = problem.pairs.first[k], problem.pairs.second[k]
        if not (taken[a] or taken[b]):
            taken[a] = taken[b] = True
            chosen.append(k)
    return np.array(sorted(chosen), dtype=np.int64)


def _worth(problem: AllocationProblem) -> FloatArray:
    """Summed normalised throughput of each pair on each type."""
    pairs = problem.pairs
    with np.errstate(divide="ignore", invalid="ignore"):
        both = (
            pairs.throughput_first / problem.throughput[pairs.first]
            + pairs.throughput_second / problem.throughput[pairs.second]
        )
    return np.nan_to_num(both, nan=0.0, posinf=0.0)


def _equal(problem: AllocationProblem, gangs: NDArray[np.int64]) -> FloatArray:
    """Equal shares of every type for rows of these gangs, none above all of the time."""
    sharing = np.bincount(problem.accelerators)[list(problem.accelerators)]
    shares = problem.type_capacity / sharing / max(len(gangs), 1) / gangs[:, None]
    return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1.0))


def _share(
    problem: AllocationProblem,
    matched: NDArray[np.int64],
    shares: FloatArray,
    alone: FloatArray,
    shared: FloatArray,
) -> None:
    """A pair shares the types where that helps and takes turns on the others."""
    pairs, worth = problem.pairs, _worth(problem)[matched]
    together = np.where(worth >= 1.0, shares, 0.0)
    shared[matched] = together
    turns = (shares - together) / 2.0
    alone[pairs.first[matched]] = turns
    alone[pairs.second[matched]] = turns


ALLOCATIONS = (GandivaPacking(),)
