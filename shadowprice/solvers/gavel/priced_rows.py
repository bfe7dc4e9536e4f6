"""Rows of a model beside those every explanation knows, with what they are worth: for models that were edited."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.solvers.gavel.workspace import Solved

SMALL = 1e-7
"""Share of the largest price below which one is rounding of the solver."""

MOST = 10_000
"""Rows that are named, at most."""


@dataclass(frozen=True, eq=False, repr=False)
class PricedRow(Brief):
    """A row with a price.

    Parameters
    ----------
    name : str
        With its index, as ``user_cap[ada]``.
    jobs : ndarray of int
        Jobs whose fractions of time are in it; all of them if none is.
    price : float
        d(objective) / d(right-hand side), without its sign.
    stage : int
        Stage of water filling; otherwise 0.
    """

    name: str
    jobs: NDArray[np.int64]
    price: float
    stage: int = 0

    def at(self, stage: int) -> PricedRow:
        """The row as one of a stage."""
        return replace(self, stage=stage)


def priced_rows(solved: Solved, jobs: int, known: Collection[str]) -> tuple[PricedRow, ...]:
    """Rows with a price of all constraints but those known by name; O(entries of these rows)."""
    components = solved.model.component_objects(pyo.Constraint, active=True)
    others = [component for component in components if component.local_name not in known]
    if not others:
        return ()
    duals = np.abs(solved.solution.duals)
    least = SMALL * duals.max(initial=0.0)
    columns = solved.compiled.column_of(solved.model.x).reshape(jobs, -1)
    found: list[PricedRow] = []
    for component in others:
        rows = solved.compiled.place(component)
        for row in rows[duals[rows] > least][:MOST].tolist():
            found.append(_row(solved, row, columns, float(duals[row])))
    return tuple(found)


def _row(solved: Solved, row: int, columns_of_jobs: NDArray[np.int64], price: float) -> PricedRow:
    program = solved.compiled.program
    entries = slice(int(program.start[row]), int(program.start[row + 1]))
    columns = program.index[entries][program.value[entries] != 0.0]
    inside = np.flatnonzero(np.isin(columns_of_jobs, columns).any(axis=1))
    members = inside if len(inside) else np.arange(len(columns_of_jobs))
    return PricedRow(solved.compiled.row(row).name, members, price)
