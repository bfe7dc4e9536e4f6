"""Speeds of jobs that share their GPUs: rates of pairs of kinds, and the run times that follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.brief import Brief
from shadowprice.instances.allocation_problem import Pairs
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, ceil_time, up_to_grid
from shadowprice.instances.speeds.throughputs import Kind, Throughputs


@dataclass(frozen=True, eq=False, repr=False)
class SharingRates(Brief):
    """Measured rates of two jobs on the same GPUs, by GPU type and kind, apart from jobs.

    Parameters
    ----------
    table : ndarray, shape (types, kinds, kinds)
        Work a second of the first kind beside the second; row 0 stands for all kinds that never
        share.
    row_of : dict of kind to int
        Row of each kind that may share.
    """

    table: NDArray[np.float64]
    row_of: dict[Kind, int]

    @classmethod
    def of(cls, sharing_rates: Throughputs | None, gpu_types: Sequence[str]) -> SharingRates:
        """Rates on some GPU types; O(kinds^2 + pairs)."""
        pairs = {} if sharing_rates is None else sharing_rates.pairs
        type_row = {name: row for row, name in enumerate(gpu_types)}
        kinds = sorted({kind for _, *both in pairs for kind in both})
        row_of = {kind: row for row, kind in enumerate(kinds, start=1)}
        table = np.zeros((len(type_row), len(kinds) + 1, len(kinds) + 1))
        # What was measured in the order given comes last and prevails.
        for swap in (True, False):
            for (gpu_type, first, second), both in pairs.items():
                one, other = (second, first) if swap else (first, second)
                if gpu_type in type_row:
                    table[type_row[gpu_type], row_of[one], row_of[other]] = both[swap]
        return cls(table, row_of)

    def rows(self, model: NDArray[np.object_], gpus: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row of every job by its model and gang, 0 for those that never share."""
        kinds = zip(model.tolist(), gpus.tolist(), strict=True)
        return np.array([self.row_of.get(kind, 0) for kind in kinds], dtype=np.int64)

    @cached_property
    def lists(self) -> list[list[list[float]]]:
        """The table as lists, of which single entries are faster to read."""
        found: list[list[list[float]]] = self.table.tolist()
        return found


@dataclass(frozen=True, eq=False, repr=False)
class SharedRuns(Brief):
    """Run times of jobs that share their GPUs with a partner from start to end.

    Parameters
    ----------
    rates : SharingRates
    kind : ndarray of int, shape (n,)
        Row of each job in the rates.
    gpus, work : ndarray, shape (n,)
        Gang sizes, and work in the units of the rates; of jobs with graphs their shortest run times [s].
    alone_s : ndarray, shape (n, types)
        Run time of each job alone [s], infinite where it cannot run.
    """

    rates: SharingRates
    kind: NDArray[np.int64]
    gpus: NDArray[np.int64]
    work: NDArray[np.float64]
    alone_s: NDArray[np.float64]

    def run_s(self, job: ArrayLike, partner: ArrayLike, gpu_type: ArrayLike) -> NDArray[np.float64]:
        """Run times [s] of whole jobs; the three are broadcast against each other.

        Returns
        -------
        ndarray
            Infinity where the two cannot share: unequal gangs, a job with itself, no measured
            rate or a rate of 0 for either, or a type on which one of them cannot run alone.
        """
        one, other, gpu_type = np.broadcast_arrays(job, partner, gpu_type)
        table, row = self.rates.table, self.kind
        mine, theirs = table[gpu_type, row[one], row[other]], table[gpu_type, row[other], row[one]]
        able = (mine > 0) & (theirs > 0) & (one != other)
        able &= self.gpus[one] == self.gpus[other]
        able &= np.isfinite(self.alone_s[one, gpu_type] + self.alone_s[other, gpu_type])
        times: NDArray[np.float64] = np.full(one.shape, np.inf)
        with np.errstate(over="ignore"):
            times[able] = up_to_grid(self.work[one][able] / mine[able])
        return np.where(times <= MAX_TIME_S, np.maximum(times, TICK_S), np.inf)

    @cached_property
    def _lists(self) -> tuple[Any, ...]:
        columns = self.kind, self.gpus, self.work, self.alone_s
        return tuple(column.tolist() for column in columns)

    def one_run_s(self, job: int, partner: int, gpu_type: int) -> float:
        """One entry of :meth:`run_s`, faster than an array of one where many are asked for."""
        return _one_run_s(self.rates, self._lists, job, partner, gpu_type)

    def one_rate(self, job: int, partner: int, gpu_type: int) -> float:
        """Rate of a job beside a partner on a GPU type; 0 if the two cannot share."""
        return _one_rate(self.rates, self._lists, job, partner, gpu_type)

    def can_share(self, job: int, partner: int, gpu_type: int) -> bool:
        """True if the two have a run time together on this type; for columns that change."""
        columns = self.kind, self.gpus, self.work, self.alone_s
        return _one_run_s(self.rates, columns, job, partner, gpu_type) != math.inf

    def pairs(self, jobs: NDArray[np.int64], pools: int) -> Pairs:
        """All pairs of these jobs that may share GPUs of some pool, by position; O(jobs^2)."""
        first, second = np.triu_indices(len(jobs), 1)
        gpus = self.gpus[jobs]
        equal = gpus[first] == gpus[second]
        first, second = first[equal], second[equal]
        rates = [
            self._rate(jobs[one], jobs[other], pools)
            for one, other in ((first, second), (second, first))
        ]
        some = np.asarray((rates[0] > 0).any(axis=1))
        return Pairs(first[some], second[some], rates[0][some], rates[1][some])

    def _rate(
        self, job: NDArray[np.int64], partner: NDArray[np.int64], pools: int
    ) -> NDArray[np.float64]:
        """Work a second of jobs beside partners on each pool, shape (pairs, pools)."""
        times = self.run_s(job[:, None], partner[:, None], np.arange(pools)[None, :])
        return np.asarray(self.work[job][:, None] / times)


def _one_rate(
    rates: SharingRates, columns: tuple[Any, ...], job: int, partner: int, gpu_type: int
) -> float:
    kind, gpus, _, alone_s = columns
    table = rates.lists[gpu_type]
    mine: float = table[kind[job]][kind[partner]]
    theirs: float = table[kind[partner]][kind[job]]
    if not (mine > 0 and theirs > 0 and gpus[job] == gpus[partner] and job != partner):
        return 0.0
    if math.inf in (alone_s[job][gpu_type], alone_s[partner][gpu_type]):
        return 0.0
    return mine


def _one_run_s(
    rates: SharingRates, columns: tuple[Any, ...], job: int, partner: int, gpu_type: int
) -> float:
    rate = _one_rate(rates, columns, job, partner, gpu_type)
    if not rate:
        return math.inf
    time_s = float(columns[2][job]) / rate
    # The limit itself is allowed, as in the array.
    return max(ceil_time(time_s) if time_s != MAX_TIME_S else time_s, TICK_S)
