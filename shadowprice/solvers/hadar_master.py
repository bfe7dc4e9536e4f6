r"""Hadar's schedule form over the schedules found so far, with GPU types chosen afterwards.

A schedule here says at which speed (level) a job runs in each round, not on which of the types
admitted at that speed: that choice is a transportation problem, which has an integer solution iff

.. math::

    \sum_j \max(0, W_j - c(A_j \setminus S)) \le c(S) \quad \forall S \subseteq R, \text{ every round}

where A_j are the types that job j admits in that round and c(S) their GPUs: no set of types is
asked for more than it has by gangs that find no other place (Hall's condition). The duals
:math:`\pi_S(t) \ge 0` of these rows give prices :math:`k_r(t) = \sum_{S \ni r} \pi_S(t)` of the
schedule form's dual with the same value, so both forms have the same bound. Derived.

Gangs are whole, so for every p / q < 1 the rows above, demands d and capacity c, imply those with
floor(d p / q) and floor(c p / q) (Chvatal and Gomory's rounding; a gang of 3 and a gang of 2 do
not share 4 GPUs). Those that no other row makes needless are rows too, which makes the bound
better than that of the schedule form; their coefficients depend on the round and the level only,
so the pricing stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar_pricing import IDLE, Levels
from shadowprice.solvers.highs import Highs
from shadowprice.solvers.linear_program import LinearProgram
from shadowprice.solvers.solution import Solution, SolverOptions

MAX_ROUNDED = 64
"""Larger capacities are not rounded: there is little to gain."""

MAX_DIVISOR = 7


@dataclass(frozen=True, eq=False)
class Demand:
    """What levels ask of sets of types, and of their capacities rounded down.

    Parameters
    ----------
    capacity : ndarray, shape (rows,)
        GPUs of each non-empty set of types, then the rounded rows.
    gpus : tuple of ndarray, shape (levels of the job, rows)
        By job: GPUs that a set must give when the job runs at a level; rounded alike.
    """

    capacity: NDArray[np.float64]
    gpus: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(cls, jobs: RoundJobs) -> Demand:
        """The demands of all jobs."""
        types = range(jobs.types)
        sets = tuple(s for size in types for s in combinations(types, size + 1))
        inside = np.array([[r in s for r in types] for s in sets], dtype=np.float64)
        gpus = []
        for job, levels in enumerate(jobs.levels):
            admitted = np.array([[r in level.types for r in types] for level in levels])
            outside = (admitted.reshape(-1, jobs.types) * jobs.capacity) @ (1.0 - inside).T
            gpus.append(np.maximum(0.0, jobs.gang[job] - outside))
        room = inside @ jobs.capacity
        extra = [(k, f) for k, c in enumerate(room) for f in _roundings(int(c), _asked(gpus, k))]
        rounded = [
            np.array([f[asked[:, k].astype(np.int64)] for k, f in extra]).reshape(
                len(extra), len(asked)
            )
            for asked in gpus
        ]
        return cls(
            np.concatenate((room, [f[int(room[k])] for k, f in extra])),
            tuple(np.hstack((asked, more.T)) for asked, more in zip(gpus, rounded, strict=True)),
        )


def _asked(gpus: list[NDArray[np.float64]], place: int) -> list[int]:
    """Distinct positive demands for a set of types."""
    return sorted({int(d) for asked in gpus for d in asked[:, place].tolist() if d > 0})


def _roundings(capacity: int, asked: list[int]) -> list[NDArray[np.float64]]:
    """Functions floor(d p / q) of 0 <= d <= capacity that are no weaker than d itself or another."""
    if capacity > MAX_ROUNDED or not asked:
        return []
    gpus = np.arange(capacity + 1, dtype=np.int64)
    factors = {Fraction(p, q) for q in range(2, MAX_DIVISOR + 1) for p in range(1, q)}
    tables = [gpus, *(gpus * f.numerator // f.denominator for f in sorted(factors))]
    tables = [table for table in tables if table[-1] > 0]
    shapes = np.array([table[asked] / table[-1] for table in tables])
    kept: list[int] = []
    for k in range(len(tables)):
        at_least = np.all(shapes >= shapes[k] - 1e-12, axis=1)
        better = at_least & np.any(shapes > shapes[k] + 1e-12, axis=1)
        if not better.any() and not at_least[:k].any():
            kept.append(k)
    return [tables[k].astype(np.float64) for k in kept if k > 0]


@dataclass(frozen=True)
class Relaxed:
    """A solved master.

    Parameters
    ----------
    share : ndarray, shape (columns,)
        How much of each schedule is taken; 0 for those that were not allowed.
    payoff : ndarray, shape (jobs,)
        Duals mu_j.
    price : ndarray, shape (rounds, rows of capacity)
        Duals of capacity [utility per GPU and round].
    """

    share: NDArray[np.float64] = field(repr=False)
    payoff: NDArray[np.float64] = field(repr=False)
    price: NDArray[np.float64] = field(repr=False)


class Master:
    """Schedules and the programme over them. The columns grow, so it is kept as arrays.

    ``models/hadar.py`` has the same programme in Pyomo; tests hold the two equal.
    """

    def __init__(self, jobs: RoundJobs) -> None:
        self.jobs = jobs
        self.demand = Demand.of(jobs)
        self.job: list[int] = []
        self.levels: list[Levels] = []
        self._known: set[tuple[int, Levels]] = set()
        self._rows: list[NDArray[np.int64]] = []
        self._entries: list[NDArray[np.float64]] = []

    def add(self, job: int, levels: Levels) -> bool:
        """Add a schedule; whether it is new."""
        if (job, levels) in self._known:
            return False
        self._known.add((job, levels))
        self.job.append(job)
        self.levels.append(levels)
        busy = np.array([t for t, level in enumerate(levels) if level != IDLE], dtype=np.int64)
        asked = self.demand.gpus[job][[levels[t] for t in busy]]
        which, sets = np.nonzero(asked)
        rows = self.jobs.jobs + busy[which] * len(self.demand.capacity) + sets
        self._rows.append(np.concatenate(([job], rows)))
        self._entries.append(np.concatenate(([1.0], asked[which, sets])))
        return True

    def value(self, column: int) -> float:
        """Utility of a schedule."""
        end = len(self.levels[column]) - 1
        return float(self.jobs.utility.values[self.job[column], end])

    def table(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Jobs, last rounds and levels by round (IDLE after the last), a row a schedule."""
        ends = np.array([len(levels) - 1 for levels in self.levels], dtype=np.int64)
        rows = [[*levels, *[IDLE] * (self.jobs.rounds - len(levels))] for levels in self.levels]
        shape = (len(rows), self.jobs.rounds)
        levels = np.array(rows, dtype=np.int64).reshape(shape)
        return np.array(self.job, dtype=np.int64), ends, levels

    def relax(self, columns: NDArray[np.int64], bonus: NDArray[np.float64]) -> Relaxed:
        """Solve the linear relaxation over some columns, with a bonus for running each job."""
        share = np.zeros(len(self.job))
        if not len(columns):
            nothing = np.zeros((self.jobs.rounds, len(self.demand.capacity)))
            return Relaxed(share, np.zeros(self.jobs.jobs), nothing)
        found = Highs().solve(self._program(columns, bonus, integer=False), SolverOptions())
        share[columns] = found.primal
        duals = np.maximum(found.duals, 0.0)
        n = self.jobs.jobs
        return Relaxed(share, duals[:n], duals[n:].reshape(self.jobs.rounds, -1))

    def choose(self, time_limit_s: float) -> list[int]:
        """The best schedules found in the time, at most one a job; empty if none was."""
        columns, bonus = np.arange(len(self.job)), np.zeros(self.jobs.jobs)
        options = SolverOptions(time_limit_s=time_limit_s, relative_gap=1e-9)
        found: Solution = Highs().solve(self._program(columns, bonus, integer=True), options)
        return [int(k) for k in np.flatnonzero(found.primal > 0.5)]

    def _program(
        self, columns: NDArray[np.int64], bonus: NDArray[np.float64], *, integer: bool
    ) -> LinearProgram:
        jobs, n = self.jobs, len(columns)
        rows = jobs.jobs + jobs.rounds * len(self.demand.capacity)
        parts = [self._rows[k] for k in columns]
        start = np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int64)
        index = np.concatenate([*parts, np.zeros(0, dtype=np.int64)])
        entries = np.concatenate([*(self._entries[k] for k in columns), np.zeros(0)])
        matrix = csc_array((entries, index, start), shape=(rows, n)).tocsr()
        cost = np.array([self.value(k) + bonus[self.job[k]] for k in columns], dtype=np.float64)
        room = np.concatenate((np.ones(jobs.jobs), np.tile(self.demand.capacity, jobs.rounds)))
        return LinearProgram(
            cost, 0.0, True, np.zeros(n), np.full(n, 1.0 if integer else np.inf),
            np.full(rows, -np.inf), room, matrix.indptr.astype(np.int32),
            matrix.indices.astype(np.int32), matrix.data, np.full(n, integer),
        )  # fmt: skip
