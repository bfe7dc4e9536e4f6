"""Other arrivals for the same jobs: a load, Poisson arrivals, another order."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import MAX_TIME_S, to_grid
from shadowprice.instances.workload import Workload

_STREAM = 0x5241
"""Part of the seed, so that arrivals share no numbers with what else the seed draws."""


def offered_load(workload: Workload, cluster: Cluster) -> float:
    """GPU time that jobs ask for, of the cluster's from the first arrival to the last.

    Every job counts with its gang on the type on which it is fastest; jobs that fit nowhere count nothing. Infinite
    where all arrive at once, 0 without jobs.
    """
    if len(workload) == 0:
        return 0.0
    fastest = workload.processing_s(cluster).min(axis=1)
    asked = float((workload.held_gpus * np.where(np.isfinite(fastest), fastest, 0.0)).sum())
    span_s = float(workload.arrival_s[-1] - workload.arrival_s[0])
    return asked / (cluster.total_gpus * span_s) if span_s > 0 else float("inf")


def with_load(workload: Workload, cluster: Cluster, load: float) -> Workload:
    """The same jobs, times between arrivals stretched so that they offer a load.

    Raises
    ------
    InputError
        If the load is not above 0, if all jobs arrive at once, or if a time leaves the range.
    """
    if not 0 < load < float("inf"):
        raise InputError(f"load is {load!r}, expected a number > 0")
    now = offered_load(workload, cluster)
    if not 0 < now < float("inf"):
        raise InputError(
            f"{workload.source}: jobs that arrive at different times are needed for a load of {load:g}"
        )
    first_s = float(workload.arrival_s[0])
    arrival_s = first_s + (workload.arrival_s - first_s) * (now / load)
    return _placed(workload, np.arange(len(workload)), arrival_s)


def shuffled(workload: Workload, seed: int) -> Workload:
    """The same jobs at the same times, in an order that the seed draws."""
    order = np.random.default_rng([_STREAM, seed]).permutation(len(workload))
    return _placed(workload, order, workload.arrival_s)


def with_poisson_arrivals(workload: Workload, seed: int) -> Workload:
    """The same jobs in an order and at times that the seed draws, at the rate at which they came.

    Raises
    ------
    InputError
        If all jobs arrive at once.
    """
    jobs = len(workload)
    rng = np.random.default_rng([_STREAM, seed])
    order = rng.permutation(jobs)
    gaps = rng.exponential(size=jobs)
    span_s = float(workload.arrival_s[-1] - workload.arrival_s[0]) if jobs else 0.0
    if not span_s > 0:
        raise InputError(f"{workload.source}: all jobs arrive at once, which gives no rate")
    arrival_s = workload.arrival_s[0] + np.cumsum(gaps) * (span_s / (jobs - 1))
    return _placed(workload, order, arrival_s)


def _placed(
    workload: Workload, order: NDArray[np.int64], arrival_s: NDArray[np.float64]
) -> Workload:
    """Jobs in another order at other times; deadlines stay as far from arrivals as they were."""
    if len(arrival_s) and not arrival_s[-1] <= MAX_TIME_S:
        raise InputError(f"{workload.source}: arrivals would reach {arrival_s[-1]:g} s")
    moved_s = to_grid(arrival_s) + 0.0
    columns: dict[str, Any] = {
        each.name: column[order]
        for each in fields(workload)
        if isinstance(column := getattr(workload, each.name), np.ndarray)
    }
    columns["arrival_s"] = moved_s
    columns["deadline_s"] = np.maximum(
        moved_s + (workload.deadline_s - workload.arrival_s)[order], 0.0
    )
    return replace(workload, **columns)
