"""Metrics of a verified schedule: one vector over jobs, or one number, each.

=================  =============================================================================
job completion     C_j - r_j: completion minus arrival, the field's JCT (Tiresias, NSDI'19,
time               section 2; recalled)
queueing delay     the part of the job completion time in which the job holds no GPU; also the
                   pauses after a preemption, not only the wait for the first start
preemptions        runs of a job beyond its first, those after a failed run left out; of copies,
                   pauses of a round or more
makespan           last completion minus first arrival
utilization        GPU time held, overheads included, over (GPUs x makespan); a copy holds its node. Cores
                   of nodes that have no GPUs are no GPUs, and have a utilisation of their own
jobs present       jobs that have arrived and are not complete, itself among them, on average
                   over a job's time from arrival to completion: the contention of finish-time
                   fairness (Themis, NSDI'20; recalled)
=================  =============================================================================

Everything is O(n + R) for n jobs and R rows, except where :attr:`Schedule.runs` sorts the rows
once, and for the jobs present, O(n log n). Sums are correctly rounded (:func:`math.fsum`, or whole numbers), so that
the same schedule has the same metrics, to the last bit, on every machine.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.availability import failures_of_jobs
from shadowprice.instances.cluster import CORES
from shadowprice.instances.grid import TICK_S, TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload import WHOLE_GPU


def end_s(instance: Instance, schedule: Schedule) -> NDArray[np.float64]:
    """Time of every job's last row [s], its completion if it is complete, shape (n,).

    Minus infinity where a job never runs.
    """
    last = np.full(len(instance.workload), -np.inf)
    np.maximum.at(last, schedule.job, schedule.end_s)
    return last


def first_start_s(instance: Instance, schedule: Schedule) -> NDArray[np.float64]:
    """First start of every job [s], shape (n,); infinity where a job never runs."""
    first = np.full(len(instance.workload), np.inf)
    np.minimum.at(first, schedule.job, schedule.start_s)
    return first


def jct_s(instance: Instance, schedule: Schedule) -> NDArray[np.float64]:
    """Completion minus arrival of every job [s], shape (n,)."""
    duration: NDArray[np.float64] = end_s(instance, schedule) - instance.workload.arrival_s
    return duration


def preemptions(instance: Instance, schedule: Schedule) -> NDArray[np.int64]:
    """Runs of every job beyond its first, shape (n,); a change of partners interrupts nothing.

    Copies are averaged between rounds that follow each other: only later rounds are runs of their own.
    """
    jobs, rules = len(instance.workload), instance.copies
    if rules is not None:
        job, start_s = schedule.job[schedule.runs], schedule.start_s[schedule.runs]
        paused = (job[1:] == job[:-1]) & (np.diff(start_s) > rules.round_s)
        return np.bincount(job[1:][paused], minlength=jobs)
    started = schedule.runs[~schedule.continues[schedule.runs]]
    runs = np.bincount(schedule.job[started], minlength=jobs)
    begun: NDArray[np.int64] = runs - failures_of_jobs(instance, schedule)
    return np.maximum(begun - 1, 0)


def most_copies(instance: Instance, schedule: Schedule) -> NDArray[np.int64]:
    """Largest number of copies of every job in a round, shape (n,)."""
    most = np.zeros(len(instance.workload), dtype=np.int64)
    np.maximum.at(most, schedule.job[schedule.runs], schedule.pieces)
    return most


def ran_s(instance: Instance, schedule: Schedule) -> NDArray[np.float64]:
    """Time in which every job held GPUs [s], shape (n,)."""
    runs = schedule.runs
    lengths = schedule.end_s[runs] - schedule.start_s[runs]
    # Lengths are multiples of 2**-20 s: these sums are exact.
    jobs = len(instance.workload)
    return np.bincount(schedule.job[runs], weights=lengths, minlength=jobs).astype(np.float64)


def types_used(instance: Instance, schedule: Schedule) -> NDArray[np.bool_]:
    """True where a job ran on a GPU type of the cluster, shape (n, types), types in order of their names."""
    names = sorted(instance.cluster.gpu_types)
    rank = np.array([names.index(name) for name in instance.cluster.gpu_types], dtype=np.int64)
    used = np.zeros((len(instance.workload), len(names)), dtype=bool)
    used[schedule.job, rank[instance.cluster.type_of_node[schedule.node]]] = True
    return used


def names_of_types(instance: Instance, used: NDArray[np.bool_]) -> NDArray[np.object_]:
    """GPU types every job ran on, by name with bars between them, shape (n,); empty if it never ran."""
    names = np.array(sorted(instance.cluster.gpu_types), dtype=object)
    patterns, of = np.unique(used, axis=0, return_inverse=True)
    return np.array(["|".join(names[row]) for row in patterns] + [""], dtype=object)[of.reshape(-1)]


def jobs_present(arrival_s: NDArray[np.float64], end_s: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Number of jobs present, averaged over each job's stay, shape (n,); at least 1.

    .. math:: \bar n_j = \frac{1}{C_j - r_j} \int_{r_j}^{C_j} |\{i : r_i \le t < C_i\}| \, dt

    Parameters
    ----------
    arrival_s, end_s : ndarray, shape (n,)
        r_j and C_j [s], C_j > r_j, multiples of a tick.

    Notes
    -----
    Sums of whole seconds and of ticks are kept apart, so that they are exact in 64 bits however
    long the trace is: a job of a second among years of others has its own average.
    """
    moments, position = np.unique(np.concatenate((arrival_s, end_s)), return_inverse=True)
    jobs = len(arrival_s)
    arrived, left = position[:jobs], position[jobs:]
    here = np.cumsum(
        np.bincount(arrived, minlength=len(moments)) - np.bincount(left, minlength=len(moments))
    )
    whole, ticks = np.divmod(np.diff(to_ticks(moments)), TICKS_PER_S)
    stay_s = np.zeros(jobs)
    for lengths, unit_s in ((whole, 1.0), (ticks, TICK_S)):
        until = np.concatenate(([0], np.cumsum(here[:-1] * lengths)))
        stay_s += (until[left] - until[arrived]) * unit_s
    # Ends that are an arrival plus a duration in floats lie beside their ticks: the job itself is there all the same.
    present: NDArray[np.float64] = np.maximum(stay_s / (end_s - arrival_s), 1.0)
    return present


def exact_held_gpu_s(instance: Instance, schedule: Schedule) -> Fraction:
    """GPU time held [GPU-s], without rounding; two jobs that share GPUs hold them once, cores are none."""
    factor, unit = held_gpus(instance, schedule) * np.where(schedule.partner >= 0, 1, 2), 2
    if instance.cluster.cores:
        factor = np.where(_of_cores(instance)[schedule.node], 0, factor)
    if instance.workload.fractional.any():
        factor, unit = factor * instance.workload.gpu_milli[schedule.job], unit * WHOLE_GPU
    return exact_total_s(factor, schedule) / unit


def exact_held_core_s(instance: Instance, schedule: Schedule) -> Fraction:
    """Time of cores held on nodes that have no GPUs [core-s], without rounding."""
    if not instance.cluster.cores:
        return Fraction(0)
    return exact_total_s(np.where(_of_cores(instance)[schedule.node], schedule.gpus, 0), schedule)


def _of_cores(instance: Instance) -> NDArray[np.bool_]:
    """True for nodes that have cores instead of GPUs, shape (nodes,)."""
    return np.array([node.gpu_type == CORES for node in instance.cluster.nodes], dtype=np.bool_)


def exact_total_s(factor: NDArray[np.int64], schedule: Schedule) -> Fraction:
    """Lengths of all rows [s], each times a whole number, added up without rounding."""
    whole, ticks = np.divmod(to_ticks(schedule.end_s - schedule.start_s), TICKS_PER_S)
    return Fraction(int(factor @ whole)) + Fraction(int(factor @ ticks), TICKS_PER_S)


def held_gpus(instance: Instance, schedule: Schedule) -> NDArray[np.int64]:
    """GPUs of its node that each row holds, shape (R,): of a copy all of them, used or not."""
    if instance.copies is None:
        return schedule.gpus
    return instance.cluster.gpus_per_node[schedule.node]


def mean(values: NDArray[np.float64]) -> float | None:
    """Mean, correctly rounded sum over count; None of nothing."""
    return math.fsum(values.tolist()) / len(values) if len(values) else None


def percentiles(values: NDArray[np.float64], ranks: tuple[float, ...]) -> list[float | None]:
    """Percentiles by linear interpolation between order statistics; None of nothing."""
    if len(values) == 0:
        return [None] * len(ranks)
    at_ranks: list[float | None] = np.percentile(values, ranks).tolist()
    return at_ranks
