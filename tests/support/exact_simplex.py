"""A simplex method in rationals, for programmes of a dozen rows: what floats are held against."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def largest(
    value: Sequence[Fraction], table: Sequence[Sequence[Fraction]], sides: Sequence[Fraction]
) -> Fraction | None:
    """Maximum of value x over table x <= sides, x >= 0; None if no x keeps the rows.

    By Bland's rule, so it ends; from the dual side first where a side is below 0.
    """
    rows = [[*map(Fraction, row), Fraction(side)] for row, side in zip(table, sides, strict=True)]
    width, count = len(value), len(rows)
    for k, row in enumerate(rows):
        row[width:width] = [Fraction(int(i == k)) for i in range(count)]
    basis = list(range(width, width + count))
    if any(row[-1] < 0 for row in rows) and not _made_feasible(rows, basis):
        return None
    goal = [-Fraction(v) for v in value] + [Fraction(0)] * (count + 1)
    for k, column in enumerate(basis):
        _eliminate(goal, rows[k], column)
    _climb(rows, basis, goal)
    return goal[-1]


def _made_feasible(rows: list[list[Fraction]], basis: list[int]) -> bool:
    """Bring sides to 0 or more with one artificial column; False if that cannot be."""
    extra = len(rows[0]) - 1
    for row in rows:
        row.insert(extra, Fraction(-1))
    goal = [Fraction(0)] * extra + [Fraction(1), Fraction(0)]
    worst = min(range(len(rows)), key=lambda k: rows[k][-1])
    _pivot(rows, basis, goal, worst, extra)
    _climb(rows, basis, goal)
    if goal[-1] != 0:
        return False
    if extra in basis:
        k = basis.index(extra)
        _pivot(rows, basis, goal, k, next(c for c in range(extra) if rows[k][c] != 0))
    for row in rows:
        del row[extra]
    return True


def _climb(rows: list[list[Fraction]], basis: list[int], goal: list[Fraction]) -> None:
    while True:
        column = next((c for c, price in enumerate(goal[:-1]) if price < 0), None)
        if column is None:
            return
        ratios = [
            (row[-1] / row[column], basis[k], k) for k, row in enumerate(rows) if row[column] > 0
        ]
        if not ratios:
            raise ValueError("the programme is unbounded")
        _pivot(rows, basis, goal, min(ratios)[2], column)


def _pivot(
    rows: list[list[Fraction]], basis: list[int], goal: list[Fraction], k: int, column: int
) -> None:
    unit = rows[k][column]
    rows[k] = [entry / unit for entry in rows[k]]
    for i, row in enumerate(rows):
        if i != k:
            _eliminate(row, rows[k], column)
    _eliminate(goal, rows[k], column)
    basis[k] = column


def _eliminate(row: list[Fraction], by: list[Fraction], column: int) -> None:
    factor = row[column]
    if factor:
        for c, entry in enumerate(by):
            if entry:
                row[c] -= factor * entry
