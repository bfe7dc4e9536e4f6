"""The one place a solver is called: Pyomo model -> arrays -> HiGHS.

``compile_model`` translates an ordinary ConcreteModel once, with Pyomo's own standard-form
compiler; ``CompiledModel.solve`` hands the arrays to HiGHS and reads everything back. HiGHS runs
on one thread and prints nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from shadowprice.errors import SolverError


class Status(StrEnum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    TIME_LIMIT = "time limit"


@dataclass(frozen=True)
class SolverOptions:
    """What may differ between solves.

    Parameters
    ----------
    time_limit_s : float
        Wall time for HiGHS [s].
    method : str
        HiGHS's ``solver``: choose, simplex, ipm.
    crossover : bool
        Whether interior point ends with a basis; without it values are 1e-8 off and interior.
    absolute_gap, relative_gap : float
        When a mixed-integer search may stop.
    """

    time_limit_s: float = 60.0
    method: str = "choose"
    crossover: bool = True
    absolute_gap: float = 1e-6
    relative_gap: float = 0.0


@dataclass(frozen=True)
class Solution:
    """Everything a solve gives.

    Parameters
    ----------
    status : Status
        Optimal, or stopped at the time limit with what was found by then.
    objective, bound : float
        Value of the best point found, and what no point can beat; NaN and -inf (for
        minimisation) where there is none.
    primal : ndarray, shape (columns,)
        In the order of :attr:`CompiledModel.columns`; empty if no point was found.
    duals : ndarray, shape (rows,)
        d(objective) / d(right-hand side), in the order of :attr:`CompiledModel.rows`: in a
        minimisation >= 0 for ``>=`` rows and <= 0 for ``<=`` rows. Empty for integer programmes.
    """

    status: Status
    objective: float
    bound: float
    primal: NDArray[np.float64] = field(repr=False)
    duals: NDArray[np.float64] = field(repr=False)

    @property
    def gap(self) -> float:
        """|objective - bound| / max(1, |objective|)."""
        return abs(self.objective - self.bound) / max(1.0, abs(self.objective))


@dataclass(frozen=True)
class CompiledModel:
    """A model as arrays; made by :func:`compile_model`."""

    columns: list[Any]
    rows: list[Any]
    lp: Any = field(repr=False)
    integer: bool

    def solve(
        self, options: SolverOptions | None = None, start: Mapping[int, float] | None = None
    ) -> Solution:
        """Solve; ``start`` gives values of some columns of a feasible point, by position.

        Raises
        ------
        SolverError
            If the model is infeasible (naming an irreducible set of its constraints) or
            unbounded, or HiGHS fails.
        """
        options = options or SolverOptions()
        highs = _configured(options)
        _must(highs.passModel(self.lp), "passModel")
        if start:
            index = np.fromiter(start, dtype=np.int32, count=len(start))
            values = np.fromiter(start.values(), dtype=np.float64, count=len(start))
            highs.setSolution(len(index), index, values)
        highs.run()
        return self._read(highs)

    def values(self, solution: Solution) -> dict[Any, float]:
        """Value of every column by its Pyomo variable's index, for models with one indexed variable."""
        return {
            column.index(): value
            for column, value in zip(self.columns, solution.primal.tolist(), strict=True)
        }

    def duals_of(self, solution: Solution, constraint: Any) -> dict[Any, float]:
        """Dual of every row of an indexed constraint, by index."""
        return {
            row.index(): dual
            for row, dual in zip(self.rows, solution.duals.tolist(), strict=True)
            if row.parent_component() is constraint
        }

    def _read(self, highs: Any) -> Solution:
        status = highs.getModelStatus()
        kinds = highspy.HighsModelStatus
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            raise SolverError(self._infeasible(highs))
        if status == kinds.kUnbounded:
            raise SolverError(
                f"the model is unbounded; check the sense and bounds of {_some(self.columns)}"
            )
        if status not in (kinds.kOptimal, kinds.kTimeLimit, kinds.kModelEmpty):
            raise SolverError(f"HiGHS stopped: {highs.modelStatusToString(status)}")
        info, found = highs.getInfo(), highs.getSolution()
        optimal = status != kinds.kTimeLimit
        feasible = found.value_valid and (optimal or info.primal_solution_status == 2)
        objective = info.objective_function_value if feasible else float("nan")
        bound = info.mip_dual_bound if self.integer else (objective if optimal else float("-inf"))
        primal = np.array(found.col_value) if feasible else np.zeros(0)
        duals = np.array(found.row_dual) if found.dual_valid and not self.integer else np.zeros(0)
        return Solution(
            Status.OPTIMAL if optimal else Status.TIME_LIMIT, objective, bound, primal, duals
        )

    def _infeasible(self, highs: Any) -> str:
        again = _configured(SolverOptions())
        _must(again.setOptionValue("iis_strategy", 2), "option iis_strategy")
        _must(again.passModel(self.lp), "passModel")
        if self.integer:
            every = np.arange(len(self.columns), dtype=np.int32)
            again.changeColsIntegrality(len(every), every, np.zeros(len(every), dtype=np.uint8))
        again.run()
        if again.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            return "the model is infeasible, though its linear relaxation is not"
        _, iis = again.getIis()
        names = [self.rows[row].name for row in iis.row_index_]
        return f"the model is infeasible; these constraints cannot hold together: {', '.join(names) or 'none named'}"


def compile_model(model: pyo.ConcreteModel) -> CompiledModel:
    """Translate a linear or mixed-integer linear Pyomo model with one objective.

    Raises
    ------
    SolverError
        If the model is not linear.
    """
    try:
        form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except Exception as error:
        raise SolverError(f"model {model.name!r} cannot be translated: {error}") from error
    infinity = highspy.kHighsInf
    bounds = [column.bounds for column in form.columns]
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(form.columns), len(form.rows)
    lp.col_cost_ = np.asarray(form.c.todense(), dtype=np.float64).ravel()
    lp.offset_ = float(form.c_offset[0])
    maximise = (
        next(iter(model.component_data_objects(pyo.Objective, active=True))).sense == pyo.maximize
    )
    lp.sense_ = highspy.ObjSense.kMaximize if maximise else highspy.ObjSense.kMinimize
    lp.col_lower_ = np.array(
        [-infinity if low is None else low for low, _ in bounds], dtype=np.float64
    )
    lp.col_upper_ = np.array(
        [infinity if high is None else high for _, high in bounds], dtype=np.float64
    )
    kinds = np.array([row.bound_type for row in form.rows], dtype=np.int64)
    rhs = np.asarray(form.rhs, dtype=np.float64)
    lp.row_lower_ = np.where(kinds == 1, -infinity, rhs)
    lp.row_upper_ = np.where(kinds == -1, infinity, rhs)
    matrix = form.A.tocsc()
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = matrix.indptr.astype(np.int32)
    lp.a_matrix_.index_ = matrix.indices.astype(np.int32)
    lp.a_matrix_.value_ = matrix.data.astype(np.float64)
    integer = [not column.is_continuous() for column in form.columns]
    if any(integer):
        names = highspy.HighsVarType
        lp.integrality_ = [names.kInteger if flag else names.kContinuous for flag in integer]
    return CompiledModel(
        list(form.columns), [row.constraint for row in form.rows], lp, any(integer)
    )


def _configured(options: SolverOptions) -> Any:
    highs = highspy.Highs()
    for name, value in (
        ("output_flag", False),
        ("threads", 1),
        ("time_limit", float(options.time_limit_s)),
        ("solver", options.method),
        ("run_crossover", "on" if options.crossover else "off"),
        ("mip_abs_gap", options.absolute_gap),
        ("mip_rel_gap", options.relative_gap),
    ):
        _must(highs.setOptionValue(name, value), f"option {name}")
    return highs


def _must(status: Any, what: str) -> None:
    if status == highspy.HighsStatus.kError:
        raise SolverError(f"HiGHS refuses {what}")


def _some(columns: list[Any]) -> str:
    names = [column.name for column in columns[:5]]
    return ", ".join(names) + (", ..." if len(columns) > 5 else "")
