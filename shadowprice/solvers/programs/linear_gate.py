"""Linear programmes solved by whatever is fast, and examined in the rows as they stand.

The point is evaluated in the rows, and the multipliers as a bound; the two have
to meet, all relative to :data:`CLOSE`, which is what the methods give. If they do not, simplex solves the
programme again without presolve, and if that does not help either the answer is ``POINT_ONLY``.

Structured methods only propose. Rows that are alike are folded (:mod:`fold`), columns in great number
are sifted (:mod:`sifting`), and a max-min programme is given to the block-arrow method (:mod:`max_min`);
what comes back is examined in all rows of the programme as it is. Where it does not fit, HiGHS solves
the whole programme and the solution says which method was not used and why. Solvers see programmes
scaled by :mod:`scaling`, and tolerances are meant there: what a row is made of is about 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.solvers.programs.exact import MinimisationForm, bound_of_duals
from shadowprice.solvers.programs.highs import Highs
from shadowprice.solvers.programs.linear_program import (
    FloatArray,
    LinearProgram,
    rows_of_entries,
)
from shadowprice.solvers.programs.solution import (
    HIGHS_METHODS,
    FallBack,
    Infeasible,
    OptimalityEvidence,
    Solution,
    SolverOptions,
    Status,
    Unbounded,
)
from shadowprice.solvers.programs.structure.fold import Folded, fold
from shadowprice.solvers.programs.structure.max_min import NotMaxMin, recognise
from shadowprice.solvers.programs.structure.scaling import PowerScales
from shadowprice.solvers.programs.structure.sifting import first_columns, sift

if TYPE_CHECKING:
    from shadowprice.solvers.programs.other_solvers import Backend

CLOSE = 1e-5
"""Largest violation and gap of a linear programme's answer, relative to 1 + its size."""

EXACT = 1e-7
"""Relative gap up to which the block-arrow method's answer is taken; HiGHS's tolerance is the same."""

_NONE = np.zeros(0, dtype=np.int32)


class LinearGate:
    """One programme, kept in the solver from one solve to the next."""

    def __init__(self) -> None:
        self._highs, self._folded = ScaledHighs(), ScaledHighs()
        self._start, self._row = _NONE, _NONE.astype(np.int64)

    def solve(
        self,
        program: LinearProgram,
        options: SolverOptions,
        start: Mapping[int, float] | None,
        left_out: NDArray[np.bool_] | None,
        size: FloatArray | None = None,
    ) -> Solution:
        """Solve, and examine the answer; as :meth:`~shadowprice.solvers.programs.gate.Gate.solve`."""
        if self._start is not program.start:
            self._start, self._row = program.start, rows_of_entries(program)
        if size is not None:
            return LinearGate().of_sizes(program, self._row, options, size)
        scaled = self._highs.scaled(program, self._row)
        fallbacks: list[FallBack] = []
        if options.method == "auto":
            proposed = self._proposed(scaled, options, left_out, fallbacks)
            if proposed is not None:
                return replace(proposed, fallbacks=tuple(fallbacks))
        return replace(self._by_highs(scaled, options, start), fallbacks=tuple(fallbacks))

    def _proposed(
        self,
        scaled: ScaledProgram,
        options: SolverOptions,
        left_out: NDArray[np.bool_] | None,
        fallbacks: list[FallBack],
    ) -> Solution | None:
        """Answer of a structured method, if it is one to the programme as it is."""
        program = scaled.program
        folded = fold(program, self._row, left_out)
        small, row = program, self._row
        if folded is not None:
            small, row = folded.program, rows_of_entries(folded.program)
            left_out = None if left_out is None else folded.of_columns(left_out)
        near: list[FallBack] = []
        found = _by_block_arrow(small, row, options, near)
        large = small.rows >= 2 * options.structured_jobs
        if found is None and folded is not None and large:
            # What folding has joined may be what the method tells apart.
            near.clear()
            found = _by_block_arrow(program, self._row, options, near)
            folded = folded if found is None else None
        if found is not None:
            method, close, primal, duals = "block-arrow", EXACT, *found
        else:
            fallbacks += near
            found = self._smaller(small, row, options, folded, left_out)
            if found is None:
                return None
            method, close, primal, duals = "sifting" if folded is None else "folded", CLOSE, *found
        if folded is not None:
            primal, duals = folded.point(primal), folded.duals(duals)
        answer = _solution(program, primal, duals, method)
        if scaled.holds(answer):
            answer = replace(answer, bound=evaluated_bound(program, answer, self._row))
            if answer.gap_relative <= close:
                return replace(answer, evidence=OptimalityEvidence.PROVEN)
        fallbacks.append(FallBack(method, "its answer does not fit the model's rows"))
        return None

    def _smaller(
        self,
        small: LinearProgram,
        row: NDArray[np.int64],
        options: SolverOptions,
        folded: Folded | None,
        left_out: NDArray[np.bool_] | None,
    ) -> tuple[FloatArray, FloatArray] | None:
        """A point and multipliers of the folded programme, or of one that was sifted."""
        try:
            first = first_columns(small, row, left_out)
            if first is not None:
                seen = ScaledHighs().scaled(small, row)
                highs = Highs()
                found = sift(seen.inside, row, first, lambda part: highs.solve(part, options))
                if found is not None:
                    return seen.scales.point(found[0]), seen.scales.duals(found[1])
            if folded is None:
                return None
            solution = self._folded.scaled(small, row).solve(self._folded.highs, options)
        except Exception:  # The whole programme says what is wrong with it.
            return None
        if solution.status is not Status.OPTIMAL or len(solution.duals) != small.rows:
            return None
        return solution.primal, solution.duals

    def _by_highs(
        self, scaled: ScaledProgram, options: SolverOptions, start: Mapping[int, float] | None
    ) -> Solution:
        program = scaled.program
        solution = self._asked(lambda it: scaled.solve(it, options, start), program, options)
        if solution.status is not Status.OPTIMAL:
            return replace(solution, evidence=_evidence_of_point(solution))
        if len(solution.duals):
            solution = replace(solution, bound=evaluated_bound(program, solution, self._row))
        if scaled.holds(solution):
            return replace(solution, evidence=OptimalityEvidence.PROVEN)
        if options.method not in ("auto", *HIGHS_METHODS):
            # A solver that was asked for by name answers for itself.
            return replace(solution, status=Status.FEASIBLE, evidence=_evidence_of_point(solution))
        other = replace(options, method="highs-simplex")
        try:
            again = Highs().solve(program, other, presolve=False)
        except Exception:  # The first answer stands, as far as it does.
            again = solution
        if again.status is Status.OPTIMAL and scaled.holds(again):
            return replace(
                again,
                evidence=OptimalityEvidence.PROVEN,
                bound=evaluated_bound(program, again, self._row),
            )
        return replace(solution, status=Status.FEASIBLE, evidence=_evidence_of_point(solution))

    def of_sizes(
        self,
        program: LinearProgram,
        row: NDArray[np.int64],
        options: SolverOptions,
        size: FloatArray,
    ) -> Solution:
        """Answer to a programme whose columns are of known sizes: asked anew, in units in which they are 1."""
        self._row = row
        scales = PowerScales.of_sizes(program, row, size)
        scaled = ScaledProgram(program, scales.scaled(program, row), scales, row)
        return self._by_highs(scaled, options, None)

    def attempt(
        self, program: LinearProgram, options: SolverOptions, start: Mapping[int, float] | None
    ) -> Solution:
        """Answer to a programme as it is, with other parameters if HiGHS fails; its word alone."""
        return self._asked(lambda it: it.solve(program, options, start), program, options)

    def _asked(
        self, ask: Callable[[Backend], Solution], program: LinearProgram, options: SolverOptions
    ) -> Solution:
        """Answer of the solver that the options name."""
        if options.method not in ("auto", *HIGHS_METHODS):
            # Loaded when asked for: few programmes are solved by them, and they bring Pyomo.
            from shadowprice.solvers.programs.other_solvers import backend

            return ask(backend(options.method))
        try:
            return ask(self._highs.highs)
        except (Infeasible, Unbounded):
            raise
        except Exception as error:
            self._highs = ScaledHighs()
            reason = error
        try:
            return Highs().solve(program, replace(options, method="auto"), presolve=False)
        except (Infeasible, Unbounded):
            raise
        except Exception:
            raise SolverError(f"no solver could solve the programme: {reason}") from None


@dataclass(frozen=True, eq=False)
class ScaledProgram:
    """A linear programme, and the scaled one that solvers see.

    Parameters
    ----------
    program, inside : LinearProgram
        In the model's units, and scaled.
    scales : PowerScales
    row : ndarray of int, shape (entries,)
        The row of every entry.
    """

    program: LinearProgram
    inside: LinearProgram
    scales: PowerScales
    row: NDArray[np.int64]

    def solve(
        self, solver: Backend, options: SolverOptions, start: Mapping[int, float] | None = None
    ) -> Solution:
        """A solver's answer to the scaled programme, in the programme's own units."""
        scales = self.scales
        if start:
            start = {k: value / float(scales.column[k]) for k, value in start.items()}
        found = solver.solve(self.inside, options, start)
        return replace(
            found,
            objective=found.objective / scales.cost,
            bound=found.bound / scales.cost,
            primal=scales.point(found.primal),
            duals=scales.duals(found.duals),
        )

    def holds(self, solution: Solution) -> bool:
        """True if an answer meets the programme, measured where its entries are about 1."""
        scales = self.scales
        inside = replace(
            solution,
            primal=solution.primal / scales.column,
            duals=solution.duals / scales.row * scales.cost,
        )
        return meets(self.inside, inside, self.row)


class ScaledHighs:
    """HiGHS, and the scales of the programmes it gets, which are kept from solve to solve while they fit."""

    def __init__(self) -> None:
        self.highs = Highs()
        self._scales: PowerScales | None = None

    def scaled(self, program: LinearProgram, row: NDArray[np.int64]) -> ScaledProgram:
        """A programme with the last scales, if they fit, or with its own."""
        kept = self._scales
        shape = (program.rows, program.columns)
        if kept is None or kept.shape != shape or not kept.fits(program, row):
            kept = self._scales = PowerScales.of(program, row)
        return ScaledProgram(program, kept.scaled(program, row), kept, row)


def _by_block_arrow(
    small: LinearProgram,
    row: NDArray[np.int64],
    options: SolverOptions,
    fallbacks: list[FallBack],
) -> tuple[FloatArray, FloatArray] | None:
    if small.rows < 2 * options.structured_jobs:
        return None
    try:
        return recognise(small, row).solve(small)
    except NotMaxMin as why:
        if why.near:
            fallbacks.append(FallBack("block-arrow", str(why), why.row))
    return None


def _solution(
    program: LinearProgram, primal: FloatArray, duals: FloatArray, method: str
) -> Solution:
    value = float(program.cost @ primal) + program.offset
    return Solution(Status.OPTIMAL, value, value, primal, duals, method=method)


def evaluated_bound(program: LinearProgram, solution: Solution, row: NDArray[np.int64]) -> float:
    """The bound that all multipliers of a linear programme prove, rounding errors counted.

    Where a column has no bound, and rows imply none, there is no such bound: the value itself stands.
    """
    sign = -1.0 if program.maximise else 1.0
    value = sign * (solution.objective - program.offset)
    least = MinimisationForm.of(program, row)
    found = bound_of_duals(least, sign * solution.duals, value)
    return least.shown(found) if math.isfinite(found) else solution.objective


def _evidence_of_point(solution: Solution) -> OptimalityEvidence:
    return OptimalityEvidence.POINT_ONLY if len(solution.primal) else OptimalityEvidence.NOTHING


def meets(program: LinearProgram, solution: Solution, row: NDArray[np.int64] | None = None) -> bool:
    """True if a linear programme's point holds and its multipliers prove it, to :data:`CLOSE`.

    O(entries), vectorised; rounding errors of the sums are far below the tolerance.

    Parameters
    ----------
    row : ndarray of int, optional
        The row of every entry, if it is known.
    """
    x, p = solution.primal, program
    if len(x) != p.columns or len(solution.duals) != p.rows:
        return p.rows == 0 and len(x) == p.columns
    row = rows_of_entries(p) if row is None else row
    total: FloatArray = np.asarray(np.bincount(row, p.value * x[p.index], p.rows), dtype=np.float64)
    if not (_within(total, p.row_lower, p.row_upper) and _within(x, p.lower, p.upper)):
        return False
    sign = -1.0 if p.maximise else 1.0
    y, cost = sign * solution.duals, sign * p.cost
    reduced = cost - np.bincount(p.index, p.value * y[row], p.columns)
    # Multipliers of sides that are not there, and reduced costs without a bound, are errors.
    allowed = CLOSE * (1.0 + float(np.abs(cost).max(initial=0.0)))
    of_rows = _least(y, p.row_lower, p.row_upper, allowed)
    of_columns = _least(reduced, p.lower, p.upper, allowed)
    paid = cost * x
    size = 1.0 + float(np.abs(paid).max(initial=0.0))
    objective = float(paid.sum())
    # A comparison with what is not a number says no.
    return abs(objective - (of_rows + of_columns)) <= CLOSE * (size + abs(objective))


def _within(values: FloatArray, lower: FloatArray, upper: FloatArray) -> bool:
    """True if values are between their sides, to :data:`CLOSE` of 1 + their size."""
    beyond = np.maximum(lower - values, values - upper)
    worst = beyond.max(initial=0.0)
    # Nearly always this decides; what is not a number does not pass.
    return bool(worst <= CLOSE or np.all(beyond <= CLOSE * (1.0 + np.abs(values))))


def _least(prices: FloatArray, lower: FloatArray, upper: FloatArray, allowed: float) -> float:
    """Sum of prices times the side that each asks for; -inf if such a side is not there."""
    side = np.where(prices > 0, lower, upper)
    missing = np.isinf(side)
    if missing.any():
        if np.abs(prices[missing]).max() > allowed:
            return -math.inf
        side[missing] = 0.0
    return float(prices @ side)
