"""A linear or mixed-integer linear programme as arrays: what a solver is handed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass
class LinearProgram:
    """Arrays of a programme; numbers may be changed in place, the pattern of the matrix may not.

    Parameters
    ----------
    cost : ndarray, shape (columns,)
    offset : float
        Constant of the objective.
    maximise : bool
    lower, upper : ndarray, shape (columns,)
        Bounds of the columns, infinite where there are none.
    row_lower, row_upper : ndarray, shape (rows,)
    start, index, value : ndarray
        The matrix by rows: entries ``start[i]`` to ``start[i + 1]`` of row i.
    integer : ndarray of bool, shape (columns,)
    """

    cost: FloatArray
    offset: float
    maximise: bool
    lower: FloatArray
    upper: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    start: NDArray[np.int32] = field(repr=False)
    index: NDArray[np.int32] = field(repr=False)
    value: FloatArray = field(repr=False)
    integer: NDArray[np.bool_] = field(repr=False)

    @classmethod
    def of(
        cls,
        cost: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        table: FloatArray,
        row_lower: FloatArray,
        row_upper: FloatArray,
        *,
        maximise: bool = False,
        whole: bool = False,
    ) -> LinearProgram:
        """A programme from a dense table of coefficients, shape (rows, columns).

        Parameters
        ----------
        whole : bool
            Whether all columns are integer.
        """
        row, column = np.nonzero(table)
        start = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(table)))))
        values = table[row, column].astype(np.float64)
        return cls(
            cost.astype(np.float64),
            0.0,
            maximise,
            lower.astype(np.float64),
            upper.astype(np.float64),
            row_lower.astype(np.float64),
            row_upper.astype(np.float64),
            start.astype(np.int32),
            column.astype(np.int32),
            values,
            np.full(len(cost), whole),
        )

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.cost)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_lower)

    @property
    def mixed(self) -> bool:
        """True if any column is integer."""
        return bool(self.integer.any())

    def copy(self) -> LinearProgram:
        """A copy whose numbers do not change with this one's; it shares the pattern."""
        return LinearProgram(
            self.cost.copy(),
            self.offset,
            self.maximise,
            self.lower.copy(),
            self.upper.copy(),
            self.row_lower.copy(),
            self.row_upper.copy(),
            self.start,
            self.index,
            self.value.copy(),
            self.integer,
        )


def rows_of_entries(program: LinearProgram) -> NDArray[np.int64]:
    """The row of every entry."""
    return np.repeat(np.arange(program.rows), np.diff(program.start))
