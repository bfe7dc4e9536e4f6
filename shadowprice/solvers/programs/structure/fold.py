r"""Rows and columns that are alike, folded into one: a smaller linear programme with the same optimum.

Colour refinement: columns with equal cost and bounds have one colour, rows with equal sides have one;
a colour is divided where its rows (or columns) have different sums of entries in some colour of
columns (or rows), until none is. The colours then are an equitable partition, and averaging a point
over them gives a point of the same value; so it is enough to look for points that are constant on
colours (Grohe, Kersting, Mladenov, Selman, Dimension reduction via colour refinement, ESA 2014).
With C the columns of a colour and r any row of a colour R,

.. math:: \max \sum_C |C| c_C x_C : \quad \sum_C \bigl( \sum_{j \in C} a_{rj} \bigr) x_C \le b_R

and if y_R are its multipliers, y_R / |R| for every row of R are multipliers of the whole programme
with the same value (derived).

Nothing is known of the model: jobs with equal data fold whatever its rows are, until a row tells them
apart. Colours are sums of hashed entries; should two differ and have one hash, the point and multipliers
would not fit the whole programme, where they are examined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.programs.linear_program import FloatArray, LinearProgram

WORTH = 0.9
"""Share of columns left up to which folding is worth it."""

_MAX_PASSES = 60

Colours = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Folded:
    """A folded programme and the way back.

    Parameters
    ----------
    program : LinearProgram
        One row and one column a colour.
    row, column : ndarray of int
        Colour of every row, shape (rows,), and column, shape (columns,).
    """

    program: LinearProgram
    row: NDArray[np.int64]
    column: NDArray[np.int64]

    def of_columns(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """A mask of columns, equal on colours, for the folded programme."""
        small = np.zeros(self.program.columns, dtype=bool)
        small[self.column[mask]] = True
        return small

    def point(self, primal: FloatArray) -> FloatArray:
        """The point of the whole programme that is constant on colours."""
        return primal[self.column]

    def duals(self, duals: FloatArray) -> FloatArray:
        """Multipliers of the whole programme."""
        return (duals / np.bincount(self.row, minlength=len(duals)))[self.row]


def fold(
    program: LinearProgram,
    entry_row: NDArray[np.int64],
    apart: NDArray[np.bool_] | None = None,
) -> Folded | None:
    """Fold a linear programme; None if it would hardly be smaller. O(entries) a pass, few passes.

    Parameters
    ----------
    entry_row : ndarray of int, shape (entries,)
        The row of every entry.
    apart : ndarray of bool, shape (columns,), optional
        Columns to be kept apart from others.
    """
    p = program
    if p.columns < 2 or p.mixed:
        return None
    there = p.value != 0.0
    by_row, by_column, entry = entry_row, p.index.astype(np.int64), _mixed(_bits(p.value))
    if not there.all():
        by_row, by_column, entry = by_row[there], by_column[there], entry[there]
    sides = _mixed(_bits(p.row_lower) ^ _mixed(_bits(p.row_upper)))
    kept = _mixed(_bits(p.cost) ^ _mixed(_bits(p.lower) ^ _mixed(_bits(p.upper))))
    if apart is not None:
        kept = np.where(apart, _mixed(kept), kept)
    columns, known = kept, (0, 0)
    for _ in range(_MAX_PASSES):
        rows = sides + _summed(_mixed(columns)[by_column] * entry, by_row, p.rows)
        columns = kept + _summed(_mixed(rows)[by_row] * entry, by_column, p.columns)
        column_colours = _distinct(columns)
        if column_colours > WORTH * p.columns:
            return None
        found = (_distinct(rows), column_colours)
        if found == known:
            return _quotient(p, entry_row, rows, columns)
        known = found
    return None


def _quotient(
    p: LinearProgram, entry_row: NDArray[np.int64], rows: Colours, columns: Colours
) -> Folded:
    row_sample, row = _numbered(rows)
    column_sample, column = _numbered(columns)
    sampled = np.zeros(p.rows, dtype=bool)
    sampled[row_sample] = True
    of_sample = sampled[entry_row] & (p.value != 0.0)
    many = len(column_sample)
    place = row[entry_row[of_sample]] * many + column[p.index[of_sample]]
    order = np.argsort(place)
    begins = _begins(place[order])
    entries, there = p.value[of_sample][order], place[order][begins]
    lengths = np.bincount(there // many, minlength=len(row_sample))
    program = LinearProgram(
        p.cost[column_sample] * np.bincount(column),
        p.offset,
        p.maximise,
        p.lower[column_sample],
        p.upper[column_sample],
        p.row_lower[row_sample],
        p.row_upper[row_sample],
        np.concatenate(([0], np.cumsum(lengths))).astype(np.int32),
        (there % many).astype(np.int32),
        np.add.reduceat(entries, np.flatnonzero(begins)),
        p.integer[column_sample],
    )
    return Folded(program, row, column)


def _distinct(colours: Colours) -> int:
    """Number of colours; by sorting, which is several times faster than NumPy's table of hashes."""
    ordered = np.sort(colours)
    return int(np.count_nonzero(ordered[1:] != ordered[:-1])) + 1 if len(ordered) else 0


def _numbered(colours: Colours) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First member of each colour, and the number of each member's colour, in order of the colours."""
    # An order of equal ones is not needed: twice as fast as np.unique, which keeps theirs.
    order = np.argsort(colours)
    ordered = colours[order]
    begins = _begins(ordered)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(begins) - 1
    return np.minimum.reduceat(order, np.flatnonzero(begins)), number


def _begins(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """True for the first of each run of equal numbers."""
    return np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]


def _bits(values: FloatArray) -> Colours:
    """The bits of numbers; 0 and -0 are one number."""
    return cast(Colours, (values + 0.0).view(np.uint64))


def _mixed(values: Colours) -> Colours:
    """Each number's bits spread over all 64 (the finaliser of SplitMix64), odd."""
    z = values + np.uint64(0x9E3779B97F4A7C15)
    for bits, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z ^= z >> np.uint64(bits)
        z *= np.uint64(factor)
    z ^= z >> np.uint64(31)
    z |= np.uint64(1)
    return z


def _summed(terms: Colours, where: NDArray[np.int64], count: int) -> Colours:
    """Sums of terms by place, modulo 2**64."""
    total = np.zeros(count, dtype=np.uint64)
    np.add.at(total, where, terms)
    return total
