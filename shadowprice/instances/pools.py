"""Pools of GPUs that are alike to the jobs of an instance: its GPU types, or all where types make no difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import Pairs
from shadowprice.instances.cluster import ANY_TYPE

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance


@dataclass(frozen=True, eq=False)
class Pools:
    """The pools of an instance.

    Parameters
    ----------
    names : tuple of str
        GPU types, or a single name for all.
    gpus : ndarray of int, shape (pools,)
    price_per_gpu_h : ndarray, shape (pools,)
        Mean price of a GPU [$/h]; 0 where unknown.
    """

    names: tuple[str, ...]
    gpus: NDArray[np.int64]
    price_per_gpu_h: NDArray[np.float64]

    @classmethod
    def of(cls, instance: Instance) -> Pools:
        """GPU types if the workload has throughputs, else one pool; O(nodes)."""
        cluster = instance.cluster
        names: tuple[str, ...]
        if instance.workload.throughput is None:
            names, gpus = (ANY_TYPE,), np.array([cluster.total_gpus], dtype=np.int64)
            pool = np.zeros(len(cluster.nodes), dtype=np.int64)
        else:
            names, gpus, pool = cluster.gpu_types, cluster.gpus_per_type, cluster.type_of_node
        prices = np.bincount(pool, [node.price_per_hour for node in cluster.nodes], len(names))
        return cls(names, gpus, np.asarray(prices / gpus))


def pool_throughput(instance: Instance, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Work a second of whole gangs on each pool, 0 where they cannot run; shape (jobs, pools).

    Without throughputs, 1 a second; job graphs are not looked at.
    """
    workload = instance.workload
    if workload.throughput is None:
        return np.ones((len(jobs), 1))
    columns = [workload.gpu_types.index(name) for name in instance.cluster.gpu_types]
    rates = workload.throughput[jobs][:, columns]
    return np.where(np.isfinite(instance.processing_s[jobs]), rates, 0.0)


def sharing_pairs(instance: Instance, jobs: NDArray[np.int64]) -> Pairs:
    """All pairs of these jobs that may share GPUs of some pool, by position among them; O(jobs^2)."""
    if instance.together is None:
        return Pairs.none(len(instance.pools.names))
    gpus = instance.workload.gpus[jobs]
    first, second = np.triu_indices(len(jobs), 1)
    equal = gpus[first] == gpus[second]
    first, second = first[equal], second[equal]
    rates = [_shared(instance, jobs[a], jobs[b]) for a, b in ((first, second), (second, first))]
    some = np.asarray((rates[0] > 0).any(axis=1))
    return Pairs(first[some], second[some], rates[0][some], rates[1][some])


def _shared(
    instance: Instance, job: NDArray[np.int64], partner: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Work a second of jobs beside partners on each pool, shape (pairs, pools)."""
    pools = np.arange(len(instance.pools.names))
    times = instance.shared_processing_s(job[:, None], partner[:, None], pools[None, :])
    return np.asarray(instance.workload.work[job][:, None] / times)
