"""One line on each metric that a run's summary prints; the glossary has the same lines."""

from __future__ import annotations

from collections.abc import Mapping

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
"""By name; a name that ends in ``_s`` is in seconds, and beside it the table has hours and minutes."""
