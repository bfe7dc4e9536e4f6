r"""Max-min programmes found in arrays, and solved by the block-arrow method.

What is looked for, whatever model it comes from: a maximised column t, jobs with columns of their own, and

.. math::

    r_m t - \sum_j T_{mj} x_{mj} \le 0, \quad \sum_j b_{mj} x_{mj} \le n_m, \quad
    \sum_m s_{mj} x_{mj} \le W_j

where s_mj / b_mj is one number a job. The answer is a proposal: a point and multipliers of the
programme, which are examined in its rows like those of any solver.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.narrow_tables import across
from shadowprice.solvers.programs.linear_program import FloatArray, LinearProgram
from shadowprice.solvers.programs.structure import block_arrow

_MOST_RESOURCES = 32
"""The method's work grows with their square."""

_SAME = 1e-14
"""Relative difference of numbers that are one number."""

IntArray = NDArray[np.int64]


class NotMaxMin(Exception):
    """A programme without the structure.

    Parameters
    ----------
    message : str
        What is in the way, naming rows as ``{row}`` for :attr:`row`.
    row : int, optional
        The row in the way.
    near : bool
        Whether all else suggests that the programme is meant to be a max-min programme.
    """

    def __init__(self, message: str, row: int | None = None, *, near: bool = False) -> None:
        super().__init__(message)
        self.row = row
        self.near = near


@dataclass(frozen=True, eq=False)
class MaxMin:
    """A max-min programme, jobs by the order of their fair rows.

    Parameters
    ----------
    level : int
        Column of t.
    fair, time : ndarray of int, shape (jobs,)
        Rows of every job.
    shared : ndarray of int, shape (resources,)
        Rows that jobs share.
    column : ndarray of int, shape (jobs, resources)
        The column of a job on a resource; -1 where there is none.
    need, total_time : ndarray, shape (jobs,)
        r_m and n_m.
    gain, time_taken : ndarray, shape (jobs, resources)
        T_mj, 0 where there is no column, and b_mj, 1 there.
    load : ndarray, shape (jobs,)
        s_mj / b_mj.
    room : ndarray, shape (resources,)
        W_j.
    sign : ndarray, shape (rows,)
        -1 for rows that are written the other way round.
    """

    level: int
    fair: IntArray
    time: IntArray
    shared: IntArray
    column: IntArray
    need: FloatArray
    total_time: FloatArray
    gain: FloatArray
    time_taken: FloatArray
    load: FloatArray
    room: FloatArray
    sign: FloatArray

    def solve(self, program: LinearProgram) -> tuple[FloatArray, FloatArray]:
        """A point and multipliers of the programme; O(jobs x resources^2) an iteration."""
        open_ = self.room > 0
        scale = self.total_time[:, None] / self.time_taken
        gain = self.gain * scale / self.need[:, None]
        load = self.load * self.total_time
        found = block_arrow.solve(gain[:, open_], load, self.room[open_])
        share = np.zeros_like(gain)
        share[:, open_] = found.x
        price = np.zeros(len(open_))
        price[open_] = found.worker_price
        there = self.column >= 0
        surplus = np.where(there, gain * found.job_price[:, None] - np.outer(load, price), 0.0)
        time_price = np.maximum(across(np.maximum, surplus[:, open_]), 0.0)
        # What nobody can have costs nothing: its price is high enough that nobody would.
        worth = np.maximum(surplus - time_price[:, None], 0.0) / load[:, None]
        price[~open_] = worth.max(axis=0)[~open_]
        primal, duals = np.zeros(program.columns), np.zeros(program.rows)
        primal[self.column[there]] = (share * scale)[there]
        primal[self.level] = found.value
        duals[self.fair] = found.job_price / self.need
        duals[self.time] = time_price / self.total_time
        duals[self.shared] = price
        return primal, duals * self.sign * program.cost[self.level]


def recognise(program: LinearProgram, entry_row: IntArray) -> MaxMin:
    """The structure of a programme; O(entries).

    Raises
    ------
    NotMaxMin
        If it has another one.
    """
    p = program
    level = _level(p)
    sign = _signs(p)
    upper = np.where(sign > 0, p.row_upper, -p.row_lower)
    value = p.value * sign[entry_row]
    there = value != 0.0
    row, column, value = entry_row[there], p.index[there].astype(np.int64), value[there]
    of_level = column == level
    fair, need = _fair_rows(row[of_level], value[of_level], upper)
    job_of_row = np.full(p.rows, -1)
    job_of_row[fair] = np.arange(len(fair))
    of_fair = job_of_row[row] >= 0
    in_fair = of_fair & ~of_level
    _must(~(in_fair & (value > 0)), row, "{row} has another sign")
    job, gain = np.full(p.columns, -1), np.zeros(p.columns)
    job[column[in_fair]], gain[column[in_fair]] = job_of_row[row[in_fair]], -value[in_fair]
    if np.count_nonzero(in_fair) != np.count_nonzero(job >= 0):
        raise NotMaxMin("a column raises the levels of two jobs")
    others = ~of_fair & (job[column] >= 0)
    entries = _Entries(row[others], column[others], value[others], job[column[others]])
    _must(entries.value > 0, entries.row, "{row} has entries of two signs")
    places = np.bincount(entries.column, minlength=p.columns)[entries.column]
    _must(places == 2, entries.row, "{row} is there for some columns only")
    time = _time_rows(p.rows, len(fair), entries)
    shared = np.bincount(entries.row, minlength=p.rows) > 0
    shared[time] = False
    bare = np.bincount(row, minlength=p.rows) == 0
    if (upper[bare] < 0).any() or (upper[time] <= 0).any() or (upper[shared] < 0).any():
        raise NotMaxMin("a row has no room")
    of_nobody = ~bare & ~shared & (job_of_row < 0)
    of_nobody[time] = False
    _must(~of_nobody | (upper >= 0), np.arange(p.rows), "{row} asks for something by itself")
    return _table(level, (fair, need, gain), time, np.flatnonzero(shared), entries, upper, sign)


@dataclass(frozen=True, eq=False)
class _Entries:
    """Entries of rows other than fair ones, in columns that have a job."""

    row: IntArray
    column: IntArray
    value: FloatArray
    job: IntArray


def _must(holds: NDArray[np.bool_], row: IntArray, why: str) -> None:
    """Refuse the first entry that does not hold, naming the last row of them: the newest, usually."""
    if not holds.all():
        raise NotMaxMin(why, int(row[~holds].max()), near=True)


def _level(p: LinearProgram) -> int:
    """The one column with a value."""
    paid = np.flatnonzero(p.cost)
    if p.mixed or not p.maximise or len(paid) != 1 or p.cost[paid[0]] < 0:
        raise NotMaxMin("the objective is not one column, maximised")
    bounded = np.flatnonzero((p.lower != 0.0) | np.isfinite(p.upper))
    if len(bounded):
        near = len(bounded) == 1
        raise NotMaxMin("a variable has bounds other than 0 and infinity", near=near)
    return int(paid[0])


def _signs(p: LinearProgram) -> FloatArray:
    """Signs with which all rows have an upper side only."""
    above, below = np.isfinite(p.row_upper), np.isfinite(p.row_lower)
    if (above == below).any():
        worst = int(np.flatnonzero(above == below)[0])
        raise NotMaxMin("{row} is no inequality", worst, near=int((above == below).sum()) == 1)
    return np.where(above, 1.0, -1.0)


def _fair_rows(rows: IntArray, needs: FloatArray, upper: FloatArray) -> tuple[IntArray, FloatArray]:
    """Rows of the level, and what they need of it."""
    if not len(rows):
        raise NotMaxMin("nothing bounds the objective")
    bad = np.flatnonzero((needs <= 0.0) | (upper[rows] != 0.0))
    if len(bad):
        near = len(bad) < 0.5 * len(rows)
        raise NotMaxMin("{row} bounds the objective by itself", int(rows[bad[-1]]), near=near)
    return rows, needs


def _time_rows(rows: int, jobs: int, entries: _Entries) -> IntArray:
    """The row of each job that has all columns of it and none of others."""
    first, last = np.full(rows, jobs), np.full(rows, -1)
    np.minimum.at(first, entries.row, entries.job)
    np.maximum.at(last, entries.row, entries.job)
    size = np.bincount(entries.row, minlength=rows)
    columns = np.bincount(entries.job, minlength=jobs) // 2
    own = np.flatnonzero(first == last)
    own = own[size[own] == columns[first[own]]]
    time = np.full(jobs, -1)
    time[first[own][::-1]] = own[::-1]
    if (time < 0).any():
        raise NotMaxMin("a job has no row for its time", near=True)
    return time


def _table(
    level: int,
    fair: tuple[IntArray, FloatArray, FloatArray],
    time: IntArray,
    shared: IntArray,
    entries: _Entries,
    upper: FloatArray,
    sign: FloatArray,
) -> MaxMin:
    """Entries as tables of jobs and resources."""
    fair_row, need, gain = fair
    if not 0 < len(shared) <= _MOST_RESOURCES:
        raise NotMaxMin(f"{len(shared)} rows are shared, at most {_MOST_RESOURCES} are worth it")
    place = np.full(len(upper), -1)
    place[shared] = np.arange(len(shared))
    of_time = place[entries.row] < 0
    taken, loads = np.ones(len(gain)), np.zeros(len(gain))
    taken[entries.column[of_time]] = entries.value[of_time]
    held = ~of_time
    loads[entries.column[held]] = entries.value[held]
    column = np.full((len(fair_row), len(shared)), -1)
    column[entries.job[held], place[entries.row[held]]] = entries.column[held]
    there = column >= 0
    if np.count_nonzero(there) != np.count_nonzero(held):
        raise NotMaxMin("a job has two columns in one row that is shared", near=True)
    load = np.where(there, loads[column] / taken[column], 0.0)
    one = across(np.maximum, load)
    if (there & (np.abs(load - one[:, None]) > _SAME * one[:, None])).any():
        raise NotMaxMin("a job takes different shares of rows that are shared", near=True)
    return MaxMin(
        level,
        fair_row,
        time,
        shared,
        column,
        need,
        upper[time],
        np.where(there, gain[column], 0.0),
        np.where(there, taken[column], 1.0),
        one,
        upper[shared],
        sign,
    )
