"""Graphs of the jobs of a real run as measured: for its policy, and from its log, to be simulated.

A graph says how much longer an iteration takes under one mapping than under another; how long it
takes at all is measured. So a graph is slower than it says by one factor, whatever the mapping was: the time of
its timed steps under its best mapping, as which observations count them, over what it says of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from shadowprice.instances.documents.schema import decode
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.instances.graphs.named_graphs import NamedGraphs
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.speeds.throughput_files import Observation


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
