"""Linear programmes of many more columns than rows: solved with some, until no other column pays.

Sifting (Bixby, Gregory, Lustig, Marsten, Shanno, Operations Research 40, 1992): columns that are left
out are at 0; the multipliers of the small programme price them, and those that would improve it are
added. When none would, the multipliers hold for all columns, so the answer is one of the whole programme,
whatever its rows mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.programs.linear_program import FloatArray, LinearProgram
from shadowprice.solvers.programs.solution import Solution, Status

COLUMNS = 5000
"""From so many columns, and :data:`PER_ROW` for each row, it is tried."""

PER_ROW = 6

_FIRST = 6
"""Columns of each row to begin with: those of the largest entries."""

_ADDED = 3
"""Columns added for each row in a round, at most."""

_PAYS = 1e-9
"""Reduced cost from which a column pays, relative to the largest cost, in a scaled programme."""

_MOST_ROUNDS = 100


def first_columns(
    program: LinearProgram,
    entry_row: NDArray[np.int64],
    left_out: NDArray[np.bool_] | None,
) -> NDArray[np.bool_] | None:
    """Columns to begin with; None if it is not worth it, or columns may not be 0.

    Parameters
    ----------
    left_out : ndarray of bool, shape (columns,), optional
        Columns that are expected to be 0.
    """
    p = program
    if (p.lower > 0).any() or (p.upper < 0).any():
        return None
    inside = None if left_out is None else ~left_out
    if p.columns >= max(COLUMNS, PER_ROW * p.rows):
        largest = _first(p, entry_row)
        inside = largest if inside is None else inside & largest
    return inside


def sift(
    program: LinearProgram,
    entry_row: NDArray[np.int64],
    inside: NDArray[np.bool_],
    solve: Callable[[LinearProgram], Solution],
) -> tuple[FloatArray, FloatArray] | None:
    """A point and multipliers; None where it does not end.

    Parameters
    ----------
    program : LinearProgram
        Scaled, so that reduced costs compare.
    inside : ndarray of bool, shape (columns,)
        Columns to begin with.
    solve : callable
        Of a programme with some of the columns.
    """
    p, inside = program, inside.copy()
    # Solvers have no multipliers for a programme without columns.
    inside[:1] |= not inside.any()
    sign = -1.0 if p.maximise else 1.0
    allowed = _PAYS * max(float(np.abs(p.cost).max(initial=0.0)), 1e-300)
    for _ in range(_MOST_ROUNDS):
        found = solve(_with_columns(p, entry_row, inside))
        if found.status is not Status.OPTIMAL or len(found.duals) != p.rows:
            return None
        reduced = sign * (
            p.cost - np.bincount(p.index, p.value * found.duals[entry_row], p.columns)
        )
        # A column at 0 pays if it can rise and that is worth it, or fall.
        gain = np.maximum(np.where(p.upper > 0, -reduced, 0.0), np.where(p.lower < 0, reduced, 0.0))
        pays = np.flatnonzero(~inside & (gain > allowed))
        if not len(pays):
            primal = np.zeros(p.columns)
            primal[inside] = found.primal
            return primal, found.duals
        most = _ADDED * p.rows
        if len(pays) > most:
            pays = pays[np.argpartition(-gain[pays], most)[:most]]
        inside[pays] = True
    return None


def _first(p: LinearProgram, entry_row: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Columns with a cost, where these are few, and those of the largest entries in each row."""
    inside = np.asarray(p.cost != 0) & bool(np.count_nonzero(p.cost) < p.rows)
    order = np.lexsort((-np.abs(p.value), entry_row))
    place = np.arange(len(order)) - p.start[entry_row[order]]
    inside[p.index[order[place < _FIRST]]] = True
    return inside


def _with_columns(
    p: LinearProgram, entry_row: NDArray[np.int64], inside: NDArray[np.bool_]
) -> LinearProgram:
    kept = inside[p.index]
    number = np.cumsum(inside) - 1
    lengths = np.bincount(entry_row[kept], minlength=p.rows)
    return replace(
        p,
        cost=p.cost[inside],
        lower=p.lower[inside],
        upper=p.upper[inside],
        start=np.concatenate(([0], np.cumsum(lengths))).astype(np.int32),
        index=number[p.index[kept]].astype(np.int32),
        value=p.value[kept],
        integer=p.integer[inside],
    )
