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
from dataclasses import dataclass, field
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, TICKS_PER_S, ceil_time
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.effect import (
    NO_FIELDS,
    Fields,
    Pieces,
    Rate,
    RecordedRun,
    SpeedFactor,
    fielded,
)


@dataclass
class _Earlier:
    """Rows of a run before its present one: their time without overheads, and their progress [ticks]."""

    elapsed: int = 0
    done: int = 0
    rows: list[tuple[int, int]] = field(default_factory=list)
    """Of each, the time that the whole job takes as it went, and its progress."""

    def add(self, whole: int, elapsed: int, ran: int) -> None:
        """Another row."""
        self.elapsed += elapsed
        self.done += ran
        self.rows.append((whole, ran))


_NO_ROWS = _Earlier()
"""Of a run that has no earlier rows."""

_STALE = 4
"""Entries of the heap for each run from which it is made anew."""

_ROW = np.dtype(
    [(name, "i8") for name in ("job", "node", "gpus")]
    + [(name, "f8") for name in ("start_s", "end_s", "overhead_s")]
)
"""A row of the schedule, as :func:`_packed` makes its bytes."""

_packed = Struct("qqqddd").pack

_JOB_BITS = 32


def entry_of(end_s: float, job: int) -> int:
    """Entry of the heap of ends: one number in the order of (end, job), of which no garbage is collected."""
    return int(end_s * TICKS_PER_S) << _JOB_BITS | job


def job_of(entry: int) -> int:
    """Job of an entry."""
    return entry & ((1 << _JOB_BITS) - 1)


def _nothing(ran: int) -> int:
    """Progress that is kept of a run from which nothing is [ticks]."""
    return 0


class SimulatedHosts:
    """Executes starts and stops in virtual time and records the schedule.

    Work left is told in run time on the job's fastest GPU type. Without differing speeds that stays
    on the time grid and is exact; with them it is a rounded copy of the exact shares.

    The fields of a row never change: when one does, as when a partner comes, the row ends and the run goes on
    in another at once, overhead still unpaid included, and is charged nothing. What a failure or a preemption takes
    is counted from the beginning of the run. A job that is stopped and started again begins another run, at the
    same moment and on the same GPUs as well.
    """

    def __init__(self, instance: Instance) -> None:
        n = len(instance.workload)
        self._shortest = instance.shortest_s.tolist()
        self._left = list(self._shortest)
        self._work_ticks = [int(each * TICKS_PER_S) for each in self._shortest]
        self._types: list[int] = instance.cluster.type_of_node.tolist()
        effects = instance.effects
        self._rates = tuple(each for each in effects if isinstance(each, Rate))
        self._factors = tuple(each for each in effects if isinstance(each, SpeedFactor))
        self._by_type = not self._rates and not self._factors
        self._mixed = instance.workload.throughput is not None or not self._by_type
        self._processing: list[list[float]] = (
            instance.plain_processing_s.tolist() if self._mixed else []
        )
        self._shown = fielded(effects)
        self._in_place = any(each.in_place for each in effects)
        failures = instance.failures
        self._checkpoints = None if failures is None else failures.checkpoints
        self._restarts = instance.restarts
        self._overheads = None if instance.overheads.free else instance.overheads
        self._gang = instance.workload.gpus.tolist()
        self._debt = [0.0] * n if self._overheads else []
        self._last: dict[int, Pieces] = {}
        self._begun: dict[int, tuple[float, float, float, int, Pieces]] = {}
        self._share_left: dict[int, tuple[int, int]] = {}
        self._fields: dict[int, Fields] = {}
        self._earlier: dict[int, _Earlier] = {}
        self._ends: list[int] = []
        # Bytes, of which no garbage is collected, and which take a third of the time of six columns.
        self._rows = bytearray()
        self._goes_on = array("b")
        self._recorded: list[RecordedRun] = []

    @property
    def next_end_s(self) -> float:
        """Time [s] of the next completion, infinity if nothing runs."""
        ends, begun = self._ends, self._begun
        if len(ends) > _STALE * (len(begun) + 1):
            # Ends of runs that were stopped: to take each from the top would cost more.
            ends[:] = [entry_of(run[1], job) for job, run in begun.items()]
            heapq.heapify(ends)
        while ends:
            job = job_of(ends[0])
            run = begun.get(job)
            if run is not None and entry_of(run[1], job) == ends[0]:
                return run[1]
            heapq.heappop(ends)
        return math.inf

    def start(
        self, job: int, pieces: Pieces, now_s: float, fields: Fields = NO_FIELDS
    ) -> tuple[float, float]:
        """Begin a run; returns when progress begins [s] and its rate against the fastest type."""
        if fields:
            self._fields[job] = fields
        debt = self._charge(job, pieces) if self._overheads else 0.0
        if self._mixed:
            return self._begin(job, pieces, now_s, debt, fields)
        end_s = now_s + debt + self._lasts_s(job, self._left[job])
        self._begun[job] = (now_s, end_s, debt, 0, pieces)
        heapq.heappush(self._ends, entry_of(end_s, job))
        return now_s + debt, 1.0

    def stop(self, job: int, now_s: float) -> tuple[float, float, float]:
        """Preempt a run; returns the progress made, the work left and the debt, all in seconds.

        Progress is since it was told last. Work left is on the fastest type; where preempted jobs restart, all of it.

        The debt is what the job owes for resuming: its restart, and what it has not paid yet.
        """
        if self._restarts:
            start_s, _, owed, _, _ = self._begun[job]
            _, debt, pieces = self._interrupt(job, now_s, _nothing)
            ran = max(now_s - start_s - owed, 0.0)
        else:
            ran, debt, pieces = self._interrupt(job, now_s)
            if self._checkpoints is not None:
                ran += self._untold_s(job)
        if self._earlier:
            self._earlier.pop(job, None)
        return ran, self._left[job], self._owe(job, debt, pieces) if self._overheads else 0.0

    def fail(self, job: int, now_s: float) -> tuple[float, float]:
        """End a run whose node went down, back to its last checkpoint.

        Returns the work left on the fastest type and the debt, both in seconds.
        """
        assert self._checkpoints is not None
        _, debt, pieces = self._interrupt(job, now_s, self._checkpoints.saved_ticks)
        self._earlier.pop(job, None)
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
        on [s] and its rate. Where jobs write checkpoints these are told as if all of the run had been
        like that, for their times follow from its beginning: no progress until it ends, and more work left.
        """
        kept = self._fields.get(job, NO_FIELDS)
        start_s, _, debt, whole, _ = self._begun[job]
        ran, unpaid, pieces = self._interrupt(job, at_s)
        if at_s > start_s:
            elapsed_s = at_s - start_s - (debt - unpaid)
            earlier = self._earlier.setdefault(job, _Earlier())
            earlier.add(whole, int(elapsed_s * TICKS_PER_S), int(ran * TICKS_PER_S))
        left = self._left[job]
        from_s, rate = self._begin(job, pieces, at_s, unpaid, {**kept, **fields})
        if self._checkpoints is None or job not in self._earlier:
            return ran, left, from_s, rate
        earlier = self._earlier[job]
        return 0.0, left + rate * self._untold_s(job), from_s - earlier.elapsed * TICK_S, rate

    def _untold_s(self, job: int) -> float:
        """Progress of earlier rows of a run that was not told when these ended [s]."""
        if self._checkpoints is None or job not in self._earlier:
            return 0.0
        return self._earlier[job].done * TICK_S

    def end_s(self, job: int) -> float:
        """Time at which a running job ends if nothing changes [s]."""
        return self._begun[job][1]

    def _begin(
        self, job: int, pieces: Pieces, now_s: float, debt: float, fields: Fields
    ) -> tuple[float, float]:
        if fields:
            self._fields[job] = fields
        if self._by_type and len(pieces) == 1:
            whole_s = self._processing[job][self._types[pieces[0][0]]]
        else:
            whole_s = self.whole_s(job, pieces, fields)
        if whole_s == math.inf:
            raise PolicyError(
                f"job {job} is started on {pieces}, where it would run for longer than times go"
            )
        missing = whole = int(whole_s * TICKS_PER_S)
        share = self._share_left.get(job)
        if share is not None:
            left, of = share
            missing = -(-left * whole // of)
            if missing < 1:
                missing = 1
        lasts_s = missing * TICK_S
        if self._checkpoints is not None:
            lasts_s = self._lasts_s(job, lasts_s)
        end_s = now_s + debt + lasts_s
        self._begun[job] = (now_s, end_s, debt, whole, pieces)
        heapq.heappush(self._ends, entry_of(end_s, job))
        return now_s + debt, self._shortest[job] / whole_s

    def _lasts_s(self, job: int, progress_s: float) -> float:
        """Time that a run takes for some progress [s], with its checkpoints."""
        if self._checkpoints is None:
            return progress_s
        earlier = self._earlier.get(job, _NO_ROWS)
        done = earlier.done + int(progress_s * TICKS_PER_S)
        ticks = self._checkpoints.elapsed_ticks(done) - earlier.elapsed
        if ticks > MAX_TIME_S * TICKS_PER_S:
            raise PolicyError(
                f"job {job} is started, and with its checkpoints would run for longer than times go"
            )
        return ticks * TICK_S

    def _work(self, job: int, whole: int, ran: int) -> tuple[int, int]:
        """Note the progress of a row in which all of the work would take ``whole`` ticks; returns the share left.

        Parameters
        ----------
        ran : int
            Its ticks; negative for what is taken back.

        Returns
        -------
        tuple of (int, int)
            Numerator and denominator, exact.
        """
        left, of = self._share_left.get(job, (1, 1))
        if of % whole:
            left, of = left * whole, of * whole
        share = self._share_left[job] = (left - ran * (of // whole), of)
        return share

    def whole_s(self, job: int, pieces: Pieces, fields: Fields) -> float:
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
        return max(alone[types[node]] for node, _ in pieces)

    def _interrupt(
        self, job: int, now_s: float, preserved: Callable[[int], int] | None = None
    ) -> tuple[float, float, Pieces]:
        """End a row before the work is done; returns its progress that is kept [s], unpaid debt [s], GPUs.

        Parameters
        ----------
        preserved : callable, optional
            Progress that is kept of a run of some time without overheads, both in ticks; all if not given.
        """
        start_s, _, debt, whole, pieces = self._begun.pop(job)
        elapsed_s = now_s - start_s
        paid = debt if debt < elapsed_s else elapsed_s
        ran = elapsed_s - paid
        earlier = self._earlier.get(job, _NO_ROWS) if self._earlier else _NO_ROWS
        if self._checkpoints is not None:
            preserved = preserved or self._checkpoints.progress_ticks
        if preserved is not None:
            until = preserved(earlier.elapsed + int(ran * TICKS_PER_S))
            ran = self._beyond(job, earlier, until) * TICK_S
        if not whole:
            self._left[job] = max(self._left[job] - ran, 0.0)
        elif ran or earlier.rows:
            left, of = self._work(job, whole, int(ran * TICKS_PER_S))
            self._left[job] = left * self._work_ticks[job] / of * TICK_S
        if elapsed_s > 0.0:
            self._record(job, pieces, start_s, now_s, paid)
        if self._fields:
            self._fields.pop(job, None)
        return ran, debt - paid, pieces

    def _beyond(self, job: int, earlier: _Earlier, preserved: int) -> int:
        """Progress of a run that is kept beyond its earlier rows, of which what is after that is taken back [ticks]."""
        for whole, ran in earlier.rows:
            lost = max(ran - preserved, 0)
            preserved -= ran - lost
            if lost:
                self._work(job, whole, -lost)
        return preserved

    def finish_next(self) -> tuple[int, float, Pieces]:
        """Take the next completion: job, time [s], and the GPUs it held."""
        job = job_of(heapq.heappop(self._ends))
        start_s, end_s, debt, _, pieces = self._begun.pop(job)
        self._share_left.pop(job, None)
        self._last.pop(job, None)
        self._record(job, pieces, start_s, end_s, debt)
        self._earlier.pop(job, None)
        if self._fields:
            self._fields.pop(job, None)
        return job, end_s, pieces

    def schedule(self) -> Schedule:
        """Schedule executed so far."""
        rows = np.frombuffer(self._rows, dtype=_ROW)
        # Copies, since bytes that somebody looks at cannot become more.
        columns: dict[str, NDArray[Any]] = {name: rows[name].copy() for name in _ROW.names or ()}
        for term in self._shown:
            columns |= term.columns(len(rows), self._recorded)
        schedule = Schedule(**columns)
        if not self._in_place:
            return schedule
        return schedule.which_goes_on(np.array(self._goes_on, dtype=np.bool_))

    def _charge(self, job: int, pieces: Pieces) -> float:
        overheads = self._overheads
        assert overheads is not None
        before = self._last.get(job)
        debt = self._debt[job] + overheads.start_s
        if before is not None and sorted(before) != sorted(pieces):
            debt += overheads.migration_s
        return debt

    def _record(
        self, job: int, pieces: Pieces, start_s: float, end_s: float, overhead_s: float
    ) -> None:
        if self._fields and job in self._fields:
            self._recorded.append((len(self._rows) // _ROW.itemsize, pieces, self._fields[job]))
        if self._in_place:
            self._goes_on.extend([job in self._earlier] * len(pieces))
        for node, gpus in pieces:
            self._rows += _packed(job, node, gpus, start_s, end_s, overhead_s)
