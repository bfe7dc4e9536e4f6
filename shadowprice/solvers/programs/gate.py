r"""Checks of solvers' answers: every answer is examined here before it is used.

**Linear programmes** are examined by :mod:`linear_gate`.

**Mixed-integer programmes.** Integer columns are rounded, and the point evaluated exactly
(:mod:`exact`); where the continuous columns do not fit the rounded ones, they are solved for again. That
no point is better has to be shown by something that does not share the error, in this order:

1. ``PROVEN``: a bound evaluated with rounding errors counted meets the value: that of the linear
   relaxation, or of a tree that is branched here (:mod:`proof_tree`), in which HiGHS's simplex method
   only proposes. No word of a solver is taken.
2. ``CONFIRMED``: with whole data and columns, CP-SAT finds nothing better. It reasons in whole numbers
   and shares no code with HiGHS. Else HiGHS without presolve finds the same value. That shares its
   branch and bound, its cuts and its simplex method, but not its presolve, where the wrong optima of
   HiGHS 1.14 come from (ERGO-Code/HiGHS issues 2957, 3043, 3073, 3094).
3. ``POINT_ONLY``: neither. The point holds and its value is right; ``Status.FEASIBLE`` says the rest.

A better point that turns up on the way takes the place of the answer and is examined likewise. That a
programme has no point is examined in the same way, by a tree or a second search, before it is said.

**Exceptions** of a solver lead to other parameters, then to another solver, then to ``NOTHING`` or
:class:`SolverError`, never out of here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.solvers.programs import cp_sat
from shadowprice.solvers.programs.exact import (
    MinimisationForm,
    implied,
    violation,
    whole_point,
)
from shadowprice.solvers.programs.highs import Highs
from shadowprice.solvers.programs.linear_gate import LinearGate
from shadowprice.solvers.programs.linear_program import (
    FloatArray,
    LinearProgram,
)
from shadowprice.solvers.programs.proof_tree import Tree, prove
from shadowprice.solvers.programs.solution import (
    Infeasible,
    OptimalityEvidence,
    Solution,
    SolverOptions,
    Status,
)
from shadowprice.solvers.programs.whole import SearchEffort, SearchStatus, WholeAnswer, WholeProgram

_LARGEST = 2**52
"""Largest sum of terms of a row that is handed to CP-SAT."""

_COUNTED_S = 5.0
"""CP-SAT's counted time for a second opinion."""

_BETTER = 4
"""Times that an answer is replaced by a better point before it is left as found."""

Second = Callable[[Fraction, float], bool]
"""Whether another search, in some seconds, says that no point costs less than a value."""


class Gate:
    """One programme, kept in the solver from one solve to the next."""

    def __init__(self) -> None:
        self._linear = LinearGate()

    def solve(
        self,
        program: LinearProgram,
        options: SolverOptions | None = None,
        start: Mapping[int, float] | None = None,
        *,
        second: Second | None = None,
        left_out: NDArray[np.bool_] | None = None,
        size: FloatArray | None = None,
    ) -> Solution:
        """Solve, and examine the answer.

        Parameters
        ----------
        start : mapping of int to float, optional
            Values of some columns of a feasible point.
        second : callable, optional
            A second opinion for this kind of programme, instead of the general ones.
        left_out : ndarray of bool, shape (columns,), optional
            Columns of a linear programme that may be 0 in an optimum.
        size : ndarray, shape (columns,), optional
            How large the columns of a linear programme are in an optimum, roughly; for columns that
            differ by more than solvers' tolerances.

        Raises
        ------
        Infeasible, Unbounded, SolverError
            Without a solution.
        """
        options = options or SolverOptions()
        if program.mixed:
            return _Mixed(self._linear, program, options, second).solve(start)
        return self._linear.solve(program, options, start, left_out, size)


def confirm(
    program: LinearProgram, solution: Solution, options: SolverOptions | None = None
) -> Solution:
    """A mixed-integer programme's solution that stands as found, with what supports that it is optimal.

    Where a better point turns up, the solution is that one.
    """
    if (
        solution.evidence is not OptimalityEvidence.POINT_ONLY
        or solution.status is not Status.FEASIBLE
    ):
        return solution
    mixed = _Mixed(LinearGate(), program, replace(options or SolverOptions(), confirm=True), None)
    return mixed.examined(replace(solution, status=Status.OPTIMAL), solution.primal)


def solve(program: LinearProgram, options: SolverOptions | None = None) -> Solution:
    """Solve a programme once; see :meth:`Gate.solve`."""
    return Gate().solve(program, options)


def ask_whole(program: WholeProgram, effort: SearchEffort) -> WholeAnswer:
    """CP-SAT's answer to a programme in whole numbers: values that hold, and its word for the rest."""
    return cp_sat.ask(program, effort)


@dataclass
class _Mixed:
    """One mixed-integer programme that is being solved."""

    gate: LinearGate
    program: LinearProgram
    options: SolverOptions
    second: Second | None

    def __post_init__(self) -> None:
        self.least = MinimisationForm.of(self.program)
        self.until = time.monotonic() + self.options.time_limit_s

    def solve(self, start: Mapping[int, float] | None) -> Solution:
        """HiGHS's answer, examined."""
        try:
            first = self.gate.attempt(self.program, self.options, start)
        except Infeasible as error:
            return self._none(error)
        point = self._point(first.primal)
        if point is None and first.status is Status.OPTIMAL:
            point = self._elsewhere(start)
            nothing = math.inf if self.program.maximise else -math.inf
            first = replace(first, bound=nothing)
        if point is None:
            status = Status.FEASIBLE if first.status is Status.OPTIMAL else first.status
            return replace(
                first,
                status=status,
                objective=math.nan,
                primal=np.zeros(0),
                evidence=OptimalityEvidence.NOTHING,
            )
        return self.examined(first, point)

    def _elsewhere(self, start: Mapping[int, float] | None) -> FloatArray | None:
        """A point that holds where HiGHS's did not: without its presolve, or of a tree."""
        again = self._without_presolve(start)
        point = None if again is None else self._point(again.primal)
        return self._tree(None, 0.0).better if point is None else point

    def _tree(self, known: Fraction | None, gap: float) -> Tree:
        """A tree, open if HiGHS fails in it."""
        try:
            work = self.options.proof_work
            return prove(self.least, known, gap, work=work, until=self.until)
        except Exception:  # What HiGHS threw says nothing.
            return Tree(-math.inf, None, 0)

    def examined(self, first: Solution, point: FloatArray) -> Solution:
        """Solution at a point that holds, or a better one found on the way, with its evidence."""
        evidence, bound = OptimalityEvidence.POINT_ONLY, first.bound
        for _ in range(_BETTER):
            value = self.least.value(point)
            if first.status is not Status.OPTIMAL or not self.options.confirm:
                break
            evidence, proof, better = self._evidence(value)
            if better is None:
                bound = bound if proof is None else proof
                break
            point, bound = better, bound if proof is None else proof
        value = self.least.value(point)
        status = first.status
        if status is not Status.TIME_LIMIT:
            status = Status.OPTIMAL if evidence.optimal else Status.FEASIBLE
        objective = self.least.shown(value)
        no_better = max if self.program.maximise else min
        return replace(
            first,
            status=status,
            objective=objective,
            primal=point,
            evidence=evidence,
            bound=no_better(bound, objective),
        )

    def _evidence(
        self, value: Fraction
    ) -> tuple[OptimalityEvidence, float | None, FloatArray | None]:
        """OptimalityEvidence of the point, the bound that supports it, and a better point if there is one."""
        gap = max(self.options.absolute_gap, self.options.relative_gap * abs(float(value)))
        tree = self._tree(value, gap)
        if tree.better is not None:
            return OptimalityEvidence.POINT_ONLY, None, tree.better
        if math.isfinite(tree.bound):
            return OptimalityEvidence.PROVEN, self.least.shown(tree.bound), None
        left = self.until - time.monotonic()
        if left <= 0:
            return OptimalityEvidence.POINT_ONLY, None, None
        if self.second is not None:
            agrees = self.second(value, left)
            return (
                OptimalityEvidence.CONFIRMED if agrees else OptimalityEvidence.POINT_ONLY,
                None,
                None,
            )
        evidence, better = self._in_whole_numbers(value)
        if evidence is not OptimalityEvidence.POINT_ONLY or better is not None:
            return evidence, None, better
        again = self._without_presolve(None)
        point = None if again is None else self._point(again.primal)
        if again is None or point is None or again.status is not Status.OPTIMAL:
            return OptimalityEvidence.POINT_ONLY, None, None
        other = self.least.value(point)
        if other < value - Fraction(gap):
            return OptimalityEvidence.POINT_ONLY, None, point
        return (
            OptimalityEvidence.CONFIRMED
            if other <= value + Fraction(gap)
            else OptimalityEvidence.POINT_ONLY,
            None,
            None,
        )

    def _in_whole_numbers(self, value: Fraction) -> tuple[OptimalityEvidence, FloatArray | None]:
        asked = in_whole_numbers(self.least, float(value))
        left = self.until - time.monotonic()
        if asked is None or left <= 0:
            return OptimalityEvidence.POINT_ONLY, None
        whole, scale = asked
        whole.row(whole.cost, high=math.ceil(value * scale) - 1)
        answer = ask_whole(whole, SearchEffort(left, _COUNTED_S))
        if answer.status is SearchStatus.INFEASIBLE:
            return OptimalityEvidence.CONFIRMED, None
        if answer.values is None:
            return OptimalityEvidence.POINT_ONLY, None
        return OptimalityEvidence.POINT_ONLY, np.array(answer.values, dtype=np.float64)

    def _point(self, primal: FloatArray) -> FloatArray | None:
        """A point that holds, from a solver's; continuous columns are solved for again if need be."""
        if len(primal) != self.program.columns:
            return None
        point = whole_point(self.program, primal)
        if point is None or violation(self.least, point) <= 1.0:
            return point
        whole = self.program.integer
        if whole.all():
            return None
        fixed = self.program.copy()
        fixed.integer = np.zeros_like(whole)
        fixed.lower = np.where(whole, point, fixed.lower)
        fixed.upper = np.where(whole, point, fixed.upper)
        try:
            limit = max(self.until - time.monotonic(), 0.1)
            options = SolverOptions(time_limit_s=limit, method="highs-simplex")
            found = Highs().solve(fixed, options, presolve=False)
        except Exception:  # The rounded columns have no continuous ones that fit, or HiGHS fails.
            return None
        point = whole_point(self.program, found.primal) if len(found.primal) else None
        return point if point is not None and violation(self.least, point) <= 1.0 else None

    def _without_presolve(self, start: Mapping[int, float] | None) -> Solution | None:
        limit = self.until - time.monotonic()
        if limit <= 0:
            return None
        try:
            options = replace(self.options, time_limit_s=limit)
            return Highs().solve(self.program, options, start, presolve=False)
        except Exception:  # No second answer.
            return None

    def _none(self, error: Infeasible) -> Solution:
        """A programme said to have no point: whether that can be shown, or a point after all."""
        if error.rows:  # The relaxation has none, solved a second time without presolve.
            raise error
        tree = self._tree(None, 0.0)
        if tree.bound == math.inf:
            raise error
        point = tree.better
        if point is None:
            again = self._without_presolve(None)
            point = None if again is None else self._point(again.primal)
            if again is None:
                self._or_whole(error)
                raise SolverError(
                    "HiGHS says that the programme is infeasible, and nothing else could say so"
                ) from None
        if point is None:
            raise error
        # It was wrong: the answer is what branching and a second search give.
        answer = Solution(
            Status.OPTIMAL,
            math.nan,
            math.inf if self.program.maximise else -math.inf,
            point,
            np.zeros(0),
        )
        again = self._without_presolve(None)
        better = None if again is None else self._point(again.primal)
        if better is not None and self.least.value(better) < self.least.value(point):
            point = better
        return self.examined(answer, point)

    def _or_whole(self, error: Infeasible) -> None:
        """Raise that there is no point if CP-SAT says so too."""
        asked = in_whole_numbers(self.least, math.inf)
        if asked is not None:
            left = max(self.until - time.monotonic(), 0.1)
            if (
                ask_whole(asked[0], SearchEffort(left, _COUNTED_S)).status
                is SearchStatus.INFEASIBLE
            ):
                raise error


def in_whole_numbers(least: MinimisationForm, cutoff: float) -> tuple[WholeProgram, int] | None:
    """The programme in whole numbers, and by how much costs are multiplied; None if it is not whole.

    Parameters
    ----------
    cutoff : float
        Points that cost more may be lost.
    """
    p = least.program
    if not p.integer.all():
        return None
    lower, upper = implied(least, cutoff)
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        return None
    lower, upper = np.ceil(lower), np.floor(upper)
    largest = np.maximum(np.abs(lower), np.abs(upper))
    if largest.max(initial=0.0) >= _LARGEST:
        return None
    whole = WholeProgram([int(v) for v in lower], [int(v) for v in upper])
    for k in range(p.rows):
        entries = slice(int(p.start[k]), int(p.start[k + 1]))
        scaled = _scaled(p.value[entries], largest[p.index[entries]])
        if scaled is None:
            return None
        terms, scale = scaled
        low, high = float(p.row_lower[k]), float(p.row_upper[k])
        whole.row(
            dict(zip(p.index[entries].tolist(), terms, strict=True)),
            low=math.ceil(Fraction(low) * scale) if math.isfinite(low) else None,
            high=math.floor(Fraction(high) * scale) if math.isfinite(high) else None,
        )
    scaled = _scaled(least.cost, largest)
    if scaled is None:
        return None
    whole.cost = {k: c for k, c in enumerate(scaled[0]) if c}
    return whole, scaled[1]


def _scaled(values: FloatArray, largest: FloatArray) -> tuple[list[int], int] | None:
    """Whole multiples of values, and by how much they were multiplied; None if they get too large."""
    exact = [Fraction(v) for v in values.tolist()]
    scale = max((v.denominator for v in exact), default=1)
    terms = [int(v * scale) for v in exact]
    size = sum(abs(v) * int(x) for v, x in zip(terms, largest.tolist(), strict=True))
    return (terms, scale) if size < _LARGEST else None
