"""The highest common level: max t such that every job gets t times what it needs.

Max-min fairness, makespan, one step of finish-time fairness and one of water filling are all this
programme, with different needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shadowprice.errors import InputError
from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import FloatArray
from shadowprice.solvers.gavel.workspace import Solved
from shadowprice.solvers.programs.linear_program import rows_of_entries

KNOWN_ROWS = ("fair", "time", "workers")
"""Constraints whose prices a :class:`PricedLevel` has by name."""


@dataclass(frozen=True, eq=False)
class PricedLevel:
    """A level, an allocation that reaches it, and prices that prove that none is higher.

    Parameters
    ----------
    value, bound : float
        The model's objective, and the bound that all its prices prove.
    x, y : ndarray
        Fractions of time of jobs, shape (jobs, types), and of pairs, shape (pairs, types).
    job_price : ndarray, shape (jobs,)
        y_m >= 0: value of a step per second of each job.
    time_price : ndarray, shape (jobs,)
        Value of a unit of each job's own time.
    worker_price : ndarray, shape (accelerators,)
        Value of a GPU of each accelerator.
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
    solved: Solved


def highest_level(programme: Programme, need: FloatArray) -> PricedLevel:
    """Maximise t subject to throughput(m, X) >= need_m t over valid allocations.

    Parameters
    ----------
    need : ndarray, shape (rows,)
        r_m >= 0 [steps/s]; not all zero.
    """
    rates = programme.rates
    solved = programme.solve(r=need)
    x, y = programme.allocation(solved)

    def price(name: str, size: int) -> FloatArray:
        # A model of one's own may have no such rows.
        duals = solved.dual(name)
        return np.zeros(size) if duals is None or duals.shape != (size,) else np.abs(duals)

    return PricedLevel(
        solved.solution.objective,
        solved.solution.bound,
        x,
        y,
        price("fair", rates.rows),
        price("time", rates.rows),
        price("workers", len(rates.workers)),
        solved,
    )


def require_levels(solved: Solved, policy: str) -> None:
    """Refuse a model whose t is more than a level of needs, for policies that move the needs.

    They ask for the highest level again and again and read what is possible off the prices of its
    rows; that holds if t is the objective, is in no row but fair's, and has no bound above.

    Raises
    ------
    InputError
        Saying what else t is in.
    """
    model, compiled = solved.model, solved.compiled
    if not {"t", "fair"} <= {part.local_name for part in model.component_objects()}:
        raise InputError(
            f"{policy} raises levels: model {model.name!r} needs a variable t and a constraint fair"
        )
    program, column = compiled.program, int(compiled.place(model.t)[0])
    why = ""
    if np.flatnonzero(program.cost).tolist() != [column] or program.offset or not program.maximise:
        why = "its objective is not t"
    elif program.lower[column] != 0.0 or np.isfinite(program.upper[column]):
        why = "t has a bound"
    else:
        of_level = (program.index == column) & (program.value != 0.0)
        beside = np.setdiff1d(rows_of_entries(program)[of_level], compiled.place(model.fair))
        if len(beside):
            why = f"t is in {compiled.row(int(beside[0])).name} as well"
    if why:
        raise InputError(
            f"{policy} raises levels again and again, which model {model.name!r} does not allow: "
            f"{why}; max_min_fairness_perf solves it once"
        )
