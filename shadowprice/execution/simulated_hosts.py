"""Simulated hosts: runs that end when their work is done, in virtual time.

Where a job can be faster or slower, work is counted exactly: a run in which the whole job would take
P ticks and which makes progress for t of them does t / P of it. A run ends with the first tick at
which these shares add up to 1 or more, so that no job is ever a tick short of its work.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, TICKS_PER_S, ceil_time
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.term import (
    NO_FIELDS,
    Fields,
    Pieces,
    Rate,
    SpeedFactor,
    Term,
    Told,
    fielded,
)

_NEVER = (math.nan, NO_FIELDS)
"""When the last run of a job ended that has not run yet: no time equals it."""


def _nothing(ran: int) -> int:
    """Progress that is kept of a run from which nothing is [ticks]."""
    return 0


class SimulatedHosts:
    """Executes starts and stops in virtual time and records the schedule.

    Work left is told in run time on the job's fastest GPU type. Without differing speeds that stays
    on the time grid and is exact; with them it is a rounded copy of the exact shares.

    The fields of a run never change: when one does, as when a partner comes, the run ends and another
    begins at once that carries on, overhead still unpaid included, and is charged nothing. So does a
    job that is stopped and started again at the same moment on the same GPUs, if a term says so.
    """

    def __init__(self, instance: Instance) -> None:
        n = len(instance.workload)
        self._shortest = instance.shortest_s.tolist()
        self._left = list(self._shortest)
        self._types: list[int] = instance.cluster.type_of_node.tolist()
        terms = instance.terms
        self._rates = tuple(each for each in terms if isinstance(each, Rate))
        self._factors = tuple(each for each in terms if isinstance(each, SpeedFactor))
        self._mixed = instance.workload.throughput is not None or bool(self._rates or self._factors)
        self._processing: list[list[float]] = (
            instance.plain_processing_s.tolist() if self._mixed else []
        )
        self._shown = fielded(terms)
        self._in_place = tuple(
            each for each in terms if type(each).carries_on is not Term.carries_on
        )
        failures = instance.failures
        self._checkpoints = None if failures is None else failures.checkpoints
        self._restarts = instance.restarts
        self._overheads = None if instance.overheads.free else instance.overheads
        self._gang = instance.workload.gpus.tolist()
        self._debt = [0.0] * n if self._overheads else []
        self._last: dict[int, Pieces] = {}
        self._begun: dict[int, tuple[float, float, float, int, Pieces]] = {}
        self._done: dict[int, dict[int, int]] = {}
        self._fields: dict[int, Fields] = {}
        self._cut: dict[int, tuple[float, Fields]] = {}
        self._ends: list[tuple[float, int]] = []
        self._job, self._node, self._gpus = array("q"), array("q"), array("q")
        self._start, self._end, self._overhead = array("d"), array("d"), array("d")
        self._told: list[Told] = []

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

    def start(
        self, job: int, pieces: Pieces, now_s: float, fields: Fields = NO_FIELDS
    ) -> tuple[float, float]:
        """Begin a run; returns when progress begins [s] and its rate against the fastest type."""
        if fields:
            self._fields[job] = fields
        debt = self._charge(job, pieces, now_s, fields) if self._overheads else 0.0
        if self._mixed:
            return self._begin(job, pieces, now_s, debt, fields)
        end_s = now_s + debt + self._lasts_s(job, self._left[job])
        self._begun[job] = (now_s, end_s, debt, 0, pieces)
        heapq.heappush(self._ends, (end_s, job))
        return now_s + debt, 1.0

    def stop(self, job: int, now_s: float) -> tuple[float, float, float]:
        """Preempt a run; returns the progress made, the work left and the debt, all in seconds.

        Work left is on the fastest type; where preempted jobs restart, that is all of it.

        The debt is what the job owes for resuming: its restart, and what it has not paid yet.
        """
        if self._restarts:
            start_s, _, owed, _, _ = self._begun[job]
            _, debt, pieces = self._interrupt(job, now_s, _nothing)
            ran = max(now_s - start_s - owed, 0.0)
        else:
            ran, debt, pieces = self._interrupt(job, now_s)
        return ran, self._left[job], self._owe(job, debt, pieces)

    def fail(self, job: int, now_s: float) -> tuple[float, float]:
        """End a run whose node went down, back to its last checkpoint.

        Returns the work left on the fastest type and the debt, both in seconds.
        """
        assert self._checkpoints is not None
        _, debt, pieces = self._interrupt(job, now_s, self._checkpoints.saved_ticks)
        return self._left[job], self._owe(job, debt, pieces)

    def _owe(self, job: int, debt_s: float, pieces: Pieces) -> float:
        """Note what a job owes for resuming [s]: its restart, and what it has not paid yet."""
        if not self._overheads:
            return 0.0
        self._debt[job] = debt_s + self._overheads.restart_charge_s(self._gang[job])
        self._last[job] = pieces
        return self._debt[job]

    def continue_run(
        self, job: int, fields: Fields, at_s: float
    ) -> tuple[float, float, float, float]:
        """Continue a run with other values of some fields, from a time not after its end.

        Returns the progress made [s], the work left on the fastest type [s], when progress goes
        on [s] and its rate.
        """
        kept = self._fields.get(job, NO_FIELDS)
        ran, debt, pieces = self._interrupt(job, at_s)
        left = self._left[job]
        return ran, left, *self._begin(job, pieces, at_s, debt, {**kept, **fields})

    def end_s(self, job: int) -> float:
        """Time at which a running job ends if nothing changes [s]."""
        return self._begun[job][1]

    def _begin(
        self, job: int, pieces: Pieces, now_s: float, debt: float, fields: Fields
    ) -> tuple[float, float]:
        if fields:
            self._fields[job] = fields
        whole_s = self._whole_s(job, pieces, fields)
        if whole_s == math.inf:
            raise PolicyError(
                f"job {job} is started on {pieces}, where it would run for longer than times go"
            )
        rate, whole = self._shortest[job] / whole_s, int(whole_s * TICKS_PER_S)
        end_s = now_s + debt + self._lasts_s(job, self._missing(job, whole) * TICK_S)
        self._begun[job] = (now_s, end_s, debt, whole, pieces)
        heapq.heappush(self._ends, (end_s, job))
        return now_s + debt, rate

    def _lasts_s(self, job: int, progress_s: float) -> float:
        """Time that a run takes for some progress [s], with its checkpoints."""
        if self._checkpoints is None:
            return progress_s
        ticks = self._checkpoints.elapsed_ticks(int(progress_s * TICKS_PER_S))
        if ticks > MAX_TIME_S * TICKS_PER_S:
            raise PolicyError(
                f"job {job} is started, and with its checkpoints would run for longer than times go"
            )
        return ticks * TICK_S

    def _missing(self, job: int, whole: int) -> int:
        """Ticks until the work is done in a run in which all of it would take ``whole`` ticks."""
        left, of = self._share_left(job, whole)
        return max(-(-left * whole // of), 1)

    def _share_left(self, job: int, whole: int) -> tuple[int, int]:
        """Share of the job's work that is left, exactly, as a fraction; ``whole`` is a likely denominator."""
        done = self._done.get(job)
        if not done:
            return whole, whole
        if len(done) == 1 and whole in done:
            return whole - done[whole], whole
        left, of = 1, 1
        for pace, ran in done.items():
            left, of = left * pace - ran * of, of * pace
        return left, of

    def _whole_s(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Run time of the whole job in such a run [s]: by the rate that speaks of it, then by all factors."""
        for rate in self._rates:
            whole_s = rate.whole_s(job, pieces, fields)
            if whole_s is not None:
                break
        else:
            whole_s = self._alone_s(job, pieces)
        if not self._factors:
            return whole_s
        speed = 1.0
        for factor in self._factors:
            speed *= factor.speed(job, pieces, fields)
        return max(ceil_time(whole_s / speed), TICK_S) if speed else math.inf

    def _alone_s(self, job: int, pieces: Pieces) -> float:
        """Run time of the whole job by the slowest of its GPU types [s]."""
        types, alone = self._types, self._processing[job]
        if len(pieces) == 1:
            return alone[types[pieces[0][0]]]
        return max(alone[types[node]] for node, _ in pieces)

    def _interrupt(
        self, job: int, now_s: float, kept: Callable[[int], int] | None = None
    ) -> tuple[float, float, Pieces]:
        """End a run before its work is done; returns progress kept [s], unpaid debt [s], GPUs.

        Parameters
        ----------
        kept : callable, optional
            Progress that is kept of a time without overheads, both in ticks; all if not given.
        """
        start_s, _, debt, whole, pieces = self._begun.pop(job)
        paid = min(debt, now_s - start_s)
        ran = now_s - start_s - paid
        if self._checkpoints is not None:
            kept = kept or self._checkpoints.progress_ticks
        if kept is not None:
            ran = kept(int(ran * TICKS_PER_S)) * TICK_S
        if not whole:
            self._left[job] = max(self._left[job] - ran, 0.0)
        elif ran:
            done = self._done.setdefault(job, {})
            done[whole] = done.get(whole, 0) + int(ran * TICKS_PER_S)
            left, of = self._share_left(job, whole)
            self._left[job] = left * int(self._shortest[job] * TICKS_PER_S) / of * TICK_S
        if now_s > start_s:
            self._record(job, pieces, start_s, now_s, paid)
            if self._in_place:
                self._cut[job] = (now_s, self._fields.get(job, NO_FIELDS))
        if self._fields:
            self._fields.pop(job, None)
        return ran, debt - paid, pieces

    def finish_next(self) -> tuple[int, float, Pieces]:
        """Take the next completion: job, time [s], and the GPUs it held."""
        end_s, job = heapq.heappop(self._ends)
        start_s, _, debt, _, pieces = self._begun.pop(job)
        self._done.pop(job, None)
        self._last.pop(job, None)
        self._record(job, pieces, start_s, end_s, debt)
        if self._fields:
            self._fields.pop(job, None)
        return job, end_s, pieces

    def schedule(self) -> Schedule:
        """Schedule executed so far."""
        integers = [
            np.array(column, dtype=np.int64) for column in (self._job, self._node, self._gpus)
        ]
        start_s, end_s, overhead_s = (
            np.array(column) for column in (self._start, self._end, self._overhead)
        )
        columns: dict[str, NDArray[Any]] = {}
        for term in self._shown:
            columns |= term.columns(len(self._job), self._told)
        job, node, gpus = integers
        return Schedule(job, node, gpus, start_s, end_s, overhead_s, **columns)

    def _charge(self, job: int, pieces: Pieces, now_s: float, fields: Fields) -> float:
        overheads = self._overheads
        assert overheads is not None
        before = self._last.get(job)
        cut_s, left = self._cut.get(job, _NEVER)
        goes_on = cut_s == now_s and any(each.carries_on(left, fields) for each in self._in_place)
        if goes_on and sorted(before or ()) == sorted(pieces):
            return self._debt[job] - overheads.restart_charge_s(self._gang[job])
        debt = self._debt[job] + overheads.start_s
        if before is not None and sorted(before) != sorted(pieces):
            debt += overheads.migration_s
        return debt

    def _record(
        self, job: int, pieces: Pieces, start_s: float, end_s: float, overhead_s: float
    ) -> None:
        if self._fields and job in self._fields:
            self._told.append((len(self._job), pieces, self._fields[job]))
        for node, gpus in pieces:
            self._job.append(job)
            self._node.append(node)
            self._gpus.append(gpus)
            self._start.append(start_s)
            self._end.append(end_s)
            self._overhead.append(overhead_s)
