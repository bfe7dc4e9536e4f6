"""From rows of a programme back to the jobs, pairs and types of its problem."""

from __future__ import annotations

import numpy as np

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.rates import FloatArray, Rates


def spread(
    problem: AllocationProblem, rates: Rates, x: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fractions of jobs and of all pairs of the problem, from a programme's.

    A programme may have left out pairs, which get nothing, and may have seen all types as one:
    then time is divided in proportion to the GPUs.
    """
    types = len(problem.gpu_types)
    if x.shape[1] != types:
        sharing = np.bincount(problem.accelerators)[list(problem.accelerators)]
        part = problem.type_capacity / sharing / problem.capacity.sum()
        x, y = x * part[None, :], y[:, :1] * part[None, :]
    shared = np.zeros((len(problem.pairs), types))
    if len(rates.pairs):
        jobs = len(problem)
        key = problem.pairs.first * jobs + problem.pairs.second
        order = np.argsort(key)
        wanted = rates.pairs.first * jobs + rates.pairs.second
        shared[order[np.searchsorted(key[order], wanted)]] = y
    return x, shared
