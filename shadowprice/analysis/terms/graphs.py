"""Job graphs as they are written, and the network of a cluster from options or from its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from msgspec import UNSET, UnsetType

from shadowprice.analysis.terms.written_term import Bandwidth, WrittenRun, WrittenTerm
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.features import Feature
from shadowprice.instances.graphs.named_graphs import NamedGraphs
from shadowprice.instances.graphs.network import Network

BYTES_PER_GB = 1e9


class NicSharing(StrEnum):
    """Share of a node's NIC that a replica has."""

    PER_GPU = "per-gpu"
    PER_JOB = "per-job"


@dataclass(frozen=True)
class GraphsSettings(WrittenTerm):
    """Jobs get the graphs of their models, or those of a file, and their work counts iterations.

    Parameters
    ----------
    intra_gb_per_s : float
        Bandwidth between two GPUs of a node; what the nodes of the cluster say if left out.
    nic_gb_per_s : float
        Bandwidth of a node's NIC in each direction; what the nodes say if left out.
    nic_sharing : str
        Share of a NIC that a replica has: that of a GPU of its node, or of the job's replicas there.
    file : str
        YAML or JSON file of graphs by the names of jobs; those of their models if left out.
    """

    feature: ClassVar[Feature] = Feature.GRAPHS
    sets: ClassVar[tuple[str, ...]] = ("network", "graphs")
    example: ClassVar[str] = (
        "simulate recurrent.csv --cluster 4x4 --policy asrpt-early --placement heavy-edge "
        "--with graphs:intra_gb_per_s=300,nic_gb_per_s=12.5"
    )

    intra_gb_per_s: Bandwidth | UnsetType = UNSET
    nic_gb_per_s: Bandwidth | UnsetType = UNSET
    nic_sharing: NicSharing = NicSharing.PER_GPU
    file: FileName | UnsetType = UNSET

    def on(self, run: WrittenRun) -> WrittenRun:
        """The run with these graphs."""
        intra = None if self.intra_gb_per_s is UNSET else self.intra_gb_per_s
        nic = None if self.nic_gb_per_s is UNSET else self.nic_gb_per_s
        names = ("intra_gb_per_s", "nic_gb_per_s")
        network = network_of(run.cluster, intra, nic, self.nic_sharing.value, names)
        graphs = None if self.file is UNSET else NamedGraphs.load(self.file)
        return run.switched(network=network, graphs=graphs)


def network_of(
    cluster: Cluster,
    intra: float | None,
    nic: float | None,
    sharing: str,
    names: tuple[str, str] = ("--intra", "--nic"),
) -> Network:
    """Bandwidths that are given [GB/s], or those of the cluster's nodes where they are not.

    Parameters
    ----------
    names : (str, str)
        Words by which the two are given, for messages.

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
    inside = _bandwidth(names[0], intra, (node.intra_gb_per_s for node in cluster.nodes))
    outside = _bandwidth(names[1], nic, (node.nic_gb_per_s for node in cluster.nodes))
    return Network(inside, outside, int(cluster.gpus_per_node.max()), sharing)


def _bandwidth(name: str, given: float | None, of_nodes: Iterable[float]) -> float:
    """Bytes per second."""
    known = sorted(set(of_nodes)) if given is None else [given]
    if len(known) > 1:
        raise InputError(
            f"cluster: bandwidths of nodes go from {known[0]:g} to {known[-1]:g} GB/s, expected one "
            f"for all; give {name} to use another"
        )
    if known == [0.0] and given is None:
        raise InputError(f"cluster: does not say its bandwidth; give {name} GB/s")
    if not 0 < known[0] < float("inf"):
        raise InputError(f"{name} is {known[0]:g}, expected GB/s > 0")
    return known[0] * BYTES_PER_GB
