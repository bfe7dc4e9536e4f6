"""The highest common level: max t such that every job gets t times what it needs.

Max-min fairness, makespan, one step of finish-time fairness and one of water filling are all this
programme, with different needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, SolverError
from shadowprice.models import gavel
from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.gavel.reached import (
    CLOSE,
    SAME,
    TOO_FAR_APART,
    completed,
    off,
    share_sizes,
    usable,
)
from shadowprice.solvers.gavel.workspace import Solved
from shadowprice.solvers.programs.linear_program import rows_of_entries
from shadowprice.solvers.programs.solution import Infeasible, Unbounded

KNOWN_ROWS = ("fair", "time", "workers")
"""Constraints whose prices a :class:`PricedLevel` has by name."""


@dataclass(frozen=True, eq=False)
class PricedLevel:
    """A level, an allocation that reaches it, and prices that prove that none is higher.

    Parameters
    ----------
    value, bound : float
        The objective of these fractions of time, and the bound that all prices prove.
    x, y : ndarray
        Fractions of time of jobs, shape (jobs, types), and of pairs, shape (pairs, types).
    job_price : ndarray, shape (jobs,)
        y_m >= 0: value of a step per second of each job.
    time_price : ndarray, shape (jobs,)
        Value of a unit of each job's own time.
    worker_price : ndarray, shape (accelerators,)
        Value of a GPU of each accelerator.
    spare : ndarray of bool, shape (jobs,)
        Jobs that get more than the level asks for.
    solved : Solved
        The solved model.
    """

    value: float
    bound: float
    x: FloatArray
    y: FloatArray
    job_price: FloatArray
    time_price: FloatArray
    worker_price: FloatArray
    spare: NDArray[np.bool_]
    solved: Solved


def highest_level(programme: Programme, need: FloatArray) -> PricedLevel:
    """Maximise t subject to throughput(m, X) >= need_m t over valid allocations.

    Parameters
    ----------
    need : ndarray, shape (rows,)
        r_m >= 0 [steps/s]; not all zero.
    """
    solved: Solved | None = None
    try:
        solved = programme.solve(r=need)
        level = _priced(programme, solved, need)
        if off(level.value, level.bound) <= CLOSE:
            return level
    except (Infeasible, Unbounded):
        # Of the published model that cannot be: a level of 0 is one, and GPUs bound the others.
        if programme.build is not gavel.max_min:
            raise
    # What is short is added to an answer in units in which shares are about 1, else to the first.
    # A rounding error of time on a type without GPUs is much where throughputs there are: they are left out.
    if programme.build is gavel.max_min:
        programme = replace(programme, rates=programme.rates.there)
    try:
        again = programme.solve(None, _sizes(programme.rates, need), r=need)
    except SolverError:
        if solved is None:
            raise SolverError(TOO_FAR_APART) from None
        return _priced(programme, solved, need, complete=True)
    found = _priced(programme, again, need, complete=True)
    if off(found.value, found.bound) <= CLOSE:
        if programme.build is gavel.max_min:
            programme.workspace.vouch()
        return found
    if solved is None:
        return found
    level = _priced(programme, solved, need, complete=True)
    return min(found, level, key=lambda each: off(each.value, each.bound))


def _sizes(rates: Rates, need: FloatArray) -> dict[str, FloatArray]:
    """Sizes of t, x and y where the job that is held back most is alone: the optimum is not far."""
    most = (rates.alone * usable(rates)).max(axis=1)
    held = need > 0
    unit = float((most[held] / need[held]).min()) if held.any() else 0.0
    if not 0.0 < unit < np.inf:
        return {}
    return {"t": np.array([unit]), **share_sizes(rates, need * unit)}


def _priced(
    programme: Programme, solved: Solved, need: FloatArray, *, complete: bool = False
) -> PricedLevel:
    """The level of a solved model, by the fractions of time that it gives.

    Parameters
    ----------
    complete : bool
        Whether what jobs lack of the bound's level is added, in the model as it is published.
    """
    rates, published = programme.rates, programme.build is gavel.max_min
    x, y = programme.allocation(solved)
    value, bound = solved.solution.objective, solved.solution.bound
    if complete and published and np.isfinite(bound):
        x, y = completed(rates, x, y, need * bound)
    got = rates.throughput(x, y)
    if published or not no_level(solved):
        reached = _smallest(got, need) if published else _attained(solved, solved.solution.primal)
        value = value if off(value, reached) <= SAME else reached

    def price(name: str, size: int) -> FloatArray:
        # A model of one's own may have no such rows.
        duals = solved.dual(name)
        return np.zeros(size) if duals is None or duals.shape != (size,) else np.abs(duals)

    return PricedLevel(
        value,
        bound,
        x,
        y,
        price("fair", rates.rows),
        price("time", rates.rows),
        price("workers", len(rates.workers)),
        got > need * value * (1.0 + SAME),
        solved,
    )


def _smallest(got: FloatArray, need: FloatArray) -> float:
    """Smallest throughput over need, of those that need something."""
    held = need > 0
    return float((got[held] / need[held]).min(initial=np.inf))


def _attained(solved: Solved, primal: FloatArray) -> float:
    """Largest t with which the other columns of a point keep the rows of fair; O(entries)."""
    program, compiled = solved.compiled.program, solved.compiled
    column = int(compiled.place(solved.model.t)[0])
    rows = np.zeros(program.rows, dtype=bool)
    rows[compiled.place(solved.model.fair)] = True
    row, of_level = rows_of_entries(program), program.index == column
    factor = np.bincount(row[of_level], program.value[of_level], program.rows)
    terms = np.where(of_level, 0.0, program.value * np.maximum(primal, 0.0)[program.index])
    rest = np.bincount(row, terms, program.rows)
    with np.errstate(all="ignore"):
        side = np.where(factor < 0, program.row_lower, program.row_upper)
        most = (side - rest) / factor
    return float(most[rows & (factor != 0.0)].min(initial=np.inf))


def require_levels(solved: Solved, policy: str) -> None:
    """Refuse a model whose t is more than a level of needs, for policies that move the needs.

    They ask for the highest level again and again and read what is possible off the prices of its
    rows; that holds if t is the objective, is in no row but fair's, and has no bound above.

    Raises
    ------
    InputError
        Saying what else t is in.
    """
    model = solved.model
    if not {"t", "fair"} <= {part.local_name for part in model.component_objects()}:
        raise InputError(
            f"{policy} raises levels: model {model.name!r} needs a variable t and a constraint fair"
        )
    why = no_level(solved)
    if why:
        raise InputError(
            f"{policy} raises levels again and again, which model {model.name!r} does not allow: "
            f"{why}; max_min_fairness:aware=true solves it once"
        )


def no_level(solved: Solved) -> str:
    """Reason why t is more than a level of needs; empty where it is the objective and in rows of fair alone."""
    model, compiled = solved.model, solved.compiled
    if not {"t", "fair"} <= {part.local_name for part in model.component_objects()}:
        return "it has no variable t or no constraint fair"
    program, column = compiled.program, int(compiled.place(model.t)[0])
    if np.flatnonzero(program.cost).tolist() != [column] or program.offset or not program.maximise:
        return "its objective is not t"
    if program.lower[column] != 0.0 or np.isfinite(program.upper[column]):
        return "t has a bound"
    of_level = np.flatnonzero((program.index == column) & (program.value != 0.0))
    rows = np.searchsorted(program.start, of_level, side="right") - 1
    others = rows[~np.isin(rows, compiled.place(model.fair))]
    if len(others):
        return f"t is in {compiled.row(int(others[0])).name} as well"
    return ""
