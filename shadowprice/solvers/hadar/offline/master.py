r"""Rows and columns of Hadar's schedule form: the master programme of its offline optimum.

Source: Hadar's offline problem in the schedule form (IPDPS'24, recalled); its rows are derived. Rows are
those of capacity (:class:`CapacityRows`), one a job, those that a model has beside the published
programme (:class:`.LinkingRows`), and the cuts of :mod:`.cuts` on completions and on a round. A job that is
left out has the schedule that never runs, so every job has exactly one. Columns, the schedules found so
far, are only ever added, and allowed or forbidden by their upper bounds, so every solve starts from
the last basis. ``models/hadar.py`` has the same programme in Pyomo.

Nothing rests on the solver's word: its prices are evaluated by the pricing (weak duality holds for
any prices), and its shares only propose plans, which are checked.

Complexity: a solve is a warm linear programme with J + H (2^R - 1) rows for J jobs, H rounds and R
types, the rounded ones, the linking rows and the cuts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from shadowprice.errors import SolverError
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.linking import LinkingRows
from shadowprice.solvers.hadar.offline.pricing import IDLE, Speeds
from shadowprice.solvers.programs.gate import solve
from shadowprice.solvers.programs.highs import BasicSolution, HighsEnding, WarmProgram
from shadowprice.solvers.programs.linear_program import LinearProgram
from shadowprice.solvers.programs.solution import SolverOptions

_INFINITE = float("inf")

# Rows of capacity

MAX_ROUNDED = 64
"""Larger capacities are not rounded: there is little to gain."""

MAX_DIVISOR = 7
"""Largest q of the factors p / q by which capacities are rounded."""


@dataclass(frozen=True, eq=False)
class CapacityRows:
    r"""Demands of speeds on sets of types, and on their capacities rounded down (derived).

    A schedule says at which speed a job runs in each round, not on which of the types
    admitted at that speed: that choice is a transportation problem, which has an integer solution iff

    .. math::

        \sum_j \max(0, W_j - c(A_j \setminus S)) \le c(S) \quad \forall S \subseteq R,
        \text{ every round}

    where A_j are the types that job j admits in that round and c(S) their GPUs: no set of types is
    asked for more than it has by gangs that find no other place (Hall's condition). The duals
    :math:`\pi_S(t) \ge 0` of these rows give prices :math:`k_r(t) = \sum_{S \ni r} \pi_S(t)` of the
    schedule form's dual with the same value, so both forms have the same bound.

    Gangs are whole, so for every p / q < 1 the rows above, demands d and capacity c, imply those with
    floor(d p / q) and floor(c p / q) (Chvatal and Gomory's rounding; a gang of 3 and a gang of 2 do
    not share 4 GPUs). Those that no other row makes needless are rows too, which makes the bound
    better than that of the schedule form; their coefficients depend on the round and the speed only,
    so the pricing stays the same.

    Parameters
    ----------
    capacity : ndarray, shape (rows,)
        GPUs of each non-empty set of types, then the rounded rows.
    gpus : tuple of ndarray, shape (speeds of the job, rows)
        By job: GPUs that a set must give when the job runs at a speed; rounded alike.
    share : ndarray, shape (rows, types)
        What a price of a row stands for in prices of types: its value spread over the GPUs of
        its set.
    """

    capacity: NDArray[np.float64]
    gpus: tuple[NDArray[np.float64], ...]
    share: NDArray[np.float64]

    @classmethod
    def of(cls, jobs: RoundJobs) -> CapacityRows:
        """The demands of all jobs."""
        types = range(jobs.types)
        sets = tuple(s for size in types for s in combinations(types, size + 1))
        inside = np.array([[r in s for r in types] for s in sets], dtype=np.float64)
        gpus = []
        for job, speeds in enumerate(jobs.speeds):
            admitted = np.array([[r in speed.types for r in types] for speed in speeds])
            outside = (admitted.reshape(-1, jobs.types) * jobs.capacity) @ (1.0 - inside).T
            gpus.append(np.maximum(0.0, jobs.gang[job] - outside))
        room = inside @ jobs.capacity
        # Further rows: a set of types, and by number of GPUs what that is rounded to.
        extra = [(k, f) for k, c in enumerate(room) for f in _roundings(int(c), _demands(gpus, k))]
        rounded = [
            np.array([f[demand[:, k].astype(np.int64)] for k, f in extra]).reshape(
                len(extra), len(demand)
            )
            for demand in gpus
        ]
        share = [inside, *(inside[[k]] * (f[int(room[k])] / room[k]) for k, f in extra)]
        return cls(
            np.concatenate((room, [f[int(room[k])] for k, f in extra])),
            tuple(np.hstack((demand, more.T)) for demand, more in zip(gpus, rounded, strict=True)),
            np.concatenate(share),
        )


def _demands(gpus: list[NDArray[np.float64]], row: int) -> list[int]:
    """Distinct positive demands in a row."""
    return sorted({int(d) for demand in gpus for d in demand[:, row].tolist() if d > 0})


def _roundings(capacity: int, demands: list[int]) -> list[NDArray[np.float64]]:
    """Functions floor(d p / q) of 0 <= d <= capacity that are no weaker than d itself or another."""
    if capacity > MAX_ROUNDED or not demands:
        return []
    gpus = np.arange(capacity + 1, dtype=np.int64)
    factors = {Fraction(p, q) for q in range(2, MAX_DIVISOR + 1) for p in range(1, q)}
    tables = [gpus, *(gpus * f.numerator // f.denominator for f in sorted(factors))]
    tables = [table for table in tables if table[-1] > 0]
    relative = np.array([table[demands] / table[-1] for table in tables])
    chosen: list[int] = []
    for k in range(len(tables)):
        at_least = np.all(relative >= relative[k] - 1e-12, axis=1)
        better = at_least & np.any(relative > relative[k] + 1e-12, axis=1)
        if not better.any() and not at_least[:k].any():
            chosen.append(k)
    return [tables[k].astype(np.float64) for k in chosen if k > 0]


# The master programme


@dataclass(frozen=True)
class Relaxed:
    """A solved master.

    Parameters
    ----------
    value : float
        Its objective.
    share : ndarray, shape (columns,)
        How much of each schedule is taken.
    unserved : float
        Jobs that have no schedule, summed over parts of jobs, and what linking rows are missed by.
    payoff : ndarray, shape (jobs,)
        Duals mu_j.
    price : ndarray, shape (rounds, rows of capacity)
        Duals of capacity [utility per GPU and round].
    linking : ndarray, shape (linking rows,)
        Duals of the linking rows.
    cuts : ndarray, shape (cuts,)
        Duals of the cuts.
    """

    value: float
    share: NDArray[np.float64] = field(repr=False)
    unserved: float
    payoff: NDArray[np.float64] = field(repr=False)
    price: NDArray[np.float64] = field(repr=False)
    linking: NDArray[np.float64] = field(repr=False)
    cuts: NDArray[np.float64] = field(repr=False)


class Master:
    """Schedules, and the programme over them.

    Parameters
    ----------
    jobs : RoundJobs
    linking : LinkingRows

    Attributes
    ----------
    capacity_rows : CapacityRows
    job, end : ndarray of int, shape (columns,)
        Job of each schedule and the round that completes it; the number of rounds if left out.
    speeds : ndarray of int, shape (columns, rounds)
    end_weights : ndarray, shape (cuts, jobs, rounds + 1)
        Coefficients of each cut by completion.
    run_weights : ndarray, shape (cuts, jobs, speeds + 1)
        Coefficients of each cut by what runs in its round; an extra, empty speed for idling (IDLE is -1).
    cut_round : ndarray of int, shape (cuts,)
        Round of each cut on a round; of no meaning for one on completions.
    limits : ndarray, shape (cuts,)
        Right-hand sides of the cuts.
    """

    def __init__(self, jobs: RoundJobs, linking: LinkingRows) -> None:
        self.jobs = jobs
        self.linking = linking
        self.capacity_rows = CapacityRows.of(jobs)
        self.job = np.zeros(0, dtype=np.int64)
        self.end = np.zeros(0, dtype=np.int64)
        self.speeds = np.zeros((0, jobs.rounds), dtype=np.int64)
        self.end_weights = np.zeros((0, jobs.jobs, jobs.rounds + 1))
        self.limits = np.zeros(0)
        widest = max((len(speeds) for speeds in jobs.speeds), default=0)
        self.run_weights = np.zeros((0, jobs.jobs, widest + 1))
        self.cut_round = np.zeros(0, dtype=np.int64)
        self._entries_of: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        self._known: set[tuple[int, Speeds]] = set()
        self._penalty = np.zeros(0)
        self._upper = np.zeros(0)
        self._grown = False
        self._series = WarmProgram(maximise=True)
        room = np.tile(self.capacity_rows.capacity, jobs.rounds)
        no_side, one = np.full(len(room), -_INFINITE), np.ones(jobs.jobs)
        self._series.rows(
            np.concatenate((one, no_side, linking.rows.lower)),
            np.concatenate((one, room, linking.rows.upper)),
        )
        self._linking = jobs.jobs + len(room)
        self._cuts = self._linking + len(linking)
        self._add_fixed_columns()
        self.add([(job, jobs.rounds, ()) for job in range(jobs.jobs)])

    def _add_fixed_columns(self) -> None:
        """Add what is forbidden, so at a penalty: no schedule of a job, missing a row; and columns w."""
        n, added = self.jobs.jobs, self.linking.added
        rows = [*range(n), *np.repeat(self._linking + np.arange(added), 2).tolist()]
        entries = [1.0] * n + [1.0, -1.0] * added
        self._penalties = len(rows)
        unlimited = np.full(len(rows), _INFINITE)
        self._columns(
            -np.ones(len(rows)),
            [np.array([row]) for row in rows],
            [np.array([entry]) for entry in entries],
            unlimited,
        )
        where, values = self.linking.free_entries()
        shifted = [self._linking + own for own in where]
        self._columns(np.zeros(len(self.linking.free)), shifted, values, self.linking.most)
        self._schedules = len(rows) + len(self.linking.free)

    def add(self, schedules: list[tuple[int, int, Speeds]]) -> int:
        """Add schedules (job, last round or the number of rounds if left out, speeds).

        Returns
        -------
        int
            How many were new.
        """
        new = [
            (job, end, speeds) for job, end, speeds in schedules if (job, speeds) not in self._known
        ]
        self._known.update((job, speeds) for job, _, speeds in new)
        if not new:
            return 0
        jobs = np.array([job for job, _, _ in new], dtype=np.int64)
        ends = np.array([end for _, end, _ in new], dtype=np.int64)
        entries = [self._entries(job, end, speeds) for job, end, speeds in new]
        self._columns(
            self.jobs.utility.values[jobs, ends],
            [rows for rows, _ in entries],
            [values for _, values in entries],
            np.full(len(new), _INFINITE),
        )
        if len(self.linking):
            self._entries_of += [self._without_cuts(each) for each in entries]
        self.job = np.concatenate((self.job, jobs))
        self.end = np.concatenate((self.end, ends))
        padded = np.array([self._padded(speeds) for _, _, speeds in new])
        self.speeds = np.concatenate((self.speeds, padded))
        self._upper = np.concatenate((self._upper, np.full(len(new), _INFINITE)))
        self._grown = True
        return len(new)

    def _entries(
        self, job: int, end: int, speeds: Speeds
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rows in which a schedule has a coefficient, and these."""
        n, width = self.jobs.jobs, len(self.capacity_rows.capacity)
        busy = np.array([t for t, speed in enumerate(speeds) if speed != IDLE], dtype=np.int64)
        demand = self.capacity_rows.gpus[job][[speeds[t] for t in busy]].reshape(len(busy), width)
        which, sets = np.nonzero(demand)
        # A cut has the weight of a completion, or that of what runs in its round; the other is 0.
        speed_in_round = self._padded(speeds)[self.cut_round]
        cuts = np.arange(len(self.cut_round))
        weights = self.end_weights[:, job, end] + self.run_weights[cuts, job, speed_in_round]
        cut = np.flatnonzero(weights)
        linked, values = self.linking.entries(job, end, speeds)
        rows = ([job], n + busy[which] * width + sets, self._linking + linked, self._cuts + cut)
        entries = ([1.0], demand[which, sets], values, weights[cut])
        return np.concatenate(rows), np.concatenate(entries)

    def _without_cuts(
        self, entries: tuple[NDArray[np.int64], NDArray[np.float64]]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        rows, values = entries
        return rows[rows < self._cuts], values[rows < self._cuts]

    def _padded(self, speeds: Speeds) -> NDArray[np.int64]:
        """Speeds by round, idle from the end of the schedule on."""
        return np.array([*speeds, *[IDLE] * (self.jobs.rounds - len(speeds))], dtype=np.int64)

    def add_completion_cuts(
        self, weights: NDArray[np.float64], limits: NDArray[np.float64]
    ) -> None:
        """Add cuts: the weights of completions add up to no more than a limit.

        Parameters
        ----------
        weights : ndarray, shape (cuts, jobs, rounds + 1)
            The last column for jobs that are left out.
        limits : ndarray, shape (cuts,)
        """
        entries = [each[self.job, self.end] for each in weights]
        run_weights = np.zeros((len(weights), *self.run_weights.shape[1:]))
        any_round = np.zeros(len(weights), dtype=np.int64)
        self._add_cuts(weights, run_weights, any_round, limits, entries)

    def add_packing_cuts(
        self, rounds: NDArray[np.int64], weights: NDArray[np.float64], limits: NDArray[np.float64]
    ) -> None:
        """Add cuts: the weights of what runs in a round add up to no more than a limit.

        Parameters
        ----------
        rounds : ndarray of int, shape (cuts,)
        weights : ndarray, shape (cuts, jobs, speeds)
        limits : ndarray, shape (cuts,)
        """
        run_weights = np.pad(weights, ((0, 0), (0, 0), (0, 1)))
        entries = [
            each[self.job, self.speeds[:, t]]
            for t, each in zip(rounds.tolist(), run_weights, strict=True)
        ]
        end_weights = np.zeros((len(rounds), *self.end_weights.shape[1:]))
        self._add_cuts(end_weights, run_weights, rounds, limits, entries)

    def _add_cuts(
        self,
        end_weights: NDArray[np.float64],
        run_weights: NDArray[np.float64],
        rounds: NDArray[np.int64],
        limits: NDArray[np.float64],
        entries: list[NDArray[np.float64]],
    ) -> None:
        """Add cuts whose coefficients in the present columns are given."""
        for own, limit in zip(entries, limits.tolist(), strict=True):
            index = np.flatnonzero(own)
            columns = (self._schedules + index).astype(np.int32)
            self._series.row(-_INFINITE, limit, columns, own[index])
        self.end_weights = np.concatenate((self.end_weights, end_weights))
        self.run_weights = np.concatenate((self.run_weights, run_weights))
        self.cut_round = np.concatenate((self.cut_round, rounds))
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
        n = self.jobs.jobs
        if not n:
            nothing = np.zeros((self.jobs.rounds, len(self.capacity_rows.capacity)))
            none = np.zeros(0)
            return Relaxed(0.0, none, 0.0, none, nothing, np.zeros(len(self.linking)), none)
        upper = np.where(allowed, _INFINITE, 0.0)
        changed = np.flatnonzero(upper != self._upper)
        if len(changed):
            index = (self._schedules + changed).astype(np.int32)
            self._series.bounds(index, np.zeros(len(index)), upper[changed])
            self._upper = upper
        costs = np.full(self._penalties, -penalty)
        if not np.array_equal(costs, self._penalty):
            self._series.costs(np.arange(self._penalties, dtype=np.int32), costs)
            self._penalty = costs
        # After new columns the basis is primal feasible, after new bounds dual feasible.
        primal_first = self._grown and not len(changed)
        self._grown = False
        vertex = self._run(primal=primal_first)
        primal, duals = vertex.primal, vertex.duals
        price = np.maximum(duals[n : self._linking], 0.0).reshape(self.jobs.rounds, -1)
        return Relaxed(
            vertex.value,
            primal[self._schedules :],
            float(primal[: self._penalties].sum()),
            duals[:n],
            price,
            self.linking.valid(duals[self._linking : self._cuts]),
            np.maximum(duals[self._cuts :], 0.0),
        )

    def best_of_columns(self, ends: NDArray[np.bool_], time_limit_s: float) -> dict[int, Speeds]:
        """Plan of the schedules found so far, by HiGHS as a mixed-integer programme; a proposal.

        Parameters
        ----------
        ends : ndarray of bool, shape (jobs, rounds + 1)
            Completions to consider.
        time_limit_s : float
            Wall time [s].

        Returns
        -------
        dict of int to Speeds
            Of jobs that complete; none if no plan was found.
        """
        chosen = np.flatnonzero(ends[self.job, self.end])
        if not len(chosen):
            return {}
        where, values = self.linking.free_entries()
        where = [self._linking + rows for rows in where]
        where += [self._entries_of[k][0] for k in chosen]
        values += [self._entries_of[k][1] for k in chosen]
        free = len(self.linking.free)
        start = np.cumsum([0, *(len(rows) for rows in where)])
        by_column = (np.concatenate(values), np.concatenate(where), start)
        matrix = csc_array(by_column, shape=(self._cuts, len(where))).tocsr()
        ones, room = np.ones(self.jobs.jobs), np.tile(self.capacity_rows.capacity, self.jobs.rounds)
        linking, utility = self.linking.rows, self.jobs.utility.values
        program = LinearProgram(
            np.concatenate((np.zeros(free), utility[self.job[chosen], self.end[chosen]])),
            0.0,
            True,
            np.zeros(len(where)),
            np.concatenate((self.linking.most, np.ones(len(chosen)))),
            np.concatenate((ones, np.full(len(room), -_INFINITE), linking.lower)),
            np.concatenate((ones, room, linking.upper)),
            matrix.indptr.astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
            np.ones(len(where), dtype=bool),
        )
        options = SolverOptions(time_limit_s=time_limit_s, relative_gap=1e-6, confirm=False)
        try:
            primal = solve(program, options).primal
        except SolverError:  # These schedules do not go together, or no answer.
            return {}
        taken = chosen[np.flatnonzero(primal[free:] > 0.5)] if len(primal) else chosen[:0]
        return self.plan(taken)

    def plan(self, columns: NDArray[np.int64]) -> dict[int, Speeds]:
        """Schedules of some columns by job, without those that are left out."""
        complete = columns[self.end[columns] < self.jobs.rounds]
        return {
            int(self.job[k]): tuple(self.speeds[k, : self.end[k] + 1].tolist()) for k in complete
        }

    def _run(self, *, primal: bool) -> BasicSolution:
        """Solve from the last basis or, should that fail, from scratch."""
        vertex = self._series.solve(primal=primal)
        if vertex.outcome is not HighsEnding.OPTIMAL:
            raise SolverError(f"Hadar's master programme is {vertex.outcome}, expected an optimum")
        return vertex

    def _columns(
        self,
        costs: NDArray[np.float64],
        rows: list[NDArray[np.int64]],
        entries: list[NDArray[np.float64]],
        upper: NDArray[np.float64],
    ) -> None:
        self._series.columns(costs, upper, rows, entries)
