"""Demand for the GPU types of a cluster: what has to run there, of the whole trace and over time.

A load on average hides the type on which it cannot be served. For each set of types that jobs name, the jobs that may
run nowhere else are counted against the GPUs of that set: above 1 no scheduler keeps up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.cluster import ANY_TYPE, CORES, Cluster
from shadowprice.instances.workload import Workload

SPANS = 8
"""Spans of equal length in which demand is told over time."""
ALL_TYPES = "(all)"


@dataclass(frozen=True)
class TypeLoad:
    """Load that jobs offer to GPU types outside of which they may not run.

    Parameters
    ----------
    types : str
        Types with bars between them, or all.
    gpus : int
        GPUs of these types.
    jobs : int
        Jobs that may run on them alone.
    load : float
        Their GPU time over that of the GPUs, with the mean gap of all jobs that can run after the last arrival, as
        :func:`shadowprice.instances.generators.rescaling.offered_load` has it.
    by_span : tuple of float
        The same of those that arrive in each of :data:`SPANS` equal spans.
    """

    types: str
    gpus: int
    jobs: int
    load: float
    by_span: tuple[float, ...]


def type_loads(
    workload: Workload, cluster: Cluster, run_s: NDArray[np.float64]
) -> tuple[TypeLoad, ...]:
    """Load of each set of types that jobs name, the highest first; empty where all jobs arrive at one moment.

    Parameters
    ----------
    run_s : ndarray, shape (n,)
        Run time of every job on its fastest type [s], infinite where it cannot run.
    """
    able = np.isfinite(run_s) & ~workload.on_cores
    arrival_s = workload.arrival_s
    span_s = float(arrival_s[-1] - arrival_s[0]) if len(arrival_s) else 0.0
    jobs = int(able.sum())
    if span_s <= 0 or jobs < 2:
        return ()
    names = _allowed(workload, cluster)
    # After the last arrival there is one gap more than there are between arrivals.
    gpu_s = np.where(able, workload.held_gpus * run_s, 0.0) * ((jobs - 1) / jobs)
    place = np.minimum(((arrival_s - arrival_s[0]) / span_s * SPANS).astype(np.int64), SPANS - 1)
    gpus = dict(zip(cluster.gpu_types, cluster.gpus_per_type.tolist(), strict=True))
    every = frozenset(gpus) - {CORES}
    result = []
    for types in {*names, every}:
        within = np.array([each <= types for each in names], dtype=np.bool_) & able
        count = sum(gpus[each] for each in types)
        if not types or not count:
            continue
        spans = np.bincount(place[within], gpu_s[within], minlength=SPANS) / (
            count * span_s / SPANS
        )
        label = ALL_TYPES if types == every else "|".join(sorted(types))
        total = float(gpu_s[within].sum()) / (count * span_s)
        result.append(TypeLoad(label, count, int(within.sum()), total, tuple(spans.tolist())))
    return tuple(sorted(result, key=lambda each: (-each.load, each.types)))


def _allowed(workload: Workload, cluster: Cluster) -> list[frozenset[str]]:
    """Types of the cluster on which each job may run."""
    types = cluster.gpu_types
    table = workload.on_allowed_types(cluster)
    if table.throughput is None:
        return [frozenset(types) - {CORES}] * len(workload)
    able = table.throughput[:, [table.gpu_types.index(name) for name in types]] > 0
    patterns, of = np.unique(able, axis=0, return_inverse=True)
    sets = [
        frozenset(name for name, may in zip(types, row, strict=True) if may)
        for row in patterns.tolist()
    ]
    return [sets[k] for k in of.reshape(-1).tolist()]


def racks_in_words(cluster: Cluster) -> str | None:
    """Racks of a cluster and how many GPUs they have; None where none is known."""
    names = cluster.rack_of_node
    known = names != ""
    if not known.any():
        return None
    _, of = np.unique(names[known].astype(str), return_inverse=True)
    gpus = np.bincount(of, cluster.gpus_per_node[known]).astype(np.int64)
    alone = int((~known).sum())
    rest = f"; {alone:,} nodes are in none that is known" if alone else ""
    return f"racks: {len(gpus):,}, of {gpus.min():,} to {gpus.max():,} GPUs{rest}"


def unanswered(workload: Workload, cluster: Cluster | None) -> list[str]:
    """Questions about a trace that it cannot answer, as the columns that it lacks say."""
    result = []
    if not np.isfinite(workload.limit_s).any():
        result.append(
            "which run times users asked for: policies that know limits see what jobs took"
        )
    if not (workload.group != "").any():
        result.append("which jobs are runs of one program: predictors learn from nothing")
    if not (workload.model != "").any() and workload.throughput is None:
        result.append(
            "how fast jobs are on other GPUs, shared or spread: all GPUs are taken as alike"
        )
    types = () if cluster is None else tuple(name for name in cluster.gpu_types if name != ANY_TYPE)
    if len(types) > 1 and workload.throughput is None and not (workload.allowed_types != "").any():
        result.append(f"on which of {', '.join(types)} a job may run: it may on all of them")
    return result
