"""Measures of a verified run for its score: waiting, fairness, starvation, idle GPUs and what preemption cost.

Times are counted in whole ticks, so that the same schedule has the same measures on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.audit.measures import Levels, narrowest
from shadowprice.analysis.availability import lost_work_s
from shadowprice.analysis.outcome import Outcome
from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Pools

KNOWS = frozenset({Feature.RATES, Feature.TYPES, Feature.CHARGES, Feature.FAILURES})
"""Runs that are measured: every job holds its whole gang, alone."""

TENFOLD = 10
"""Slowdown from which on a job counts as starved."""

_NAMED = 3
"""Jobs that are named: those that waited longest."""

Ticks = NDArray[np.int64]


@dataclass(frozen=True)
class WaitingJob:
    """A job and its waiting.

    Parameters
    ----------
    job_id : str
    gpus : int
    shortest_s, wait_s : float
        Its run time at best, and the time in which it was there without GPUs [s].
    """

    job_id: str
    gpus: int
    shortest_s: float
    wait_s: float


@dataclass(frozen=True)
class ScoreMeasures:
    """Measures of one run.

    Parameters
    ----------
    jobs : int
    mean_wait_s, longest_wait_s : float
        Time without GPUs before completion, of a job: on average, and the most [s].
    mean_slower_s : float
        Time by which runs of a job are longer than at best, charges and lost work left out: on slower GPUs, and to
        write checkpoints; on average [s].
    longest_pause_s : float
        Longest stretch in which one job held no GPU [s].
    mean_slowdown, largest_slowdown : float
        Completion time over run time at best.
    slowed_tenfold : int
        Jobs whose slowdown is 10 or more.
    mean_ftf, largest_ftf : float
        Finish-time fairness, as of every run.
    waiting_of_top_tenth : float
        Share of all waiting that the tenth of the jobs had which waited longest.
    longest : tuple of WaitingJob
        Jobs that waited longest.
    wide_gpus, wide_jobs : int
        Least gang that counts as wide, half of the widest, and jobs so wide; 0 where all gangs are alike.
    wide_wait_s, narrow_wait_s : float
        Mean waiting of these jobs, and of the others [s].
    idle_gpu_s : float
        GPU time that was free while a job waited that would have fit by count [GPU-s].
    gpu_s : float
        GPU time of the cluster from the first arrival to the last completion [GPU-s].
    preemptions : int
    charged_gpu_s, lost_gpu_s : float
        GPU time of starts, restarts and migrations, and of work that was done and lost [GPU-s].
    """

    jobs: int
    mean_wait_s: float
    longest_wait_s: float
    mean_slower_s: float
    longest_pause_s: float
    mean_slowdown: float
    largest_slowdown: float
    slowed_tenfold: int
    mean_ftf: float
    largest_ftf: float
    waiting_of_top_tenth: float
    longest: tuple[WaitingJob, ...]
    wide_gpus: int
    wide_jobs: int
    wide_wait_s: float
    narrow_wait_s: float
    idle_gpu_s: float
    gpu_s: float
    preemptions: int
    charged_gpu_s: float
    lost_gpu_s: float

    @classmethod
    def of(cls, outcome: Outcome) -> ScoreMeasures:
        """Measures of a verified outcome with one job at least; O(R log R) for R rows, times the gang sizes.

        Raises
        ------
        InputError
            If its instance has features that are not in ``KNOWS``.
        """
        require(outcome.instance, KNOWS, "scores")
        jobs, schedule = outcome.instance.workload, outcome.schedule
        pauses = Pauses.of(outcome)
        wait = np.zeros(len(jobs), dtype=np.int64)
        np.add.at(wait, pauses.job, pauses.end - pauses.begin)
        order = np.argsort(-wait, kind="stable")
        tenth = order[: max(len(jobs) // TENFOLD, 1)]
        shortest_s = outcome.instance.shortest_s
        slowdown = outcome.jct_s / shortest_s
        summary = outcome.summary()
        widest = int(jobs.gpus.max())
        wide = 2 * jobs.gpus >= widest
        alike = bool(wide.all())
        charged = to_ticks(schedule.overhead_s) * schedule.gpus
        lost_s = lost_work_s(outcome.instance, schedule)
        return cls(
            jobs=len(jobs),
            mean_wait_s=_mean_s(wait),
            longest_wait_s=float(wait.max()) / TICKS_PER_S,
            mean_slower_s=_mean_s(_slower(outcome, to_ticks(lost_s))),
            longest_pause_s=float((pauses.end - pauses.begin).max(initial=0)) / TICKS_PER_S,
            mean_slowdown=math.fsum(slowdown.tolist()) / len(jobs),
            largest_slowdown=float(slowdown.max()),
            slowed_tenfold=int(np.count_nonzero(slowdown >= TENFOLD)),
            mean_ftf=_number(summary["mean_ftf"]),
            largest_ftf=_number(summary["max_ftf"]),
            waiting_of_top_tenth=float(wait[tenth].sum() / wait.sum()) if wait.any() else 0.0,
            longest=tuple(
                WaitingJob(
                    str(jobs.id[job]),
                    int(jobs.gpus[job]),
                    float(shortest_s[job]),
                    float(wait[job]) / TICKS_PER_S,
                )
                for job in order[:_NAMED].tolist()
                if wait[job]
            ),
            wide_gpus=0 if alike else -(-widest // 2),
            wide_jobs=0 if alike else int(np.count_nonzero(wide)),
            wide_wait_s=0.0 if alike else _mean_s(wait[wide]),
            narrow_wait_s=0.0 if alike else _mean_s(wait[~wide]),
            idle_gpu_s=idle_gpu_ticks(outcome, pauses) / TICKS_PER_S,
            gpu_s=outcome.totals.makespan_s(outcome.instance)
            * outcome.instance.cluster.physical_gpus,
            preemptions=int(outcome.totals.preemptions.sum()),
            charged_gpu_s=int(charged.sum()) / TICKS_PER_S,
            lost_gpu_s=math.fsum((lost_s * jobs.gpus).tolist()),
        )


def _slower(outcome: Outcome, lost: Ticks) -> Ticks:
    """Time of every job beyond its run time at best in which it ran and neither owed nor lost [ticks]."""
    schedule, runs = outcome.schedule, outcome.schedule.runs
    owed = np.zeros(len(lost), dtype=np.int64)
    np.add.at(owed, schedule.job[runs], to_ticks(schedule.overhead_s[runs]))
    ran = to_ticks(outcome.totals.ran_s)
    slower: Ticks = ran - to_ticks(outcome.instance.shortest_s) - owed - lost
    return slower


def _number(value: object) -> float:
    assert isinstance(value, float)  # There are jobs, and all are complete.
    return value


def _mean_s(ticks: Ticks) -> float:
    """Mean of whole ticks [s], rounded once."""
    return float(Fraction(int(ticks.sum()), len(ticks) * TICKS_PER_S))


@dataclass(frozen=True, eq=False)
class Pauses:
    """Stretches in which jobs that have arrived hold no GPU: before their first run, and between runs [ticks]."""

    job: Ticks
    begin: Ticks
    end: Ticks

    @classmethod
    def of(cls, outcome: Outcome) -> Pauses:
        """All of them that take time, in order of the jobs; O(R log R)."""
        schedule, runs = outcome.schedule, outcome.schedule.runs
        job = schedule.job[runs]
        start, end = to_ticks(schedule.start_s[runs]), to_ticks(schedule.end_s[runs])
        arrival = to_ticks(outcome.instance.workload.arrival_s)[job]
        first = np.append(True, job[1:] != job[:-1]) if len(job) else np.zeros(0, dtype=bool)
        before = np.where(first, arrival, np.append(0, end[:-1]) if len(job) else arrival)
        long = start > before
        return cls(job[long], before[long], start[long])


def idle_gpu_ticks(outcome: Outcome, pauses: Pauses) -> int:
    """GPU time that was free while a job waited that would have fit by count [GPU-ticks].

    Of GPU types each is looked at by itself, with the jobs that can run there. GPUs of nodes that are down are not
    free.
    """
    instance, schedule = outcome.instance, outcome.schedule
    cluster, jobs = instance.cluster, instance.workload
    pools = Pools.of(instance)
    one = len(pools.names) == 1
    pool_of_node = np.zeros(len(cluster.nodes), dtype=np.int64) if one else cluster.type_of_node
    able = np.isfinite(instance.processing_s)
    start, end = to_ticks(schedule.start_s), to_ticks(schedule.end_s)
    total = 0
    for pool, gpus in enumerate(pools.gpus.tolist()):
        here = pool_of_node[schedule.node] == pool
        taken = [(start[here], end[here], schedule.gpus[here])]
        if instance.failures is not None:
            nodes = instance.failures.node
            down = pool_of_node[nodes] == pool
            taken.append(
                (
                    to_ticks(instance.failures.down_s[down]),
                    to_ticks(np.minimum(instance.failures.up_s[down], schedule.end_s.max())),
                    cluster.gpus_per_node[nodes[down]],
                )
            )
        mine = np.ones(len(jobs), dtype=bool) if one else able[:, pool]
        total += _idle_of_pool(gpus, taken, pauses, np.where(mine, jobs.gpus, 0))
    return total


def _idle_of_pool(
    gpus: int, taken: list[tuple[Ticks, Ticks, Ticks]], pauses: Pauses, gang: Ticks
) -> int:
    """As :func:`idle_gpu_ticks`, of one pool; gangs are 0 of jobs that cannot run there."""
    wanted = gang[pauses.job]
    begins = [begin for begin, _, _ in taken] + [pauses.begin]
    ends = [end for _, end, _ in taken] + [pauses.end]
    moments = np.unique(np.concatenate(begins + ends))
    free = np.full(len(moments), gpus, dtype=np.int64)
    for begin, end, amount in taken:
        free -= Levels.of(begin, np.maximum(begin, end), amount).at(moments).astype(np.int64)
    least = narrowest(moments, pauses.begin, pauses.end, wanted)
    fits = least[:-1] <= free[:-1]
    return int((free[:-1] * np.diff(moments))[fits].sum())
