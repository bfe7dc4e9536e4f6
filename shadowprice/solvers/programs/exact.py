r"""Points and bounds of a programme, evaluated without trusting the solver that proposed them.

A point: integer columns are rounded to whole numbers; rows and bounds are then evaluated with a
rigorous bound of the rounding error, and in rationals where that does not decide. Rows of whole
columns with whole data have to hold exactly. A row with other data may be missed by its own
rounding, :data:`ROUNDING` of the sum of its terms, and one with continuous columns by
:data:`FEASIBLE`, relative to its size: what a float solver can give.

A bound: for any multipliers y of the rows, and y_i taken with the side of row i that its sign asks for,

.. math:: c x \ge \sum_i y_i b_i + \sum_j \min_{l_j \le x_j \le u_j} (c - A^T y)_j x_j

(Neumaier and Shcherbina, Math. Programming A 99, 2004). Sums are rounded down: every operation
of float64 is right to :math:`2^{-53}`, so a sum of n products in any order is off by at most
:math:`\gamma_n \sum |a_i y_i|`, :math:`\gamma_n = n 2^{-53} / (1 - n 2^{-53})` (Higham, Accuracy and
Stability of Numerical Algorithms, sec. 3.1). Where all costs are whole numbers of whole columns, the
optimum is a multiple of their greatest common divisor, and the bound is rounded up to one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.programs.linear_program import (
    FloatArray,
    LinearProgram,
    rows_of_entries,
)

FEASIBLE = 1e-6
"""Largest violation of a row with continuous columns, and of their bounds, beside its rounding."""

ROUNDING = 1e-9
"""Rounding of a row that is not whole, relative to the sum of its terms."""

INTEGRAL = 1e-5
"""How far from a whole number a solver's value of an integer column may be."""

_UNIT = 2.0**-53
_WHOLE = 2.0**53
_TINY = 1e-290
"""Larger than what underflow can lose in any sum here."""

_ABOVE = 1e-5
"""Relative distance above a known cost up to which points are looked at, for the rounding of that cost."""

_ROUNDS = 4
"""Times that bounds of columns are derived from rows."""


@dataclass(frozen=True, eq=False)
class MinimisationForm:
    """A programme as a minimisation, with what the evaluations need.

    Parameters
    ----------
    program : LinearProgram
    cost : ndarray, shape (columns,)
        Negated if the programme maximises; without the constant of the objective.
    row : ndarray of int, shape (entries,)
        The row of every entry.
    step : Fraction or None
        What the costs of all points differ by multiples of; None if a continuous column has a cost.
    whole : ndarray of bool, shape (rows,)
        Rows of whole columns only.
    """

    program: LinearProgram
    cost: FloatArray
    row: NDArray[np.int64]
    step: Fraction | None
    whole: NDArray[np.bool_]

    @classmethod
    def of(cls, program: LinearProgram, row: NDArray[np.int64] | None = None) -> MinimisationForm:
        """The view of a programme as it is now.

        Parameters
        ----------
        row : ndarray of int, shape (entries,), optional
            The row of every entry, if it is known.
        """
        row = rows_of_entries(program) if row is None else row
        cost = -program.cost if program.maximise else program.cost.copy()
        if program.mixed:
            loose = np.bincount(row, ~program.integer[program.index], program.rows) > 0
        else:
            loose = np.diff(program.start) > 0
        return cls(program, cost, row, _step(cost, program.integer), ~loose)

    def value(self, point: FloatArray) -> Fraction:
        """Cost of a point, exactly."""
        used = np.flatnonzero((self.cost != 0) & (point != 0))
        cost, at = self.cost[used], point[used]
        if np.all(cost == np.round(cost)) and np.all(at == np.round(at)):
            terms = np.abs(cost) * np.abs(at)
            if float(terms.sum()) < _WHOLE:
                return Fraction(int(np.dot(cost, at)))
        pairs = zip(cost.tolist(), at.tolist(), strict=True)
        return sum((Fraction(c) * Fraction(x) for c, x in pairs), Fraction(0))

    def shown(self, cost: Fraction | float) -> float:
        """The programme's own objective for a cost."""
        sign = -1 if self.program.maximise else 1
        if not math.isfinite(cost):
            return float(sign * cost)
        return float(sign * Fraction(cost) + Fraction(self.program.offset))


def _step(cost: FloatArray, integer: NDArray[np.bool_]) -> Fraction | None:
    used = cost[cost != 0]
    if not np.all(integer[cost != 0]):
        return None
    if not len(used):
        return Fraction(1)
    parts = [Fraction(abs(c)) for c in np.unique(np.abs(used)).tolist()]
    whole = reduce(math.lcm, (part.denominator for part in parts))
    return Fraction(reduce(math.gcd, (int(part * whole) for part in parts)), whole)


def _gamma(terms: int) -> float:
    return 1.01 * (terms + 2) * _UNIT


def _activity(least: MinimisationForm, point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sums of the rows at a point, and bounds of their errors; 0 where whole numbers make them exact."""
    p = least.program
    terms = p.value * point[p.index]
    total = np.bincount(least.row, terms, p.rows)
    size = np.bincount(least.row, np.abs(terms), p.rows)
    fraction = (p.value != np.round(p.value)) | (point[p.index] != np.round(point[p.index]))
    inexact = np.bincount(least.row, fraction, p.rows) > 0
    error = _gamma(int(np.diff(p.start).max(initial=0))) * size + _TINY
    exact = ~inexact & (size < _WHOLE)
    return np.asarray(total, dtype=np.float64), np.where(exact, 0.0, error)


def violation(least: MinimisationForm, point: FloatArray) -> float:
    """Largest violation of a bound, a row or integrality, relative to what is allowed; <= 1 is a point.

    Parameters
    ----------
    point : ndarray, shape (columns,)
        Integer columns as whole numbers.
    """
    p = least.program
    if len(point) != p.columns or not np.all(np.isfinite(point)):
        return math.inf
    if np.any(point[p.integer] != np.round(point[p.integer])):
        return math.inf
    beyond = np.maximum(p.lower - point, point - p.upper)
    worst = _worst(beyond, np.where(p.integer, 0.0, FEASIBLE + ROUNDING * np.abs(point)))
    total, error = _activity(least, point)
    size = np.bincount(least.row, np.abs(p.value * point[p.index]), p.rows)
    rounding = np.where(error > 0, ROUNDING * size, 0.0)
    allowed = np.where(least.whole, rounding, FEASIBLE + rounding)
    beyond = np.maximum(p.row_lower - total, total - p.row_upper)
    # What the errors of the sums leave open is decided in rationals.
    open_ = np.flatnonzero((np.abs(beyond - allowed) <= error) & (error > 0))
    if len(open_):
        exact = [_beyond(p, int(row), point) for row in open_]
        beyond = beyond.copy()
        beyond[open_] = exact
    return max(worst, _worst(beyond, allowed))


def _worst(beyond: FloatArray, allowed: FloatArray) -> float:
    late = beyond > 0
    if not late.any():
        return 0.0
    with np.errstate(divide="ignore"):
        return float((beyond[late] / allowed[late]).max())


def _beyond(p: LinearProgram, row: int, point: FloatArray) -> float:
    """Violation of the sides of a row, in rationals, rounded once."""
    entries = slice(int(p.start[row]), int(p.start[row + 1]))
    pairs = zip(p.value[entries].tolist(), point[p.index[entries]].tolist(), strict=True)
    total = sum((Fraction(a) * Fraction(x) for a, x in pairs), Fraction(0))
    sides = [Fraction(-1)]
    if math.isfinite(p.row_lower[row]):
        sides.append(Fraction(float(p.row_lower[row])) - total)
    if math.isfinite(p.row_upper[row]):
        sides.append(total - Fraction(float(p.row_upper[row])))
    return float(max(sides))


def whole_point(program: LinearProgram, primal: FloatArray) -> FloatArray | None:
    """A solver's point with its integer columns rounded; None if one is far from whole."""
    near = np.round(primal)
    if np.any(np.abs(primal - near)[program.integer] > INTEGRAL):
        return None
    point = np.where(program.integer, near, primal) + 0.0
    # Continuous columns may leave their bounds by a rounding error.
    return np.asarray(
        np.where(program.integer, point, np.clip(point, program.lower, program.upper))
    )


def safe_bound(
    least: MinimisationForm,
    duals: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    *,
    farkas: bool = False,
) -> float:
    """A rigorous lower bound of the cost of every point within bounds of the columns; -inf if there is none.

    Parameters
    ----------
    duals : ndarray, shape (rows,)
        Multipliers of a minimisation, from anywhere.
    lower, upper : ndarray, shape (columns,)
        Bounds of the columns; at least as tight as the programme's where that is valid.
    farkas : bool
        For costs of 0: a bound above 0 says that there is no point.
    """
    p = least.program
    ok = np.isfinite(duals)
    y = np.where(ok & ~((duals > 0) & np.isneginf(p.row_lower)), duals, 0.0)
    y = np.where((y < 0) & np.isposinf(p.row_upper), 0.0, y)
    side = np.where(y > 0, p.row_lower, np.where(y < 0, p.row_upper, 0.0))
    terms = p.value * y[least.row]
    entries = int(np.bincount(p.index, minlength=p.columns).max(initial=0))
    error = _gamma(entries) * np.bincount(p.index, np.abs(terms), p.columns) + _TINY
    cost = np.zeros(p.columns) if farkas else least.cost
    reduced = cost - np.bincount(p.index, terms, p.columns)
    error = np.where(error > _TINY, error + 2 * _UNIT * np.abs(reduced), 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        corners = np.stack(
            [d * x for d in (reduced - error, reduced + error) for x in (lower, upper)]
        )
    least_each = np.where(np.isnan(corners), 0.0, corners).min(axis=0)
    parts = np.concatenate((y * side, least_each))
    if np.isneginf(parts).any():
        return -math.inf
    parts = parts[parts != 0.0]
    # Beyond what the sum itself is rounded by.
    slack = 2 * _UNIT * (1.0 + 1e-9) * float(np.abs(parts).sum()) + _TINY
    return float(np.nextafter(math.fsum(parts.tolist()) - slack, -math.inf))


def bound_of_duals(least: MinimisationForm, duals: FloatArray, value: float) -> float:
    """A rigorous lower bound of the cost of every point that costs no more than a value; -inf if there is none.

    Where a column has no bound, the ones that rows and the value imply take its place.

    Parameters
    ----------
    duals : ndarray, shape (rows,)
        Multipliers of a minimisation, from anywhere.
    value : float
        Cost of a point that is known.
    """
    cutoff = value + _ABOVE * (1.0 + abs(value))
    return safe_bound(least, duals, *implied(least, cutoff))


def blocked(least: MinimisationForm, lower: FloatArray, upper: FloatArray) -> bool:
    """True if one row by itself shows that no point is within bounds of the columns."""
    p = least.program
    with np.errstate(invalid="ignore"):
        ends = np.stack([p.value * lower[p.index], p.value * upper[p.index]])
    ends = np.where(np.isnan(ends), 0.0, ends)
    least_each, most_each = ends.min(axis=0), ends.max(axis=0)
    with np.errstate(invalid="ignore"):
        low = np.bincount(least.row, least_each, p.rows)
        high = np.bincount(least.row, most_each, p.rows)
        size = np.bincount(least.row, np.abs(ends).max(axis=0), p.rows)
        error = _gamma(int(np.diff(p.start).max(initial=0))) * size
        return bool(np.any(low - error > p.row_upper) or np.any(high + error < p.row_lower))


def lifted(least: MinimisationForm, bound: float) -> Fraction | float:
    """A bound, rounded up to what costs can be."""
    if least.step is None or not math.isfinite(bound):
        return bound
    return math.ceil(Fraction(bound) / least.step) * least.step


def implied(least: MinimisationForm, cutoff: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of columns that rows, and costing no more than a cutoff, imply where there were none.

    Every point of the programme that costs at most the cutoff keeps them: sums are widened by more
    than their rounding errors. For columns with an infinite bound only.
    """
    p = least.program
    lower, upper = p.lower.copy(), p.upper.copy()
    if np.isfinite(lower).all() and np.isfinite(upper).all():
        return lower, upper
    row, column, value = least.row, p.index.astype(np.int64), p.value
    low, high = p.row_lower, p.row_upper
    if math.isfinite(cutoff):
        paid = np.flatnonzero(least.cost)
        row = np.concatenate((row, np.full(len(paid), p.rows)))
        column = np.concatenate((column, paid))
        value = np.concatenate((value, least.cost[paid]))
        low, high = np.append(low, -math.inf), np.append(high, cutoff)
    used = value != 0
    if not used.all():
        row, column, value = row[used], column[used], value[used]
    before = known = _finite(lower, upper)
    sides: list[_Side] = []
    for sign, side in ((1.0, high), (-1.0, -low)):
        # Where rows of one side bound all columns, those of the other are not looked at.
        if known < 2 * p.columns and np.isfinite(side).any():
            sides.append(_Side(sign * value, row, column, side))
            sides[-1].derive(lower, upper)
            known = _finite(lower, upper)
    for _ in range(_ROUNDS - 1):
        if known in (before, 2 * p.columns):
            break
        for each in sides:
            each.derive(lower, upper)
        before, known = known, _finite(lower, upper)
    whole = p.integer
    lower = np.where(np.isneginf(p.lower), np.where(whole, np.ceil(lower), lower), p.lower)
    upper = np.where(np.isposinf(p.upper), np.where(whole, np.floor(upper), upper), p.upper)
    return lower, upper


def _finite(lower: FloatArray, upper: FloatArray) -> int:
    """Number of bounds that are finite."""
    return int(np.isfinite(lower).sum() + np.isfinite(upper).sum())


class _Side:
    """Rows sum(value x) <= side, as far as that is finite.

    Parameters
    ----------
    value, row, column : ndarray, shape (entries,)
        None of the values is 0.
    side : ndarray, shape (rows,)
    """

    def __init__(
        self,
        value: FloatArray,
        row: NDArray[np.int64],
        column: NDArray[np.int64],
        side: FloatArray,
    ) -> None:
        self.side = side
        there = np.isfinite(side)[row]
        if not there.all():
            value, row, column = value[there], row[there], column[there]
        self.value, self.row, self.column, self.up = value, row, column, value > 0

    def derive(self, lower: FloatArray, upper: FloatArray) -> None:
        """Tighten infinite bounds of columns, in place."""
        value, row, column, up = self.value, self.row, self.column, self.up
        # Of use are entries whose column has no bound yet, in rows where all other columns have one.
        no_upper, no_lower = np.isposinf(upper), np.isneginf(lower)
        wanted = np.where(up, no_upper[column], no_lower[column])
        rows = len(self.side)
        asked = np.zeros(rows, dtype=bool)
        asked[row[wanted]] = True
        used = asked[row]
        if not used.all():
            value, row, column = value[used], row[used], column[used]
            up, wanted = up[used], wanted[used]
        with np.errstate(invalid="ignore"):
            term = np.where(up, lower[column], upper[column])
            term *= value
        open_ = ~np.isfinite(term)
        term[open_] = 0.0
        missing = np.bincount(row[open_], minlength=rows)
        # Most bounds are 0, and add nothing.
        at = np.flatnonzero(term)
        total = np.bincount(row[at], term[at], rows)
        size = np.bincount(row[at], np.abs(term[at]), rows)
        wanted &= missing[row] == open_
        if not wanted.all():
            row, column, value, term = row[wanted], column[wanted], value[wanted], term[wanted]
            up = up[wanted]
        room = self.side[row] - (total[row] - term)
        room += (1e-9 * (1.0 + size + np.abs(self.side)))[row]
        limit = room / value
        if up.all():
            np.minimum.at(upper, column, limit)
            return
        np.minimum.at(upper, column[up], limit[up])
        np.maximum.at(lower, column[~up], limit[~up])
