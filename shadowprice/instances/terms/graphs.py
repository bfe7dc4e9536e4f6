"""Job graphs: jobs have stages and replicas, and an iteration takes as long as where these are makes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.features import Feature
from shadowprice.instances.graphs.job_graph import JobGraph
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs, in_order, one_run_s, shape_of
from shadowprice.instances.terms.effect import Effect, Fields, Pieces, Rate, RecordedRun
from shadowprice.instances.terms.settings import Bandwidth, TermContext, TermSettings
from shadowprice.instances.terms.term import InstanceFields, SeenInstance, Term

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster

BYTES_PER_GB = 1e9


class NicSharing(StrEnum):
    """Share of a node's NIC that a replica has."""

    PER_GPU = "per-gpu"
    PER_JOB = "per-job"


@dataclass(frozen=True)
class GraphsSettings(TermSettings):
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

    def on(self, run: TermContext) -> TermContext:
        """The run with these graphs."""
        network = self.network(run.cluster)
        if self.file is UNSET:
            return run.with_options(network=network, graphs=None)
        from shadowprice.instances.graphs.named_graphs import NamedGraphs

        return run.with_options(network=network, graphs=NamedGraphs.load(self.file))

    def network(self, cluster: Cluster) -> Network:
        """Bandwidths that are set, or those of the cluster's nodes where they are not.

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
        nodes = cluster.nodes
        intra, nic = self.intra_gb_per_s, self.nic_gb_per_s
        inside = _bandwidth("intra_gb_per_s", intra, (each.intra_gb_per_s for each in nodes))
        outside = _bandwidth("nic_gb_per_s", nic, (each.nic_gb_per_s for each in nodes))
        most = int(cluster.gpus_per_node.max())
        return Network(inside, outside, most, self.nic_sharing.value)


def _bandwidth(name: str, stated: float | UnsetType, of_nodes: Iterable[float]) -> float:
    """Bytes per second."""
    known = sorted(set(of_nodes)) if stated is UNSET else [stated]
    if len(known) > 1:
        raise InputError(
            f"cluster: bandwidths of nodes go from {known[0]:g} to {known[-1]:g} GB/s, expected one "
            f"for all; give {name} to use another"
        )
    if known == [0.0]:
        raise InputError(f"cluster: does not say its bandwidth; give {name} GB/s")
    return known[0] * BYTES_PER_GB


class WrittenGraphs(msgspec.Struct, frozen=True):
    """The network, the different graphs, and which of them each job has."""

    network: Network
    graphs: tuple[JobGraph, ...]
    of: NDArray[np.int64]


class MappingRate(Rate):
    """The rate of a mapping: iterations times alpha; the field is the mapping, stages in order if left open.

    Parameters
    ----------
    graphs : JobGraphs
    iterations : sequence of float
        Of each job.
    """

    feature: ClassVar[Feature] = Feature.GRAPHS

    def __init__(self, graphs: JobGraphs, iterations: Sequence[float]) -> None:
        self._times, self._graph, self._of = graphs.times, graphs.graph, graphs.of.tolist()
        self._iterations = iterations

    def complete(self, job: int, pieces: Pieces, fields: dict[Feature, Any]) -> None:
        """Put the stages on the pieces in their order."""
        if Feature.GRAPHS not in fields:
            fields[Feature.GRAPHS] = in_order(self._graph[self._of[job]], pieces)

    def whole_s(self, job: int, pieces: Pieces, fields: Fields) -> float | None:
        """Run time of all iterations under the mapping [s]."""
        shape = shape_of(stages for _, stages in fields[Feature.GRAPHS])
        number = self._of[job]
        alpha_s = self._times.iteration_s(number, self._graph[number], shape)
        return one_run_s(self._iterations[job], alpha_s)

    def columns(self, rows: int, runs: Sequence[RecordedRun]) -> Mapping[str, NDArray[Any]]:
        """Replicas of each stage, a tuple a row."""
        stages = np.empty(rows, dtype=object)
        for first, _, fields in runs:
            for row, (_, counts) in enumerate(fields[Feature.GRAPHS], first):
                stages[row] = counts
        return {"stages": stages}


class GraphsTerm(Term[JobGraphs]):
    """Graphs of jobs on a network: the rate of a run is that of where its replicas are."""

    feature: ClassVar[Feature] = Feature.GRAPHS
    entry: ClassVar[str] = "graphs"
    record: ClassVar[Any] = WrittenGraphs
    settings: ClassVar[type[TermSettings] | None] = GraphsSettings
    varies: ClassVar[bool] = True
    by_job: ClassVar[bool] = True

    def check(self, value: JobGraphs, instance: SeenInstance) -> None:
        """Refuse graphs of other jobs or nodes."""
        value.check(instance.cluster, instance.workload)

    def effects(self, value: JobGraphs, instance: SeenInstance) -> Iterator[Effect]:
        """The rate of a mapping."""
        yield MappingRate(value, instance.workload.work.tolist())

    def least_s(self, value: JobGraphs, instance: SeenInstance) -> NDArray[np.float64]:
        """Run times if each iteration took alpha_min."""
        return value.shortest_s(instance.workload)

    def written(self, value: JobGraphs) -> Any:
        """Different graphs once, and which of them each job has."""
        of_each = [asdict(graph) for graph in value.graph]
        return {"network": asdict(value.network), "graphs": of_each, "of": value.of}

    def read(self, record: Any, so_far: Mapping[str, Any]) -> InstanceFields:
        """Graphs and network."""
        return {**so_far, "graphs": JobGraphs(record.graphs, record.of, record.network)}
