"""Shortest remaining processing time on one machine, online and exact.

The virtual machine of A-SRPT (Luo, Liu, Lee, Shroff, arXiv 2501.05563; that the published one is
exactly this is recalled): a single machine of speed 1 that runs each job's virtual work and never
sees the cluster. Its total completion time is a lower bound of the cluster's when the work of job j
is g_j p_j / m (LB-fluid), since SRPT is optimal on one machine (SRPT-1).

Times and works are whole numbers of one unit, the caller's choice, so that nothing is rounded. With
times in ticks and m GPUs the unit is 1/m tick: the work is then the whole number g_j p_j.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from shadowprice.errors import InputError


class VirtualMachine:
    """One machine under preemptive SRPT; ties by arrival, then by job.

    The job that runs is the least of the heap. What it has been given is subtracted in place, which
    keeps it the least: advancing costs O(1), an arrival or a completion O(log n).

    Attributes
    ----------
    now : int
        The moment up to which the machine has run.
    """

    __slots__ = ("_heap", "now")

    def __init__(self) -> None:
        self.now = 0
        self._heap: list[tuple[int, int, int]] = []

    def add(self, job: int, arrival: int, work: int) -> list[tuple[int, int]]:
        """A job arrives; first run up to its arrival.

        Returns
        -------
        list of (int, int)
            Jobs completed until then and when, as :meth:`advance` does.

        Raises
        ------
        InputError
            If the work is not positive, or the machine has already run past the arrival.
        """
        if work <= 0:
            raise InputError(f"virtual machine: job {job} has work {work!r}, expected more than 0")
        if arrival < self.now:
            raise InputError(
                f"virtual machine: job {job} arrives at {arrival}, but it is {self.now} already"
            )
        done = self.advance(arrival)
        heapq.heappush(self._heap, (work, arrival, job))
        return done

    def advance(self, until: int) -> list[tuple[int, int]]:
        """Run until a moment; jobs that complete by then and when, in order of completion."""
        heap, done = self._heap, []
        while heap:
            left, arrival, job = heap[0]
            end = self.now + left
            if end > until:
                heap[0] = (end - until, arrival, job)
                break
            heapq.heappop(heap)
            done.append((job, end))
            self.now = end
        self.now = max(self.now, until)
        return done

    @property
    def next_completion(self) -> int | None:
        """Completion of the running job if no job arrives before; None if the machine is idle."""
        return self.now + self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._heap)


def virtual_completions(release: Sequence[int], work: Sequence[int]) -> list[tuple[int, int]]:
    """Jobs and completion times of a whole instance, in order of completion; O(n log n).

    Parameters
    ----------
    release, work : sequence of int
        Release times and works in one unit; ties between jobs go to the earlier release, then to
        the smaller position.

    Returns
    -------
    list of (int, int)
        Positions and completion times.
    """
    machine = VirtualMachine()
    done: list[tuple[int, int]] = []
    for job in sorted(range(len(release)), key=lambda j: release[j]):
        done += machine.add(job, release[job], work[job])
    return done + machine.advance(max(release, default=0) + sum(work))
