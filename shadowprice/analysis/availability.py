"""Metrics of runs on nodes that fail: what was lost, what was kept, what there was.

==================  ============================================================================
failed run          a run that a node cut short, of a job that runs again; of copies each by itself
lost work           progress of failed runs since their last checkpoint [s of the run; GPU-s in all]
checkpoint time     time in which runs held their GPUs to write checkpoints
availability        GPU time of nodes that are up over GPU time, from first arrival to last completion
goodput             GPU time of progress that was kept, over GPU time, over the same span; utilization
                    less overheads, checkpoints and lost work
==================  ============================================================================

Cores of nodes without GPUs are no GPUs here, and each of two jobs that share GPUs has half of them. A run is a
beginning and all rows that go on from it. All are O((R + F) log R) for R rows and F faults; sums are
correctly rounded.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.cluster import CORES
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.grid import TICK_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload import WHOLE_GPU

Times = NDArray[np.float64]


@dataclass(frozen=True)
class FailureMetrics:
    """Metrics of a whole run on nodes that fail.

    Parameters
    ----------
    faults : int
        Times that nodes went down between first arrival and last completion.
    failed_runs : int
    lost_gpu_s, checkpoint_gpu_s : float
        [GPU-s].
    availability, goodput : float
        Shares from 0 to 1; 1 and 0 of no time.
    """

    faults: int
    failed_runs: int
    lost_gpu_s: float
    checkpoint_gpu_s: float
    availability: float
    goodput: float

    def to_dict(self) -> dict[str, float]:
        """Values by name."""
        return asdict(self)


def failed_runs(instance: Instance, schedule: Schedule) -> NDArray[np.int64]:
    """Rows of :attr:`Schedule.runs` with which failed runs end, or of struck copies; none where no node fails."""
    failures, runs = instance.failures, schedule.runs
    if failures is None or not len(runs):
        return runs[:0]
    if schedule.steps is not None:
        return _struck_copies(failures, schedule)
    # Few rows end when any node goes down.
    ends = set(zip(failures.node.tolist(), failures.down_s.tolist(), strict=True))
    at_some = np.flatnonzero(np.isin(schedule.end_s, failures.down_s))
    cut = [
        row for row in at_some.tolist() if (int(schedule.node[row]), schedule.end_s[row]) in ends
    ]
    short = set(zip(schedule.job[cut].tolist(), schedule.start_s[cut].tolist(), strict=True))
    job, start_s = schedule.job[runs], schedule.start_s[runs]
    again = np.append(job[1:] == job[:-1], False)
    failed = [
        k
        for k in np.flatnonzero(again).tolist()
        if short and (int(job[k]), float(start_s[k])) in short
    ]
    return runs[np.array(failed, dtype=np.int64)]


def _struck_copies(failures: NodeFailures, schedule: Schedule) -> NDArray[np.int64]:
    """Rows of copies that did no steps, since their nodes went down."""
    ends = set(zip(failures.node.tolist(), failures.down_s.tolist(), strict=True))
    assert schedule.steps is not None
    cut = np.flatnonzero(schedule.steps == 0).tolist()
    struck = [row for row in cut if (int(schedule.node[row]), float(schedule.end_s[row])) in ends]
    return np.array(struck, dtype=np.int64)


def failures_of_jobs(instance: Instance, schedule: Schedule) -> NDArray[np.int64]:
    """Failed runs of every job, shape (n,)."""
    failed = schedule.job[failed_runs(instance, schedule)]
    return np.bincount(failed, minlength=len(instance.workload)).astype(np.int64)


def lost_work_s(instance: Instance, schedule: Schedule) -> Times:
    """Lost work of every job, in time of its gang [s], shape (n,)."""
    lost = np.zeros(len(instance.workload))
    # Whole ticks: these sums are exact.
    progress = _Progress.of(instance, schedule)
    np.add.at(lost, schedule.job[progress.rows], progress.lost_s)
    return lost


def of_schedule(instance: Instance, schedule: Schedule) -> FailureMetrics | None:
    """Metrics of a schedule that was verified; None where no node fails."""
    failures = instance.failures
    if failures is None:
        return None
    progress = _Progress.of(instance, schedule)
    gang = _width(instance, schedule)
    if instance.copies is not None:
        # Each copy holds its node whole.
        gang = instance.cluster.gpus_per_node[schedule.node].astype(np.float64)
    lost_gpu_s = math.fsum((progress.lost_s * gang).tolist())
    begin_s = float(instance.workload.arrival_s.min(initial=math.inf))
    end_s = float(schedule.end_s.max(initial=-math.inf))
    whole_gpu_s = max(end_s - begin_s, 0.0) * instance.cluster.physical_gpus
    faults, down_gpu_s = _down(failures, instance, begin_s, end_s)
    saved_gpu_s = math.fsum((progress.made_s * gang).tolist()) - lost_gpu_s
    return FailureMetrics(
        faults=faults,
        failed_runs=len(progress.failed),
        lost_gpu_s=lost_gpu_s,
        checkpoint_gpu_s=math.fsum(((progress.elapsed_s - progress.made_s) * gang).tolist()),
        availability=1.0 - down_gpu_s / whole_gpu_s if whole_gpu_s else 1.0,
        goodput=saved_gpu_s / whole_gpu_s if whole_gpu_s else 0.0,
    )


@dataclass(frozen=True)
class _Progress:
    """Time without overheads of each of :attr:`Schedule.runs`, or copy, progress in it, and what of that was lost [s].

    Checkpoints are counted from the beginning of a run, which may have several rows; all is exact.
    """

    rows: NDArray[np.int64]
    elapsed_s: Times
    made_s: Times
    lost_s: Times
    failed: NDArray[np.int64]
    """:func:`failed_runs`."""

    @classmethod
    def of(cls, instance: Instance, schedule: Schedule) -> _Progress:
        rule = Checkpointing() if instance.failures is None else instance.failures.checkpoints
        failed = failed_runs(instance, schedule)
        rows = schedule.runs if instance.copies is None else np.arange(len(schedule))
        elapsed: Times = schedule.end_s[rows] - schedule.start_s[rows] - schedule.overhead_s[rows]
        if instance.copies is not None:
            # A copy that is struck loses what it did in its round, and the others nothing.
            lost = np.where(np.isin(rows, failed), elapsed, 0.0)
            return cls(rows, elapsed, elapsed, lost, failed)
        begins = np.flatnonzero(~schedule.continues[rows])
        run = np.cumsum(~schedule.continues[rows]) - 1
        total = np.cumsum(to_ticks(elapsed))
        before = (total - to_ticks(elapsed))[begins][run] if len(rows) else total
        until = rule.progress_s((total - before) * TICK_S)
        since = np.where(schedule.continues[rows], np.append(0.0, until[:-1]), 0.0)[: len(rows)]
        lost = np.zeros(len(rows))
        for last in np.flatnonzero(np.isin(rows, failed)).tolist():
            parts = slice(int(begins[run[last]]), last + 1)
            saved_s = rule.saved_ticks(int((total - before)[last])) * TICK_S
            lost[parts] = until[parts] - np.clip(saved_s, since[parts], until[parts])
        return cls(rows, elapsed, until - since, lost, failed)


def _width(instance: Instance, schedule: Schedule) -> Times:
    """GPUs of each of :attr:`Schedule.runs`: of a part of one that part, half of shared ones, of cores none."""
    order = np.lexsort((-schedule.end_s, schedule.start_s, schedule.job))
    if not len(order):
        return np.zeros(0)
    first = np.concatenate(([0], np.cumsum(schedule.pieces)[:-1]))
    jobs = instance.workload
    part = np.where(jobs.on_cores, 0.0, jobs.gpu_milli / WHOLE_GPU)
    held = schedule.gpus[order] * part[schedule.job[order]]
    held = np.where(schedule.partner[order] >= 0, held / 2, held)
    return np.add.reduceat(held, first)


def _down(
    failures: NodeFailures, instance: Instance, begin_s: float, end_s: float
) -> tuple[int, float]:
    """Faults in a span, and GPU time of nodes that are down in it [GPU-s]."""
    down_s = np.clip(failures.down_s, begin_s, max(begin_s, end_s))
    up_s = np.clip(failures.up_s, begin_s, max(begin_s, end_s))
    of_node = [0 if node.gpu_type == CORES else node.gpus for node in instance.cluster.nodes]
    gpus = np.array(of_node, dtype=np.int64)[failures.node]
    inside = (failures.down_s >= begin_s) & (failures.down_s < end_s)
    lost = (up_s - down_s) * gpus if len(gpus) and math.isfinite(begin_s) else np.zeros(0)
    return int(np.count_nonzero(inside)), math.fsum(lost.tolist())
