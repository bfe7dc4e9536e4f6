"""Costs of orders and choices in compiled loops, for instances whose terms these know."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.sharing import SharedRuns, SharingRates
from shadowprice.instances.terms.widths import speed_up
from shadowprice.library.search import rated_loops
from shadowprice.library.search.moves import Ints
from shadowprice.library.search.rated_loops import Floats

Ends = Callable[[Ints, Ints], Floats]
"""Ends [s], shape (n,), of ranks and choices."""

_RATED = frozenset({Feature.RATES, Feature.TYPES, Feature.WIDTHS, Feature.FAILURES})
_PAIRED = frozenset({Feature.RATES, Feature.SHARING})


def compiled_ends(instance: Instance, *, preemptive: bool) -> Ends | None:
    """Ends that a loop makes of ranks and choices; None where none knows the instance."""
    if not preemptive or instance.overheads.start_s:
        return None
    if instance.features <= _RATED:
        return _rated(instance)
    if instance.features <= _PAIRED and len(instance.cluster.gpu_types) == 1:
        return _paired(instance)
    return None


def speeds_of_pairs(instance: Instance) -> Floats:
    """Speed of each job beside each other over that alone, shape (n, n); of GPUs of one type."""
    jobs = instance.workload
    rates = SharingRates.of(instance.sharing_rates, instance.cluster.gpu_types)
    kind = rates.rows(jobs.model, jobs.gpus)
    shared = SharedRuns(rates, kind, jobs.gpus, jobs.work, instance.processing_s)
    every = np.arange(len(jobs))
    beside = shared.run_s(every[:, None], every[None, :], np.int64(0))
    found: Floats = instance.shortest_s[:, None] / beside
    return found


def _rated(instance: Instance) -> Ends:
    jobs, pools = instance.workload, instance.pools
    n = len(jobs)
    arrivals = np.argsort(jobs.arrival_s, kind="stable")
    run_s = instance.processing_s[:, _types_of_pools(instance)]
    able = np.argsort(run_s, axis=1, kind="stable")
    count = np.isfinite(run_s).sum(axis=1)
    widest, speed, speed_of = jobs.gpus.copy(), np.ones((n, 1)), cache(speed_up)
    if instance.elasticity is not None:
        widest = instance.elasticity.widest.copy()
        speed = np.ones((n, int((widest - jobs.gpus).max()) + 1))
        for j in range(n):
            gang, efficiency = int(jobs.gpus[j]), float(instance.elasticity.efficiency[j])
            for more in range(int(widest[j]) - gang + 1):
                speed[j, more] = speed_of(efficiency, gang, gang + more)
    times, room = _room(instance)
    with np.errstate(divide="ignore"):
        # Run times are those at the largest width.
        quickest = speed[np.arange(n), widest - jobs.gpus]
        rate = np.where(np.isfinite(run_s), 1.0 / (run_s * quickest[:, None]), 0.0)
    grows = instance.elasticity is not None
    assert len(pools.names) == room.shape[1]

    rows = np.zeros(n, dtype=rated_loops.JOB)
    rows["gang"], rows["release"], rows["widest"] = jobs.gpus, jobs.arrival_s, widest

    def ends(rank: Ints, choice: Ints) -> Floats:
        rows["left"], rows["end"] = 1.0, np.inf
        rows["rank"], rows["pools"], rows["width"] = rank, count, widest
        if grows:
            rows["width"] = widest - choice
        elif instance.failures is None:
            rows["pools"] = np.maximum(count - choice // 2, 1)
        rated_loops.rated_ends(rows, arrivals, rate, able, speed, times, room)
        return rows["end"].copy()

    return ends


def _types_of_pools(instance: Instance) -> list[int]:
    """Column of run times of each pool."""
    types = list(instance.cluster.gpu_types)
    names = instance.pools.names
    return [types.index(name) if name in types else 0 for name in names]


def _room(instance: Instance) -> tuple[Floats, Ints]:
    """Times at which nodes go down or come up, and the GPUs of each pool from then on."""
    gpus = np.asarray(instance.pools.gpus, dtype=np.int64)
    failures = instance.failures
    if failures is None:
        return np.zeros(1), gpus[None, :]
    held = instance.cluster.gpus_per_node[failures.node]
    up = np.isfinite(failures.up_s)
    at = np.concatenate((failures.down_s, failures.up_s[up]))
    change = np.concatenate((-held, held[up]))
    order = np.argsort(at, kind="stable")
    times = np.concatenate((np.zeros(1), at[order]))
    room = np.concatenate((gpus, gpus[0] + np.cumsum(change[order])))
    return times, room[:, None]


def _paired(instance: Instance) -> Ends:
    jobs = instance.workload
    arrivals = np.argsort(jobs.arrival_s, kind="stable")
    beside, rate = speeds_of_pairs(instance), 1.0 / instance.shortest_s
    beside = np.where(np.isfinite(beside), beside, 0.0)
    gpus = instance.cluster.total_gpus

    rows = np.zeros(len(jobs), dtype=rated_loops.JOB)
    rows["gang"], rows["release"] = jobs.gpus, jobs.arrival_s

    def ends(rank: Ints, choice: Ints) -> Floats:
        rows["left"], rows["rank"], rows["choice"] = 1.0, rank, choice
        rated_loops.paired_ends(rows, arrivals, rate, beside, gpus)
        return rows["end"].copy()

    return ends
