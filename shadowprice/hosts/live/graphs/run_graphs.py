"""Job graphs of a real run: of all of its jobs, on the nodes that were found, and as they are measured.

A graph says how much longer an iteration takes under one mapping than under another; how long it
takes at all is measured. So a graph is slower than it says by one factor, whatever the mapping was: the time of
its timed steps under its best mapping, as which observations count them, over what it says of that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec
import numpy as np

from shadowprice.errors import InputError
from shadowprice.hosts.lease_cpu_memory import expect_none_asked
from shadowprice.hosts.live.job_file import Job, JobFile
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.protocol import Device
from shadowprice.hosts.throughput_files import Observation
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.graphs.job_graph import JobGraph, Stage, StageMapping
from shadowprice.instances.graphs.named_graphs import NamedGraphs
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload


def has_graphs(jobs: Sequence[Job]) -> bool:
    """True if a job names its graph."""
    return any(job.graph is not None for job in jobs)


def mapped_instance(
    settings: Settings, job_file: JobFile, cluster: Cluster, workload: Workload
) -> Instance:
    """Instance of a run in which jobs have graphs.

    A job that names none runs equally fast wherever it is: it has one stage, whose replicas exchange
    nothing and compute for as long as an iteration takes at its rate.

    Parameters
    ----------
    workload : Workload
        With the rates of the jobs on the one GPU type of the cluster.

    Raises
    ------
    InputError
        If something that was asked for does not go with graphs, there is no network, or GPUs are of
        several types.
    """
    _refuse_what_does_not_go(settings, job_file)
    if job_file.network is None:
        raise InputError(
            f"{job_file.path}: jobs have graphs and there is no network, expected network: "
            "{intra_gb_per_s: ..., nic_gb_per_s: ...} of the nodes"
        )
    network = job_file.network.of(cluster)
    assert workload.throughput is not None
    number: dict[JobGraph, int] = {}
    of = np.zeros(len(workload), dtype=np.int64)
    for job in job_file.jobs:
        row = workload.row_of[job.name]
        graph = job.graph or _anywhere(job, float(workload.throughput[row].max()))
        of[row] = number.setdefault(graph, len(number))
    graphs = JobGraphs(tuple(number), of, network)
    return Instance(cluster, replace(workload, throughput=None, gpu_types=()), graphs=graphs)


def _anywhere(job: Job, rate: float) -> JobGraph:
    """Graph of a job whose iterations take the same time wherever its replicas are."""
    return JobGraph(job.kind, (Stage("replicas", job.gpus, 1.0 / rate, 0.0),))


def _refuse_what_does_not_go(settings: Settings, job_file: JobFile) -> None:
    path = job_file.path
    if settings.share is not None:
        raise InputError(
            f"{path}: jobs have graphs, expected no --share: how fast replicas are beside those of "
            "another job nobody knows"
        )
    if job_file.profiles is not None:
        raise InputError(
            f"{path}: jobs have graphs, and it names profiles; expected one of the two"
        )
    expect_none_asked(job_file.jobs, "replicas of job graphs are placed by GPUs alone")


def record_of(instance: Instance) -> dict[str, Any] | None:
    """Graphs, network, and the graph of each job, of plain values for a ledger; None without graphs."""
    graphs = instance.graphs
    if graphs is None:
        return None
    names = map(str, instance.workload.id.tolist())
    return {
        "network": asdict(graphs.network),
        "graphs": [asdict(graph) for graph in graphs.graph],
        "of": dict(zip(names, graphs.of.tolist(), strict=True)),
    }


# Replicas on the devices of a lease, in the order of its ranks: nodes in the order of the mapping, on each of them the
# devices in theirs, with the replicas of the first stage first. Replicas of a stage are numbered in the order of ranks.


Replica = tuple[str, int]
"""Name of a stage, and number of the replica in it, from 0."""

OF_GANG, OF_NODE = "SHADOWPRICE_REPLICAS", "SHADOWPRICE_NODE_REPLICAS"
"""Variables: replicas of all ranks of a gang, and of the devices of a node, as JSON."""


def replicas_of(graph: JobGraph, mapping: StageMapping) -> tuple[tuple[Replica, ...], ...]:
    """Replicas on each node of a mapping, in its order; O(replicas + stages nodes).

    >>> from shadowprice.instances.graphs.job_graph import Stage
    >>> graph = JobGraph("t", (Stage("a", 2, 1.0, 1.0), Stage("b", 1, 1.0, 1.0)))
    >>> replicas_of(graph, ((3, (1, 1)), (0, (1, 0))))
    ((('a', 0), ('b', 0)), (('a', 1),))
    """
    next_of = [0] * len(graph.stages)
    by_node = []
    for _, counts in mapping:
        here: list[Replica] = []
        for s, count in enumerate(counts):
            name, first = graph.stages[s].name, next_of[s]
            here += [(name, first + k) for k in range(count)]
            next_of[s] += count
        by_node.append(tuple(here))
    return tuple(by_node)


@dataclass(frozen=True)
class PlacedReplicas:
    """Replicas of a gang, where a policy placed them.

    Parameters
    ----------
    mapping : StageMapping
        Nodes in the order of ranks, with the replicas of each stage there.
    by_node : tuple of tuple of (str, int)
        Replicas on these nodes, one for each device.
    iteration_s : float
        Time of an iteration by the graph as it was given [s].
    """

    mapping: StageMapping
    by_node: tuple[tuple[Replica, ...], ...]
    iteration_s: float

    @property
    def by_rank(self) -> tuple[Replica, ...]:
        """Replicas of all ranks, a rank for each device."""
        return tuple(replica for here in self.by_node for replica in here)

    def event_fields(self, devices: Sequence[Device]) -> dict[str, object]:
        """Data of the event that grants the devices."""
        rows = zip(devices, self.by_rank, strict=True)
        return {
            "replicas": [[device.uuid, stage, number] for device, (stage, number) in rows],
            "iteration_s": self.iteration_s,
        }

    def variables(self, node: int) -> dict[str, str]:
        """Variables by which the command on a node, by its rank, finds its replicas and those of the gang."""
        return {OF_GANG: json.dumps(self.by_rank), OF_NODE: json.dumps(self.by_node[node])}


# As they are measured: for the policy of a run, and from its log, to be simulated.


def slowdowns(
    observations: Iterable[Observation],
    graphs: JobGraphs,
    row_of: Mapping[str, int],
    fewest_steps: int = 1,
    least_s: float = 0.0,
) -> dict[int, float]:
    """Measured time of an iteration over what its graph says, by the graph's number.

    Of graphs of which so many steps were timed, for more than so many seconds.
    """
    sums: dict[int, tuple[int, float]] = {}
    for seen in observations:
        number = int(graphs.of[row_of[seen.job]])
        steps, seconds = sums.get(number, (0, 0.0))
        sums[number] = steps + seen.steps, seconds + seen.seconds
    return {
        number: seconds / steps / float(graphs.shortest_iteration_s[number])
        for number, (steps, seconds) in sums.items()
        if steps >= fewest_steps and seconds > least_s
    }


def slower(graphs: JobGraphs, factors: Mapping[int, float]) -> JobGraphs:
    """Graphs of which some, by their numbers, take so many times as long under each mapping."""
    changed = tuple(
        graph.slower(factors[number]) if number in factors else graph
        for number, graph in enumerate(graphs.graph)
    )
    return JobGraphs(changed, graphs.of, graphs.network)


class _Recorded(msgspec.Struct, frozen=True):
    network: Network
    graphs: tuple[JobGraph, ...]
    of: dict[str, int]


@dataclass(frozen=True)
class MeasuredMappings:
    """Graphs of a run, slower by what was measured.

    Parameters
    ----------
    factors : mapping of str to float
        Measured time of an iteration over what the graph says of it, by job; 1 where nothing was timed.
    placed : mapping of str to StageMapping
        Where the replicas of each job were first.
    notes : tuple of str
        What had to be assumed.
    """

    graphs: NamedGraphs
    network: Network
    factors: Mapping[str, float]
    placed: Mapping[str, StageMapping]
    notes: tuple[str, ...]


def measured_graphs(
    record: object,
    observations: Iterable[Observation],
    events: Iterable[Mapping[str, Any]],
    nodes: Sequence[str],
    source: str,
) -> MeasuredMappings | None:
    """Graphs as measured; None for a run without. O(events).

    Parameters
    ----------
    record
        What the ledger says of graphs, None if nothing.
    events : iterable of mapping
        The run's log.
    nodes : sequence of str
        Names of the nodes, in the order of the cluster.
    source : str
        Where they are from, for messages.

    Raises
    ------
    InputError
        If what the ledger says makes no sense.
    """
    if record is None:
        return None
    recorded = decode(_Recorded, record, f"{source}: graphs")
    rows = {name: row for row, name in enumerate(recorded.of)}
    of = np.array(list(recorded.of.values()), dtype=np.int64)
    graphs = JobGraphs(recorded.graphs, of, recorded.network)
    first: dict[str, StageMapping] = {}
    position = {name: k for k, name in enumerate(nodes)}
    for event in events:
        name = event["job"]
        if event["kind"] == "granted" and name in rows and name not in first:
            names = [stage.name for stage in recorded.graphs[recorded.of[name]].stages]
            first[name] = _mapping(names, event["data"], position)
    factors = slowdowns(observations, graphs, rows)
    notes = tuple(
        f"job {name}: no step of its graph was timed, and is taken to last as long as that says"
        for name, number in recorded.of.items()
        if number not in factors
    )
    known = NamedGraphs(slower(graphs, factors).graph, recorded.of, source)
    by_job = {name: factors.get(number, 1.0) for name, number in recorded.of.items()}
    return MeasuredMappings(known, recorded.network, by_job, first, notes)


def _mapping(
    stages: list[str], data: Mapping[str, Any], position: Mapping[str, int]
) -> StageMapping:
    """Replicas of each stage on each node that a lease held."""
    counts: dict[str, list[int]] = {}
    for device, stage, _ in data["replicas"]:
        here = counts.setdefault(data["node_of"][device], [0] * len(stages))
        here[stages.index(stage)] += 1
    return tuple((position[node], tuple(row)) for node, row in counts.items())
