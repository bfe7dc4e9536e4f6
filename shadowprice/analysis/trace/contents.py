"""Numbers that describe a trace: arrivals, gangs, durations, whose GPU time it is, and what recurs.

GPU time is that of the jobs as they ran (parts of a GPU count as such), whatever a policy makes of them. Jobs that hold
cores instead of GPUs have none; the time of their cores is told apart. Hours are
counted from the first arrival, since a workload does not know the hour of its log's clock.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis import metrics
from shadowprice.brief import Brief
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.generators.rescaling import offered_load
from shadowprice.instances.workload import Workload

HOUR_S = 3600.0
QUANTILES = (5, 25, 50, 75, 95, 99)
MOST_GROUPS = 12
"""Groups of jobs that are listed; the rest is one line."""

OTHERS = "(others)"
UNKNOWN = "(unknown)"
ON_CORES = "none, but cores"
"""Gang of the jobs that hold no GPU."""


@dataclass(frozen=True)
class Part:
    """Jobs that have something in common.

    Parameters
    ----------
    name : str
        What they have in common.
    jobs : int
        How many.
    gpu_h : float
        Their GPU time [GPU-h].
    share_of_jobs, share_of_gpu_time : float
        Of the whole trace.
    median_s : float
        Median of the run times of those that can run [s]; NaN where none can.
    """

    name: str
    jobs: int
    gpu_h: float
    share_of_jobs: float
    share_of_gpu_time: float
    median_s: float


@dataclass(frozen=True)
class Recurrence:
    """Jobs that run the same program on the same inputs.

    Parameters
    ----------
    groups : int
        Groups with two jobs or more.
    jobs, share_of_jobs
        Jobs in them.
    median_spread : float
        Median over these groups of the longest run time over the shortest; 1 where all are equal.
    """

    groups: int
    jobs: int
    share_of_jobs: float
    median_spread: float


@dataclass(frozen=True, repr=False)
class Contents(Brief):
    """Contents of a trace.

    Parameters
    ----------
    jobs : int
    span_s : float
        From the first arrival to the last [s].
    gpu_h : float
        GPU time of all jobs [GPU-h].
    core_h : float
        Time of the cores of jobs that hold no GPU [core-h].
    mean_gap_s, gap_cv, same_moment : float
        Mean time between arrivals [s], their standard deviation over it (1 of a Poisson process), and the share
        of jobs that arrive at the very moment of the one before; NaN of one job.
    durations_s : mapping of str to float
        Quantiles and mean of run times [s].
    by_gang, by_class, by_tenant, by_outcome, by_type : tuple of Part
        Jobs by gang, class, tenant, outcome and allowed GPU types; the last four most GPU time first.
    by_hour : tuple of int
        Arrivals by hour of the day, counted from the first arrival; 24 of them.
    recurrence : Recurrence or None
        None where no job has a group.
    of_limit : mapping of str to float
        Quantiles of run time over the limit that was submitted, of jobs with one; empty where none has.
    load : float or None
        Load offered to a cluster that was given; None without, or where all jobs arrive at one moment.
    infeasible : int
        Jobs that can never run on that cluster; not in its load.
    """

    jobs: int
    span_s: float
    gpu_h: float
    core_h: float
    mean_gap_s: float
    gap_cv: float
    same_moment: float
    durations_s: Mapping[str, float]
    by_gang: tuple[Part, ...]
    by_class: tuple[Part, ...]
    by_tenant: tuple[Part, ...]
    by_outcome: tuple[Part, ...]
    by_type: tuple[Part, ...]
    by_hour: tuple[int, ...]
    recurrence: Recurrence | None
    of_limit: Mapping[str, float]
    load: float | None
    infeasible: int

    def document(self) -> dict[str, object]:
        """The same as JSON has it; numbers that are none are null."""
        return {name: _finite(value) for name, value in asdict(self).items()}


def contents(workload: Workload, cluster: Cluster | None = None) -> Contents:
    """Describe a trace; O(n log n).

    Parameters
    ----------
    cluster : Cluster, optional
        Where the load is offered; run times are those on its fastest type. Without one jobs whose work
        is iterations have no run time, and their work is taken as seconds at its highest rate.
    """
    run_s = run_times_s(workload, cluster)
    able = np.isfinite(run_s)
    gpu_h = np.where(able, workload.held_gpus * run_s, 0.0) / HOUR_S
    gaps = np.diff(workload.arrival_s)
    span_s = float(workload.arrival_s[-1] - workload.arrival_s[0]) if len(workload) else 0.0
    known = able & np.isfinite(workload.limit_s)
    load = None
    if cluster is not None and cluster.physical_gpus and len(workload.select(able)) > 1:
        runnable = workload.select(able)
        if runnable.arrival_s[-1] > runnable.arrival_s[0]:
            load = offered_load(runnable, cluster.physical_gpus, run_s[able])
    core_h = np.where(able & workload.on_cores, workload.gpus * run_s, 0.0) / HOUR_S

    def parts(values: NDArray[np.object_], unknown: str = UNKNOWN) -> tuple[Part, ...]:
        names, of = np.unique(values, return_inverse=True)
        if names.tolist() == [""]:
            return ()
        return _parts([name or unknown for name in names.tolist()], of, run_s, gpu_h)

    hours = (workload.arrival_s // HOUR_S % 24).astype(np.int64)
    return Contents(
        jobs=len(workload),
        span_s=span_s,
        gpu_h=math.fsum(gpu_h.tolist()),
        core_h=math.fsum(core_h.tolist()),
        mean_gap_s=float(gaps.mean()) if len(gaps) else math.nan,
        gap_cv=float(gaps.std() / gaps.mean()) if gaps.any() else math.nan,
        same_moment=float((gaps == 0).mean()) if len(gaps) else math.nan,
        durations_s=_quantiles(run_s[able]),
        by_gang=_by_gang(workload, run_s, gpu_h),
        by_class=parts(workload.job_class),
        by_tenant=parts(workload.tenant),
        by_outcome=parts(workload.outcome),
        by_type=parts(workload.allowed_types, "(all)"),
        by_hour=tuple(np.bincount(hours, minlength=24).tolist()),
        recurrence=_recurrence(workload, run_s),
        of_limit=_quantiles((run_s / workload.limit_s)[known]) if known.any() else {},
        load=load,
        infeasible=int((~able).sum()),
    )


def run_times_s(workload: Workload, cluster: Cluster | None) -> NDArray[np.float64]:
    """Run time of every job [s], infinite where it cannot run."""
    if cluster is not None:
        times = workload.on_allowed_types(cluster).processing_s(cluster)
        return np.asarray(times.min(axis=1))
    if workload.throughput is None:
        return workload.work
    return np.asarray(workload.work / workload.throughput.max(axis=1))


def _by_gang(
    workload: Workload, run_s: NDArray[np.float64], gpu_h: NDArray[np.float64]
) -> tuple[Part, ...]:
    """Jobs by gang, narrowest first; of more sizes than are listed those between powers of two together."""
    with_gpus = ~workload.on_cores
    gang = np.where(workload.fractional, 0, workload.gpus)[with_gpus]
    sizes, of = np.unique(gang, return_inverse=True)
    names = ["part of one" if size == 0 else str(size) for size in sizes.tolist()]
    if len(sizes) > MOST_GROUPS:
        power = np.where(gang > 0, np.ceil(np.log2(np.maximum(gang, 1))) + 1, 0).astype(np.int64)
        powers, of = np.unique(power, return_inverse=True)
        names = [_between(k) for k in powers.tolist()]
    place = np.full(len(workload), len(names))
    place[with_gpus] = of
    if not with_gpus.all():
        names.append(ON_CORES)
    return _parts(names, place, run_s, gpu_h, in_order=True)


def _between(power: int) -> str:
    """Gangs above one power of two up to the next."""
    if power < 3:
        return ("part of one", "1", "2")[power]
    return f"{2 ** (power - 2) + 1}-{2 ** (power - 1)}"


def _parts(
    names: list[str],
    of: NDArray[np.int64],
    run_s: NDArray[np.float64],
    gpu_h: NDArray[np.float64],
    *,
    in_order: bool = False,
) -> tuple[Part, ...]:
    """Jobs by the name each has: as the names are, or most GPU time first and the rest of many together."""
    jobs = np.bincount(of, minlength=len(names))
    hours = np.bincount(of, gpu_h, minlength=len(names))
    groups = [[each] for each in range(len(names))]
    if not in_order:
        order = np.argsort(-hours, kind="stable").tolist()
        rest = [order[MOST_GROUPS:]] if len(order) > MOST_GROUPS else []
        groups = [[each] for each in order[:MOST_GROUPS]] + rest
    total_h, able = float(hours.sum()), np.isfinite(run_s)
    parts = []
    for group in groups:
        mine = run_s[np.isin(of, group) & able]
        parts.append(
            Part(
                name=names[group[0]] if len(group) == 1 else OTHERS,
                jobs=int(jobs[group].sum()),
                gpu_h=float(hours[group].sum()),
                share_of_jobs=float(jobs[group].sum() / len(of)),
                share_of_gpu_time=float(hours[group].sum()) / total_h if total_h else math.nan,
                median_s=float(np.median(mine)) if len(mine) else math.nan,
            )
        )
    return tuple(parts)


def _recurrence(workload: Workload, run_s: NDArray[np.float64]) -> Recurrence | None:
    known = (workload.group != "") & np.isfinite(run_s)
    if not known.any():
        return None
    _, of, size = np.unique(workload.group[known], return_inverse=True, return_counts=True)
    longest, shortest = np.full(len(size), 0.0), np.full(len(size), np.inf)
    np.maximum.at(longest, of, run_s[known])
    np.minimum.at(shortest, of, run_s[known])
    again = size > 1
    jobs = int(size[again].sum())
    spread = float(np.median((longest / shortest)[again])) if again.any() else math.nan
    return Recurrence(int(again.sum()), jobs, jobs / len(workload), spread)


def _quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    ranks = metrics.percentiles(values, QUANTILES)
    quantiles = {f"p{rank}": value for rank, value in zip(QUANTILES, ranks, strict=True)}
    numbers = {**quantiles, "mean": metrics.mean(values)}
    return {name: math.nan if value is None else value for name, value in numbers.items()}


def _finite(value: object) -> object:
    """A value as JSON can have it."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
