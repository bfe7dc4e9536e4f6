"""Recursive bisection by Kernighan and Lin: the baseline from a graph library.

Source: Kernighan and Lin, Bell System Technical Journal 49(2), 1970, as in networkx. The nodes
that a gang needs are halved again and again; each time the replicas are split into parts as large
as the halves' free GPUs and pairs are swapped while the bytes between the parts fall. Swaps keep
the parts' sizes, so free GPUs are respected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx
import numpy as np

from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.solvers.graph_placement.protocol import FreeGpus, as_free, fewest_nodes

Nodes = list[tuple[int, int]]
"""Nodes to fill: pairs (node, replicas it takes)."""

Replica = tuple[int, int]
"""A replica: its stage, and which of the stage's it is."""


@dataclass(frozen=True)
class Communities:
    """Recursive Kernighan-Lin bisection on as few nodes as the gang's size allows.

    Parameters
    ----------
    passes : int
        Most passes of swaps for each bisection.
    seed : int
        Seed of the order in which networkx tries swaps.

    Notes
    -----
    About O(passes g^2 log g) for each level of g replicas that all exchange something; slow for
    hundreds of replicas.
    """

    name: str = "communities"
    passes: int = 10
    seed: int = 0

    def place(self, graph: JobGraph, free: FreeGpus, network: Network) -> StageMapping | None:
        """Replicas on nodes by recursive bisection; ``network`` does not matter."""
        nodes = fewest_nodes(as_free(free), graph.gpus)
        if nodes is None:
            return None
        replicas = [(s, u) for s, stage in enumerate(graph.stages) for u in range(stage.replicas)]
        if len(nodes) == 1 or len(graph.stages) == 1:
            parts = iter(_runs(nodes, replicas))
        else:
            parts = self._parts(graph.to_networkx(), nodes, replicas)
        return tuple((node, _counts(part, len(graph.stages))) for node, part in parts)

    def _parts(
        self, graph: nx.Graph, nodes: Nodes, replicas: list[Replica]
    ) -> Iterator[tuple[int, list[Replica]]]:
        """Replicas of every node."""
        if len(nodes) == 1:
            yield nodes[0][0], replicas
            return
        half = (len(nodes) + 1) // 2
        size = sum(gpus for _, gpus in nodes[:half])
        one, other = nx.community.kernighan_lin_bisection(
            graph.subgraph(replicas),
            partition=(set(replicas[:size]), set(replicas[size:])),
            max_iter=self.passes,
            weight="weight",
            seed=self.seed,
        )
        if len(one) != size:
            one, other = other, one
        yield from self._parts(graph, nodes[:half], sorted(one))
        yield from self._parts(graph, nodes[half:], sorted(other))


def _runs(nodes: Nodes, replicas: list[Replica]) -> list[tuple[int, list[Replica]]]:
    """Replicas in their order."""
    ends = np.cumsum([gpus for _, gpus in nodes]).tolist()
    return [
        (node, replicas[end - gpus : end]) for (node, gpus), end in zip(nodes, ends, strict=True)
    ]


def _counts(replicas: list[Replica], stages: int) -> tuple[int, ...]:
    return tuple(np.bincount([stage for stage, _ in replicas], minlength=stages).tolist())


GRAPH_PLACEMENTS = (Communities(),)
