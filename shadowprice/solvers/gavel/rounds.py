"""Gavel's round mechanism: the jobs of the next round, given the fractions of time all should get.

Narayanan et al., OSDI'20, section 5. A policy says which fraction X_mj of wall time combination m
(a job, or two jobs that share GPUs) should spend on GPUs of type j. Every round the combinations
that are furthest behind get the GPUs:

=============  ==================================================================================
``t_mj``       time m has received on j since the allocation was computed [s]
``f_mj``       ``t_mj / sum_m' t_m'j``, the fraction of the time given out on j that m received
priority       ``X_mj / f_mj``; infinite if X_mj > 0 and nothing was received yet
=============  ==================================================================================

Served greedily in order of priority; what does not fit, or has a job that already runs in this
round, is passed over. All functions are pure and work on columns; a round over 10,000 combinations
and three types takes a few milliseconds.

The paper ranks combinations by X / f within the time since the last allocation. Where allocations
change at every arrival that time is short, so :class:`ServiceLedger` adds up both sides over all
allocations: due_mj, the integral of X_mj, takes the place of X_mj. Between two allocations this is
the paper's ranking, as due_mj / received_mj is proportional to X_mj / f_mj on each type; over
several, a job that got more than its share before does not get it again (derived).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.rates import FloatArray

CombinationTable = NDArray[np.float64]
"""A number for each combination and type, shape (rows, types)."""

_CHUNK = 512
"""Queue entries whose fit is tested together; any value gives the same selection."""


@dataclass(frozen=True, eq=False)
class Combinations:
    """Jobs alone and pairs of jobs, one row each.

    Parameters
    ----------
    first, second : ndarray of int, shape (rows,)
        The jobs of each row; equal for a job alone.
    gpus : ndarray of int, shape (rows,)
        GPUs the row takes: the gang size, once for a pair.
    runnable : ndarray of bool, shape (rows, types)
        Whether all jobs of the row make progress on the type.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    gpus: NDArray[np.int64]
    runnable: NDArray[np.bool_]

    def __post_init__(self) -> None:
        rows = len(self.first)
        if not len(self.second) == len(self.gpus) == len(self.runnable) == rows:
            raise InputError(
                f"combinations: columns of {rows}, {len(self.second)}, {len(self.gpus)} and "
                f"{len(self.runnable)} rows, expected equal lengths"
            )

    @classmethod
    def of(cls, problem: AllocationProblem) -> Combinations:
        """The jobs of a problem in order, then its pairs in order."""
        alone, pairs = np.arange(len(problem), dtype=np.int64), problem.pairs
        together = (pairs.throughput_first > 0) & (pairs.throughput_second > 0)
        return cls(
            np.concatenate((alone, pairs.first)),
            np.concatenate((alone, pairs.second)),
            np.concatenate((problem.gpus, problem.gpus[pairs.first])),
            np.concatenate((problem.throughput > 0, together)),
        )

    def __len__(self) -> int:
        return len(self.first)


@dataclass(frozen=True, eq=False)
class SelectedCombinations:
    """Combinations that run in a round, in the order in which they were chosen.

    Parameters
    ----------
    row : ndarray of int
        Rows of the combinations.
    gpu_type : ndarray of int
        Type each one runs on.
    """

    row: NDArray[np.int64]
    gpu_type: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.row)


def fractions(
    received_s: CombinationTable, total_s: NDArray[np.float64] | None = None
) -> CombinationTable:
    """``f_mj``: share of the time given out on each type that each row received.

    Parameters
    ----------
    received_s : ndarray, shape (rows, types)
        Time received since the allocation was computed [s].
    total_s : ndarray, shape (types,), optional
        Time given out on each type [s]; the sum over the rows if not given. They differ where
        rows have left since.

    Returns
    -------
    ndarray, shape (rows, types)
        0 on types on which nobody received anything.
    """
    total = received_s.sum(axis=0) if total_s is None else total_s
    shares: CombinationTable = np.zeros_like(received_s)
    np.divide(received_s, total, out=shares, where=total != 0.0)
    return shares


def priorities(
    allocation: CombinationTable,
    fraction: CombinationTable,
    runnable: NDArray[np.bool_],
    *,
    unserved: float = np.inf,
) -> CombinationTable:
    """``X_mj / f_mj``, and ``unserved * X_mj`` where the row has received nothing on the type.

    Parameters
    ----------
    allocation : ndarray, shape (rows, types)
        X_mj.
    fraction : ndarray, shape (rows, types)
        f_mj, see :func:`fractions`.
    runnable : ndarray of bool, shape (rows, types)
        Others have priority 0, as have rows with X_mj = 0.
    unserved : float
        Infinity in the paper; a large finite number ranks newcomers by their allocation.
    """
    rank: CombinationTable = np.zeros_like(allocation)
    wanted = runnable & (allocation != 0.0)
    served = wanted & (fraction > 0.0)
    np.divide(allocation, fraction, out=rank, where=served)
    np.multiply(allocation, unserved, out=rank, where=wanted & ~served)
    return rank


def deficits_after(
    deficit_s: CombinationTable,
    allocation: CombinationTable,
    received_s: CombinationTable,
    elapsed_s: float,
    credit_s: float = 0.0,
) -> CombinationTable:
    """Deficits [s] after a period: what was due, X_mj x elapsed, less what was received.

    ``credit_s`` is what every row was credited with at the start of the period without having
    run; it does not count as received.
    """
    settled: CombinationTable = deficit_s + (allocation * elapsed_s - (received_s - credit_s))
    return settled


def select(
    rows: Combinations,
    keys: Sequence[CombinationTable],
    capacity: NDArray[np.int64],
    type_order: Sequence[int] | None = None,
    *,
    one_queue: bool = False,
    only_positive: bool = False,
) -> SelectedCombinations:
    """Choose greedily what runs in the next round.

    Parameters
    ----------
    rows : Combinations
        Jobs and pairs.
    keys : sequence of ndarray, shape (rows, types)
        Sort keys, larger first, most significant first; ties go to the earlier row.
    capacity : ndarray of int, shape (types,)
        GPUs of each type.
    type_order : sequence of int, optional
        Order in which the types are served; a type left out serves nobody. All, in order, if not
        given.
    one_queue : bool
        Serve one list of all (row, type) entries instead of one list a type, one after the other.
    only_positive : bool
        Leave out entries whose first key is not positive.

    Returns
    -------
    Selection
        Never over capacity, no job twice, and nothing passed over that would have fit.

    Notes
    -----
    O(types x rows log rows) for the sort; the rest is linear.
    """
    order = list(range(len(capacity)) if type_order is None else type_order)
    left = np.array(capacity, dtype=np.int64)
    taken = np.zeros(int(rows.second.max()) + 1 if len(rows) else 0, dtype=bool)
    able = rows.runnable & (rows.gpus[:, None] <= left)
    wanted = keys[0] > 0.0
    alone = np.array_equal(rows.first, rows.second)
    served: list[NDArray[np.int64]] = []
    for types in [order] if one_queue else [[gpu_type] for gpu_type in order]:
        # Who is wanted comes before who is not, of whom there are more, and mostly too late.
        for part in (wanted,) if only_positive else (wanted, ~wanted):
            if not left[types].any():
                break
            there = able & part
            there[taken[rows.first] | taken[rows.second]] = False
            row, gpu_type = _queue(there, keys, types)
            if alone and len(types) == 1:
                chosen = row[_prefixes(rows.gpus[row], int(left[types[0]]))]
                left[types[0]] -= rows.gpus[chosen].sum()
                taken[rows.first[chosen]] = True
                served.append(np.stack((chosen, np.full_like(chosen, types[0]))))
            else:
                served.append(_serve(rows, row, gpu_type, left, taken))
    chosen_row, chosen_type = np.concatenate((np.zeros((2, 0), dtype=np.int64), *served), axis=1)
    return SelectedCombinations(chosen_row, chosen_type)


def _queue(
    able: NDArray[np.bool_], keys: Sequence[CombinationTable], types: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entries of some types as (row, type), best first, ties by type as listed, then by row."""
    found = [np.flatnonzero(able[:, gpu_type]) for gpu_type in types]
    row = np.concatenate(found)
    gpu_type = np.repeat(np.array(types, dtype=np.int64), [len(each) for each in found])
    first = -keys[0][row, gpu_type]
    best_first = np.argsort(first)
    ordered = first[best_first]
    same = ordered[1:] == ordered[:-1]
    if same.any():
        # Few are equal in the first key: only they are compared by the others.
        tied = np.zeros(len(row) + 1, dtype=bool)
        tied[1:-1] = same
        tied = tied[1:] | tied[:-1]
        among = np.sort(best_first[tied])
        of = (row[among], gpu_type[among])
        best_first[tied] = among[np.lexsort([-key[of] for key in reversed(keys)])]
    return row[best_first], gpu_type[best_first]


def _serve(
    rows: Combinations,
    row: NDArray[np.int64],
    gpu_type: NDArray[np.int64],
    left: NDArray[np.int64],
    taken: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Rows and types served down a queue, shape (2, served); ``left`` and ``taken`` are brought up to date.

    A whole chunk is tested at once, so that a queue of gangs too large for what is left is passed
    over without a look at each.
    """
    served: list[tuple[int, int]] = []
    for begin in range(0, len(row), _CHUNK):
        if not left.any():
            break
        part, on = row[begin : begin + _CHUNK], gpu_type[begin : begin + _CHUNK]
        first, second, gpus = rows.first[part], rows.second[part], rows.gpus[part]
        fits = (gpus <= left[on]) & ~taken[first] & ~taken[second]
        columns = (column[fits].tolist() for column in (part, on, first, second, gpus))
        for entry, where, one, other, need in zip(*columns, strict=True):
            if need <= left[where] and not taken[one] and not taken[other]:
                left[where] -= need
                taken[one] = taken[other] = True
                served.append((entry, where))
    return np.array(served, dtype=np.int64).reshape(-1, 2).T


def _prefixes(gpus: NDArray[np.int64], room: int) -> NDArray[np.int64]:
    """Positions served down a queue of jobs alone on one type: at most one pass for each size of gang."""
    at, served = np.arange(len(gpus)), [np.zeros(0, dtype=np.int64)]
    while len(at := at[gpus[at] <= room]):
        total = np.cumsum(gpus[at])
        many = int(np.searchsorted(total, room, side="right"))
        served.append(at[:many])
        room -= int(total[many - 1])
        at = at[many:]
    return np.concatenate(served)


# Time due and time received, over changing sets of jobs.


Rows = NDArray[np.int64]


@dataclass(eq=False)
class ServiceLedger:
    """Accounts of the combinations of one problem.

    Parameters
    ----------
    jobs : ndarray of int, shape (jobs,)
        Row in the workload of each job of the problem.
    combinations : Combinations
        Jobs alone, then pairs, by position in ``jobs``.
    fraction : ndarray, shape (combinations, types)
        X, the allocation.
    due_s, received_s : ndarray, shape (combinations, types)
    since_s : float
        When the accounts were last brought up to date [s].
    """

    jobs: Rows
    combinations: Combinations
    fraction: FloatArray
    due_s: FloatArray
    received_s: FloatArray
    since_s: float

    @classmethod
    def empty(cls, types: int) -> ServiceLedger:
        """Without jobs."""
        rows, table = np.zeros(0, dtype=np.int64), np.zeros((0, types))
        able = np.zeros((0, types), dtype=bool)
        return cls(rows, Combinations(rows, rows, rows, able), table, table, table, 0.0)

    @cached_property
    def keys(self) -> Rows:
        """A number for each combination that stays the same when others come and go."""
        first, second = (
            self.jobs[part] for part in (self.combinations.first, self.combinations.second)
        )
        return first * (1 << 31) + second

    def accrue(self, running: Rows, types: Rows, now_s: float) -> None:
        """Book the time since the last call: what was due to all, and received by those that ran.

        Parameters
        ----------
        running : ndarray of int
            Keys of the combinations that ran all this time.
        types : ndarray of int
            The type each ran on.
        """
        elapsed_s = now_s - self.since_s
        self.since_s = now_s
        if elapsed_s <= 0.0 or not len(self.jobs):
            return
        self.due_s += self.fraction * elapsed_s
        if len(running):
            where = self.find(running)
            known = where >= 0
            self.received_s[where[known], types[known]] += elapsed_s

    def find(self, keys: Rows) -> Rows:
        """Position of the combination of each key, -1 where there is none."""
        mine = self.keys
        if not len(mine):
            return np.full_like(keys, -1)
        if (mine[1:] > mine[:-1]).all():
            at = np.minimum(np.searchsorted(mine, keys), len(mine) - 1)
        else:
            order = np.argsort(mine)
            at = order[np.minimum(np.searchsorted(mine[order], keys), len(order) - 1)]
        return np.where(mine[at] == keys, at, -1)

    def moved_to(
        self, jobs: Rows, problem: AllocationProblem, fraction: FloatArray
    ) -> ServiceLedger:
        """The accounts under a new allocation of other jobs; those of jobs that left are closed."""
        rows = Combinations.of(problem)
        table = np.zeros_like(fraction)
        ledger = ServiceLedger(jobs, rows, fraction, table, table.copy(), self.since_s)
        where = self.find(ledger.keys)
        known = where >= 0
        ledger.due_s[known] = self.due_s[where[known]]
        ledger.received_s[known] = self.received_s[where[known]]
        return ledger

    def ranking(self, ahead_s: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sort keys, larger first: due over received, due less received, fraction.

        Parameters
        ----------
        ahead_s : float
            Time of the coming round, which is due as well [s]: so that a newcomer has a claim.
        """
        due = self.due_s + self.fraction * ahead_s
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.received_s > 0, due / self.received_s, np.inf)
        wanted = self.fraction > 0
        return np.where(wanted, ratio, 0.0), due - self.received_s, self.fraction
