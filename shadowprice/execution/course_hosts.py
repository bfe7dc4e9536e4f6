"""Simulated hosts of jobs whose runs are no share of a whole: they go through their work as a term says.

Rows, charges and fields are those of :class:`SimulatedHosts`. Where a job is, is exact, in the term's own units; a run
ends with the tick by which the term has it complete, and is seen to have ended when the term says so.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import Any

from shadowprice.errors import PolicyError
from shadowprice.execution.simulated_hosts import SimulatedHosts, entry_of, job_of
from shadowprice.instances.features import Feature
from shadowprice.instances.goodput.course import Course
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.declared import CourseTerm, DeclaredRun
from shadowprice.instances.terms.effect import Fields, Pieces


class CourseHosts(SimulatedHosts):
    """Executes starts and stops of jobs that go through their work as a term says.

    Work left is told as the share of the job's time in its present run, of its run time as submitted [s].

    Parameters
    ----------
    instance : Instance
    term : CourseTerm
        Its term.
    """

    def __init__(self, instance: Instance, term: CourseTerm) -> None:
        super().__init__(instance)
        self._term, self._instance, self._mixed = term, instance, True
        self._position: list[Any] = [term.begin()] * len(instance.workload)
        self._proceeding: dict[int, Course] = {}
        self._seen: dict[int, float] = {}

    @property
    def feature(self) -> Feature:
        """Name of the term, and of its field."""
        return self._term.feature

    @property
    def next_end_s(self) -> float:
        """Time [s] at which the next completion is seen, infinity if nothing runs."""
        ends, seen = self._ends, self._seen
        while ends:
            job = job_of(ends[0])
            if job in seen and entry_of(seen[job], job) == ends[0]:
                return seen[job]
            heapq.heappop(ends)
        return math.inf

    def finish_next(self) -> tuple[int, float, Pieces]:
        """Take the next completion: job, time at which it was complete [s], and the GPUs it held."""
        job = job_of(heapq.heappop(self._ends))
        start_s, end_s, debt, _, pieces = self._begun.pop(job)
        self._seen.pop(job)
        if end_s > start_s:
            self._record(job, pieces, start_s, end_s, min(debt, end_s - start_s))
        self._earlier.pop(job, None)
        self._fields.pop(job, None)
        return job, end_s, pieces

    def marked(self, running: Mapping[int, Pieces]) -> dict[int, Any]:
        """Fields of jobs which others slow, or no longer do, while all of these run; O(jobs that run)."""
        slowed, feature = self._term.slowed_by_others(running), self._term.feature
        result = {}
        for job in running:
            before = self._fields[job][feature]
            after = self._term.when_slowed(before, job in slowed)
            if after is not before:
                result[job] = after
        return result

    def whole_s(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Run time of the whole job in such a run [s]."""
        return self._proceed(job, pieces, fields).whole_ticks() * TICK_S

    def _proceed(self, job: int, pieces: Pieces, fields: Fields) -> Course:
        run = DeclaredRun(job, pieces, False, self._instance.workload, self._instance.cluster)
        proceeding = self._term.proceeding(run, fields[self._term.feature])
        if proceeding is None:
            raise PolicyError(
                f"job {job} is started on {pieces}, where it makes no progress; expected GPUs, and a batch, that were "
                "measured"
            )
        return proceeding

    def _begin(
        self, job: int, pieces: Pieces, now_s: float, debt: float, fields: Fields
    ) -> tuple[float, float]:
        """Begin a row; returns when progress begins [s] and its rate against the run time as submitted."""
        self._fields[job] = fields
        proceeding = self._proceed(job, pieces, fields)
        position = self._position[job]
        ticks, seen = proceeding.ending(position)
        if max(ticks, seen) * TICK_S > MAX_TIME_S:
            raise PolicyError(
                f"job {job} is started on {pieces}, where it would run for longer than times go"
            )
        end_s = now_s + debt + ticks * TICK_S
        self._proceeding[job] = proceeding
        self._begun[job] = (now_s, end_s, debt, 0, pieces)
        self._seen[job] = now_s + debt + seen * TICK_S
        heapq.heappush(self._ends, entry_of(self._seen[job], job))
        whole_s = proceeding.whole_ticks() * TICK_S
        return now_s + debt, self._shortest[job] / whole_s if whole_s else 1.0

    def _interrupt(
        self, job: int, now_s: float, preserved: object = None
    ) -> tuple[float, float, Pieces]:
        """End a row before the work is done; returns its progress [s], unpaid debt [s], GPUs."""
        start_s, _, debt, _, pieces = self._begun.pop(job)
        del self._seen[job]
        paid = min(debt, now_s - start_s)
        ran = now_s - start_s - paid
        proceeding = self._proceeding.pop(job)
        self._position[job] = proceeding.after(self._position[job], int(ran * TICKS_PER_S))
        self._left[job] = self._shortest[job] * proceeding.share_left(self._position[job])
        if now_s > start_s:
            self._record(job, pieces, start_s, now_s, paid)
        self._fields.pop(job, None)
        return ran, debt - paid, pieces
