"""What a solve may be asked for, and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError

METHODS = ("auto", "simplex", "ipm", "pdlp")


class Status(StrEnum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time limit"


@dataclass(frozen=True)
class SolverOptions:
    """What may differ between solves.

    Parameters
    ----------
    time_limit_s : float
        Wall time for HiGHS [s].
    method : str
        For linear programmes: auto (by size, and simplex from a basis), simplex, ipm, pdlp.
    crossover : bool
        Whether interior point ends with a basis; without it values are 1e-8 off and interior.
    absolute_gap, relative_gap : float
        When a mixed-integer search may stop.
    """

    time_limit_s: float = 60.0
    method: str = "auto"
    crossover: bool = True
    absolute_gap: float = 1e-6
    relative_gap: float = 0.0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise SolverError(f"method {self.method!r}, expected one of {', '.join(METHODS)}")


@dataclass(frozen=True)
class Solution:
    """Everything a solve gives.

    Parameters
    ----------
    status : Status
        Optimal, or stopped at the time limit with what was found by then.
    objective, bound : float
        Value of the best point found, and what no point can beat; NaN and -inf (for
        minimisation) where there is none.
    primal : ndarray, shape (columns,)
        Empty if no point was found.
    duals : ndarray, shape (rows,)
        d(objective) / d(right-hand side): in a minimisation >= 0 for ``>=`` rows and <= 0 for
        ``<=`` rows, in a maximisation the other way round. Empty for integer programmes.
    iterations : int
        Iterations of whatever method ran.
    """

    status: Status
    objective: float
    bound: float
    primal: NDArray[np.float64] = field(repr=False)
    duals: NDArray[np.float64] = field(repr=False)
    iterations: int = 0

    @property
    def gap(self) -> float:
        """|objective - bound| / max(1, |objective|)."""
        return abs(self.objective - self.bound) / max(1.0, abs(self.objective))


class Infeasible(SolverError):
    """A model without a feasible point.

    Parameters
    ----------
    rows : list of int
        An irreducible set of rows that cannot hold together; empty if none was found.
    """

    def __init__(self, message: str, rows: list[int]) -> None:
        super().__init__(message)
        self.rows = rows


class Unbounded(SolverError):
    """A model whose objective has no limit."""
