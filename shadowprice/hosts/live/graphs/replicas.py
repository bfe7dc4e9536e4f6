"""Replicas of a job graph on the devices of a lease, in the order of its ranks.

A mapping says how many replicas of each stage a node has. Ranks follow it: nodes in its order, on
each of them the devices in theirs, with the replicas of the first stage first. Replicas of a stage
are numbered in the order of ranks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from shadowprice.hosts.protocol import Device
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping

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
