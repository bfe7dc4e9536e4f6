"""The verifier: does a schedule obey its instance? Looks at nothing but the two.

It reads plain data: columns of the schedule and of the workload, nodes of the cluster, tables of
rates and profiles, fields of job graphs. How fast each run was it computes in
``shadowprice/proofs/run_speed.py`` and nowhere else, so that no code which produced a schedule helps to
approve it. Every metric, figure and comparison of this package is computed from verified schedules.

Rules, in the order they are checked (the first violated row is named):

======================  =====================================================================
``row``                 job, node and partner exist, gpus >= 1, 0 <= start < end,
                        0 <= overhead <= length
``grid``                every time is a whole number of ticks
``release``             no run starts before its job arrives
``stop``                where the run ends with a window of jobs, nothing goes on after the last of them
                        is complete; the jobs outside it need not be. Where it was stopped at a time,
                        nothing goes on after that, and no job need be complete, those of a window neither
``gang``                whenever a job runs it holds exactly its gang, or as many more as it may grow,
                        all pieces at the same times
``type``                a job runs on GPU types it has a throughput for and is allowed to run on
``stages``              where jobs have graphs, the replicas of every run add up to its job's graph,
                        one on each GPU it holds; else none are given
``resources``           where CPUs and memory matter every row has some, enough for progress, and no
                        node gives more than it has, to a thousandth; else none are given
``partner``             a job that shares its GPUs does so with one other that has rates for it and
                        holds the very same at the same times
``part``                a job that holds a part of a GPU says of which of its node's; no GPU is held
                        by more than all of it
``overlap``             a job is in one run at a time
``goes_on``             a row that goes on begins as its job's row before it ends, on the same GPUs; one of
                        the two is shared, or CPUs and memory are held, which may change
``capacity``            no node holds more GPUs than it has, at any moment; shared ones count once
``cpu_memory``          where jobs ask for CPUs or memory, no node gives more of either than it has, at any
                        moment, in whole thousandths of a CPU and MiB
``quota``               where tenants have quotas, no run begins with which its tenant holds more GPUs
                        than the quota of that day
``down``                where nodes fail, no run holds one that is down, and none goes on for longer than
                        faults are known
``overhead``            starts, restarts and migrations are charged as the instance says, paid first
``work``                every job does its work: all of it, and it stops with the tick that
                        completes it; what is lost to nodes that go down, or to restarts, does not count
``lost``                every job runs
its name                of each declared term of the instance, what its rule says
======================  =====================================================================

Where jobs run as several copies, rows are checked by ``row``, ``grid``, ``release`` and ``type``, and then:

======================  =====================================================================
``copies``              every row has the number of a copy and steps, and no partner, stages, CPUs or
                        memory; where jobs run as one gang, no row has a copy or steps
``node``                a copy uses no more GPUs than its node has, which it holds whole
``round``               all copies of a round begin together and end within it, rounds at least a
                        round's length apart, so that models are averaged between rounds only
``copy``                one copy a node, a copy on one node, at most k copies a job
``overhead``            a restart where the node ran another job last, and averaging where the job has
                        several copies in the round, are charged exactly
``steps``               a copy holds its node exactly as long as its steps take, rounded up to a tick
``work``                the steps of a job's copies add up to exactly its work
======================  =====================================================================

GPUs that are held in parts are known by numbers, whole ones are only counted, from when a job begins to hold
a part of a GPU until nobody does any more. Numbers and counts suffice: spans of time of which no more than k
overlap can be given k GPUs, each one from beginning to end (interval graphs are perfect).

A row has one partner from start to end, at whose rate its work is counted. When a job gets or
loses a partner, or other CPUs, its row ends and its run goes on in another, charged nothing: who comes
pays for his own start. Charges, checkpoints, restarts and quotas are about runs: a beginning and all rows
that go on from it. Without a column ``goes_on``, as schedules once were, every row that may go on does.

Times are multiples of 2**-20 s and sums are exact; there are no tolerances. A run in which the whole
job would take P ticks (rounded up) and which makes progress for t does t / P of it. A job's shares add up to 1 or
more, in exact arithmetic, and to less than 1 without the last tick of its last run. More would do no
harm to a bound, since it only makes the schedule cost more; but who holds GPUs after the end of his
work does not do what the policy decided. At one speed this is equality.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import VerificationError
from shadowprice.proofs import run_speed
from shadowprice.proofs.verification import compiled_pass
from shadowprice.proofs.verification.copies import CopiedRuns
from shadowprice.proofs.verification.cpu_memory import any_asked, too_little, too_much
from shadowprice.proofs.verification.declared import DeclaredRuns, expect_rules
from shadowprice.proofs.verification.failures import FailingRuns
from shadowprice.proofs.verification.goodput import has_goodput
from shadowprice.proofs.verification.horizons import (
    after_the_stop,
    after_the_window,
    required_jobs,
)
from shadowprice.proofs.verification.parts import WHOLE_GPU, PartedRows
from shadowprice.proofs.verification.quotas import beyond_quotas, copies_beyond_quotas
from shadowprice.proofs.verification.restarts import RESUME, last_runs
from shadowprice.proofs.verification.speeds import (
    FactoredRuns,
    Fault,
    MappedRuns,
    Runs,
    owed_ticks,
    sorted_further,
    ticks_of,
)

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.terms.copies import CopyRules

Mask = NDArray[np.bool_]

_LATEST_S = 2.0**33
"""No run ends later [s]: up to there sums of whole ticks are exact."""
_ALL = slice(None)


def _nothing(runs: Runs) -> None:
    """No check."""


class Violation(VerificationError):
    """A rule and the first row of the schedule (or the first job) that breaks it."""

    def __init__(
        self, rule: str, message: str, *, row: int | None = None, job: int | None = None
    ) -> None:
        super().__init__(f"{rule}: {message}")
        self.rule = rule
        self.row = row
        self.job = job


def verify(instance: Instance, schedule: Schedule) -> Mask:
    """Check a schedule against its instance; O(R log R) for R rows.

    Returns
    -------
    ndarray of bool, shape (n,)
        True for jobs that are complete: all, unless the run ends with a window of jobs or was stopped.

    Raises
    ------
    Violation
        Naming the rule, the first violated row and the numbers that disagree.
    InputError
        If the instance has a feature that no rule is about.
    """
    expect_rules(instance)
    on_types = JobsOnTypes.of(instance)
    check = ScheduleChecks(instance, on_types, schedule)
    if compiled_pass.holds(instance, schedule, on_types.alone):
        return check.required
    check.rows()
    check.grid()
    check.release()
    if instance.copies is not None:
        return check.over(check.copies(instance.copies))
    check.stop()
    return check.over(check.jobs(capacities=check.capacities))


class JobsOnTypes(NamedTuple):
    """Time of every whole job on each GPU type [ticks], 0 where it cannot run, and where it is allowed to.

    Both have shape (n, types), by :mod:`shadowprice.proofs.run_speed`.
    """

    alone: run_speed.Ticks
    allowed: Mask

    @classmethod
    def of(cls, instance: Instance) -> JobsOnTypes:
        """Those of an instance's jobs, on its cluster; O(n types)."""
        return cls(run_speed.alone_ticks(instance), run_speed.allowed_types(instance))


class ScheduleChecks:
    """Rules about rows of a schedule: all of them, or those of some jobs, or of some time.

    Parameters
    ----------
    on_types : JobsOnTypes
        Of all jobs of the instance.
    schedule : Schedule
        The rows.
    number : ndarray of int, shape (R,), optional
        Number by which messages name each row; its position if not given.
    these : slice, optional
        Jobs that the rows are all of; all jobs if not given.
    """

    def __init__(
        self,
        instance: Instance,
        on_types: JobsOnTypes,
        schedule: Schedule,
        number: NDArray[np.int64] | None = None,
        these: slice = _ALL,
    ) -> None:
        self.instance = instance
        self.workload = instance.workload
        self.schedule = schedule
        self.number = np.arange(len(schedule)) if number is None else number
        self.shared = schedule.partner >= 0
        self.gpu_type = run_speed.gpu_types(instance.cluster)[1]
        self.size = np.array([node.gpus for node in instance.cluster.nodes], dtype=np.int64)
        self.alone, self.allowed = on_types
        self.mapped: MappedRuns | None = None
        self.factored: FactoredRuns | None = None
        self.failing: FailingRuns | None = None
        self.declared: DeclaredRuns | None = None
        self.parted: PartedRows | None = None
        self.required = required_jobs(instance, these)

    def jobs(self, capacities: Callable[[Runs], None] = _nothing) -> Mask:
        """Check what is about each job by itself; returns which jobs are complete.

        Parameters
        ----------
        capacities : callable
            Check of what jobs hold together, before that of charges and work.
        """
        self.one_gang()
        runs = self.gangs()
        self.types(runs)
        self.stages(runs)
        self.resources(runs)
        self.partners(runs)
        self.parts()
        self.overlap(runs)
        for bad, say, rows in runs.faults(self.schedule):
            self.refuse("goes_on", bad, say, rows)
        capacities(runs)
        self.terms(runs)
        self.overheads(runs)
        return self.work(runs)

    def name(self, row: int) -> str:
        """Name of a row in messages."""
        s = self.schedule
        job = int(s.job[row])
        held = f"job {self.workload.id[job]!r}, node {s.node[row]}"
        return f"row {self.number[row]} ({held}, {s.start_s[row]} to {s.end_s[row]} s)"

    def refuse(
        self,
        rule: str,
        bad: Mask,
        say: str | Callable[[int], str],
        rows: NDArray[np.int64] | None = None,
    ) -> None:
        """Raise for the first bad entry; ``say`` may depend on its position among the ``rows``."""
        if bad.any():
            k = int(bad.argmax())
            row = k if rows is None else int(rows[k])
            text = f"{self.name(row)}: {say if isinstance(say, str) else say(k)}"
            raise Violation(rule, text, row=int(self.number[row]), job=int(self.schedule.job[row]))

    def _refuse_row(self, rule: str, fault: Fault | None) -> None:
        """Raise for a row that was found, if one was."""
        if fault is not None:
            self.refuse(rule, np.arange(len(self.schedule)) == fault[0], fault[1])

    def rows(self) -> None:
        """Check every row by itself."""
        s, jobs, nodes = self.schedule, len(self.workload), len(self.instance.cluster.nodes)
        limits = (("job", 0, jobs - 1), ("node", 0, nodes - 1), ("partner", -1, jobs - 1))
        for column, low, high in limits:
            values = getattr(s, column)
            bad = (values < low) | (values > high)
            if bad.any():
                k = int(bad.argmax())
                row = int(self.number[k])
                message = f"row {row}: {column} is {values[k]}, expected {low} to {high}"
                raise Violation("row", message, row=row)
        self.refuse("row", s.gpus < 1, "holds no GPUs, expected at least 1")
        finite = np.isfinite(s.start_s) & np.isfinite(s.end_s) & np.isfinite(s.overhead_s)
        self.refuse("row", ~finite, "has a time that is not a number")
        ordered = (s.start_s >= 0) & (s.start_s < s.end_s) & (s.end_s <= _LATEST_S)
        self.refuse("row", ~ordered, "expected 0 <= start < end")
        within = (s.overhead_s >= 0) & (s.overhead_s <= s.end_s - s.start_s)
        self.refuse("row", ~within, "expected 0 <= overhead <= length of the run")

    def grid(self) -> None:
        """Check that times are whole ticks."""
        for column in ("start_s", "end_s", "overhead_s"):
            ticks = getattr(self.schedule, column) * run_speed.TICKS_PER_S
            bad = ticks != np.floor(ticks)
            self.refuse("grid", bad, partial(_off_grid, column, ticks))

    def release(self) -> None:
        """Check that no run starts before its job arrives."""
        early = self.schedule.start_s < self.workload.arrival_s[self.schedule.job]
        self.refuse("release", early, "starts before the job arrives")

    def copies(self, rules: CopyRules) -> Mask:
        """Check all that is said of jobs that run as several copies; returns which jobs are complete."""
        s = self.schedule
        if s.copy is None or s.steps is None:
            raise Violation("copies", "the schedule has no columns of copies and steps")
        for column in ("stages", "cpus", "memory_gb", "goes_on"):
            if getattr(s, column) is not None:
                raise Violation("copies", f"the schedule has a column {column}, copies have none")
        self.refuse("copies", self.shared, "a copy holds its node whole and has no partner")
        runs = CopiedRuns(self.instance, rules, s, s.copy, s.steps)
        for rule, bad, say in runs.faults():
            self.refuse(rule, bad, say)
        for beyond in copies_beyond_quotas(self.instance, s, s.steps, rules.round_s):
            self.refuse("quota", *beyond)
        undone = runs.undone(self.required)
        if undone is not None:
            job, said = undone
            raise Violation("work", f"job {self.workload.id[job]!r} {said}", job=job)
        self.refuse("stop", *after_the_stop(self.instance, s))
        return runs.complete

    def one_gang(self) -> None:
        """Check that nobody runs as several copies."""
        if self.schedule.copy is not None or self.schedule.steps is not None:
            raise Violation("copies", "the schedule has copies, its jobs run as one gang each")

    def gangs(self) -> Runs:
        """Check that runs hold their gangs; returns the runs."""
        s = self.schedule
        runs = Runs.of(s)
        order, piece, node = runs.order, runs.piece, s.node[runs.order]
        twice = (piece[1:] == piece[:-1]) & (node[1:] == node[:-1])
        self.refuse("gang", twice, "the same run has two rows on one node", order[1:])
        head = runs.row[piece] if len(piece) else piece
        apart = (s.end_s[order] != s.end_s[head]) | (s.overhead_s[order] != s.overhead_s[head])
        self.refuse("gang", apart, "ends or pays overhead apart from the rest of its gang", order)
        held = runs.width(s)
        gang = self.workload.gpus[s.job[runs.row]]
        elastic = self.instance.elasticity
        widest = gang if elastic is None else elastic.widest[s.job[runs.row]]
        if has_goodput(self.instance):  # Widths are for its rule.
            return runs
        self.refuse(
            "gang",
            (held < gang) | (held > widest),
            lambda k: f"the run holds {held[k]} GPUs, its gang is {gang[k]}",
            runs.row,
        )
        return runs

    def types(self, runs: Runs) -> None:
        """Check that jobs can run on the GPUs they hold."""
        s = self.schedule
        unable = self.alone[s.job, self.gpu_type[s.node]] == 0
        self.refuse("type", unable, self._why_unable)
        allowed = self.allowed[s.job, self.gpu_type[s.node]]
        self.refuse("type", ~allowed, "the job is not allowed to run on this node's GPU type")

    def _why_unable(self, row: int) -> str:
        """Reason why the job of a row cannot run on the GPU type of its node."""
        job, gpu_type = self.schedule.job[row], self.gpu_type[self.schedule.node[row]]
        gang, gpus = self.workload.gpus[job], self.size[self.gpu_type == gpu_type].sum()
        if gang > gpus:
            return f"its gang of {gang} GPUs is larger than the {gpus} of this node's GPU type"
        return "the job has no throughput on this node's GPU type"

    def stages(self, runs: Runs) -> None:
        """Check the replicas of jobs with graphs."""
        graphs = self.instance.graphs
        if (graphs is None) != (self.schedule.stages is None):
            mine, jobs = ("a column", "no") if graphs is None else ("no column", "")
            raise Violation(
                "stages", f"the schedule has {mine} stages, its jobs have {jobs} graphs"
            )
        if graphs is not None:
            self.mapped = MappedRuns(graphs, self.schedule, runs)
            self._refuse_row("stages", self.mapped.fault)

    def resources(self, runs: Runs) -> None:
        """Check CPUs and memory."""
        s, instance = self.schedule, self.instance
        expected = instance.sensitivity is not None
        if (s.cpus is not None) != expected or (s.memory_gb is not None) != expected:
            given = "no" if expected else "a"
            raise Violation("resources", f"the schedule has {given} column of CPUs or memory")
        if expected or instance.locality is not None or instance.elasticity is not None:
            self.factored = FactoredRuns(instance, s, runs)
            self._refuse_row("resources", self.factored.fault)

    def partners(self, runs: Runs) -> None:
        """Check that partners share the very same."""
        if not self.shared.any():
            return
        s, rows = self.schedule, np.flatnonzero(self.shared)
        apart = s.partner[runs.order] != s.partner[runs.row[runs.piece]]
        self.refuse("partner", apart, "has another partner than the rest of its gang", runs.order)
        unable = self._row_ticks(rows) == 0
        if self.mapped is not None:
            columns = s.job[rows], s.partner[rows], self.gpu_type[s.node[rows]]
            rates = run_speed.sharing_rates(self.instance, self.alone, *columns)
            self.mapped.share(runs, rows, rates)
            unable = rates == 0
        say = "the job and its partner have no rates for sharing GPUs of this type"
        self.refuse("partner", unable, say, rows)
        # A job has one row at a node and a start, so that mirrored rows lie side by side.
        one, other = s.job[rows], s.partner[rows]
        pairs = (one, s.start_s[rows], s.node[rows], np.maximum(one, other), np.minimum(one, other))
        order = rows[np.lexsort(pairs)]
        first, second = order[:-1], order[1:]
        mirror = (s.job[first] == s.partner[second]) & (s.partner[first] == s.job[second])
        for column in (s.node, s.gpus, s.start_s, s.end_s):
            mirror &= column[first] == column[second]
        alone = np.ones(len(rows), dtype=bool)
        alone[:-1] &= ~mirror
        alone[1:] &= ~mirror
        say = "the partner does not share this run: same node, GPUs and times, this job its partner"
        self.refuse("partner", alone, say, order)

    def overlap(self, runs: Runs) -> None:
        """Check that a job is in one run at a time."""
        s, row = self.schedule, runs.row
        same = s.job[row[1:]] == s.job[row[:-1]]
        twice = same & (s.start_s[row[1:]] < s.end_s[row[:-1]])
        self.refuse("overlap", twice, "starts before the job's previous run ends", row[1:])

    def parts(self) -> None:
        """Check who holds which part of which GPU; those held in parts count as one while anyone does."""
        s, milli = self.schedule, self.workload.gpu_milli
        if (s.shared_gpu is not None) != bool((milli < WHOLE_GPU).any()):
            given = "no" if s.shared_gpu is None else "a"
            raise Violation("part", f"the schedule has {given} column of GPUs held in parts")
        if s.shared_gpu is not None:
            self.parted = PartedRows(s, s.shared_gpu, milli[s.job], self.size)
            for broken in self.parted.faults():
                self.refuse("part", *broken)

    def capacity(self) -> None:
        """Check that no node gives more GPUs than it has, of the rows at hand."""
        s, n = self.schedule, len(self.schedule)
        # Of two rows that share the same GPUs, the one of the earlier job stands for both.
        gpus = np.where(self.shared & (s.partner < s.job), 0, s.gpus)
        taken, freed = gpus, gpus
        if self.parted is not None:
            whole = np.where(self.workload.gpu_milli[s.job] < WHOLE_GPU, 0, gpus)
            taken, freed = whole.copy(), whole.copy()
            taken[self.parted.begins], freed[self.parted.ends] = 1, 1
        node = np.concatenate((s.node, s.node))
        time = np.concatenate((s.end_s, s.start_s))
        change = np.concatenate((-freed, taken))
        # At one node and time GPUs are freed before others are taken: ends come before starts here.
        order = sorted_further(np.argsort(time, kind="stable"), node)
        held = np.cumsum(change[order])
        size = self.size[node[order]]
        self.refuse(
            "capacity",
            held > size,
            lambda k: f"{held[k]} GPUs held on the node at {time[order[k]]} s, it has {size[k]}",
            order % n,
        )

    def capacities(self, runs: Runs) -> None:
        """Check what jobs hold together: GPUs, CPUs and memory of nodes that are up, and of their tenants' quotas."""
        self.capacity()
        self.cpu_memory()
        self.quotas(runs)
        self.failures(runs)

    def quotas(self, runs: Runs) -> None:
        """Check what each tenant holds whenever a run of its jobs begins."""
        for beyond in beyond_quotas(self.instance, self.schedule, runs):
            self.refuse("quota", *beyond)

    def terms(self, runs: Runs) -> None:
        """Check declared terms, each by its rule."""
        if self.instance.declared or self.schedule.local_batch is not None:
            self.declared = DeclaredRuns(self.instance, self.schedule, runs)
            for name, bad, say in self.declared.faults():
                self.refuse(name, bad, say, runs.row)

    def cpu_memory(self) -> None:
        """Check that nodes have the CPUs and memory that jobs ask for, or that rows have no less, of those at hand."""
        if any_asked(self.workload):
            amiss = too_much if self.schedule.cpus is None else too_little
            self._refuse_row("cpu_memory", amiss(self.instance, self.schedule))

    def failures(self, runs: Runs) -> None:
        """Check that no run holds a node that is down, and note what runs lost."""
        if self.instance.failures is not None:
            self.failing = FailingRuns(self.instance.failures, self.schedule, runs)
            for rule, bad, say in self.failing.faults():
                self.refuse(rule, bad, say)

    def overheads(self, runs: Runs) -> None:
        """Check that charges are paid first and exactly."""
        s, rules = self.schedule, self.instance.overheads
        row = runs.row
        charges = (rules.start_s, rules.restart_s, rules.migration_s)
        if not any(charges) and not rules.restart_by_gpus:
            self.refuse("overhead", s.overhead_s > 0, "pays overhead, the instance charges none")
            return
        owed = owed_ticks(self.instance, s, runs)
        progress = s.end_s[row] - s.start_s[row] - s.overhead_s[row] > 0
        self.refuse("overhead", owed < 0, "pays more overhead than was charged", row)
        unpaid = progress & (owed > 0)
        self.refuse("overhead", unpaid, "makes progress before its overhead is paid", row)

    def stop(self) -> None:
        """Check that nothing goes on after the run was stopped, or its window of jobs was complete."""
        self.refuse("stop", *after_the_stop(self.instance, self.schedule))
        self.over(self.required)

    def over(self, complete: Mask) -> Mask:
        """Check that nothing goes on after a window of jobs that are complete, which it returns."""
        self.refuse("stop", *after_the_window(self.instance, self.schedule, complete))
        return complete

    def work(self, runs: Runs) -> Mask:
        """Check that each job does its work, and no more; returns which jobs are complete."""
        s, jobs = self.schedule, len(self.workload)
        count = np.bincount(s.job[runs.row], minlength=jobs)
        lost = (count == 0) & self.required
        if lost.any():
            k = int(lost.argmax())
            raise Violation("lost", f"job {self.workload.id[k]!r} never runs", job=k)
        complete = count > 0
        if not len(runs.row):
            return complete
        ran = ticks_of(s.end_s - s.start_s - s.overhead_s)[runs.row]
        if self.declared is not None and self.declared.goodput is not None:
            for k, complete[k], amiss in self.declared.goodput.progress(ran):
                if amiss and (self.required[k] or not amiss.startswith("is in")):
                    raise Violation("work", f"job {self.workload.id[k]!r} {amiss}", job=k)
            return complete
        whole = self._run_ticks(runs)
        endless = whole == 0
        self.refuse("work", endless, "would take longer than 2**32 s for the whole job", runs.row)
        if self.instance.preemption != RESUME:
            ran, again = last_runs(s.job[runs.row], ran, whole, runs.whole(s))
            self.refuse("work", again, "completes its job, which runs again", runs.row)
        elif self.failing is not None:
            ran = self.failing.counted
            again = self.failing.completing(whole)
            self.refuse("work", again, "completes its job, which runs again", runs.row)
        # Runs are in order of their jobs.
        first = np.flatnonzero(np.diff(s.job[runs.row], prepend=-1))
        last, job = np.append(first[1:], len(ran)) - 1, s.job[runs.row[first]]
        at_one_pace = np.minimum.reduceat(whole, first) == np.maximum.reduceat(whole, first)
        done = np.add.reduceat(ran, first)
        for row in np.flatnonzero(~at_one_pace | (done != whole[first])).tolist():
            mine, k = slice(int(first[row]), int(last[row]) + 1), int(job[row])
            pace = int(whole[last[row]])
            off = run_speed.done_and_over(ran[mine].tolist(), whole[mine].tolist(), pace)
            complete[k] = not any(off)
            if any(off) and (off[1] or self.required[k]):
                raise Violation(
                    "work",
                    f"job {self.workload.id[k]!r} {run_speed.amiss(int(done[row]), pace, *off)}",
                    job=k,
                )
        idle = (ran[last] == 0) & complete[job]
        self.refuse("work", idle, "the job's last run makes no progress", runs.row[last])
        if self.failing is not None:
            late = self.failing.writing[last] & complete[job]
            self.refuse("work", late, "the job's last run ends with a checkpoint", runs.row[last])
        return complete

    def _run_ticks(self, runs: Runs) -> run_speed.Ticks:
        """Time of the whole job [ticks] as each run goes: as on the slowest of its GPUs."""
        if self.mapped is not None:
            work = self.workload.work[self.schedule.job[runs.row]]
            slowest = run_speed.iterations_ticks(work, self.mapped.iteration_s)
        else:
            rows = self._row_ticks(runs.order)
            slowest = np.maximum.reduceat(rows, runs.first) if len(rows) else rows
        speeds = [each.speed for each in (self.mapped, self.factored) if each is not None]
        if not speeds and self.declared is None:
            return slowest
        speed = np.prod(speeds, axis=0) if speeds else np.ones(len(slowest))
        if self.declared is not None:
            speed = self.declared.slower(speed)
        return run_speed.slower_ticks(slowest, speed)

    def _row_ticks(self, rows: NDArray[np.int64]) -> run_speed.Ticks:
        """Time of the whole job [ticks] as each row runs: on its GPU type, with its partner."""
        s = self.schedule
        job, gpu_type, shared = s.job[rows], self.gpu_type[s.node[rows]], self.shared[rows]
        times = self.alone[job, gpu_type]
        if shared.any():
            columns = job[shared], s.partner[rows][shared], gpu_type[shared]
            times[shared] = run_speed.sharing_ticks(self.instance, self.alone, *columns)
        return times


def _off_grid(column: str, ticks: NDArray[np.float64], row: int) -> str:
    return f"{column} is {float(ticks[row])!r} ticks of 2**-20 s, expected a whole number"
