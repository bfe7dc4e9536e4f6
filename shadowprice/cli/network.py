"""Bandwidths from options or from a cluster's nodes; the one place that reads them."""

from __future__ import annotations

from collections.abc import Iterable

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.graphs.iteration_time import Network

BYTES_PER_GB = 1e9


def parse_network(text: str, cluster: Cluster) -> Network:
    """Bandwidths as INTRA:NIC[:SHARING] in GB/s.

    Raises
    ------
    InputError
        If they are written otherwise or not positive, or GPUs are of several types.
    """
    words = text.split(":")
    try:
        intra, nic = (float(word) for word in words[:2])
    except ValueError:
        intra = nic = float("nan")
    if len(words) not in (2, 3) or not (0 < intra < float("inf") and 0 < nic < float("inf")):
        raise InputError(
            f"network {text!r}: expected INTRA:NIC[:SHARING], bandwidths in GB/s, such as 300:12.5:per-job"
        )
    return network_of(cluster, intra, nic, words[2] if len(words) == 3 else "per-gpu")


def network_of(cluster: Cluster, intra: float | None, nic: float | None, sharing: str) -> Network:
    """Bandwidths from options [GB/s], or from the cluster's nodes where they are not given.

    Raises
    ------
    InputError
        If GPUs are of several types, or a bandwidth is not known or differs between nodes.
    """
    if len(cluster.gpu_types) > 1:
        raise InputError(
            f"cluster {cluster}: GPU types {', '.join(cluster.gpu_types)}, expected one: job graphs "
            "are for GPUs of one speed"
        )
    inside = _bandwidth("--intra", intra, (node.intra_gb_per_s for node in cluster.nodes))
    outside = _bandwidth("--nic", nic, (node.nic_gb_per_s for node in cluster.nodes))
    return Network(inside, outside, int(cluster.gpus_per_node.max()), sharing)


def _bandwidth(option: str, given: float | None, of_nodes: Iterable[float]) -> float:
    """Bytes per second."""
    known = sorted(set(of_nodes)) if given is None else [given]
    if len(known) > 1:
        raise InputError(
            f"cluster: bandwidths of nodes go from {known[0]:g} to {known[-1]:g} GB/s, expected one "
            f"for all; give {option} to use another"
        )
    if known == [0.0] and given is None:
        raise InputError(f"cluster: does not say its bandwidth; give {option} GB/s")
    if not 0 < known[0] < float("inf"):
        raise InputError(f"{option} is {known[0]:g}, expected GB/s > 0")
    return known[0] * BYTES_PER_GB
