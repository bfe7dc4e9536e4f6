"""From rows of a programme back to the jobs and pairs of its problem."""

from __future__ import annotations

import numpy as np

from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.solvers.allocation.rates import Numbers


def shared_of(problem: AllocationProblem, pairs: Pairs, y: Numbers) -> Numbers:
    """Fractions for every pair of the problem, from those of the pairs a programme kept."""
    whole = np.zeros((len(problem.pairs), len(problem.gpu_types)))
    if len(pairs):
        jobs = max(len(problem), 1)
        key = problem.pairs.first * jobs + problem.pairs.second
        order = np.argsort(key)
        at = order[np.searchsorted(key[order], pairs.first * jobs + pairs.second)]
        whole[at] = y
    return whole
