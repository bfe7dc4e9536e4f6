"""State of Gavel's simulator between rounds: time received, deficits, allocation, worker ids.

Source: github.com/stanford-futuredata/gavel at c4fa400, scheduler/scheduler.py. Rows are jobs and
pairs in the order in which the original's dictionaries hold them, because ties are broken by it: a
job enters with its arrival, followed by its pairs with everybody of equal gang size who is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import Pairs
from shadowprice.instances.cluster import Cluster
from shadowprice.solvers.gavel.rounds import Combinations, deficits_after, fractions, priorities

Key = tuple[int, int]
"""Rows in the workload of the jobs of a combination; equal for a job alone."""

UNSERVED = 1e9
"""Priority of a row that has received nothing, for each unit of its allocation."""


@dataclass
class TimeReceived:
    """Columns over the jobs and pairs that are there.

    Parameters
    ----------
    credit_s : float
        Time a job counts as having received when it enters, and all rows after a reset: half a
        round [s]. A pair enters with none.
    first, second, gpus
        As in :class:`Combinations`, by row of the workload.
    rate_first, rate_second : ndarray, shape (rows, types)
        Steps per second of the two jobs of a row.
    received_s, deficit_s, allocation : ndarray, shape (rows, types)
        Time received since the last reset and deficit [s], fraction of time to receive.
    allocated : ndarray of bool, shape (rows,)
        Whether the row was there when the allocation was computed.
    total_s : ndarray, shape (types,)
        Time given out since the last reset [s], also to rows that have left.
    """

    credit_s: float
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    gpus: NDArray[np.int64]
    rate_first: NDArray[np.float64]
    rate_second: NDArray[np.float64]
    received_s: NDArray[np.float64]
    deficit_s: NDArray[np.float64]
    allocation: NDArray[np.float64]
    allocated: NDArray[np.bool_]
    total_s: NDArray[np.float64]
    row_of: dict[Key, int] = field(default_factory=dict)

    @classmethod
    def empty(cls, types: int, credit_s: float) -> TimeReceived:
        """Nobody is there."""
        none = np.zeros(0, dtype=np.int64)
        table = np.zeros((0, types))
        nobody = np.zeros(0, dtype=np.bool_)
        return cls(
            credit_s, none, none, none, table, table, table, table, table, nobody, np.zeros(types)
        )

    @property
    def alone(self) -> NDArray[np.bool_]:
        """True for rows that are single jobs."""
        single: NDArray[np.bool_] = self.first == self.second
        return single

    def rows(self) -> Combinations:
        """The rows as the round mechanism takes them."""
        runnable = (self.rate_first > 0) & (self.rate_second > 0)
        return Combinations(self.first, self.second, self.gpus, runnable)

    def pairs(self) -> Pairs:
        """The pairs, by position among the single jobs."""
        jobs, pair = self.first[self.alone], ~self.alone
        return Pairs(
            np.searchsorted(jobs, self.first[pair]),
            np.searchsorted(jobs, self.second[pair]),
            self.rate_first[pair],
            self.rate_second[pair],
        )

    def admit(self, job: int, gpus: int, rates: NDArray[np.float64], pairs: Pairs) -> None:
        """A job arrives, with pairs of others before it in the workload and itself."""
        new, types = 1 + len(pairs), len(self.total_s)
        received = np.zeros((new, types))
        received[0] = self.credit_s
        blank = np.zeros((new, types))
        self.first = np.concatenate((self.first, [job], pairs.first))
        self.second = np.concatenate((self.second, [job], pairs.second))
        self.gpus = np.concatenate((self.gpus, np.full(new, gpus, dtype=np.int64)))
        self.rate_first = np.concatenate((self.rate_first, rates[None], pairs.throughput_first))
        self.rate_second = np.concatenate((self.rate_second, rates[None], pairs.throughput_second))
        self.received_s = np.concatenate((self.received_s, received))
        self.deficit_s = np.concatenate((self.deficit_s, blank))
        self.allocation = np.concatenate((self.allocation, blank))
        self.allocated = np.concatenate((self.allocated, np.zeros(new, dtype=np.bool_)))
        self._index()

    def remove(self, job: int) -> None:
        """A job leaves, and all its pairs."""
        keep = (self.first != job) & (self.second != job)
        for name in (
            "first",
            "second",
            "gpus",
            "rate_first",
            "rate_second",
            "received_s",
            "deficit_s",
            "allocation",
            "allocated",
        ):
            setattr(self, name, getattr(self, name)[keep])
        self._index()

    def _index(self) -> None:
        keys = zip(self.first.tolist(), self.second.tolist(), strict=True)
        self.row_of = {key: row for row, key in enumerate(keys)}

    def credit(self, key: Key, gpu_type: int, seconds: float) -> None:
        """A combination has run."""
        self.received_s[self.row_of[key], gpu_type] += seconds
        self.total_s[gpu_type] += seconds

    def reset(self, elapsed_s: float) -> None:
        """Settle the deficits and start to count again, everybody with half a round."""
        self.deficit_s = deficits_after(
            self.deficit_s, self.allocation, self.received_s, elapsed_s, self.credit_s
        )
        self.received_s = np.full_like(self.received_s, self.credit_s)
        self.total_s = self.received_s.sum(axis=0)

    def allocate(self, allocation: NDArray[np.float64]) -> None:
        """Take an allocation whose rows are the single jobs in order, then the pairs."""
        jobs = int(self.alone.sum())
        self.allocation = np.zeros_like(self.allocation)
        self.allocation[self.alone] = allocation[:jobs]
        self.allocation[~self.alone] = allocation[jobs:]
        self.allocated = np.ones(len(self.first), dtype=np.bool_)

    def priorities(self, rows: Combinations) -> NDArray[np.float64]:
        """X / f, with the original's finite value where nothing was received."""
        shares = fractions(self.received_s, self.total_s)
        return priorities(self.allocation, shares, rows.runnable, unserved=UNSERVED)


@dataclass(frozen=True)
class Workers:
    """GPUs by the original's worker ids: numbered by type in order of name, then by node.

    Parameters
    ----------
    types : tuple of str
        GPU types in order of name.
    ids : tuple of range
        Worker ids of each type.
    node : ndarray of int
        Node of each worker.
    """

    types: tuple[str, ...]
    ids: tuple[range, ...]
    node: NDArray[np.int64]

    @classmethod
    def of(cls, cluster: Cluster) -> Workers:
        """The GPUs of a cluster."""
        types = tuple(sorted(cluster.gpu_types))
        type_of_node = np.array([types.index(name) for name in cluster.gpu_types])[
            cluster.type_of_node
        ]
        nodes = np.argsort(type_of_node, kind="stable")
        counts = np.bincount(type_of_node, weights=cluster.gpus_per_node).astype(np.int64)
        ends = np.cumsum(counts).tolist()
        ids = tuple(range(end - n, end) for end, n in zip(ends, counts.tolist(), strict=True))
        return cls(types, ids, np.repeat(nodes, cluster.gpus_per_node[nodes]))

    @property
    def capacity(self) -> NDArray[np.int64]:
        """GPUs of each type."""
        return np.array([len(each) for each in self.ids], dtype=np.int64)

    def type_of(self, worker: int) -> int:
        """Type of a worker."""
        return next(gpu_type for gpu_type, ids in enumerate(self.ids) if worker in ids)

    def place(
        self,
        gpu_type: int,
        chosen: Sequence[tuple[Key, int, bool]],
        previous: Mapping[Key, tuple[int, ...]],
    ) -> dict[Key, tuple[int, ...]]:
        """Worker ids of what runs on a type: large gangs first, on their old workers if free.

        Parameters
        ----------
        chosen : sequence of (key, gpus, allocated)
            In the order of selection. A row that was not there when the allocation was computed
            was counted when GPUs were handed out but gets none, as in the original.
        previous : mapping of key to worker ids
            Where everybody ran in the round before.
        """
        placed: dict[Key, tuple[int, ...]] = {}
        taken: set[int] = set()
        for size in sorted({gpus for _, gpus, _ in chosen}, reverse=True):
            group = [(key, allocated) for key, gpus, allocated in chosen if gpus == size]
            for key, _ in group:
                held = previous.get(key, ())
                if held and held[0] in self.ids[gpu_type] and taken.isdisjoint(held):
                    placed[key] = held
                    taken.update(held)
            for key, allocated in group:
                if allocated and key not in placed:
                    free = (worker for worker in self.ids[gpu_type] if worker not in taken)
                    placed[key] = tuple(
                        worker for worker, _ in zip(free, range(size), strict=False)
                    )
                    taken.update(placed[key])
        return placed
