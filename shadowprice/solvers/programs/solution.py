"""Options and result of a solve."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError

HIGHS_METHODS = {
    "highs": "choose",
    "highs-simplex": "simplex",
    "highs-ipx": "ipm",
    "highs-pdlp": "pdlp",
}
"""Methods of HiGHS, and what HiGHS calls them."""

PYOMO_SOLVERS = {
    "gurobi": "gurobi_direct",
    "cuopt": "cuopt",
    "xpress": "xpress_direct",
    "mosek": "mosek_direct",
    "cplex": "cplex_direct",
}
"""Solvers with a licence or on a GPU, and what Pyomo calls them."""

PYOMO = "pyomo:"
"""Before the name of any other solver of Pyomo's."""

METHODS = ("auto", *HIGHS_METHODS, "scip", *PYOMO_SOLVERS)
"""What solves: by size and structure, HiGHS, or another solver."""


class Status(StrEnum):
    """Final status of a solve."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible, not shown to be optimal"
    TIME_LIMIT = "time limit"


class OptimalityEvidence(StrEnum):
    """Basis of the claim that a point is optimal; see :mod:`shadowprice.solvers.programs.gate`.

    Attributes
    ----------
    PROVEN
        A bound that was evaluated here, with rounding errors counted, meets the point's value.
    CONFIRMED
        Two searches that do not share the error agree: another solver, or the same one without
        its presolve.
    POINT_ONLY
        The point holds, evaluated here; that none is better is one solver's word, or not known.
    NOTHING
        No point.
    """

    PROVEN = "proven"
    CONFIRMED = "confirmed"
    POINT_ONLY = "point only"
    NOTHING = "nothing"

    @property
    def optimal(self) -> bool:
        """True if the point counts as optimal."""
        return self in (OptimalityEvidence.PROVEN, OptimalityEvidence.CONFIRMED)


@dataclass(frozen=True)
class SolverOptions:
    """Options of a solve.

    Parameters
    ----------
    time_limit_s : float
        Wall time for a solve [s], its confirmation included.
    method : str
        One of :data:`METHODS`, or ``pyomo:`` and the name of a solver that Pyomo knows. ``auto``
        tries structured methods, then HiGHS, by size and from the last basis.
    crossover : bool
        Whether interior point ends with a basis; without it values are 1e-8 off and interior.
    absolute_gap, relative_gap : float
        When a mixed-integer search may stop; optimal then means that no point is better by more.
    confirm : bool
        Whether to look for what supports that the point of a mixed-integer programme is optimal;
        without, it is taken as it is.
    proof_work : float
        Most work to prove the optimum of a mixed-integer programme with: simplex iterations
        times the programme's entries, rows and columns.
    structured_jobs : int
        With method auto, max-min programmes of so many jobs are given to the block-arrow method
        before HiGHS. From 1 on, points lie in the interior of the optimal set, as those of conic
        solvers do.
    """

    time_limit_s: float = 60.0
    method: str = "auto"
    crossover: bool = True
    absolute_gap: float = 1e-6
    relative_gap: float = 0.0
    confirm: bool = True
    proof_work: float = 2e7
    structured_jobs: int = 96

    def __post_init__(self) -> None:
        if self.method not in METHODS and not self.method.startswith(PYOMO):
            raise SolverError(
                f"solver {self.method!r}, expected one of {', '.join(METHODS)} or {PYOMO}NAME"
            )


@dataclass(frozen=True)
class FallBack:
    """A structured method that looked like fitting a programme and did not.

    Parameters
    ----------
    method : str
    why : str
        With ``{row}`` where the row is to be named.
    row : int or None
        The row in the way.
    """

    method: str
    why: str
    row: int | None = None


@dataclass(frozen=True)
class Solution:
    """Everything a solve gives.

    Parameters
    ----------
    status : Status
        Optimal, and shown to be; found, where a solver says optimal and nothing else does; or
        stopped at the time limit with what was found by then.
    objective, bound : float
        Value of the best point found, and what no point can beat; NaN and -inf (for
        minimisation) where there is none. The bound was evaluated here, from all multipliers with
        rounding errors counted, if ``evidence`` is ``PROVEN``, and is a solver's word otherwise.
    primal : ndarray, shape (columns,)
        Empty if no point was found.
    duals : ndarray, shape (rows,)
        d(objective) / d(right-hand side): in a minimisation >= 0 for ``>=`` rows and <= 0 for
        ``<=`` rows, in a maximisation the other way round. Empty for integer programmes.
    iterations : int
        Iterations of whatever method ran.
    evidence : OptimalityEvidence
        What the claim to be optimal rests on.
    method : str
        What proposed the point: ``highs``, ``folded``, ``sifting``, ``block-arrow`` or another solver.
    fallbacks : tuple of FallBack
        Faster methods that could not answer this programme.
    """

    status: Status
    objective: float
    bound: float
    primal: NDArray[np.float64] = field(repr=False)
    duals: NDArray[np.float64] = field(repr=False)
    iterations: int = 0
    evidence: OptimalityEvidence = OptimalityEvidence.POINT_ONLY
    method: str = "highs"
    fallbacks: tuple[FallBack, ...] = ()

    @property
    def gap(self) -> float:
        """|objective - bound| / max(1, |objective|)."""
        return abs(self.objective - self.bound) / max(1.0, abs(self.objective))

    @property
    def gap_relative(self) -> float:
        """|objective - bound| / |objective|, of 1e-300 at least."""
        return abs(self.objective - self.bound) / max(1e-300, abs(self.objective))


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
