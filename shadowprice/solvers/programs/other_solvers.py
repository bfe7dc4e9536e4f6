"""Solvers beside HiGHS: SCIP through its own Python interface, and whatever Pyomo has an interface for.

They are handed the arrays of a scaled programme and propose a point, and multipliers if they have any;
the gate examines both in the rows of the model as it does with HiGHS's. What a solver calls optimal, or
at which precision it works, decides nothing. Solvers have different signs for multipliers of a
maximisation: the sign is taken that proves more.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from shadowprice.errors import SolverError
from shadowprice.solvers.programs.exact import MinimisationForm, bound_of_duals
from shadowprice.solvers.programs.highs import contradiction
from shadowprice.solvers.programs.linear_program import FloatArray, LinearProgram
from shadowprice.solvers.programs.solution import (
    PYOMO,
    PYOMO_SOLVERS,
    Infeasible,
    Solution,
    SolverOptions,
    Status,
    Unbounded,
)


class Backend(Protocol):
    """A solver of programmes."""

    def solve(
        self,
        program: LinearProgram,
        options: SolverOptions,
        start: Mapping[int, float] | None = None,
    ) -> Solution:
        """Solve; its word alone.

        Raises
        ------
        Infeasible, Unbounded
            If the solver says so; of an infeasible linear programme another solver has to name rows.
        SolverError
            If it is not installed, has no licence or GPU, or fails.
        """


def backend(method: str) -> Backend:
    """The solver of a method that is none of HiGHS's."""
    if method == "scip":
        return Scip()
    if method in PYOMO_SOLVERS:
        return ThroughPyomo(PYOMO_SOLVERS[method])
    return ThroughPyomo(method.removeprefix(PYOMO))


class Scip:
    """SCIP; for linear programmes without presolve, so that rows have multipliers."""

    def solve(
        self,
        program: LinearProgram,
        options: SolverOptions,
        start: Mapping[int, float] | None = None,
    ) -> Solution:
        """Solve; see :class:`Backend`."""
        try:
            scip = importlib.import_module("pyscipopt")
        except ImportError:
            raise SolverError(
                "solver scip is not installed; pip install 'shadowprice[scip]'"
            ) from None
        model = scip.Model()
        model.hideOutput()
        model.setParam("limits/time", float(min(options.time_limit_s, 1e20)))
        if program.mixed:
            model.setParam("limits/absgap", options.absolute_gap)
            model.setParam("limits/gap", options.relative_gap)
        else:
            model.setPresolve(scip.SCIP_PARAMSETTING.OFF)
            model.setHeuristics(scip.SCIP_PARAMSETTING.OFF)
            model.disablePropagation()
        columns, rows = _into_scip(scip, model, program)
        if start:
            known = model.createPartialSol()
            for k, value in start.items():
                model.setSolVal(known, columns[k], value)
            model.addSol(known)
        model.optimize()
        return self._read(model, program, columns, rows)

    def _read(
        self, model: Any, program: LinearProgram, columns: list[Any], rows: list[Any]
    ) -> Solution:
        said = model.getStatus()
        if said in ("infeasible", "inforunbd"):
            raise _no_point("scip", program)
        if said == "unbounded":
            raise Unbounded("the model is unbounded")
        if not model.getNSols():
            return _nothing(program)
        primal = np.array([model.getVal(each) for each in columns])
        duals = np.zeros(0)
        if not program.mixed and said == "optimal":
            duals = np.array([0.0 if row is None else model.getDualsolLinear(row) for row in rows])
        return _answer(program, primal, duals, model.getDualbound(), "scip", said == "optimal")


def _into_scip(scip: Any, model: Any, p: LinearProgram) -> tuple[list[Any], list[Any]]:
    columns = [
        model.addVar(
            lb=None if math.isinf(low) else low,
            ub=None if math.isinf(high) else high,
            obj=cost,
            vtype="I" if whole else "C",
        )
        for low, high, cost, whole in zip(
            p.lower.tolist(), p.upper.tolist(), p.cost.tolist(), p.integer.tolist(), strict=True
        )
    ]
    if p.maximise:
        model.setMaximize()
    rows: list[Any] = []
    for i in range(p.rows):
        inside = range(int(p.start[i]), int(p.start[i + 1]))
        total = scip.quicksum(float(p.value[k]) * columns[p.index[k]] for k in inside)
        low, high = float(p.row_lower[i]), float(p.row_upper[i])
        if not inside or (math.isinf(low) and math.isinf(high)):
            _must_hold("scip", p, i)
            rows.append(None)
        elif low == high:
            rows.append(model.addCons(total == low))
        elif math.isinf(low):
            rows.append(model.addCons(total <= high))
        elif math.isinf(high):
            rows.append(model.addCons(total >= low))
        else:
            rows.append(model.addCons((low <= total) <= high))
    return columns, rows


class ThroughPyomo:
    """A solver that Pyomo has an interface for, with its licence or GPU where it needs one.

    Parameters
    ----------
    name : str
        As Pyomo's ``SolverFactory`` knows it.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def solve(
        self,
        program: LinearProgram,
        options: SolverOptions,
        start: Mapping[int, float] | None = None,
    ) -> Solution:
        """Solve; see :class:`Backend`."""
        solver = self._solver()
        model = _as_pyomo(self.name, program)
        try:
            found = solver.solve(
                model, load_solutions=False, timelimit=float(options.time_limit_s), tee=False
            )
        except Exception as error:
            raise SolverError(
                f"solver {self.name}, through Pyomo, failed: {_line(error)}"
            ) from error
        said = found.solver.termination_condition
        if said in (pyo.TerminationCondition.infeasible,):
            raise _no_point(self.name, program)
        if said == pyo.TerminationCondition.unbounded:
            raise Unbounded("the model is unbounded")
        try:
            model.solutions.load_from(found)
        except Exception:  # There is none.
            return _nothing(program)
        values = [model.x[k].value for k in range(program.columns)]
        if any(value is None for value in values):
            return _nothing(program)
        duals = np.zeros(0)
        if not program.mixed and len(model.dual):
            rows = model.row
            known = [rows[i] if i in rows else None for i in range(program.rows)]  # noqa: SIM401 (a Constraint has no get)
            duals = np.array([0.0 if row is None else model.dual.get(row, 0.0) for row in known])
        bound = found.problem.upper_bound if program.maximise else found.problem.lower_bound
        word = float(bound) if isinstance(bound, int | float) else math.nan
        optimal = said == pyo.TerminationCondition.optimal
        return _answer(program, np.array(values), duals, word, self.name, optimal)

    def _solver(self) -> Any:
        try:
            solver = pyo.SolverFactory(self.name)
            ready = bool(solver.available(exception_flag=False))
        except Exception as error:
            raise SolverError(f"solver {self.name}: {_line(error)}") from None
        if not ready:
            raise SolverError(
                f"solver {self.name} is not there: Pyomo finds no installation, licence or GPU for it"
            )
        return solver


def _as_pyomo(name: str, p: LinearProgram) -> Any:
    """The arrays as a plain Pyomo model."""
    model: Any = pyo.ConcreteModel()
    domains = np.where(p.integer, "Integers", "Reals").tolist()
    model.x = pyo.Var(
        range(p.columns),
        domain={k: getattr(pyo, domain) for k, domain in enumerate(domains)},
        bounds=lambda m, k: (_side(float(p.lower[k])), _side(float(p.upper[k]))),
    )
    columns = list(model.x.values())

    def row(m: Any, i: int) -> Any:
        inside = slice(int(p.start[i]), int(p.start[i + 1]))
        variables = [columns[k] for k in p.index[inside]]
        low, high = _side(float(p.row_lower[i])), _side(float(p.row_upper[i]))
        if not variables or (low is None and high is None):
            _must_hold(name, p, i)
            return pyo.Constraint.Feasible
        total = LinearExpression(
            constant=0.0, linear_coefs=p.value[inside].tolist(), linear_vars=variables
        )
        return (low, total, high) if low != high else total == low

    model.row = pyo.Constraint(range(p.rows), rule=row)
    total = LinearExpression(constant=0.0, linear_coefs=p.cost.tolist(), linear_vars=columns)
    model.objective = pyo.Objective(expr=total, sense=pyo.maximize if p.maximise else pyo.minimize)
    if not p.mixed:
        model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
    return model


def _side(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _must_hold(name: str, p: LinearProgram, row: int) -> None:
    """Refuse a row without entries that does not hold."""
    if p.start[row] == p.start[row + 1] and not p.row_lower[row] <= 0.0 <= p.row_upper[row]:
        raise _no_point(name, p)


def _answer(
    program: LinearProgram,
    primal: FloatArray,
    duals: FloatArray,
    bound: float,
    name: str,
    optimal: bool,
) -> Solution:
    value = float(program.cost @ primal) + program.offset
    word = bound if program.mixed and math.isfinite(bound) else value if optimal else math.nan
    status = Status.OPTIMAL if optimal else Status.TIME_LIMIT
    return Solution(status, value, word, primal, _signed(program, duals, value), method=name)


def _signed(program: LinearProgram, duals: FloatArray, value: float) -> FloatArray:
    """Multipliers with the sign that proves the better bound."""
    if len(duals) != program.rows or not len(duals):
        return np.zeros(0)
    least, sign = MinimisationForm.of(program), -1.0 if program.maximise else 1.0
    cost = sign * (value - program.offset)
    one, other = (bound_of_duals(least, side * sign * duals, cost) for side in (1.0, -1.0))
    return duals if one >= other else -duals


def _nothing(program: LinearProgram) -> Solution:
    bound = math.inf if program.maximise else -math.inf
    return Solution(Status.TIME_LIMIT, math.nan, bound, np.zeros(0), np.zeros(0))


def _no_point(name: str, program: LinearProgram) -> SolverError:
    """The error for a programme that a solver says to be infeasible: rows that contradict each other."""
    rows = contradiction(program)
    if rows is not None or program.mixed:
        return Infeasible("the model is infeasible", rows or [])
    return SolverError(f"{name} says that the model is infeasible, and nothing else says so")


def _line(error: Exception) -> str:
    return (str(error) or type(error).__name__).strip().splitlines()[0]
