"""The verifier for schedules that do not fit into memory: segment by segment, by the same rules.

The rows are in order of their ends, in segments. Schedules of the plainest kind are read once, by the compiled
pass (:mod:`.compiled_pass`). Where that says no, and of all others, they are read twice.

Backwards in time first, for what concerns a single row and what jobs hold together. Of the segments read
before, the rows that begin before the first end of the present segment are kept; there are no more of them
than GPUs, for they all hold theirs at one moment. Any moment of time is covered by no row of an earlier
segment than a certain one, and when that segment is read, all other rows that cover it are at hand: one of a later
segment begins before the moment, hence before the first end of every segment between, and was kept.
So every moment is checked with all its rows, and no check has rows that do not exist.

Then for what concerns a job by itself: rows of so many consecutive jobs at a time that they fit. Which
segments have rows of them was noted in the first reading.

Memory is O(n + P + B) for n jobs, P rows of the largest segment and B of the largest block of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature, missing
from shadowprice.proofs.certificate import JobsOnTypes, Mask, ScheduleChecks, Violation
from shadowprice.proofs.verification.compiled_pass import CompiledPass

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,
        Feature.CORES,
        Feature.STOPPED,
    }
)
"""Features of instances whose schedules can be checked segment by segment: what is held together is rows alone."""

_COLUMNS = ("job", "node", "gpus", "start_s", "end_s", "overhead_s", "partner")
_OTHERS = ("stages", "cpus", "memory_gb", "copy", "steps", "shared_gpu", "goes_on")

ORDER = "order"
"""Rule about the order of rows."""

MOST_ROWS = 2**21
"""Rows of a block of jobs that are looked at together."""


class ScheduleSegments(Protocol):
    """A schedule in segments, its rows in order of their ends; rows are numbered from 0 throughout."""

    @property
    def lengths(self) -> list[int]:
        """Rows of every segment."""

    def read(self, segment: int) -> Schedule:
        """The rows of a segment; the same whenever it is read."""


def _nowhere(rows: Schedule) -> None:
    """Rows that nobody takes."""


def _unwatched(done: int, total: int) -> None:
    """Nobody asks how far it is."""


def verifiable_in_segments(instance: Instance) -> bool:
    """True if jobs run alone, as gangs of whole GPUs that never fail, without quotas, restarts or demands."""
    return not missing(instance, KNOWS)


def verify_segments(
    instance: Instance,
    segments: ScheduleSegments,
    take: Callable[[Schedule], None] = _nowhere,
    reaches: Callable[[int, int], None] = _unwatched,
    most_rows: int = MOST_ROWS,
) -> Mask:
    """Check a schedule against its instance, as :func:`.certificate.verify` does; O(n + R log R) for R rows.

    Parameters
    ----------
    take : callable
        Is given the rows of every segment once, the last segment first, when each row by itself has been looked
        at. They are verified when this function returns, and not before.
    reaches : callable
        Is told now and then how many rows have been read, and how many there are to read: all twice if need be.
    most_rows : int
        Rows of a block of jobs, unless one job alone has more.

    Returns
    -------
    ndarray of bool, shape (n,)
        True for jobs that are complete: all of them, unless the run was stopped.

    Raises
    ------
    Violation
        Naming the rule, the first violated row found, and the numbers that disagree. The rule :data:`ORDER` is about
        the order of rows.
    ValueError
        If the instance is not :func:`verifiable_in_segments`.
    """
    if not verifiable_in_segments(instance):
        raise ValueError(f"{instance.workload.source}: expected jobs that run alone, to the end")
    reading = _Reading(instance, segments, take, reaches)
    if reading.passes():
        return np.ones(len(instance.workload), dtype=bool)
    counts = reading.backwards()
    complete = np.zeros(len(counts), dtype=bool)
    for jobs in _blocks(counts, most_rows):
        schedule, number = reading.rows_of(jobs)
        check = ScheduleChecks(instance, reading.on_types, schedule, number, jobs)
        complete[jobs] = check.jobs()[jobs]
        reading.goes_on(len(number))
    return complete


class _Reading:
    def __init__(
        self,
        instance: Instance,
        segments: ScheduleSegments,
        take: Callable[[Schedule], None],
        reaches: Callable[[int, int], None],
    ) -> None:
        self.instance, self.segments = instance, segments
        self.take, self.reaches = take, reaches
        self.on_types = JobsOnTypes.of(instance)
        lengths = np.array(segments.lengths, dtype=np.int64)
        self.begin = np.cumsum(lengths) - lengths
        self.rows = int(lengths.sum())
        self.done = 0
        self.untaken = len(lengths)
        self.first_job = np.full(len(lengths), len(instance.workload))
        self.last_job = np.full(len(lengths), -1)

    def read(self, segment: int) -> tuple[Schedule, NDArray[np.int64]]:
        """Rows of a segment, and their numbers."""
        rows, length = self.segments.read(segment), self.segments.lengths[segment]
        if len(rows) != length:
            raise Violation(ORDER, f"segment {segment} has {len(rows)} rows, expected {length}")
        for column in _OTHERS:
            if getattr(rows, column) is not None:
                raise Violation(
                    "row", f"the schedule has a column {column}, jobs that run alone have none"
                )
        return rows, self.begin[segment] + np.arange(length)

    def give(self, segment: int, rows: Schedule) -> None:
        """Hand out a segment the first time that it is looked at."""
        if segment < self.untaken:
            self.untaken = segment
            self.take(rows)

    def goes_on(self, rows: int) -> None:
        """Tell how many rows have been read of all that will be, in two readings."""
        self.done += rows
        self.reaches(self.done, 2 * self.rows)

    def passes(self) -> bool:
        """True if all is well by the compiled pass; else that is not known."""
        whole = CompiledPass.over(self.instance, self.on_types.alone, self.rows)
        if whole is None:
            return False
        for segment in reversed(range(len(self.segments.lengths))):
            rows, _ = self.read(segment)
            if not whole.goes_on(rows):
                return False
            self.give(segment, rows)
            self.reaches(self.rows - int(self.begin[segment]), self.rows)
        return whole.ends()

    def backwards(self) -> NDArray[np.int64]:
        """Check rows by themselves, their order, and what they hold together; rows of every job."""
        counts = np.zeros(len(self.instance.workload), dtype=np.int64)
        kept: tuple[Schedule, NDArray[np.int64]] | None = None
        next_end_s = np.inf
        for segment in reversed(range(len(self.segments.lengths))):
            rows, number = self.read(segment)
            if not len(rows):
                continue
            check = ScheduleChecks(self.instance, self.on_types, rows, number)
            check.rows()
            check.grid()
            check.release()
            check.stop()
            self.give(segment, rows)
            following = np.append(rows.end_s[1:], next_end_s)
            check.refuse(ORDER, rows.end_s > following, "ends after the row that follows it")
            next_end_s = float(rows.end_s[0])
            counts += np.bincount(rows.job, minlength=len(counts))
            self.first_job[segment], self.last_job[segment] = rows.job.min(), rows.job.max()
            if kept is not None:
                rows, number = _joined([(rows, number), kept])
            ScheduleChecks(self.instance, self.on_types, rows, number).capacity()
            kept = _taken(rows, number, rows.start_s < next_end_s)
            self.goes_on(self.segments.lengths[segment])
        return counts

    def rows_of(self, jobs: slice) -> tuple[Schedule, NDArray[np.int64]]:
        """All rows of consecutive jobs, and their numbers."""
        concerned = (self.first_job < jobs.stop) & (self.last_job >= jobs.start)
        found = []
        for segment in np.flatnonzero(concerned).tolist():
            rows, number = self.read(segment)
            found.append(_taken(rows, number, (rows.job >= jobs.start) & (rows.job < jobs.stop)))
        # Of jobs that never run there are no rows, in whichever segment.
        if not found:
            rows, number = self.read(0)
            return _taken(rows, number, np.zeros(len(rows), dtype=bool))
        return _joined(found)


def _blocks(counts: NDArray[np.int64], most_rows: int) -> Iterator[slice]:
    """Consecutive jobs with at most so many rows together, or a single one with more."""
    until, first = np.cumsum(counts), 0
    while first < len(counts):
        before = int(until[first - 1]) if first else 0
        last = max(int(np.searchsorted(until, before + most_rows, side="right")), first + 1)
        yield slice(first, last)
        first = last


def _taken(
    rows: Schedule, number: NDArray[np.int64], mask: Mask
) -> tuple[Schedule, NDArray[np.int64]]:
    columns = {name: getattr(rows, name)[mask] for name in _COLUMNS}
    return replace(rows, **columns), number[mask]


def _joined(
    segments: list[tuple[Schedule, NDArray[np.int64]]],
) -> tuple[Schedule, NDArray[np.int64]]:
    if len(segments) == 1:
        return segments[0]
    columns = {
        name: np.concatenate([getattr(rows, name) for rows, _ in segments]) for name in _COLUMNS
    }
    return replace(segments[0][0], **columns), np.concatenate([number for _, number in segments])
