"""Replicas of job graphs in the log of a real run: standard library only.

A decision says how many replicas of each stage of a job are on which node. The lease that follows has
to hold exactly that: ranks in the order of the nodes, on each node the replicas of the first stage
first, replicas of a stage numbered in the order of ranks. What the graph says of the time of an
iteration is computed anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from shadowprice.proofs.graph_time import iteration_s


class LoggedGraphs:
    """Graphs of the jobs of a run, and where the last decision put their replicas.

    Parameters
    ----------
    record : mapping or None
        As a ledger keeps them: ``network``, ``graphs``, and ``of`` with the number of the graph of each
        job; None if jobs have none.
    nodes : sequence of str
        Names of the nodes, in the order of the cluster.
    """

    def __init__(self, record: Mapping[str, Any] | None, nodes: Sequence[str]) -> None:
        found: Mapping[str, Any] = {"graphs": [], "of": {}, "network": {}}
        found = found if record is None else record
        self._graphs = [_graph(each) for each in found["graphs"]]
        self._of: Mapping[str, int] = found["of"]
        self._network = SimpleNamespace(**found["network"])
        self._nodes = nodes
        self._decided: Mapping[str, Any] = {}

    def decided(self, data: Mapping[str, Any]) -> str:
        """Take a decision; a fault in how it places the jobs with graphs that it starts, or empty."""
        self._decided = data.get("mappings", {})
        lacking = sorted(name for name in data["starts"] if name in self._of)
        lacking = [name for name in lacking if name not in self._decided]
        return f"the replicas of {lacking} are placed nowhere" if lacking else ""

    def granted(
        self, job: str, data: Mapping[str, Any], node_of: Mapping[str, str], *, known: bool
    ) -> str:
        """Fault in a lease of a job with a graph, or empty.

        Parameters
        ----------
        node_of : mapping of str to str
            Node of each device.
        known : bool
            Whether a decision of the log starts it.
        """
        if job not in self._of:
            return f"{job} has no graph, but replicas" if "replicas" in data else ""
        graph, rows = self._graphs[self._of[job]], data["replicas"]
        if [device for device, _, _ in rows] != list(data["devices"]):
            return f"replicas of {job} are on other devices than it holds, or in another order"
        counts = _counts(graph, rows, node_of)
        if [sum(column) for column in zip(*counts.values(), strict=True)] != [
            stage.replicas for stage in graph.stages
        ]:
            return f"replicas of {job} are {counts}, not those of its graph"
        if rows != _laid_out(graph, counts, data["devices"]):
            return f"ranks of {job} are not in the order of nodes and stages: {rows}"
        if known:
            told = [(self._nodes[node], list(stages)) for node, stages in self._decided[job]]
            if told != list(counts.items()):
                return f"replicas of {job} are {counts}, but were placed {told}"
        expected_s = iteration_s(graph, list(counts.values()), self._network)
        if data["iteration_s"] != expected_s:
            return f"an iteration of {job} takes {data['iteration_s']!r} s, not {expected_s!r}"
        return ""


def _graph(record: Mapping[str, Any]) -> SimpleNamespace:
    stages = [SimpleNamespace(**stage) for stage in record["stages"]]
    links = [SimpleNamespace(**link) for link in record["links"]]
    return SimpleNamespace(**{**record, "stages": stages, "links": links})


def _counts(
    graph: Any, rows: Sequence[Sequence[Any]], node_of: Mapping[str, str]
) -> dict[str, list[int]]:
    """Replicas of each stage on each node, nodes in the order of ranks."""
    names = [stage.name for stage in graph.stages]
    counts: dict[str, list[int]] = {}
    for device, stage, _ in rows:
        counts.setdefault(node_of[device], [0] * len(names))[names.index(stage)] += 1
    return counts


def _laid_out(
    graph: Any, counts: Mapping[str, Sequence[int]], devices: Sequence[str]
) -> list[list[Any]]:
    """Device, stage and number of each rank, by the replicas of each node."""
    used = [0] * len(graph.stages)
    replicas = []
    for here in counts.values():
        for s, count in enumerate(here):
            replicas += [(graph.stages[s].name, used[s] + k) for k in range(count)]
            used[s] += count
    return [[device, *replica] for device, replica in zip(devices, replicas, strict=True)]
