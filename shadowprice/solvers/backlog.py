"""Jobs that wait, by gang size: the first in some order among those that are small enough."""

from __future__ import annotations

import bisect
import heapq
from typing import Generic, TypeVar

Key = TypeVar("Key", int, float)


class Backlog(Generic[Key]):
    """A heap for each of the d gang sizes that occur.

    Scanning a queue for jobs that fit costs its length at every event; here the first job in order
    that fits is the least of at most d heaps.
    """

    __slots__ = ("_gangs", "_heaps", "_jobs")

    def __init__(self) -> None:
        self._heaps: dict[int, list[tuple[Key, int]]] = {}
        self._gangs: list[int] = []
        self._jobs: set[int] = set()

    def push(self, gang: int, key: Key, job: int) -> None:
        """Add a job; O(log n), and O(d) for a gang size that did not occur before."""
        heap = self._heaps.get(gang)
        if heap is None:
            heap = self._heaps[gang] = []
            bisect.insort(self._gangs, gang)
        heapq.heappush(heap, (key, job))
        self._jobs.add(job)

    def discard(self, job: int) -> None:
        """Take a job out if it is in; its entry is dropped when it comes to the top."""
        self._jobs.discard(job)

    def pop(self, limit: int | None = None) -> tuple[int, Key, int] | None:
        """Take out the job with the least key, ties to the smaller number; O(d + log n).

        Parameters
        ----------
        limit : int, optional
            Largest gang considered [GPUs]; any if not given.

        Returns
        -------
        (int, key, int) or None
            Gang size, key and job, what :meth:`push` takes; None if there is none so small.
        """
        best: tuple[Key, int] | None = None
        found = 0
        for gang in self._gangs:
            if limit is not None and gang > limit:
                break
            heap = self._heaps[gang]
            while heap and heap[0][1] not in self._jobs:
                heapq.heappop(heap)
            if heap and (best is None or heap[0] < best):
                best, found = heap[0], gang
        if best is None:
            return None
        key, job = heapq.heappop(self._heaps[found])
        self._jobs.remove(job)
        return found, key, job

    def __contains__(self, job: object) -> bool:
        return job in self._jobs

    def __len__(self) -> int:
        return len(self._jobs)
