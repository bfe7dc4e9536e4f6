"""The best matrix of a round, by the programme of ``models/pollux.py``, and how much a search misses of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shadowprice.errors import SolverError
from shadowprice.instances.goodput.allocation_costs import AllocationCosts, Matrix
from shadowprice.models import pollux
from shadowprice.solvers.programs.compile import compile_model
from shadowprice.solvers.programs.solution import SolverOptions


@dataclass(frozen=True, eq=False)
class RoundOptimum:
    """The best matrix found, and what no matrix can beat.

    Parameters
    ----------
    matrix : ndarray of int8, shape (jobs, nodes)
    cost : float
        Of the matrix, by :meth:`AllocationCosts.of`.
    bound : float
        No matrix costs less.
    proven : bool
        Whether the bound was evaluated here, with rounding errors counted; else it is a solver's word.
    """

    matrix: Matrix
    cost: float
    bound: float
    proven: bool

    def missed(self, cost: float) -> float:
        """Part of the best power mean that a matrix of this cost does not reach, from 0 to 1, at most."""
        return max(1.0 - self.bound / cost, 0.0)


def best_matrix(costs: AllocationCosts, options: SolverOptions | None = None) -> RoundOptimum:
    """The best matrix of a round.

    Raises
    ------
    SolverError
        If none was found in time.
    """
    model: Any = pollux.build(costs)
    compiled = compile_model(model)
    found = compiled.solve(options or SolverOptions(relative_gap=1e-6))
    if not len(found.primal):
        raise SolverError("Pollux: no allocation of the round was found in time")
    matrix = np.rint(compiled.value(found, model.x)).astype(np.int8)
    if not costs.allows(matrix):
        raise SolverError("Pollux: the allocation found is not one that the round allows")
    return RoundOptimum(matrix, costs.of(matrix), found.bound, found.evidence.optimal)
