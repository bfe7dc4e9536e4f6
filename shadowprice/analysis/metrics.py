"""Metrics of a schedule: one vector or number each, from the columns alone.

Sources of the definitions: job completion time (JCT) = completion - arrival; queueing delay =
time from arrival to completion not spent running (Tiresias, NSDI'19, Table 4); utilization = GPU
time held / (GPUs x makespan).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule


def end_s(instance: Instance, schedule: Schedule) -> NDArray[np.float64]:
    """Completion time of every job [s], shape (n,)."""
    last = np.zeros(len(instance.workload))
    np.maximum.at(last, schedule.job, schedule.end_s)
    return last


def first_start_s(instance: Instance, schedule: Schedule) -> NDArray[np.float64]:
    """First start of every job [s], shape (n,)."""
    first = np.full(len(instance.workload), np.inf)
    np.minimum.at(first, schedule.job, schedule.start_s)
    return first


def jct_s(instance: Instance, schedule: Schedule) -> NDArray[np.float64]:
    """Completion minus arrival of every job [s], shape (n,)."""
    duration: NDArray[np.float64] = end_s(instance, schedule) - instance.workload.arrival_s
    return duration


def preemptions(instance: Instance, schedule: Schedule) -> NDArray[np.int64]:
    """Runs of every job beyond its first, shape (n,)."""
    runs = np.bincount(schedule.job[schedule.runs], minlength=len(instance.workload))
    return (runs - 1).astype(np.int64)


def queueing_delay_s(instance: Instance, schedule: Schedule) -> NDArray[np.float64]:
    """Time between arrival and completion in which the job did not run [s], shape (n,)."""
    runs = schedule.runs
    lengths = schedule.end_s[runs] - schedule.start_s[runs]
    ran = np.bincount(schedule.job[runs], weights=lengths, minlength=len(instance.workload))
    delay: NDArray[np.float64] = jct_s(instance, schedule) - ran
    return delay


def makespan_s(instance: Instance, schedule: Schedule) -> float:
    """Last completion minus first arrival [s]; 0 without jobs."""
    if len(schedule) == 0:
        return 0.0
    return float(schedule.end_s.max() - instance.workload.arrival_s.min())


def utilization(instance: Instance, schedule: Schedule) -> float:
    """Share of GPU time held by jobs, overheads included, over the makespan; 0 without jobs."""
    span_s = makespan_s(instance, schedule)
    if span_s == 0:
        return 0.0
    held = float(np.dot(schedule.gpus, schedule.end_s - schedule.start_s))
    return held / (instance.cluster.total_gpus * span_s)
