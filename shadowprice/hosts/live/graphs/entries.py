"""Job graphs in job files: ``graph`` of a job, and the ``network`` of all nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.entries import shown
from shadowprice.instances.graphs.graph_file import job_graph_of, load_job_graph
from shadowprice.instances.graphs.job_graph import JobGraph
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.terms.graphs import GraphsSettings, NicSharing
from shadowprice.instances.terms.settings import Bandwidth


@dataclass(frozen=True)
class NodeNetwork:
    """Bandwidths of the nodes of a run, as a job file says them.

    Parameters
    ----------
    intra_gb_per_s, nic_gb_per_s : float
        Between two GPUs of a node, and of a node's network interface in each direction [GB/s].
    sharing : {"per-gpu", "per-job"}
        Share of the interface that a replica gets; see :class:`.Network`.
    """

    intra_gb_per_s: Bandwidth
    nic_gb_per_s: Bandwidth
    sharing: NicSharing = NicSharing.PER_GPU

    def of(self, cluster: Cluster) -> Network:
        """Network of the nodes of a cluster, whose GPUs are alike."""
        return GraphsSettings(self.intra_gb_per_s, self.nic_gb_per_s, self.sharing).network(cluster)


def graph_of(value: object, folder: Path, where: str) -> JobGraph:
    """Graph of a job: a file, from a folder on, or what such a file says.

    Raises
    ------
    InputError
        Naming the job or the file, the entry, its value and what was expected.
    """
    if isinstance(value, str) and value:
        try:
            return load_job_graph(folder / value)
        except InputError as error:
            raise InputError(f"{where}: graph: {error}") from error
    if isinstance(value, dict):
        return job_graph_of(_with_truth_values(value), f"{where}: graph")
    raise InputError(
        f"{where}: graph is {shown(value)}, expected a file, {{model: ...}}, or {{name: ..., stages: ...}}"
    )


def gang_of(graph: JobGraph, own: Mapping[str, object], where: str) -> int:
    """Gang of a job with a graph: its replicas, which the job may repeat.

    Parameters
    ----------
    own : mapping
        Keys that the job gives itself, without the defaults.

    Raises
    ------
    InputError
        If it asks for another number of GPUs, or says a rate, which is the graph's matter.
    """
    gpus = own.get("gpus", graph.gpus)
    if str(gpus) != str(graph.gpus):
        raise InputError(
            f"{where}: gpus is {gpus}, expected {graph.gpus}, the replicas of its graph "
            f"{graph.name!r}, or none"
        )
    if "throughput" in own:
        raise InputError(f"{where}: has throughput and graph, expected one of the two")
    return graph.gpus


def _with_truth_values(graph: Mapping[str, Any]) -> Mapping[str, Any]:
    """A graph of a job file, where true and false are text, as a graph's file has it."""
    links = graph.get("links")
    if not isinstance(links, list):
        return graph
    truth = {"true": True, "false": False}

    def read(link: Any) -> Any:
        value = link.get("exchange") if isinstance(link, dict) else None
        return {**link, "exchange": truth[value]} if value in ("true", "false") else link

    return {**graph, "links": list(map(read, links))}
