r"""The one place where a programme is scaled before a solver sees it.

Solvers have absolute tolerances: 1e-7 of a row, whatever the row is made of. Rows R and columns C are
multiplied by powers of two so that the largest entry of each is about 1, and the objective by one so
that its largest coefficient is:

.. math:: A' = R A C, \quad c' = k C c, \quad x = C x', \quad y = R y' / k

Powers of two change exponents only, so the scaled programme is the same one, exactly, and a model's
author sees points, multipliers and bounds in the model's own units. Columns of whole numbers keep
their scale, and so does a programme whose rows and columns all have a largest entry near 1: it is
handed over as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.programs.linear_program import FloatArray, LinearProgram

_PASSES = 3
"""Times that rows and then columns are brought to a largest entry of 1."""

NEAR = 32.0
"""Factor by which largest entries may be off 1 in a programme that is left as it is."""

_DRIFT = 16.0
"""Factor by which the largest entry of a row or column may leave 1 before scales are made anew."""


@dataclass(frozen=True, eq=False)
class PowerScales:
    """Factors, all powers of two.

    Parameters
    ----------
    row : ndarray, shape (rows,)
    column : ndarray, shape (columns,)
    cost : float
    """

    row: FloatArray
    column: FloatArray
    cost: float

    @classmethod
    def of(cls, program: LinearProgram, entry_row: NDArray[np.int64]) -> PowerScales:
        """Scales of a programme; O(entries).

        Parameters
        ----------
        entry_row : ndarray of int, shape (entries,)
            The row of every entry.
        """
        size = np.abs(program.value)
        row, column = np.ones(program.rows), np.ones(program.columns)
        largest = _largest(size, entry_row, program.rows)
        if _near(program, size, largest):
            return cls(row, column, 1.0)
        # NumPy takes twice as long for indices that are not its own.
        index = program.index.astype(np.intp)
        for again in range(_PASSES):
            if again:
                largest = _largest(size * column[index], entry_row, program.rows)
            row = _inverse(largest)
            column = _inverse(_largest(size * row[entry_row], index, program.columns))
            column[program.integer] = 1.0
        cost = float(_inverse(np.array([np.abs(program.cost * column).max(initial=0.0)]))[0])
        return cls(row, column, cost)

    @classmethod
    def of_sizes(
        cls, program: LinearProgram, entry_row: NDArray[np.int64], size: FloatArray
    ) -> PowerScales:
        """Scales that make columns of these sizes about 1, whatever their entries; O(entries).

        For programmes whose columns differ in size by more than a solver tells from 0: rows then have
        their largest term near 1, and the objective too.

        Parameters
        ----------
        size : ndarray, shape (columns,)
            Above 0.
        """
        column = 1.0 / _inverse(size)
        column[program.integer] = 1.0
        terms = np.abs(program.value) * column[program.index]
        row = _inverse(_largest(terms, entry_row, program.rows))
        cost = float(_inverse(np.array([np.abs(program.cost * column).max(initial=0.0)]))[0])
        return cls(row, column, cost)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the programmes it is for."""
        return len(self.row), len(self.column)

    def fits(self, program: LinearProgram, entry_row: NDArray[np.int64]) -> bool:
        """True if the programme, with other numbers than it was made for, is still well scaled by it."""
        if self.cost == 1.0 and (self.row == 1.0).all() and (self.column == 1.0).all():
            size = np.abs(program.value)
            return _near(program, size, _largest(size, entry_row, program.rows))
        size = np.abs(program.value) * self.row[entry_row] * self.column[program.index]
        rows = _largest(size, entry_row, program.rows)
        rows = rows[rows > 0]
        cost = float(np.abs(program.cost * self.column).max(initial=0.0)) * self.cost
        return bool(
            rows.max(initial=1.0) <= _DRIFT
            and rows.min(initial=1.0) >= 1.0 / _DRIFT
            and (cost == 0.0 or 1.0 / _DRIFT <= cost <= _DRIFT)
        )

    def scaled(self, program: LinearProgram, entry_row: NDArray[np.int64]) -> LinearProgram:
        """The programme in scaled rows and columns."""
        return replace(
            program,
            cost=program.cost * self.column * self.cost,
            offset=program.offset * self.cost,
            lower=program.lower / self.column,
            upper=program.upper / self.column,
            row_lower=program.row_lower * self.row,
            row_upper=program.row_upper * self.row,
            value=program.value * self.row[entry_row] * self.column[program.index],
        )

    def point(self, primal: FloatArray) -> FloatArray:
        """A point of the programme from one of the scaled programme; empty if that is."""
        return primal * self.column if len(primal) else primal

    def duals(self, duals: FloatArray) -> FloatArray:
        """Multipliers of the programme from those of the scaled one; empty if those are."""
        return duals * self.row / self.cost if len(duals) else duals


def _near(program: LinearProgram, size: FloatArray, of_rows: FloatArray) -> bool:
    """True if largest entries of rows, which are known, of columns and of the objective are all near 1."""
    if not _about_one(of_rows) or not _about_one(_largest(size, program.index, program.columns)):
        return False
    cost = np.abs(program.cost).max(initial=0.0)
    return bool(cost == 0.0 or 1.0 / NEAR <= cost <= NEAR)


def _about_one(largest: FloatArray) -> bool:
    """True if all largest entries are near 1, where there are any."""
    found = largest[largest > 0]
    return bool(found.max(initial=1.0) <= NEAR and found.min(initial=1.0) >= 1.0 / NEAR)


def _largest(size: FloatArray, where: NDArray[np.integer[Any]], count: int) -> FloatArray:
    """Largest entry of every row or column; 0 where there is none."""
    found = np.zeros(count)
    np.maximum.at(found, where, size)
    return found


def _inverse(size: FloatArray) -> FloatArray:
    """The power of two next to the inverse of each size; 1 for 0."""
    safe = np.where((size > 0) & np.isfinite(size), size, 1.0)
    return np.asarray(np.exp2(-np.round(np.log2(safe))))
