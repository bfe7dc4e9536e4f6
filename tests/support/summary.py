"""Keys of an outcome's summary, which the command line prints as they are."""

from __future__ import annotations

SUMMARY_KEYS = [
    "policy",
    "jobs",
    "completed",
    "avg_jct_s",
    "p50_jct_s",
    "p95_jct_s",
    "p99_jct_s",
    "makespan_s",
    "utilization",
    "preemptions",
    "verified",
    "cpu_s",
    "cru",
    "ttd_s",
    "mean_queueing_s",
    "mean_ftf",
    "max_ftf",
]
