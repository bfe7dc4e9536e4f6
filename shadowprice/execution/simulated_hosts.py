"""Simulated hosts: runs that end when their work is done, in virtual time.

Where a job can be faster or slower, work is counted exactly: a run in which the whole job would take
P ticks and which makes progress for t of them does t / P of it. A run ends with the first tick at
which these shares add up to 1 or more, so that no job is ever a tick short of its work.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from shadowprice.errors import PolicyError
from shadowprice.instances.graphs.job_graph import StageMapping
from shadowprice.instances.graphs.workload_graphs import JobGraphs, in_order, one_run_s, shape_of
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, TICKS_PER_S, ceil_time
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import ALONE, Schedule
from shadowprice.instances.speeds.conditions import Conditions, RunSpeeds
from shadowprice.instances.speeds.sensitivity import Amounts, proportional_share
from shadowprice.solvers.placement.protocol import Pieces

_NEVER = (math.nan, ALONE)
"""When the last run of a job ended that has not run yet: no time equals it."""


def _nothing(ran: int) -> int:
    """Progress that is kept of a run from which nothing is [ticks]."""
    return 0


class SimulatedHosts:
    """Executes starts and stops in virtual time and records the schedule.

    Work left is told in run time on the job's fastest GPU type. Without differing speeds that stays
    on the time grid and is exact; with them it is a rounded copy of the exact shares.

    The partner with which a run shares its GPUs never changes: when it does, the run ends and
    another begins at once that carries on, overhead still unpaid included, and is charged
    nothing. So does a job that is stopped and started again at the same moment on the same GPUs,
    if it shared them before or does so after, or holds CPUs and memory, which may then be others.
    """

    def __init__(self, instance: Instance) -> None:
        n = len(instance.workload)
        self._shortest = instance.shortest_s.tolist()
        self._left = list(self._shortest)
        self._types: list[int] = instance.cluster.type_of_node.tolist()
        self._shared_s = instance.shared_s
        self._sharing = instance.pair_throughputs is not None
        conditions = instance.conditions
        self._mixed = (
            self._sharing or conditions is not None or instance.workload.throughput is not None
        )
        self._processing: list[list[float]] = (
            instance.plain_processing_s.tolist() if self._mixed else []
        )
        self._carries_on = self._sharing or (
            conditions is not None and conditions.sensitivity is not None
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
        self._partner: dict[int, int] = {}
        self._cut: dict[int, tuple[float, int]] = {}
        self._ends: list[tuple[float, int]] = []
        self._job, self._node, self._gpus = array("q"), array("q"), array("q")
        self._start, self._end, self._overhead = array("d"), array("d"), array("d")
        self._shared_row, self._shared_with = array("q"), array("q")

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
        self, job: int, pieces: Pieces, now_s: float, partner: int = ALONE
    ) -> tuple[float, float]:
        """Begin a run; returns when progress begins [s] and its rate against the fastest type."""
        debt = self._charge(job, pieces, now_s, partner) if self._overheads else 0.0
        if self._mixed:
            return self._begin(job, pieces, now_s, debt, partner)
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
        if self._sharing:
            self._partner.pop(job, None)
        if not self._overheads:
            return 0.0
        self._debt[job] = debt_s + self._overheads.restart_charge_s(self._gang[job])
        self._last[job] = pieces
        return self._debt[job]

    def continue_run(
        self, job: int, partner: int, at_s: float
    ) -> tuple[float, float, float, float]:
        """Continue a run with another partner, or alone, from a time not after its end.

        Returns the progress made [s], the work left on the fastest type [s], when progress goes
        on [s] and its rate.
        """
        ran, debt, pieces = self._interrupt(job, at_s)
        self._partner.pop(job, None)
        left = self._left[job]
        return ran, left, *self._begin(job, pieces, at_s, debt, partner)

    def end_s(self, job: int) -> float:
        """Time at which a running job ends if nothing changes [s]."""
        return self._begun[job][1]

    def _begin(
        self, job: int, pieces: Pieces, now_s: float, debt: float, partner: int
    ) -> tuple[float, float]:
        if partner != ALONE:
            self._partner[job] = partner
        whole_s = self._whole_s(job, pieces, partner)
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

    def _whole_s(self, job: int, pieces: Pieces, partner: int) -> float:
        """Run time of the whole job in such a run [s]: that of its slowest GPU."""
        types, alone = self._types, self._processing[job]
        if partner != ALONE:
            return max(self._shared_s(job, partner, types[node]) for node, _ in pieces)
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
            if self._carries_on:
                self._cut[job] = (now_s, self._partner.get(job, ALONE))
        return ran, debt - paid, pieces

    def finish_next(self) -> tuple[int, float, Pieces]:
        """Take the next completion: job, time [s], and the GPUs it held."""
        end_s, job = heapq.heappop(self._ends)
        start_s, _, debt, _, pieces = self._begun.pop(job)
        self._done.pop(job, None)
        self._last.pop(job, None)
        self._record(job, pieces, start_s, end_s, debt)
        if self._sharing:
            self._partner.pop(job, None)
        return job, end_s, pieces

    def schedule(self) -> Schedule:
        """Schedule executed so far."""
        integers = [
            np.array(column, dtype=np.int64) for column in (self._job, self._node, self._gpus)
        ]
        times = [np.array(column) for column in (self._start, self._end, self._overhead)]
        partner = np.full(len(self._job), ALONE)
        partner[np.array(self._shared_row, dtype=np.int64)] = self._shared_with
        job, node, gpus = integers
        return Schedule(job, node, gpus, times[0], times[1], times[2], partner=partner)

    def _charge(self, job: int, pieces: Pieces, now_s: float, partner: int) -> float:
        overheads = self._overheads
        assert overheads is not None
        before = self._last.get(job)
        cut_s, left = self._cut.get(job, _NEVER)
        changes = not self._sharing or (left, partner) != (ALONE, ALONE)
        if cut_s == now_s and changes and sorted(before or ()) == sorted(pieces):
            return self._debt[job] - overheads.restart_charge_s(self._gang[job])
        debt = self._debt[job] + overheads.start_s
        if before is not None and sorted(before) != sorted(pieces):
            debt += overheads.migration_s
        return debt

    def _record(
        self, job: int, pieces: Pieces, start_s: float, end_s: float, overhead_s: float
    ) -> None:
        if job in self._partner:
            rows = range(len(self._job), len(self._job) + len(pieces))
            self._shared_row.extend(rows)
            self._shared_with.extend([self._partner[job]] * len(pieces))
        for node, gpus in pieces:
            self._job.append(job)
            self._node.append(node)
            self._gpus.append(gpus)
            self._start.append(start_s)
            self._end.append(end_s)
            self._overhead.append(overhead_s)


# Jobs with graphs: a run is as fast as the nodes of its replicas make it.


class GraphHosts(SimulatedHosts):
    """Executes starts and stops of jobs with graphs and records where their replicas were.

    Work left is told in run time at alpha_min. A run that does the whole job lasts exactly its
    iterations times alpha, rounded up to the time grid; one that does part of it uses up its share.
    """

    def __init__(self, instance: Instance, graphs: JobGraphs) -> None:
        super().__init__(instance)
        self._mixed = True
        self._times = graphs.times
        self._graph, self._of = graphs.graph, graphs.of.tolist()
        self._iterations: list[float] = instance.workload.work.tolist()
        self._next: Mapping[int, StageMapping] = {}
        self._where: dict[int, StageMapping] = {}
        self._stages: list[tuple[int, ...]] = []

    def map(self, mappings: Mapping[int, StageMapping]) -> None:
        """Set the nodes of the replicas of jobs that start next; the others' are in order."""
        self._next = mappings

    def start(
        self, job: int, pieces: Pieces, now_s: float, partner: int = ALONE
    ) -> tuple[float, float]:
        """Begin a run; returns when progress begins [s] and its rate against alpha_min."""
        mapping = self._next.get(job)
        self._where[job] = mapping or in_order(self._graph[self._of[job]], pieces)
        return super().start(job, pieces, now_s, partner)

    def schedule(self) -> Schedule:
        """Schedule executed so far."""
        stages = np.empty(len(self._stages), dtype=object)
        for row, counts in enumerate(self._stages):
            stages[row] = counts
        return replace(super().schedule(), stages=stages)

    def _whole_s(self, job: int, pieces: Pieces, partner: int) -> float:
        shape = shape_of(stages for _, stages in self._where[job])
        number = self._of[job]
        alpha_s = self._times.iteration_s(number, self._graph[number], shape)
        return one_run_s(self._iterations[job], alpha_s)

    def _record(
        self, job: int, pieces: Pieces, start_s: float, end_s: float, overhead_s: float
    ) -> None:
        super()._record(job, pieces, start_s, end_s, overhead_s)
        self._stages.extend(stages for _, stages in self._where[job])


# Jobs that hold a part of a GPU.


class PartsHosts(SimulatedHosts):
    """Executes starts and stops of jobs of which some hold a part of a GPU, and records of which.

    A job that holds a part is as fast as its log or rates say, whoever holds the rest.
    """

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self._index: dict[int, int] = {}
        self._shared_gpu = array("q")

    def hold(self, job: int, index: int) -> None:
        """Number of the GPU that a job which starts next holds a part of; -1 for whole ones."""
        self._index[job] = index

    def schedule(self) -> Schedule:
        """Schedule executed so far."""
        return replace(super().schedule(), shared_gpu=np.array(self._shared_gpu, dtype=np.int64))

    def _record(
        self, job: int, pieces: Pieces, start_s: float, end_s: float, overhead_s: float
    ) -> None:
        super()._record(job, pieces, start_s, end_s, overhead_s)
        self._shared_gpu.extend([self._index[job]] * len(pieces))


# Speeds that depend on CPUs and memory, spreading or width.


class ConditionedHosts(SimulatedHosts):
    """Executes starts and stops under conditions, and records the CPUs and memory of every run.

    Who starts without saying how much of them gets a GPU-proportional share.
    """

    def __init__(self, instance: Instance, conditions: Conditions) -> None:
        super().__init__(instance)
        self._speeds = RunSpeeds(conditions, instance.cluster, instance.workload)
        self._counted = conditions.sensitivity is not None
        self._share = proportional_share(instance.cluster)
        self._next: Mapping[int, Amounts] = {}
        self._amounts: dict[int, Amounts] = {}
        self._cpus: list[float] = []
        self._memory_gb: list[float] = []

    def hold(self, amounts: Mapping[int, Amounts]) -> None:
        """CPUs and memory of the jobs that start next."""
        self._next = amounts

    def start(
        self, job: int, pieces: Pieces, now_s: float, partner: int = -1
    ) -> tuple[float, float]:
        """Begin a run; returns when progress begins [s] and its rate under the best conditions."""
        if self._counted:
            self._amounts[job] = self._next.get(job) or self.proportional(pieces)
        return super().start(job, pieces, now_s, partner)

    def adjust(self, job: int, amounts: Amounts, at_s: float) -> tuple[float, float, float, float]:
        """Continue a run with other CPUs and memory; returns what :meth:`continue_run` does."""
        ran, debt, pieces = self._interrupt(job, at_s)
        self._amounts[job] = amounts
        left, partner = self._left[job], self._partner.get(job, -1)
        return ran, left, *self._begin(job, pieces, at_s, debt, partner)

    def proportional(self, pieces: Pieces) -> Amounts:
        """GPU-proportional shares of CPUs and memory."""
        cpus, memory_gb = self._share
        return tuple((cpus * gpus, memory_gb * gpus) for _, gpus in pieces)

    def schedule(self) -> Schedule:
        """Schedule executed so far."""
        done = super().schedule()
        if not self._counted:
            return done
        return replace(done, cpus=np.array(self._cpus), memory_gb=np.array(self._memory_gb))

    def _whole_s(self, job: int, pieces: Pieces, partner: int) -> float:
        plain_s = super()._whole_s(job, pieces, partner)
        speed = self._speeds.of(job, pieces, self._amounts.get(job))
        return max(ceil_time(plain_s / speed), TICK_S) if speed else math.inf

    def _record(
        self, job: int, pieces: Pieces, start_s: float, end_s: float, overhead_s: float
    ) -> None:
        super()._record(job, pieces, start_s, end_s, overhead_s)
        if self._counted:
            for cpus, memory_gb in self._amounts[job]:
                self._cpus.append(cpus)
                self._memory_gb.append(memory_gb)
