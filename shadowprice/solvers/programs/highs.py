"""HiGHS driven by arrays: loaded once, brought up to date by differences, solved again warm.

What it answers is its word alone; ``gate`` decides what that is worth. HiGHS is imported with the
first programme, so that what solves nothing does not load it.

What was measured decides how (``benchmarks/gavel_front_end.py``). Changing one coefficient makes
HiGHS drop its factorisation and, with its default dual steepest-edge pricing, compute exact edge
weights again, which costs up to a hundred times the pivots that follow; so a warm solve prices by
Devex, and only entries that really differ are sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.solvers.programs.linear_program import FloatArray, LinearProgram
from shadowprice.solvers.programs.solution import (
    HIGHS_METHODS,
    Infeasible,
    OptimalityEvidence,
    Solution,
    SolverOptions,
    Status,
    Unbounded,
)

SMALL_ROWS = 700
"""Up to so many rows simplex is faster than interior point from a cold start."""

MANY_CHANGES = 0.02
"""Share of changed entries from which the matrix is passed afresh, with the basis put back."""

_IRREDUCIBLE = 6
"""HiGHS's bits for an infeasible subset from the programme (2) from which no row can be spared (4)."""


@cache
def _library() -> Any:
    """The solver's module, loaded when first needed."""
    import highspy

    return highspy


class Highs:
    """One programme inside HiGHS; runs on one thread and prints nothing."""

    def __init__(self) -> None:
        self._highs: Any = None
        self._loaded: LinearProgram | None = None

    def solve(
        self,
        program: LinearProgram,
        options: SolverOptions,
        start: Mapping[int, float] | None = None,
        *,
        presolve: bool = True,
    ) -> Solution:
        """Solve the programme as it is now, from the last basis if there is one.

        Parameters
        ----------
        presolve : bool
            Whether HiGHS may simplify the programme first, as it does unless a basis is known.

        Raises
        ------
        Infeasible, Unbounded, SolverError
            Without a solution; an infeasible programme with rows that contradict each other.
        """
        if self._highs is None:
            self._highs = _library().Highs()
            _set(self._highs, output_flag=False, threads=1)
            self._pass(program)
        else:
            self._update(program)
        warm = not program.mixed and bool(self._highs.getBasis().valid)
        _configure(self._highs, program, options, warm=warm, presolve=presolve)
        if start:
            index = np.fromiter(start, dtype=np.int32, count=len(start))
            values = np.fromiter(start.values(), dtype=np.float64, count=len(start))
            self._highs.setSolution(len(index), index, values)
        self._highs.run()
        if self._highs.getModelStatus() == _library().HighsModelStatus.kUnknown:
            # Interior point stopped short of its tolerance; a basis from simplex is exact.
            _set(self._highs, solver="simplex")
            self._highs.run()
        return self._read(program)

    def _pass(self, program: LinearProgram) -> None:
        _pass(self._highs, program)
        self._loaded = program.copy()

    def _update(self, program: LinearProgram) -> None:
        """Send what differs from what HiGHS has."""
        had, highs = self._loaded, self._highs
        assert had is not None
        same = _same_pattern(program, had)
        entries = (
            np.flatnonzero(program.value != had.value) if same else np.zeros(0, dtype=np.int64)
        )
        if not same or len(entries) > 200 + MANY_CHANGES * len(program.value):
            basis = highs.getBasis()
            self._pass(program)
            if basis.valid and same:
                basis.alien = (
                    False  # It is HiGHS's own: no need to find out whether it is singular.
                )
                highs.setBasis(basis)
            return
        if len(entries):
            rows = np.searchsorted(program.start, entries, side="right") - 1
            columns, values = program.index[entries], program.value[entries]
            for change in zip(rows.tolist(), columns.tolist(), values.tolist(), strict=True):
                highs.changeCoeff(*change)
        bounds = _differ(program.row_lower, had.row_lower, program.row_upper, had.row_upper)
        if len(bounds):
            highs.changeRowsBounds(
                len(bounds), bounds, program.row_lower[bounds], program.row_upper[bounds]
            )
        limits = _differ(program.lower, had.lower, program.upper, had.upper)
        if len(limits):
            highs.changeColsBounds(
                len(limits), limits, program.lower[limits], program.upper[limits]
            )
        costs = np.flatnonzero(program.cost != had.cost).astype(np.int32)
        if len(costs):
            highs.changeColsCost(len(costs), costs, program.cost[costs])
        if program.offset != had.offset:
            highs.changeObjectiveOffset(program.offset)
        self._loaded = program.copy()

    def _read(self, program: LinearProgram) -> Solution:
        highs, kinds = self._highs, _library().HighsModelStatus
        status = highs.getModelStatus()
        if status in (kinds.kInfeasible, kinds.kUnboundedOrInfeasible):
            rows = contradiction(program)
            if rows is None and not program.mixed:
                raise Unbounded("the model is unbounded")
            raise Infeasible("the model is infeasible", rows or [])
        if status == kinds.kUnbounded:
            raise Unbounded("the model is unbounded")
        stopped = (kinds.kTimeLimit, kinds.kInterrupt, kinds.kSolutionLimit)
        if status not in (kinds.kOptimal, kinds.kModelEmpty, *stopped):
            raise SolverError(f"HiGHS stopped: {highs.modelStatusToString(status)}")
        info, found = highs.getInfo(), highs.getSolution()
        optimal = status not in stopped
        feasible = found.value_valid and (optimal or info.primal_solution_status == 2)
        objective = info.objective_function_value if feasible else float("nan")
        nothing = float("inf") if program.maximise else float("-inf")
        bound = info.mip_dual_bound if program.mixed else (objective if optimal else nothing)
        primal = np.array(found.col_value) if feasible else np.zeros(0)
        duals = np.array(found.row_dual) if found.dual_valid and not program.mixed else np.zeros(0)
        iterations = (
            info.simplex_iteration_count + info.ipm_iteration_count + info.pdlp_iteration_count
        )
        return Solution(
            Status.OPTIMAL if optimal else Status.TIME_LIMIT,
            objective,
            bound,
            primal,
            duals,
            max(iterations, 0),
            OptimalityEvidence.POINT_ONLY,
        )


class HighsEnding(StrEnum):
    """Ending of a linear programme, as HiGHS reports it."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class BasicSolution:
    """A solved linear programme of a series.

    Parameters
    ----------
    outcome : HighsEnding
    value : float
        The objective.
    primal : ndarray, shape (columns,)
    duals : ndarray, shape (rows,)
        As in :class:`Solution`; multipliers that contradict the rows where it is infeasible, if
        HiGHS has some.
    iterations : int
    """

    outcome: HighsEnding
    value: float
    primal: FloatArray = field(repr=False)
    duals: FloatArray = field(repr=False)
    iterations: int


class WarmProgram:
    """Linear programmes that differ in bounds, costs, and new columns and rows; solved from the last basis.

    Duals and values are proposals: who uses them evaluates bounds and points of its own.

    Parameters
    ----------
    maximise : bool
    """

    _PRIMAL, _DUAL = 4, 1
    """HiGHS's numbers of simplex methods."""

    def __init__(self, *, maximise: bool = False) -> None:
        highspy = _library()
        self._highs: Any = highspy.Highs()
        _set(self._highs, output_flag=False, threads=1, presolve="off")
        if maximise:
            self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize)

    @classmethod
    def relaxing(cls, program: LinearProgram) -> WarmProgram:
        """The linear relaxation of a programme."""
        series = cls()
        # A big M turns the usual 1e-7 into a different programme.
        _set(series._highs, primal_feasibility_tolerance=1e-9)
        relaxed = program.copy()
        relaxed.integer = np.zeros_like(program.integer)
        _pass(series._highs, relaxed)
        return series

    def rows(self, lower: FloatArray, upper: FloatArray) -> None:
        """Add rows without entries."""
        empty, none = np.zeros(len(lower), dtype=np.int32), np.zeros(0, dtype=np.int32)
        self._highs.addRows(len(lower), lower, upper, 0, empty, none, np.zeros(0))

    def row(
        self, lower: float, upper: float, columns: NDArray[np.int32], values: FloatArray
    ) -> None:
        """Add a row."""
        self._highs.addRow(lower, upper, len(columns), columns, values)

    def columns(
        self,
        costs: FloatArray,
        upper: FloatArray,
        rows: Sequence[NDArray[np.int64]],
        entries: Sequence[FloatArray],
    ) -> None:
        """Add columns from 0 to some bounds, with entries in rows that are there."""
        lengths = np.array([len(part) for part in rows], dtype=np.int64)
        start = np.cumsum([0, *lengths])[:-1].astype(np.int32)
        self._highs.addCols(
            len(costs),
            costs,
            np.zeros(len(costs)),
            upper,
            int(lengths.sum()),
            start,
            np.concatenate([*rows, np.zeros(0)]).astype(np.int32),
            np.concatenate([*entries, np.zeros(0)]),
        )

    def bounds(self, columns: NDArray[np.int32], lower: FloatArray, upper: FloatArray) -> None:
        """Change bounds of columns."""
        self._highs.changeColsBounds(len(columns), columns, lower, upper)

    def costs(self, columns: NDArray[np.int32], costs: FloatArray) -> None:
        """Change costs of columns."""
        self._highs.changeColsCost(len(columns), columns, costs)

    def solve(self, *, primal: bool = False, time_limit_s: float = float("inf")) -> BasicSolution:
        """Solve from the last basis or, should that fail, from scratch.

        Parameters
        ----------
        primal : bool
            By primal instead of dual simplex.
        """
        highs, kinds = self._highs, _library().HighsModelStatus
        _set(highs, simplex_strategy=self._PRIMAL if primal else self._DUAL)
        if time_limit_s < float("inf"):
            # HiGHS's clock runs on from one solve to the next.
            _set(highs, time_limit=float(highs.getRunTime()) + max(time_limit_s, 0.01))
        known = (kinds.kOptimal, kinds.kInfeasible)
        highs.run()
        if highs.getModelStatus() not in known:
            highs.clearSolver()
            highs.run()
        status = highs.getModelStatus()
        found, info = highs.getSolution(), highs.getInfo()
        steps = max(int(info.simplex_iteration_count), 0)
        if status == kinds.kOptimal:
            return BasicSolution(
                HighsEnding.OPTIMAL,
                float(info.objective_function_value),
                np.array(found.col_value),
                np.array(found.row_dual),
                steps,
            )
        ray = np.zeros(0)
        if status == kinds.kInfeasible:
            _, there, values = highs.getDualRay()
            ray = np.array(values) if there else ray
        outcome = HighsEnding.INFEASIBLE if status == kinds.kInfeasible else HighsEnding.UNKNOWN
        return BasicSolution(outcome, float("nan"), np.zeros(0), ray, steps)


def contradiction(program: LinearProgram) -> list[int] | None:
    """Rows of an irreducible infeasible subset of the linear relaxation; None if it is feasible."""
    again = _library().Highs()
    _set(again, output_flag=False, threads=1, iis_strategy=_IRREDUCIBLE, presolve="off")
    relaxed = program.copy()
    relaxed.integer = np.zeros_like(program.integer)
    relaxed.cost = np.zeros_like(program.cost)
    _pass(again, relaxed)
    again.run()
    if again.getModelStatus() == _library().HighsModelStatus.kOptimal:
        return None
    _, iis = again.getIis()
    return list(iis.row_index_)


def _same_pattern(one: LinearProgram, other: LinearProgram) -> bool:
    """True if entries of two programmes stand for the same rows and columns."""
    if one.start is other.start and one.index is other.index:
        return True
    return (
        one.columns == other.columns
        and np.array_equal(one.start, other.start)
        and np.array_equal(one.index, other.index)
    )


def _differ(
    low: NDArray[np.float64],
    had_low: NDArray[np.float64],
    high: NDArray[np.float64],
    had_high: NDArray[np.float64],
) -> NDArray[np.int32]:
    return np.flatnonzero((low != had_low) | (high != had_high)).astype(np.int32)


def _pass(highs: Any, program: LinearProgram) -> None:
    p, highspy = program, _library()
    sense = highspy.ObjSense.kMaximize if p.maximise else highspy.ObjSense.kMinimize
    integer = p.integer.astype(np.int32)
    layout = highspy.MatrixFormat.kRowwise
    status = highs.passModel(
        p.columns,
        p.rows,
        len(p.value),
        layout,
        sense,
        p.offset,
        p.cost,
        p.lower,
        p.upper,
        p.row_lower,
        p.row_upper,
        p.start,
        p.index,
        p.value,
        integer,
    )
    _must(status, "the model's arrays")


def _configure(
    highs: Any, program: LinearProgram, options: SolverOptions, *, warm: bool, presolve: bool
) -> None:
    method = options.method
    if method == "auto":
        small = program.rows <= SMALL_ROWS
        method = "choose" if program.mixed else "simplex" if warm or small else "ipm"
    else:
        method = HIGHS_METHODS[method]
    _set(
        highs,
        # HiGHS's clock runs on from one solve to the next.
        time_limit=float(options.time_limit_s) + float(highs.getRunTime()),
        solver=method,
        run_crossover="on" if options.crossover else "off",
        mip_abs_gap=options.absolute_gap,
        mip_rel_gap=options.relative_gap,
        # 1 is Devex, -1 HiGHS's choice.
        simplex_dual_edge_weight_strategy=1 if warm else -1,
        presolve="off" if warm or not presolve else "choose",
    )
    if method == "pdlp":
        _set(highs, kkt_tolerance=1e-8)


def _set(highs: Any, **options: Any) -> None:
    for name, value in options.items():
        _must(highs.setOptionValue(name, value), f"option {name}")


def _must(status: Any, what: str) -> None:
    if status == _library().HighsStatus.kError:
        raise SolverError(f"HiGHS refuses {what}")
