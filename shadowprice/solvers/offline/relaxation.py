"""Dual prices of the linear relaxations of models, as a float solver has them: they propose, and any of them bound.

Models and what compiles them are imported where a programme is solved: of few jobs mostly none is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError

if TYPE_CHECKING:
    from shadowprice.solvers.programs.compile import CompiledModel, Solution

PRICES_ONLY = "it only proposes prices, whose bound is that of the published relaxation"
"""Any prices bound the cost of schedules, so an edit of an interval LP changes no more than the prices."""


@dataclass(frozen=True, eq=False)
class SolvedRelaxation:
    """A relaxation with its duals.

    Parameters
    ----------
    model : pyomo model
    finished : bool
        Whether the solver came to its end in time.
    """

    model: Any
    finished: bool
    _compiled: CompiledModel
    _solution: Solution

    def prices(self, rows: Any) -> NDArray[np.float64]:
        """Prices of the right-hand sides of ``rows``, in the order of their index set: duals with their sign turned."""
        return -self._compiled.dual(self._solution, rows)


def solve_relaxation(
    build: Callable[..., Any],
    *data: Any,
    until: float = math.inf,
    method: str = "highs-ipx",
    **options: Any,
) -> SolvedRelaxation | None:
    """A relaxation with its duals; None if the solver fails, or has none in time.

    Parameters
    ----------
    build : callable
        The model; of one that is not as published it is said once that it only proposes prices.
    *data, **options
        What it is built of.
    until : float
        By the monotonic clock [s].
    method : str
        Of HiGHS; interior points are not crossed over to a vertex.
    """
    from shadowprice.solvers.programs.compile import SolverOptions, Status, compile_model
    from shadowprice.solvers.programs.published import falls_back

    falls_back(build, PRICES_ONLY)
    compiled = compile_model(model := build(*data, **options))
    left_s = max(until - time.monotonic(), 0.1)
    try:
        # Of run times that differ by nine digits HiGHS may say that there is no end of it.
        how = SolverOptions(time_limit_s=left_s, method=method, crossover=method != "highs-ipx")
        solution = compiled.solve(how)
    except SolverError:  # Without prices there still are bounds.
        return None
    if not len(solution.duals):
        return None
    finished = solution.status is not Status.TIME_LIMIT
    return SolvedRelaxation(model, finished, compiled, solution)
