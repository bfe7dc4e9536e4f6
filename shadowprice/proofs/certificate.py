"""The verifier: does a schedule obey its instance? Looks at nothing but the two.

It imports the instance layer only, so that nothing which produced a schedule helps to approve
it. Every metric, figure and comparison of this package is computed from verified schedules.

Rules, in the order they are checked (the first violated row is named):

======================  =====================================================================
``row``                 job and node exist, gpus >= 1, 0 <= start < end, 0 <= overhead <= length
``release``             no run starts before its job arrives
``gang``                whenever a job runs it holds exactly its gang, all pieces at the same times
``type``                a job runs on GPU types it has a throughput for
``overlap``             a job is in one run at a time
``capacity``            no node holds more GPUs than it has, at any moment
``overhead``            starts, restarts and migrations are charged as the instance says, paid first
``work``                every job does exactly its work, no less and no more
``lost``                every job runs
======================  =====================================================================

Times are multiples of 2**-20 s, so sums are exact and equality is asked for. Only jobs with
different speeds on different GPU types get a tolerance: two ticks for each run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import VerificationError
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule

Mask = NDArray[np.bool_]


class Violation(VerificationError):
    """A rule and the first row of the schedule (or the first job) that breaks it."""

    def __init__(
        self, rule: str, message: str, *, row: int | None = None, job: int | None = None
    ) -> None:
        super().__init__(f"{rule}: {message}")
        self.rule = rule
        self.row = row
        self.job = job


def verify(instance: Instance, schedule: Schedule) -> None:
    """Check a schedule against its instance; O(R log R) for R rows.

    Raises
    ------
    Violation
        Naming the rule, the first violated row and the numbers that disagree.
    """
    check = _Verifier(instance, schedule)
    check.rows()
    check.release()
    runs = check.gangs()
    check.types(runs)
    check.overlap(runs)
    check.capacity()
    check.overheads(runs)
    check.work(runs)


@dataclass(frozen=True)
class _Runs:
    """Runs of gangs in order of job, then start; ``row`` is a representative row of the schedule."""

    row: NDArray[np.int64]
    piece: NDArray[np.int64]
    order: NDArray[np.int64]

    @property
    def new(self) -> Mask:
        """First piece of each run among the ordered rows."""
        first = np.ones(len(self.piece), dtype=bool)
        first[1:] = self.piece[1:] != self.piece[:-1]
        return first


class _Verifier:
    def __init__(self, instance: Instance, schedule: Schedule) -> None:
        self.instance = instance
        self.workload = instance.workload
        self.schedule = schedule

    def name(self, row: int) -> str:
        s = self.schedule
        job = int(s.job[row])
        return f"row {row} (job {self.workload.id[job]!r}, node {s.node[row]}, {s.start_s[row]} to {s.end_s[row]} s)"

    def refuse(self, rule: str, bad: Mask, say: str, rows: NDArray[np.int64] | None = None) -> None:
        """Raise for the first bad entry; ``say`` may use {row} and any column by position."""
        if bad.any():
            k = int(bad.argmax())
            row = k if rows is None else int(rows[k])
            raise Violation(
                rule, f"{self.name(row)}: {say}", row=row, job=int(self.schedule.job[row])
            )

    def rows(self) -> None:
        s, jobs, nodes = self.schedule, len(self.workload), len(self.instance.cluster.nodes)
        for column, values, high in (("job", s.job, jobs), ("node", s.node, nodes)):
            bad = (values < 0) | (values >= high)
            if bad.any():
                row = int(bad.argmax())
                raise Violation(
                    "row",
                    f"row {row}: {column} is {values[row]}, expected 0 to {high - 1}",
                    row=row,
                )
        self.refuse("row", s.gpus < 1, "holds no GPUs, expected at least 1")
        finite = np.isfinite(s.start_s) & np.isfinite(s.end_s) & np.isfinite(s.overhead_s)
        self.refuse("row", ~finite, "has a time that is not a number")
        ordered = (s.start_s >= 0) & (s.start_s < s.end_s) & (s.end_s <= 2 * MAX_TIME_S)
        self.refuse("row", ~ordered, "expected 0 <= start < end")
        within = (s.overhead_s >= 0) & (s.overhead_s <= s.end_s - s.start_s)
        self.refuse("row", ~within, "expected 0 <= overhead <= length of the run")

    def release(self) -> None:
        s = self.schedule
        self.refuse(
            "release", s.start_s < self.workload.arrival_s[s.job], "starts before the job arrives"
        )

    def gangs(self) -> _Runs:
        s = self.schedule
        order = np.lexsort((s.node, s.start_s, s.job))
        job, start, node = s.job[order], s.start_s[order], s.node[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (job[1:] != job[:-1]) | (start[1:] != start[:-1])
        piece = np.cumsum(first) - 1
        runs = _Runs(order[first], piece, order)
        twice = ~first[1:] & (node[1:] == node[:-1])
        self.refuse("gang", twice, "the same run has two rows on one node", order[1:])
        head = runs.row[piece] if len(piece) else piece
        apart = (s.end_s[order] != s.end_s[head]) | (s.overhead_s[order] != s.overhead_s[head])
        self.refuse("gang", apart, "ends or pays overhead apart from the rest of its gang", order)
        held = np.bincount(piece, weights=s.gpus[order], minlength=len(runs.row)).astype(np.int64)
        wrong = held != self.workload.gpus[s.job[runs.row]]
        if wrong.any():
            k = int(wrong.argmax())
            row = int(runs.row[k])
            gang = self.workload.gpus[s.job[row]]
            raise Violation(
                "gang",
                f"{self.name(row)}: the run holds {held[k]} GPUs, its gang is {gang}",
                row=row,
                job=int(s.job[row]),
            )
        return runs

    def types(self, runs: _Runs) -> None:
        s = self.schedule
        kind = self.instance.cluster.type_of_node[s.node]
        unable = ~np.isfinite(self._processing_s()[s.job, kind])
        self.refuse("type", unable, "the job has no throughput on this node's GPU type")

    def overlap(self, runs: _Runs) -> None:
        s, row = self.schedule, runs.row
        same = s.job[row[1:]] == s.job[row[:-1]]
        self.refuse(
            "overlap",
            same & (s.start_s[row[1:]] < s.end_s[row[:-1]]),
            "starts before the job's previous run ends",
            row[1:],
        )

    def capacity(self) -> None:
        s, n = self.schedule, len(self.schedule)
        node = np.concatenate((s.node, s.node))
        time = np.concatenate((s.end_s, s.start_s))
        change = np.concatenate((-s.gpus, s.gpus))
        order = np.lexsort((np.arange(2 * n) >= n, time, node))
        held = np.cumsum(change[order])
        size = self.instance.cluster.gpus_per_node[node[order]]
        over = held > size
        if over.any():
            k = int(over.argmax())
            row = int(order[k]) % n
            raise Violation(
                "capacity",
                f"{self.name(row)}: {held[k]} GPUs held on the node at {time[order[k]]} s, it has {size[k]}",
                row=row,
                job=int(s.job[row]),
            )

    def overheads(self, runs: _Runs) -> None:
        s, rules = self.schedule, self.instance.overheads
        row = runs.row
        if rules.free:
            self.refuse("overhead", s.overhead_s > 0, "pays overhead, the instance charges none")
            return
        job = s.job[row]
        again = np.zeros(len(row), dtype=bool)
        again[1:] = job[1:] == job[:-1]
        by_gang = {int(g): rules.restart_charge_s(int(g)) for g in np.unique(self.workload.gpus)}
        restart = (
            np.array([by_gang[int(g)] for g in self.workload.gpus[job]])
            if len(row)
            else np.zeros(0)
        )
        charge = rules.start_s + np.where(
            again, restart + self._moved(runs) * rules.migration_s, 0.0
        )
        ticks = to_ticks(charge) - to_ticks(s.overhead_s[row])
        total = np.cumsum(ticks)
        before = (total - ticks)[~again][np.cumsum(~again) - 1] if len(row) else total
        owed = total - before
        progress = to_ticks(s.end_s[row] - s.start_s[row] - s.overhead_s[row]) > 0
        self.refuse("overhead", owed < 0, "pays more overhead than was charged", row)
        self.refuse(
            "overhead", progress & (owed > 0), "makes progress before its overhead is paid", row
        )

    def _moved(self, runs: _Runs) -> Mask:
        """Whether a run holds other nodes or counts than the run before it of the same job."""
        s = self.schedule
        ends = (
            np.append(np.flatnonzero(runs.new)[1:], len(runs.order))
            if len(runs.order)
            else np.zeros(0, int)
        )
        starts = np.flatnonzero(runs.new)
        pieces = np.stack((s.node[runs.order], s.gpus[runs.order]), axis=1)
        moved = np.ones(len(runs.row), dtype=bool)
        same_job = s.job[runs.row[1:]] == s.job[runs.row[:-1]]
        for k in np.flatnonzero(same_job).tolist():
            moved[k + 1] = not np.array_equal(
                pieces[starts[k] : ends[k]], pieces[starts[k + 1] : ends[k + 1]]
            )
        return moved

    def work(self, runs: _Runs) -> None:
        s, jobs = self.schedule, len(self.workload)
        count = np.bincount(s.job[runs.row], minlength=jobs)
        if (count == 0).any():
            job = int((count == 0).argmax())
            raise Violation("lost", f"job {self.workload.id[job]!r} never runs", job=job)
        ran = s.end_s[runs.row] - s.start_s[runs.row] - s.overhead_s[runs.row]
        if self.workload.throughput is None:
            done = np.zeros(jobs, dtype=np.int64)
            np.add.at(done, s.job[runs.row], to_ticks(ran))
            wrong = done != to_ticks(self.workload.work)
            shown_done, shown_due = done * TICK_S, self.workload.work
        else:
            slowest = np.zeros(len(runs.row))
            kind = self.instance.cluster.type_of_node[s.node[runs.order]]
            np.maximum.at(slowest, runs.piece, self._processing_s()[s.job[runs.order], kind])
            share = np.bincount(s.job[runs.row], weights=ran / slowest, minlength=jobs)
            shortest = self.instance.shortest_s
            shown_done, shown_due = share * shortest, shortest
            wrong = np.abs(shown_done - shown_due) > 2 * TICK_S * count + 1e-9 * shortest
        if wrong.any():
            job = int(wrong.argmax())
            raise Violation(
                "work",
                f"job {self.workload.id[job]!r} runs for {shown_done[job]} s of progress, "
                f"its work takes {shown_due[job]} s",
                job=job,
            )

    def _processing_s(self) -> NDArray[np.float64]:
        return self.instance.processing_s
