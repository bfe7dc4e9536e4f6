r"""Hadar's schedule form over the schedules found so far, kept in the solver.

Rows are those of :mod:`.feasibility`, one a job, and the cuts of
:mod:`.cuts` (on completions) and :mod:`.cuts` (on a round).
A job that is left out has the schedule that never runs, so every job has exactly one. Columns are
only ever added, and allowed or forbidden by their upper bounds, so every solve starts from the
last basis. ``models/hadar.py`` has the same programme in Pyomo; tests hold the two equal.

Nothing rests on the solver's word: its prices are evaluated by the pricing (weak duality holds for
any prices), and its shares only propose plans, which are checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.feasibility import CapacityRows
from shadowprice.solvers.hadar.offline.pricing import IDLE, Levels
from shadowprice.solvers.programs.highs import HighsEnding, Series, Vertex

_INFINITE = float("inf")


@dataclass(frozen=True)
class Relaxed:
    """A solved master.

    Parameters
    ----------
    value : float
        Its objective.
    share : ndarray, shape (columns,)
        How much of each schedule is taken.
    short : float
        Jobs that have no schedule, summed over parts of jobs.
    payoff : ndarray, shape (jobs,)
        Duals mu_j.
    price : ndarray, shape (rounds, rows of capacity)
        Duals of capacity [utility per GPU and round].
    cuts : ndarray, shape (cuts,)
        Duals of the cuts.
    """

    value: float
    share: NDArray[np.float64] = field(repr=False)
    short: float
    payoff: NDArray[np.float64] = field(repr=False)
    price: NDArray[np.float64] = field(repr=False)
    cuts: NDArray[np.float64] = field(repr=False)


class Master:
    """Schedules, and the programme over them.

    Parameters
    ----------
    jobs : RoundJobs
    """

    def __init__(self, jobs: RoundJobs) -> None:
        self.jobs = jobs
        self.demand = CapacityRows.of(jobs)
        self.job = np.zeros(0, dtype=np.int64)
        self.end = np.zeros(0, dtype=np.int64)
        self.levels = np.zeros((0, jobs.rounds), dtype=np.int64)
        self.weights = np.zeros((0, jobs.jobs, jobs.rounds + 1))
        self.limits = np.zeros(0)
        widest = max((len(levels) for levels in jobs.levels), default=0)
        # Weights by job and level in round `at`; an extra, empty level for idling (IDLE is -1).
        self.running = np.zeros((0, jobs.jobs, widest + 1))
        self.at = np.zeros(0, dtype=np.int64)
        self._known: set[tuple[int, Levels]] = set()
        self._penalty = np.zeros(0)
        self._upper = np.zeros(0)
        self._grown = False
        self._series = Series(maximise=True)
        room = np.tile(self.demand.capacity, jobs.rounds)
        lower = np.concatenate((np.ones(jobs.jobs), np.full(len(room), -_INFINITE)))
        upper = np.concatenate((np.ones(jobs.jobs), room))
        self._series.rows(lower, upper)
        # First a column for every job that has no schedule: forbidden, so at a penalty.
        self._columns(
            -np.ones(jobs.jobs), [np.array([j]) for j in range(jobs.jobs)], [np.ones(1)] * jobs.jobs
        )
        self.add([(job, jobs.rounds, ()) for job in range(jobs.jobs)])

    def add(self, schedules: list[tuple[int, int, Levels]]) -> int:
        """Add schedules (job, last round or the number of rounds if left out, levels).

        Returns
        -------
        int
            How many were new.
        """
        new = [one for one in schedules if (one[0], one[2]) not in self._known]
        self._known.update((job, levels) for job, _, levels in new)
        if not new:
            return 0
        padded = [[*levels, *[IDLE] * (self.jobs.rounds - len(levels))] for _, _, levels in new]
        job = np.array([one[0] for one in new], dtype=np.int64)
        end = np.array([one[1] for one in new], dtype=np.int64)
        parts = [self._entries(*one) for one in new]
        self._columns(
            self.jobs.utility.values[job, end], [rows for rows, _ in parts], [v for _, v in parts]
        )
        self.job, self.end = np.concatenate((self.job, job)), np.concatenate((self.end, end))
        self.levels = np.concatenate((self.levels, np.array(padded, dtype=np.int64)))
        self._upper = np.concatenate((self._upper, np.full(len(new), _INFINITE)))
        self._grown = True
        return len(new)

    def _entries(
        self, job: int, end: int, levels: Levels
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rows in which a schedule has something, and what."""
        n, width = self.jobs.jobs, len(self.demand.capacity)
        busy = np.array([t for t, level in enumerate(levels) if level != IDLE], dtype=np.int64)
        asked = self.demand.gpus[job][[levels[t] for t in busy]].reshape(len(busy), width)
        which, sets = np.nonzero(asked)
        # A completion's weight, or that of what runs in the round of a cut.
        padded = np.array([*levels, *[IDLE] * (self.jobs.rounds - len(levels))], dtype=np.int64)
        weights = (
            self.weights[:, job, end]
            + self.running[:, job][np.arange(len(self.at)), padded[self.at]]
        )
        cut = np.flatnonzero(weights)
        rows = ([job], n + busy[which] * width + sets, n + self.jobs.rounds * width + cut)
        return np.concatenate(rows), np.concatenate(([1.0], asked[which, sets], weights[cut]))

    def cut(self, weights: NDArray[np.float64], limits: NDArray[np.float64]) -> None:
        """Add cuts: the weights of completions add up to no more than a limit.

        Parameters
        ----------
        weights : ndarray, shape (cuts, jobs, rounds + 1)
            The last column for jobs that are left out.
        limits : ndarray, shape (cuts,)
        """
        entries = [each[self.job, self.end] for each in weights]
        running = np.zeros((len(weights), *self.running.shape[1:]))
        self._cut(weights, running, np.zeros(len(weights), dtype=np.int64), limits, entries)

    def pack(
        self, at: NDArray[np.int64], weights: NDArray[np.float64], limits: NDArray[np.float64]
    ) -> None:
        """Add cuts: the weights of what runs in a round add up to no more than a limit.

        Parameters
        ----------
        at : ndarray of int, shape (cuts,)
            Rounds.
        weights : ndarray, shape (cuts, jobs, levels)
        limits : ndarray, shape (cuts,)
        """
        running = np.pad(weights, ((0, 0), (0, 0), (0, 1)))
        entries = [
            each[self.job, self.levels[:, t]] for t, each in zip(at.tolist(), running, strict=True)
        ]
        none = np.zeros((len(at), *self.weights.shape[1:]))
        self._cut(none, running, at, limits, entries)

    def _cut(
        self,
        weights: NDArray[np.float64],
        running: NDArray[np.float64],
        at: NDArray[np.int64],
        limits: NDArray[np.float64],
        entries: list[NDArray[np.float64]],
    ) -> None:
        for own, limit in zip(entries, limits.tolist(), strict=True):
            index = np.flatnonzero(own)
            columns = (self.jobs.jobs + index).astype(np.int32)
            self._series.row(-_INFINITE, limit, columns, own[index])
        self.weights = np.concatenate((self.weights, weights))
        self.running = np.concatenate((self.running, running))
        self.at = np.concatenate((self.at, at))
        self.limits = np.concatenate((self.limits, limits))

    def relax(self, allowed: NDArray[np.bool_], penalty: float) -> Relaxed:
        """Solve the linear relaxation over some columns.

        Parameters
        ----------
        allowed : ndarray of bool, shape (columns,)
        penalty : float
            For a job without any schedule [utility].

        Raises
        ------
        SolverError
            If HiGHS finds no optimum.
        """
        n, series = self.jobs.jobs, self._series
        if not n:
            nothing = np.zeros((self.jobs.rounds, len(self.demand.capacity)))
            return Relaxed(0.0, np.zeros(0), 0.0, np.zeros(0), nothing, np.zeros(0))
        upper = np.where(allowed, _INFINITE, 0.0)
        changed = np.flatnonzero(upper != self._upper)
        if len(changed):
            index = (n + changed).astype(np.int32)
            series.bounds(index, np.zeros(len(index)), upper[changed])
            self._upper = upper
        costs = np.full(n, -penalty)
        if not np.array_equal(costs, self._penalty):
            series.costs(np.arange(n, dtype=np.int32), costs)
            self._penalty = costs
        # After new columns the basis is primal feasible, after new bounds dual feasible.
        primal_first = self._grown and not len(changed)
        self._grown = False
        found = self._run(primal=primal_first)
        primal, duals = found.primal, found.duals
        last = n + self.jobs.rounds * len(self.demand.capacity)
        price = np.maximum(duals[n:last], 0.0).reshape(self.jobs.rounds, -1)
        return Relaxed(
            found.value,
            primal[n:],
            float(primal[:n].sum()),
            duals[:n],
            price,
            np.maximum(duals[last:], 0.0),
        )

    def _run(self, *, primal: bool) -> Vertex:
        """Solve from the last basis or, should that fail, from scratch."""
        found = self._series.solve(primal=primal)
        if found.outcome is not HighsEnding.OPTIMAL:
            raise SolverError(f"Hadar's master programme is {found.outcome}, expected an optimum")
        return found

    def _columns(
        self,
        costs: NDArray[np.float64],
        rows: list[NDArray[np.int64]],
        entries: list[NDArray[np.float64]],
    ) -> None:
        self._series.columns(costs, np.full(len(costs), _INFINITE), rows, entries)
