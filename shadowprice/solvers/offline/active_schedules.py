"""The non-preemptive optimum of a few jobs by enumeration, in whole numbers and without a solver.

Source: active schedules (Giffler and Thompson, Operations Research 8, 1960). A regular objective
has an optimal schedule in which no job can start earlier while the others stay. Listed by start,
such a schedule is made again by starting every job of the list as early as it fits at or after
the start of the one before: only later jobs could have kept it from starting earlier, and they
do not run before. So it suffices to try all lists whose starts do not decrease. After the last
start nobody but the running jobs holds GPUs, hence the earliest start is found from their ends.

Lists that cannot beat the best found are cut off: every job that is left ends no sooner than its
own length after the last start and its release; and for a total, the k-th of them to end has all the
work of k of them done on m GPUs after the last start.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.models.slotted import Slotted

MAX_JOBS = 9
"""Most jobs that are enumerated; 9! lists take seconds."""


@dataclass
class _Search:
    """State of a search for the cheapest list; all times in slots."""

    release: list[int]
    duration: list[int]
    gpus: list[int]
    capacity: int
    span: bool
    best: int
    starts: list[int] = field(default_factory=list)
    found: list[int] | None = None

    def descend(
        self, left: tuple[int, ...], now: int, held: list[tuple[int, int]], cost: int
    ) -> None:
        """Try every job of ``left`` next; ``held`` are (end, GPUs) of the jobs that run at ``now``."""
        if not left:
            if cost < self.best:
                self.best, self.found = cost, self.starts.copy()
            return
        if self._at_least(left, now, cost) >= self.best:
            return
        tried = set()
        for j in left:
            same = (self.release[j], self.duration[j], self.gpus[j])
            if same in tried:
                continue
            tried.add(same)
            start, after = self._earliest(j, now, held)
            end = start + self.duration[j]
            self.starts[j] = start
            rest = tuple(i for i in left if i != j)
            total = max(cost, end) if self.span else cost + end
            self.descend(rest, start, [*after, (end, self.gpus[j])], total)

    def _earliest(
        self, j: int, now: int, held: list[tuple[int, int]]
    ) -> tuple[int, list[tuple[int, int]]]:
        """Earliest slot at which j fits, and the jobs that still run then."""
        start = max(now, self.release[j])
        running = sorted(each for each in held if each[0] > start)
        free = self.capacity - sum(gpus for _, gpus in running)
        k = 0
        while free < self.gpus[j]:
            start = running[k][0]
            free += running[k][1]
            k += 1
        return start, [each for each in running[k:] if each[0] > start]

    def _at_least(self, left: tuple[int, ...], now: int, cost: int) -> int:
        """A bound of the cost of all ends of this list, see the module's docstring."""
        ends = [max(now, self.release[j]) + self.duration[j] for j in left]
        if self.span:
            return max(cost, *ends)
        own = sum(ends)
        if cost + own >= self.best:
            return cost + own
        area = total = 0
        for each in sorted([self.gpus[j] * self.duration[j] for j in left]):
            area += each
            total += area
        shared = len(left) * now - (-total // self.capacity)
        return cost + max(own, shared)


def best_starts(jobs: Slotted, *, span: bool = False) -> tuple[NDArray[np.int64], int]:
    """Start slots, shape (n,), of the cheapest non-preemptive schedule, and its cost [slots].

    Parameters
    ----------
    span : bool
        Minimise the last completion instead of the sum of completion times.

    Raises
    ------
    InputError
        If there are more than 9 jobs, weights differ from 1, or times are not whole slots.

    Notes
    -----
    O(n! n) at worst; a millisecond or so for six jobs.
    """
    if jobs.jobs > MAX_JOBS or not jobs.exact or np.any(jobs.weight != 1.0):
        raise InputError(
            f"enumeration: got {jobs.jobs} jobs, expected at most {MAX_JOBS}, of weight 1, in whole slots"
        )
    release, duration = jobs.release.tolist(), jobs.duration.tolist()
    never = max(release, default=0) + sum(duration)
    limit = never * max(jobs.jobs, 1) + 1
    search = _Search(release, duration, jobs.gpus.tolist(), jobs.capacity, span, limit)
    search.starts = [0] * jobs.jobs
    # Short jobs first: a good schedule early cuts off more.
    order = tuple(sorted(range(jobs.jobs), key=lambda j: (release[j] + duration[j], duration[j])))
    search.descend(order, 0, [], 0)
    assert search.found is not None
    return np.array(search.found, dtype=np.int64), search.best
