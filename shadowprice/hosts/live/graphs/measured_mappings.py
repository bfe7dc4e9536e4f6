"""Graphs of the jobs of a real run as measured, by its log: to be simulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from shadowprice.errors import InputError
from shadowprice.hosts.live.graphs.measured_graphs import MeasuredGraphs, slower
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.instances.graphs.named_graphs import NamedGraphs
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.speeds.throughput_files import kind_name
from shadowprice.instances.workload import Workload

FEWEST_STEPS, LEAST_S = 1, 0.0
"""Timed steps and seconds from which on a run that is over is measured: all that it has."""


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
    record: object, events: Iterable[Mapping[str, Any]], nodes: Sequence[str], source: str
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
    told = decode(_Recorded, record, f"{source}: graphs")
    rows = {name: row for row, name in enumerate(told.of)}
    given = JobGraphs(told.graphs, np.array(list(told.of.values()), dtype=np.int64), told.network)
    measured = MeasuredGraphs(given)
    held: dict[tuple[str, int], StageMapping] = {}
    first: dict[str, StageMapping] = {}
    position = {name: k for k, name in enumerate(nodes)}
    for event in events:
        name, data = event["job"], event["data"]
        if event["kind"] == "granted" and name in told.of:
            names = [stage.name for stage in told.graphs[told.of[name]].stages]
            mapping = held[name, event["epoch"]] = _mapping(names, data, position)
            first.setdefault(name, mapping)
        elif event["kind"] == "released" and data.get("seconds", 0.0) > 0:
            mapping = held[name, event["epoch"]]
            measured.count(rows[name], mapping, int(data["timed_steps"]), float(data["seconds"]))
    factors = measured.factors(FEWEST_STEPS, LEAST_S)
    notes = tuple(
        f"job {name}: no step of its graph was timed, and is taken to last as long as that says"
        for name, number in told.of.items()
        if number not in factors
    )
    known = NamedGraphs(slower(given, factors).graph, told.of, source)
    by_job = {name: factors.get(number, 1.0) for name, number in told.of.items()}
    return MeasuredMappings(known, told.network, by_job, first, notes)


def _mapping(
    stages: list[str], data: Mapping[str, Any], position: Mapping[str, int]
) -> StageMapping:
    """Replicas of each stage on each node that a lease held."""
    counts: dict[str, list[int]] = {}
    for device, stage, _ in data["replicas"]:
        here = counts.setdefault(data["node_of"][device], [0] * len(stages))
        here[stages.index(stage)] += 1
    return tuple((position[node], tuple(row)) for node, row in counts.items())


def mapped_workload(
    rows: Sequence[Mapping[str, Any]], source: str
) -> tuple[Workload, tuple[str, ...]]:
    """Jobs that did a step, with the steps that they did, and what is left out.

    Parameters
    ----------
    rows : sequence of mapping
        As of the ledger's jobs.

    Raises
    ------
    InputError
        If no job did one.
    """
    kept = [row for row in rows if row["step"]]
    workload = done_workload(kept, source)
    left = [row["name"] for row in rows if not row["step"]]
    return workload, tuple(f"job {name}: did no step, and is left out" for name in left)


def done_workload(rows: Sequence[Mapping[str, Any]], source: str, **rates: Any) -> Workload:
    """Jobs of a ledger, whose work is the steps that they did.

    Parameters
    ----------
    rates
        Further columns: ``throughput`` and ``gpu_types``, and what jobs ask for.

    Raises
    ------
    InputError
        If there is none.
    """
    if not rows:
        raise InputError(f"{source}: no job has done a step, expected at least one")
    return Workload.from_columns(
        id=[row["name"] for row in rows],
        arrival_s=[row["arrival_s"] for row in rows],
        gpus=[row["gpus"] for row in rows],
        work=[row["step"] for row in rows],
        model=[kind_name(row["name"], row["model"]) for row in rows],
        source=source,
        **rates,
    )


_COLUMNS = (
    "id",
    "arrival_s",
    "gpus",
    "work",
    "weight",
    "deadline_s",
    "tenant",
    "model",
    "job_class",
)


def without_rates(workload: Workload) -> Workload:
    """Jobs whose work counts iterations, of which their graphs say how long they take."""
    columns = {name: getattr(workload, name) for name in _COLUMNS}
    return Workload.from_columns(**columns, source=workload.source)
