"""Heavy-Edge: nodes are filled one by one with the replicas that exchange most.

Source: the placement of A-SRPT (Luo, Liu, Lee, Shroff, arXiv 2501.05563), idea recalled, the
precise version derived. The vertices are the replicas, edges weigh the bytes two of them exchange
in an iteration. Each node starts with the ends of the heaviest edge between replicas not yet
placed and then takes the replica that exchanges most with those already there; a node with a
single GPU left takes the replica that exchanges least with the others.

Replicas of a stage are alike, so only their numbers are kept: O(S) for each replica, O(g S + E log
E) for g GPUs, S stages and E links, after sorting the nodes by free GPUs.

It is a greedy rule without a guarantee on the bytes cut; see ``benchmarks/graph_placement.py``
for what it loses against the exact programme.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.models.asrpt import exchange
from shadowprice.solvers.graph_placement.protocol import FreeGpus, as_free, fewest_nodes
from shadowprice.solvers.threads import one_blas_thread


@dataclass(frozen=True)
class HeavyEdge:
    """The heaviest exchanges stay inside a node; as few nodes as the gang's size allows."""

    name: str = "heavy-edge"

    def place(self, graph: JobGraph, free: FreeGpus, network: Network) -> StageMapping | None:
        """Replicas on nodes by the greedy rule; ``network`` does not matter. O(g S + M log M)."""
        nodes = fewest_nodes(as_free(free), graph.gpus)
        if nodes is None:
            return None
        replicas = tuple(stage.replicas for stage in graph.stages)
        if len(nodes) == 1:
            return ((nodes[0][0], replicas),)
        if len(replicas) == 1:
            return tuple((node, (gpus,)) for node, gpus in nodes)
        left = _Unplaced(np.array(replicas, dtype=np.int64), exchange(graph))
        return tuple((node, left.take(gpus)) for node, gpus in nodes)


class _Unplaced:
    """Replicas of each stage not yet on a node.

    Parameters
    ----------
    left : ndarray of int, shape (S,)
    weight : ndarray, shape (S, S)
        Bytes a replica of one stage exchanges with one of another.
    """

    def __init__(self, left: NDArray[np.int64], weight: NDArray[np.float64]) -> None:
        self._left = left
        self._weight = weight
        self._heaviest = _by_weight(weight)
        self._edge = next(self._heaviest, None)
        self._degree: NDArray[np.float64] | None = None

    def take(self, gpus: int) -> tuple[int, ...]:
        """Replicas of each stage for a node that takes so many of them."""
        if gpus == self._left.sum():
            taken, self._left = self._left, np.zeros_like(self._left)
        elif gpus == 1:
            taken = self._loneliest()
        else:
            taken = self._grown(gpus)
        return tuple(taken.tolist())

    def _grown(self, gpus: int) -> NDArray[np.int64]:
        """The ends of the heaviest edge, then what exchanges most with those taken."""
        taken = np.zeros_like(self._left)
        # What a replica of each stage exchanges with those taken; no replicas left: never again.
        gain = np.where(self._left > 0, 0.0, -np.inf)
        ends = self._heaviest_edge()
        for k in range(gpus):
            stage = ends[k] if k < len(ends) else int(gain.argmax())
            taken[stage] += 1
            self._left[stage] -= 1
            gain += self._weight[stage]
            if self._left[stage] == 0:
                gain[stage] = -np.inf
        return taken

    def _heaviest_edge(self) -> tuple[int, ...]:
        """Stages of its ends; none if nothing that is left exchanges anything.

        Replicas only become fewer, so an edge that is gone stays gone: O(E) for all nodes.
        """
        while self._edge is not None:
            one, other = self._edge
            if min(self._left[one], self._left[other]) >= (2 if one == other else 1):
                return self._edge
            self._edge = next(self._heaviest, None)
        return ()

    def _loneliest(self) -> NDArray[np.int64]:
        """One replica, that exchanges least with all others not yet placed.

        Nodes are filled in the order of their free GPUs, so from here on each takes one: the
        sums are made once, and kept.
        """
        if self._degree is None:
            with one_blas_thread:
                self._degree = self._weight @ self._left - self._weight.diagonal()
            self._degree[self._left == 0] = np.inf
        stage = int(self._degree.argmin())
        self._left[stage] -= 1
        self._degree -= self._weight[stage]
        if self._left[stage] == 0:
            self._degree[stage] = np.inf
        taken = np.zeros_like(self._left)
        taken[stage] = 1
        return taken


def _by_weight(weight: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Pairs of stages that exchange something, heaviest first; ties: lowest stages."""
    one, other = np.nonzero(np.triu(weight))
    order = np.argsort(-weight[one, other], kind="stable")
    yield from zip(one[order].tolist(), other[order].tolist(), strict=True)


GRAPH_PLACEMENTS = (HeavyEdge(),)
