"""Measures of a verified schedule that has happened: who waited how long, use and queue over time, and why GPUs idled.

An idle GPU-hour is told by what was the matter then: nobody waited; all that waited were wider than what was free; or
a job that fits by count waited. Of these, where nodes are known: on no node, or no rack, were as many GPUs free as
it could have had them together (fragmentation); and the rest, which order, limits or partitions held back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.outcome import Outcome
from shadowprice.brief import Brief
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import to_grid

KNOWS = frozenset({Feature.RATES, Feature.TYPES, Feature.QUOTAS})
"""Schedules of which GPUs and jobs are counted: a job holds its gang, and whole GPUs of it."""

HOUR_S, DAY_S = 3600.0, 86_400.0
MOST_GROUPS = 12
"""Groups of one kind that are listed: those with most waiting."""
_MOST_CELLS = 200_000_000
"""Nodes times moments up to which fragmentation by node is told for every moment; beyond, for evenly spaced ones."""
_FEWER_MOMENTS = 20_000

Floats = NDArray[np.float64]
Times = NDArray[np.float64] | NDArray[np.int64]
"""Seconds, or ticks."""


@dataclass(frozen=True)
class WaitGroup:
    """Waiting of jobs that have something in common.

    Parameters
    ----------
    kind, name : str
        What they have in common: ``GPUs``, ``user``, ``tenant``, ``partition`` or ``hour``; and which.
    jobs : int
    mean_s, p95_s : float
        Wait until the first start [s].
    total_h : float
        Of all of them together [job-h].
    """

    kind: str
    name: str
    jobs: int
    mean_s: float
    p95_s: float
    total_h: float


@dataclass(frozen=True)
class IdleHours:
    """GPU-hours in which a GPU idled between the first submission and the last end, by what was the matter.

    Parameters
    ----------
    nobody_waits, too_wide : float
        No job waited; all that waited needed more GPUs than were free.
    by_node, by_rack : float
        A job that fits by count waited, and no node, or not as few nodes as it fits on, had its GPUs free; no rack had.
        0 where nodes, or racks, are not known.
    held_back : float
        A job waited that fits in any case.
    sampled : bool
        Whether fragmentation was looked at in evenly spaced moments only.
    """

    nobody_waits: float
    too_wide: float
    by_node: float
    by_rack: float
    held_back: float
    sampled: bool

    @property
    def total(self) -> float:
        """All idle GPU-hours."""
        return self.nobody_waits + self.too_wide + self.by_node + self.by_rack + self.held_back


@dataclass(frozen=True, eq=False, repr=False)
class Measures(Brief):
    """Measures of a recorded schedule.

    Parameters
    ----------
    waits : tuple of WaitGroup
        By kind; within one those with most waiting first, gangs and hours in their order.
    idle : IdleHours
    most_gpus : int
        Most GPUs that were held at once.
    most_by_day : ndarray of int
        The same for each day, from the first submission's midnight where the clock is known.
    day_begin_s : float
        When the first of these days begins, on the clock of the jobs [s]; 0 or before.
    """

    waits: tuple[WaitGroup, ...]
    idle: IdleHours
    most_gpus: int
    most_by_day: NDArray[np.int64]
    day_begin_s: float


@dataclass(frozen=True, eq=False, repr=False)
class Levels(Brief):
    """A step function: a value from each moment to the next."""

    time_s: NDArray[Any]
    value: Floats

    @classmethod
    def of(cls, begin: Times, end: Times, amount: Times) -> Levels:
        """Sum of amounts, each from its begin to its end; who ends leaves before who begins."""
        time = np.concatenate((begin, end))
        moments, place = np.unique(time, return_inverse=True)
        change = np.bincount(place, np.concatenate((amount, -amount)), minlength=len(moments))
        return cls(moments, np.cumsum(change))

    def at(self, time: Times) -> Floats:
        """Values at some times, 0 before the first moment."""
        place = np.searchsorted(self.time_s, time, side="right")
        return np.concatenate(([0.0], self.value))[place]

    def means(self, edges: Floats) -> Floats:
        """Mean between each two of some times, in order."""
        area = np.concatenate(([0.0], np.cumsum(self.value[:-1] * np.diff(self.time_s))))
        return np.diff(np.interp(edges, self.time_s, area)) / np.diff(edges)


def held_gpus(outcome: Outcome) -> Levels:
    """GPUs held over time."""
    s = outcome.schedule
    return Levels.of(s.start_s, s.end_s, s.gpus.astype(np.float64))


def waiting_gpus(outcome: Outcome, most: int | None = None) -> Levels:
    """GPUs that jobs wait for which have not begun, over time; of gangs up to a size, if one is said."""
    jobs = outcome.instance.workload
    first = outcome.totals.first_start_s
    mine = jobs.gpus <= (jobs.gpus.max() if most is None else most)
    gpus = jobs.gpus[mine].astype(np.float64)
    return Levels.of(jobs.arrival_s[mine], first[mine], gpus)


def measure(outcome: Outcome, *, origin_s: float | None = None) -> Measures:
    """Measures of a verified schedule; O(R log R) for R rows, times the number of gang sizes.

    Parameters
    ----------
    origin_s : float, optional
        Time 0 by the clock of the log, in seconds since 1970: hours and days are that clock's then.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(outcome.instance, KNOWS, "measures of what was run")
    day_begin_s = -float(to_grid((origin_s or 0.0) % DAY_S))
    held = held_gpus(outcome)
    return Measures(
        waits=tuple(_waits(outcome, day_begin_s)),
        idle=_idle(outcome, held),
        most_gpus=int(held.value.max(initial=0.0)),
        most_by_day=most_by_day(held, day_begin_s),
        day_begin_s=day_begin_s,
    )


def most_by_day(held: Levels, begin_s: float) -> NDArray[np.int64]:
    """Most GPUs held at once on each day, those included that are held when it begins."""
    if not len(held.time_s):
        return np.zeros(0, dtype=np.int64)
    day = ((held.time_s - begin_s) // DAY_S).astype(np.int64)
    most = held.at(begin_s + DAY_S * np.arange(day[-1] + 1.0))
    np.maximum.at(most, day, held.value)
    return most.astype(np.int64)


def _waits(outcome: Outcome, day_begin_s: float) -> list[WaitGroup]:
    jobs = outcome.instance.workload
    wait_s = outcome.totals.first_start_s - jobs.arrival_s
    hour = ((jobs.arrival_s - day_begin_s) // HOUR_S % 24).astype(np.int64)
    result = _groups("GPUs", jobs.gpus, wait_s, in_order=True)
    for kind, names in (
        ("user", jobs.name),
        ("tenant", jobs.tenant),
        ("partition", jobs.job_class),
    ):
        if (names != "").any():
            result += _groups(kind, names, wait_s)
    return result + _groups("hour", hour, wait_s, in_order=True)


def _groups(
    kind: str, names: NDArray[np.generic], wait_s: Floats, *, in_order: bool = False
) -> list[WaitGroup]:
    import pandas as pd

    of, values = pd.factorize(names, sort=True)
    grouped = pd.Series(wait_s).groupby(of)
    p95, total = grouped.quantile(0.95).to_numpy(), grouped.sum().to_numpy()
    count = np.bincount(of)
    order = np.arange(len(values)) if in_order else np.argsort(-total, kind="stable")[:MOST_GROUPS]
    return [
        WaitGroup(
            kind,
            str(values[k]),
            int(count[k]),
            float(total[k] / count[k]),
            float(p95[k]),
            float(total[k]) / HOUR_S,
        )
        for k in order.tolist()
    ]


def _idle(outcome: Outcome, held: Levels) -> IdleHours:
    instance, s = outcome.instance, outcome.schedule
    jobs, total = instance.workload, instance.cluster.total_gpus
    if not len(jobs):
        return IdleHours(0.0, 0.0, 0.0, 0.0, 0.0, sampled=False)
    moments = np.unique(np.concatenate((jobs.arrival_s, s.start_s, s.end_s)))
    length_h = np.diff(moments) / HOUR_S
    moments = moments[:-1]
    free = total - held.at(moments)
    smallest = narrowest(moments, jobs.arrival_s, outcome.totals.first_start_s, jobs.gpus)
    waits, fits = np.isfinite(smallest), smallest <= free
    idle_h = free * length_h
    fitting = np.flatnonzero(fits & (free > 0))
    by_node, by_rack, sampled = _fragmented(outcome, moments, smallest, idle_h, fitting)
    held_back = float(idle_h[fits].sum()) - by_node - by_rack
    return IdleHours(
        nobody_waits=float(idle_h[~waits].sum()),
        too_wide=float(idle_h[waits & ~fits].sum()),
        by_node=by_node,
        by_rack=by_rack,
        held_back=max(held_back, 0.0),
        sampled=sampled,
    )


def narrowest(moments: Times, begin: Times, end: Times, gang: NDArray[np.int64]) -> Floats:
    """GPUs of the narrowest gang that waits, from each moment on; infinity where none does.

    Parameters
    ----------
    begin, end, gang : ndarray
        Of each wait; a gang of 0 counts nowhere.
    """
    least = np.full(len(moments), np.inf)
    for size in np.unique(gang[gang > 0])[::-1].tolist():
        mine = (gang == size) & (begin < end)
        count = Levels.of(begin[mine], end[mine], np.ones(int(mine.sum())))
        least[count.at(moments) > 0.5] = size
    return least


def _fragmented(
    outcome: Outcome, moments: Floats, smallest: Floats, idle_h: Floats, fitting: NDArray[np.int64]
) -> tuple[float, float, bool]:
    """Idle GPU-hours in which the narrowest waiting job fits by count only: not by node, and by node but in no rack.

    A job fits by node if some node has its GPUs free, or all of as many whole nodes as it needs where it is wider.
    """
    cluster = outcome.instance.cluster
    if len(cluster.nodes) == 1 or not len(fitting):
        return 0.0, 0.0, False
    sampled = len(fitting) * len(cluster.nodes) > _MOST_CELLS
    chosen = fitting
    if sampled:
        chosen = fitting[
            np.unique(np.linspace(0, len(fitting) - 1, _FEWER_MOMENTS).astype(np.int64))
        ]
    time, need = moments[chosen], smallest[chosen]
    largest = int(cluster.gpus_per_node.max())
    most, whole = np.zeros(len(chosen)), np.zeros(len(chosen))
    racks = _racks(cluster)
    in_rack = {name: np.zeros(len(chosen)) for name in racks.values()}
    for node, gpus in enumerate(cluster.gpus_per_node.tolist()):
        free = gpus - _held_on(outcome, node).at(time)
        np.maximum(most, free, out=most)
        whole += np.where(free == gpus, free, 0.0)
        if racks:
            in_rack[racks[node]] += free
    node_fits = np.where(need <= largest, most >= need, whole >= need)
    rack_fits = np.ones(len(chosen), dtype=np.bool_)
    if racks:
        rack_fits = np.maximum.reduce(list(in_rack.values())) >= need
    weight = idle_h[chosen]
    share = float(idle_h[fitting].sum()) / float(weight.sum()) if sampled and weight.sum() else 1.0
    by_node = float(weight[~node_fits].sum()) * share
    by_rack = float(weight[node_fits & ~rack_fits].sum()) * share
    return by_node, by_rack, sampled


def _racks(cluster: Cluster) -> Mapping[int, str]:
    """Rack of every node; empty where the cluster does not say them all, or has one."""
    names = cluster.rack_of_node.tolist()
    return dict(enumerate(names)) if all(names) and len(set(names)) > 1 else {}


def _held_on(outcome: Outcome, node: int) -> Levels:
    s = outcome.schedule
    mine = s.node == node
    return Levels.of(s.start_s[mine], s.end_s[mine], s.gpus[mine].astype(np.float64))
