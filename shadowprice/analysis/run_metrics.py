r"""Metrics of whole runs, as the Hadar papers define them, of any policy.

==================  ============================================================================
TTD                 total time duration: first start to last completion (recalled). With all jobs
                    there at 0 it is the makespan.
CRU                 cluster resource utilisation: busy GPU time over GPUs x TTD; of copies busy node
                    time over nodes x TTD (recalled; wording derived). Overheads are busy.
JCT                 completion minus arrival
queueing delay      time before completion without any GPU; and, apart, the time to the first start.
                    The paper leaves open which (derived): both are given.
FTF                 finish-time fairness :math:`\rho_j` = JCT over that in an isolated n-th of the
                    cluster: the fraction :math:`c_r / (n g_j)` of the time on every type r of c_r
                    GPUs, scaled down to 1 in all, as in Gavel's code (read).
==================  ============================================================================

n is the number of jobs present, averaged over the job's stay
(:func:`shadowprice.analysis.metrics.jobs_present`): Themis (NSDI 2020; recalled) multiplies the time on
the whole cluster by the average contention while the job was there, and Gavel's programme (read)
takes the jobs present at each of its calls. One share for the whole stay, at the average, is
Themis' way. Hadar's own n is recalled as the number of jobs, all there at once: give it as ``sharing``. Everything is
O(n types + n log n + R log R) for R rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis import metrics
from shadowprice.analysis.job_totals import JobTotals
from shadowprice.errors import InputError
from shadowprice.instances.instance import Instance

if TYPE_CHECKING:
    from shadowprice.instances.schedule import Schedule

Times = NDArray[np.float64]

SUMMARY = ("cru", "ttd_s", "mean_queueing_s", "mean_ftf", "max_ftf")
"""What summaries of runs have of the table; the rest is there under other names."""


REPEATS: Mapping[str, str] = {"cru": "utilization", "ttd_s": "makespan_s"}
"""Metrics that are printed only where they differ from another one."""

METRICS: Mapping[str, str] = {
    "policy": "Name of the policy.",
    "jobs": "Jobs of the instance.",
    "completed": "Jobs that are complete.",
    "stopped_s": "Time at which the run was stopped [s].",
    "arrived_not_completed": "Jobs that had arrived when the run was stopped, and are not complete.",
    "not_arrived": "Jobs that had not arrived when the run was stopped.",
    "window": "Jobs that statistics are of; the run ends when they are complete.",
    "avg_jct_of_completed_s": "Mean JCT of the jobs that were complete when the run was stopped [s].",
    "avg_jct_s": "Mean job completion time: completion minus arrival [s].",
    "p50_jct_s": "JCT that half of the jobs do not exceed [s].",
    "p95_jct_s": "JCT that 95 % of the jobs do not exceed [s].",
    "p99_jct_s": "JCT that 99 % of the jobs do not exceed [s].",
    "makespan_s": "From the first arrival to the last completion [s].",
    "utilization": "GPU time that jobs held, overheads included, over the cluster's GPU time within the makespan.",
    "core_utilization": "The same of cores on nodes without GPUs.",
    "preemptions": "Times that a running job was stopped before its end.",
    "verified": "Whether the verifier accepted the schedule; else nothing is printed.",
    "cpu_s": "CPU time of the simulation on this machine [s].",
    "cru": "Cluster resource utilisation: as utilization, but from the first start to the last completion.",
    "ttd_s": "Total time duration: from the first start to the last completion [s].",
    "mean_queueing_s": "Mean time before completion without any GPU [s].",
    "mean_ftf": "Mean finish-time fairness: JCT over that in an isolated n-th of the cluster, n jobs being there.",
    "max_ftf": "Largest finish-time fairness of a job.",
    "mean_copies": "Mean number of copies as which jobs ran.",
    "faults": "Times that nodes went down.",
    "failed_runs": "Runs that a node cut short.",
    "lost_gpu_s": "GPU time of progress that was lost since the last checkpoint [GPU-s].",
    "checkpoint_gpu_s": "GPU time held to write checkpoints [GPU-s].",
    "availability": "GPU time of nodes that are up, over the cluster's GPU time.",
    "goodput": "GPU time of progress that was kept, over the cluster's GPU time.",
}
"""One line on each metric that summaries print, by name; the glossary has the same lines."""


@dataclass(frozen=True)
class RunMetrics:
    """The table of the module, of one run; statistics of no jobs are None.

    Parameters
    ----------
    cru : float
        Share from 0 to 1.
    ttd_s, mean_jct_s, median_jct_s, p95_jct_s, mean_queueing_s, mean_first_wait_s : float
        Seconds.
    mean_ftf, max_ftf : float
        Ratios; below 1 is better than an isolated share.
    """

    cru: float
    ttd_s: float
    mean_jct_s: float | None
    median_jct_s: float | None
    p95_jct_s: float | None
    mean_queueing_s: float | None
    mean_first_wait_s: float | None
    mean_ftf: float | None
    max_ftf: float | None

    def to_dict(self) -> dict[str, float | None]:
        """Values by name."""
        return asdict(self)

    def summary(self) -> dict[str, float | None]:
        """Those of every summary, by the names in :data:`SUMMARY`."""
        return {name: getattr(self, name) for name in SUMMARY}


def of_schedule(
    instance: Instance,
    schedule: Schedule,
    sharing: int | None = None,
    complete: NDArray[np.bool_] | None = None,
) -> RunMetrics:
    """Metrics of a schedule that was verified, as an outcome's is.

    Where the run ended with a window of jobs, statistics of jobs are of these.

    Parameters
    ----------
    complete : ndarray of bool, shape (n,), optional
        Jobs that are complete, as the verifier says; all if not given.
    sharing : int, optional
        n of finish-time fairness, at least 1; the jobs present, on average over each job's stay,
        if not given.

    Raises
    ------
    InputError
        If ``sharing`` is below 1.
    """
    return of_totals(instance, JobTotals.of(instance, schedule), sharing, complete)


def of_totals(
    instance: Instance,
    totals: JobTotals,
    sharing: int | None = None,
    complete: NDArray[np.bool_] | None = None,
) -> RunMetrics:
    """As :func:`of_schedule`, of the totals of its jobs."""
    ttd_s = totals.end_s - totals.begin_s if totals.end_s > totals.begin_s else 0.0
    window = instance.until_complete
    measured = slice(None) if window is None else window.rows
    arrival_s = instance.workload.arrival_s
    jct = totals.last_end_s - arrival_s
    queueing = (jct - totals.ran_s)[measured]
    first_wait = (totals.first_start_s - arrival_s)[measured]
    stays = jct if complete is None else np.where(complete, jct, np.inf)
    fairness = finish_time_fairness(instance, stays, sharing)[measured]
    jct = jct[measured]
    median, p95 = metrics.percentiles(jct, (50, 95))
    return RunMetrics(
        cru=share_busy(instance, totals, ttd_s),
        ttd_s=ttd_s,
        mean_jct_s=metrics.mean(jct),
        median_jct_s=median,
        p95_jct_s=p95,
        mean_queueing_s=metrics.mean(queueing),
        mean_first_wait_s=metrics.mean(first_wait),
        mean_ftf=metrics.mean(fairness),
        max_ftf=float(fairness.max()) if len(fairness) else None,
    )


def share_busy(instance: Instance, totals: JobTotals, time_s: float) -> float:
    """Share of a time [s] in which a GPU, or a node where copies hold nodes, is busy on average; 0 of none."""
    cluster = instance.cluster
    units = cluster.physical_gpus if instance.copies is None else len(cluster.nodes)
    return float(totals.busy_s) / units / time_s if time_s and units else 0.0


def isolated_s(instance: Instance, sharing: int | Times) -> Times:
    """Run time of every job [s] in an isolated share of one n-th of the cluster, shape (n,).

    Parameters
    ----------
    sharing : int or ndarray, shape (n,)
        n, of every job if it is an array; at least 1.

    Raises
    ------
    InputError
        If ``sharing`` is below 1.
    """
    workload, cluster = instance.workload, instance.cluster
    n = np.broadcast_to(np.asarray(sharing, dtype=np.float64), len(workload))
    if not (n >= 1).all():
        raise InputError(f"finish-time fairness: sharing is {sharing!r}, expected at least 1")
    # Types on which a gang cannot run are of no use to it; those it can run on give their part.
    parts = cluster.gpus_per_type / (n * workload.gpus)[:, None]
    parts = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1.0)
    progress: Times = (parts / instance.processing_s).sum(axis=1)
    return 1.0 / progress


def finish_time_fairness(instance: Instance, jct_s: Times, sharing: int | None = None) -> Times:
    """FTF of every job, shape (n,); below 1 is better than an isolated share.

    Parameters
    ----------
    jct_s : ndarray, shape (n,)
        Completion minus arrival [s]; infinite of jobs that are not complete. Their FTF is infinite, and
        they count as present until the last that are complete.
    sharing : int, optional
        n for all jobs; the jobs present, on average over each job's stay, if not given.

    Raises
    ------
    InputError
        If ``sharing`` is below 1.
    """
    arrival_s = instance.workload.arrival_s
    end_s = arrival_s + jct_s
    last_s = end_s.max(where=np.isfinite(end_s), initial=0.0)
    until_s = np.where(np.isfinite(end_s), end_s, last_s)
    present = metrics.jobs_present(arrival_s, until_s) if sharing is None else sharing
    fairness: Times = jct_s / isolated_s(instance, present)
    return fairness
