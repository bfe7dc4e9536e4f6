"""Sizes of nodes: how few hold a gang."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.cluster import CORES, Cluster
from shadowprice.instances.workload import Workload


def fewest_nodes(cluster: Cluster, *, cores: bool = False) -> NDArray[np.int64]:
    """Fewest nodes that hold k GPUs, or k cores, for k from 0 to all of the cluster's."""
    size = np.sort(_sizes(cluster, cores=cores))[::-1]
    return np.searchsorted(np.cumsum(size), np.arange(size.sum() + 1)).astype(np.int64) + (
        np.arange(size.sum() + 1) > 0
    )


def fits_a_node(cluster: Cluster, workload: Workload) -> NDArray[np.bool_]:
    """True for gangs that one node holds: of GPUs, or of cores for jobs on these; shape (n,)."""
    gpus, cores = (_sizes(cluster, cores=which).max(initial=0) for which in (False, True))
    return np.asarray(workload.gpus <= np.where(workload.on_cores, cores, gpus))


def _sizes(cluster: Cluster, *, cores: bool) -> NDArray[np.int64]:
    """GPUs of the nodes that have some, or cores of those that have these instead."""
    mine = [node.gpus for node in cluster.nodes if (node.gpu_type == CORES) == cores]
    return np.array(mine, dtype=np.int64)
