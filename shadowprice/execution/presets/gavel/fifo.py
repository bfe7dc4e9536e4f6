"""Gavel's three FIFO policies: queues in order of arrival, no linear programme.

Source: github.com/stanford-futuredata/gavel at c4fa400, scheduler/policies/fifo.py.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import AllocationProblem

PACKING_GAIN = 1.5
"""Two jobs share GPUs if their throughputs relative to running alone add up to more."""


@dataclass
class PublishedFifo:
    """A job keeps its type until it ends; its type should be random.

    Quirk of the original, kept: the type used is not the one drawn but the last, by name, that still
    has GPUs left, whether or not the job fits, so that it may be oversubscribed without limit.
    When it is used up exactly, the type that was drawn is the one struck off the list.
    """

    seed: int
    kind_of: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def __call__(self, problem: AllocationProblem) -> NDArray[np.float64]:
        """Hand the types of ended jobs to the head of the queue, then go down the queue."""
        row = {name: k for k, name in enumerate(problem.id.tolist())}
        queue = [k for name, k in row.items() if name not in self.kind_of]
        left = problem.capacity.astype(np.int64).tolist()
        gpus, rate = problem.gpus.tolist(), problem.throughput
        names = problem.id.tolist()
        for name, kind in list(self.kind_of.items()):
            if name in row:
                left[kind] -= gpus[row[name]]
                continue
            if queue and gpus[queue[0]] <= left[kind] and rate[queue[0], kind] > 0:
                job = queue.pop(0)
                self.kind_of[names[job]] = kind
                left[kind] -= gpus[job]
            del self.kind_of[name]
        open_kinds = [kind for kind, free in enumerate(left) if free > 0]
        while queue and open_kinds:
            job = queue.pop(0)
            room = [k for k, kind in enumerate(open_kinds) if left[kind] >= gpus[job]]
            if not room:
                break
            drawn = room[self.random.randrange(len(room))]
            kind = open_kinds[-1]
            if rate[job, kind] > 0:
                self.kind_of[names[job]] = kind
                left[kind] -= gpus[job]
                if left[kind] == 0:
                    open_kinds.pop(drawn)
        # The original goes through its jobs in order of arrival, not of allocation.
        self.kind_of = dict(sorted(self.kind_of.items(), key=lambda item: row[item[0]]))
        table = np.zeros((len(problem) + len(problem.pairs), len(left)))
        for name, kind in self.kind_of.items():
            table[row[name], kind] = 1.0
        return table


@dataclass(frozen=True)
class FifoByRate:
    """Every job, oldest first, on the fastest type with room; the first that fits nowhere blocks.

    Parameters
    ----------
    packs : bool
        Whether the next jobs in the queue then share the GPUs of running ones, each with the one
        that gains most, as long as the gain is more than :data:`PACKING_GAIN`.
    """

    packs: bool = False

    def __call__(self, problem: AllocationProblem) -> NDArray[np.float64]:
        """Forget the last allocation and start from the head of the queue."""
        left = problem.capacity.copy()
        kind_of: dict[int, int] = {}
        table = np.zeros((len(problem) + len(problem.pairs), len(left)))
        queue = list(range(len(problem)))
        while queue and (left > 0).any():
            job = queue.pop(0)
            room = np.flatnonzero((left >= problem.gpus[job]) & (left > 0))
            if not len(room):
                break
            kind = int(room[np.argmax(problem.throughput[job, room])])
            if problem.throughput[job, kind] > 0:
                kind_of[job] = kind
                left[kind] -= problem.gpus[job]
        if self.packs:
            for row, kind in self._pack(problem, queue, kind_of):
                table[row, kind] = 1.0
        for job, kind in kind_of.items():
            table[job, kind] = 1.0
        return table

    def _pack(
        self, problem: AllocationProblem, queue: list[int], kind_of: dict[int, int]
    ) -> list[tuple[int, int]]:
        """Rows and types of the pairs made; their first members leave ``kind_of``."""
        pairs, packed = problem.pairs, []
        ends = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
        row = {key: k for k, key in enumerate(ends)}
        for job in queue:
            best, best_gain = None, PACKING_GAIN
            for other, kind in kind_of.items():
                key = (min(job, other), max(job, other))
                gain = _gain(problem, row[key], kind) if key in row else 0.0
                if gain > best_gain:
                    best, best_gain = other, gain
            if best is None:
                break
            key = (min(job, best), max(job, best))
            packed.append((len(problem) + row[key], kind_of.pop(best)))
        return packed


def _gain(problem: AllocationProblem, pair: int, kind: int) -> float:
    """Sum of the throughputs of a pair relative to running alone; zero ones do not count."""
    pairs, total = problem.pairs, 0.0
    for job, rates in (
        (pairs.first[pair], pairs.throughput_first),
        (pairs.second[pair], pairs.throughput_second),
    ):
        if rates[pair, kind] > 0:
            total += rates[pair, kind] / problem.throughput[job, kind]
    return total
