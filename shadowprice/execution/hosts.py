"""Simulated hosts: runs that end when their work is done, in virtual time."""

from __future__ import annotations

import heapq
import math
from array import array

import numpy as np

from shadowprice.instances.grid import ceil_time
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.solvers.placement.protocol import Pieces


class SimulatedHosts:
    """Executes starts and stops in virtual time and records the schedule.

    Work left is kept in run time on the job's fastest GPU type, so that without differing types
    every number stays on the time grid and is exact.
    """

    def __init__(self, instance: Instance) -> None:
        n = len(instance.workload)
        self._shortest = instance.shortest_s.tolist()
        self._left = list(self._shortest)
        self._types = instance.cluster.type_of_node.tolist()
        self._mixed = instance.workload.throughput is not None
        self._processing = instance.processing_s.tolist() if self._mixed else []
        self._overheads = None if instance.overheads.free else instance.overheads
        self._gang = instance.workload.gpus.tolist()
        self._debt = [0.0] * n if self._overheads else []
        self._last: dict[int, Pieces] = {}
        self._begun: dict[int, tuple[float, float, float, float, Pieces]] = {}
        self._ends: list[tuple[float, int]] = []
        self._job, self._node, self._gpus = array("q"), array("q"), array("q")
        self._start, self._end, self._overhead = array("d"), array("d"), array("d")

    @property
    def next_end_s(self) -> float:
        """Time [s] of the next completion, infinity if nothing runs."""
        ends, begun = self._ends, self._begun
        while ends:
            end_s, job = ends[0]
            run = begun.get(job)
            if run is not None and run[1] == end_s:
                return end_s
            heapq.heappop(ends)
        return math.inf

    def start(self, job: int, pieces: Pieces, now_s: float) -> tuple[float, float]:
        """Begin a run; returns when progress begins [s] and its rate against the fastest type."""
        debt = self._charge(job, pieces) if self._overheads else 0.0
        rate, length = 1.0, self._left[job]
        if self._mixed:
            slowest = max(self._processing[job][self._types[node]] for node, _ in pieces)
            if slowest != self._shortest[job]:
                rate = self._shortest[job] / slowest
                length = ceil_time(length / rate)
        end_s = now_s + debt + length
        self._begun[job] = (now_s, end_s, debt, rate, pieces)
        heapq.heappush(self._ends, (end_s, job))
        return now_s + debt, rate

    def stop(self, job: int, now_s: float) -> tuple[float, float, float]:
        """Preempt a run; returns the progress made, the work left and the debt, all in seconds.

        Work left is on the fastest type.

        The debt is what the job owes for resuming: its restart, and what it has not paid yet.
        """
        start_s, _, debt, rate, pieces = self._begun.pop(job)
        paid = min(debt, now_s - start_s)
        ran = now_s - start_s - paid
        if self._overheads:
            self._debt[job] = debt - paid + self._overheads.restart_charge_s(self._gang[job])
            self._last[job] = pieces
        self._left[job] = max(self._left[job] - (ran if rate == 1.0 else ran * rate), 0.0)
        if now_s > start_s:
            self._record(job, pieces, start_s, now_s, paid)
        return ran, self._left[job], self._debt[job] if self._overheads else 0.0

    def finish_next(self) -> tuple[int, float, Pieces]:
        """Take the next completion: job, time [s], and the GPUs it held."""
        end_s, job = heapq.heappop(self._ends)
        start_s, _, debt, _, pieces = self._begun.pop(job)
        self._last.pop(job, None)
        self._record(job, pieces, start_s, end_s, debt)
        return job, end_s, pieces

    def schedule(self) -> Schedule:
        """What was executed so far."""
        integers = [
            np.array(column, dtype=np.int64) for column in (self._job, self._node, self._gpus)
        ]
        times = [np.array(column) for column in (self._start, self._end, self._overhead)]
        return Schedule(integers[0], integers[1], integers[2], times[0], times[1], times[2])

    def _charge(self, job: int, pieces: Pieces) -> float:
        overheads = self._overheads
        assert overheads is not None
        debt = self._debt[job] + overheads.start_s
        before = self._last.get(job)
        if before is not None and sorted(before) != sorted(pieces):
            debt += overheads.migration_s
        return debt

    def _record(
        self, job: int, pieces: Pieces, start_s: float, end_s: float, overhead_s: float
    ) -> None:
        for node, gpus in pieces:
            self._job.append(job)
            self._node.append(node)
            self._gpus.append(gpus)
            self._start.append(start_s)
            self._end.append(end_s)
            self._overhead.append(overhead_s)
