"""Rows of compiled programmes by name, and programmes that Pyomo wrote itself, to compare them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import highspy
import pytest
from pyomo.repn.plugins.lp_writer import LPWriter

from shadowprice.errors import SolverError
from shadowprice.solvers.programs.compile import CompiledModel
from shadowprice.solvers.programs.solution import Unbounded

Rows = dict[str, tuple[dict[str, float], float, float]]


def rows_of(compiled: CompiledModel) -> Rows:
    """Rows by name as (coefficients by name, lower, upper); two rows of a range become one."""
    p, names = compiled.program, [column.name for column in compiled.columns]
    found: Rows = {}
    for k, row in enumerate(compiled.rows):
        entries: dict[str, float] = {}
        for e in range(p.start[k], p.start[k + 1]):
            assert names[p.index[e]] not in entries, "a column twice in a row"
            entries[names[p.index[e]]] = float(p.value[e])
        entries = {name: value for name, value in entries.items() if abs(value) > 1e-12}
        low, high = float(p.row_lower[k]), float(p.row_upper[k])
        if row.name in found:
            had = found[row.name]
            low, high = max(low, had[1]), min(high, had[2])
        found[row.name] = (entries, low, high)
    return found


def turned(mine: Rows, others: Rows) -> set[str]:
    """Rows that the two sides write with opposite signs."""
    return {
        name
        for name, (entries, _, _) in mine.items()
        if others[name][0] and all(entries.get(k, 0.0) * v <= 0 for k, v in others[name][0].items())
    }


def assert_same_rows(mine: Rows, others: Rows) -> None:
    """Equal rows; where variables stand on both sides, either may come first."""
    assert mine.keys() == others.keys()
    for name in turned(mine, others):
        entries, low, high = mine[name]
        mine = mine | {name: ({k: -v for k, v in entries.items()}, -high, -low)}
    for name, (entries, low, high) in mine.items():
        other, *limits = others[name]
        assert entries.keys() == other.keys(), name
        assert_close(entries.values(), (other[column] for column in entries), name)
        assert_close((low, high), limits, name)


def assert_close(some: Iterable[float], others: Iterable[float], name: str) -> None:
    """Equal numbers but for rounding; a model has thousands, for which ``pytest.approx`` takes seconds."""
    for one, other in zip(some, others, strict=True):
        assert one == other or abs(one - other) <= 1e-9 * max(1.0, abs(other)) < INFINITY, name


INFINITY = float("inf")


Limits = dict[str, tuple[float, float, float, bool]]


def rows_without_fixed(compiled: CompiledModel) -> Rows:
    """Rows by name, with members of Vars that are fixed taken over to the bounds, none left empty."""
    fixed = {column.name: column.value for column in compiled.columns if column.fixed}
    found: Rows = {}
    for name, (entries, low, high) in rows_of(compiled).items():
        moved = sum(value * fixed[column] for column, value in entries.items() if column in fixed)
        kept = {column: value for column, value in entries.items() if column not in fixed}
        if kept:
            found[name] = (kept, low - moved, high - moved)
    return found


def limits_of(compiled: CompiledModel) -> Limits:
    """Cost, bounds and kind of every column that is not fixed, by name."""
    p = compiled.program
    numbers = zip(
        p.cost.tolist(), p.lower.tolist(), p.upper.tolist(), p.integer.tolist(), strict=True
    )
    return {
        column.name: each
        for column, each in zip(compiled.columns, numbers, strict=True)
        if not column.fixed
    }


class Written:
    """A model as Pyomo's own LP writer writes it and HiGHS reads it.

    Attributes
    ----------
    rows : Rows
    limits : Limits
        Of the columns that the file has.
    """

    def __init__(self, model: Any, folder: Path) -> None:
        path = folder / "model.lp"
        with path.open("w") as stream:
            map_ = LPWriter().write(model, stream).symbol_map
        self._highs = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            self._highs.setOptionValue(option, value)
        self._highs.readModel(str(path))
        lp = self._highs.getLp()
        # A column that is 1 stands for constants.
        names = [map_.getObject(name).name for name in lp.col_names_]
        names = ["" if name == "ONE_VAR_CONSTANT" else name for name in names]
        matrix = lp.a_matrix_
        by_row: list[dict[str, float]] = [{} for _ in range(lp.num_row_)]
        for column, name in enumerate(names):
            for entry in range(matrix.start_[column], matrix.start_[column + 1]):
                by_row[matrix.index_[entry]][name] = matrix.value_[entry]
        self.rows: Rows = {}
        for row, entries in enumerate(by_row):
            constant = entries.pop("", 0.0)
            entries = {name: value for name, value in entries.items() if abs(value) > 1e-12}
            if lp.row_names_[row] == "c_e_ONE_VAR_CONSTANT":
                continue
            name = map_.getObject(lp.row_names_[row]).name
            low, high = lp.row_lower_[row] - constant, lp.row_upper_[row] - constant
            if name in self.rows:
                low, high = max(low, self.rows[name][1]), min(high, self.rows[name][2])
            if entries:
                self.rows[name] = (entries, low, high)
        whole = list(lp.integrality_) or [highspy.HighsVarType.kContinuous] * len(names)
        numbers = zip(lp.col_cost_, lp.col_lower_, lp.col_upper_, whole, strict=True)
        self.limits: Limits = {
            name: (cost, low, high, kind == highspy.HighsVarType.kInteger)
            for name, (cost, low, high, kind) in zip(names, numbers, strict=True)
            if name
        }

    def objective(self) -> float | str:
        """Optimum by HiGHS without its presolve, or the word for why there is none."""
        self._highs.run()
        status = self._highs.getModelStatus()
        kinds = highspy.HighsModelStatus
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            return "infeasible"
        if status == kinds.kUnbounded:
            return "unbounded"
        assert status == kinds.kOptimal, status
        return float(self._highs.getInfo().objective_function_value)


def objective_of(compiled: CompiledModel) -> float | str:
    """The same of a compiled model."""
    try:
        return compiled.solve().objective
    except Unbounded:
        return "unbounded"
    except SolverError as error:  # Also where nothing but HiGHS could say that it is infeasible.
        return "infeasible" if "infeasible" in str(error) else str(error)


def assert_written_alike(compiled: CompiledModel, written: Written) -> None:
    """Equal rows by name; equal columns where the file has them."""
    assert_same_rows(rows_without_fixed(compiled), written.rows)
    mine = limits_of(compiled)
    for name, numbers in written.limits.items():
        assert_close(mine[name], numbers, name)
    for name in mine.keys() - written.limits.keys():
        assert mine[name][0] == 0.0, name


def assert_same_optimum(one: float | str, two: float | str) -> None:
    """The same number to a solver's tolerance, or the same reason for none."""
    if isinstance(one, str) or isinstance(two, str):
        assert one == two
    else:
        assert one == pytest.approx(two, rel=1e-5, abs=1e-5)
