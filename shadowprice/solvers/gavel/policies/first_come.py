"""First come, first served, without a programme: Gavel's baseline (OSDI'20, its released code).

The queue is in order of arrival; the head takes GPUs of one type for all its time, and when it
fits on none everybody behind it waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import Allocation, nothing
from shadowprice.solvers.gavel.rates import FloatArray
from shadowprice.solvers.gavel.workspace import Workspace

PACKING_THRESHOLD = 1.5
"""Summed normalised throughput above which Gavel's code packs two jobs."""


@dataclass(frozen=True)
class FirstCome:
    """The head of the queue takes a type on which it fits, or all wait.

    Parameters
    ----------
    aware : bool
        Whether it takes its fastest such type; otherwise a random one.
    packed : bool
        Whether jobs that wait then join running ones, the best partner first, where the two
        together are faster than :data:`PACKING_THRESHOLD` times one alone.
    seed : int
        Of the random types.
    """

    name: str
    aware: bool = True
    packed: bool = False
    seed: int = 0

    needs_steps: ClassVar[bool] = False

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """Greedy; O(jobs x types), with packing O(pairs x types)."""
        if not len(problem):
            return nothing(self.name, problem)
        alone = np.zeros_like(problem.throughput)
        shared = np.zeros((len(problem.pairs), len(problem.gpu_types)))
        waiting = self._serve(problem, alone)
        if self.packed:
            _pack(problem, alone, shared, waiting)
        return Allocation(self.name, problem, alone, shared)

    def _serve(self, problem: AllocationProblem, alone: FloatArray) -> list[int]:
        """Give types to jobs in order; returns those that wait."""
        draw = np.random.default_rng(self.seed)
        free = problem.capacity.copy()
        for job in range(len(problem)):
            room = free[list(problem.accelerators)] >= problem.gpus[job]
            fits = np.flatnonzero(room & (problem.throughput[job] > 0))
            if not len(fits):
                return list(range(job, len(problem)))
            fastest = fits[problem.throughput[job, fits].argmax()]
            chosen = int(fastest if self.aware else draw.choice(fits))
            alone[job, chosen] = 1.0
            free[problem.accelerators[chosen]] -= problem.gpus[job]
        return []


def _pack(
    problem: AllocationProblem, alone: FloatArray, shared: FloatArray, waiting: list[int]
) -> None:
    """Let jobs that wait join one that runs, in order of arrival."""
    pairs = problem.pairs
    for job in waiting:
        partners = np.where(pairs.first == job, pairs.second, pairs.first)
        mine = (pairs.first == job) | (pairs.second == job)
        best, best_pair, best_type = PACKING_THRESHOLD, -1, -1
        for k in np.flatnonzero(mine).tolist():
            partner = int(partners[k])
            for j in np.flatnonzero(alone[partner] > 0).tolist():
                worth = _normalized_sum(problem, k, j)
                if worth > best:
                    best, best_pair, best_type = worth, k, j
        if best_pair >= 0:
            alone[partners[best_pair], best_type] = 0.0
            shared[best_pair, best_type] = 1.0


def _normalized_sum(problem: AllocationProblem, pair: int, gpu_type: int) -> float:
    """Sum of the two throughputs of a pair, each over its throughput alone."""
    pairs = problem.pairs
    alone = problem.throughput[[pairs.first[pair], pairs.second[pair]], gpu_type]
    both = (pairs.throughput_first[pair, gpu_type], pairs.throughput_second[pair, gpu_type])
    return sum(float(b / a) for b, a in zip(both, alone.tolist(), strict=True) if a > 0)


ALLOCATIONS = (FirstCome("fifo", aware=False),)
