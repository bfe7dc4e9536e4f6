"""Heavy-Edge, then swaps of replicas between nodes as long as fewer bytes are cut.

Source: derived. Heavy-Edge decides once and for all, so that what it leaves for the last nodes may
be scattered: a long pipeline is cut into pieces with the ends of others. Here its placement, and
one with the stages in their order, each descend to a placement that no swap of two replicas and no
move to a free GPU improves, and the better one is taken. Nodes stay as few as for Heavy-Edge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.models.asrpt import cut_bytes, exchange
from shadowprice.solvers.graph_placement.first_fit import FirstFit
from shadowprice.solvers.graph_placement.heavy_edge import HeavyEdge
from shadowprice.solvers.graph_placement.protocol import FreeGpus, as_free

_LEAST_GAIN = 1e-9
"""Gains below this part of the heaviest pair are rounding."""


@dataclass(frozen=True)
class HeavyEdgeSwaps:
    """Heavy-Edge and steepest descent by swaps.

    Parameters
    ----------
    swaps : int
        Most swaps from each start.

    Notes
    -----
    O(P^2) a swap, P the pairs of a node and a stage on it; below a millisecond for tens of
    replicas, seconds for a thousand.
    """

    name: str = "heavy-edge-swaps"
    swaps: int = 1000

    def __post_init__(self) -> None:
        if self.swaps < 0:
            raise InputError(f"placement {self.name}: swaps is {self.swaps}, expected >= 0")

    def place(self, graph: JobGraph, free: FreeGpus, network: Network) -> StageMapping | None:
        """Replicas on nodes, no more bytes cut than by Heavy-Edge; ``network`` does not matter."""
        room = as_free(free)
        first = HeavyEdge().place(graph, room, network)
        if first is None or len(first) == 1 or cut_bytes(graph, first) == 0:
            return first
        only = np.zeros_like(room)
        used = [node for node, _ in first]
        only[used] = room[used]
        starts = [first, FirstFit().place(graph, only, network) or first]
        ends = [self._descent(graph, start, only) for start in starts]
        return min([*ends, first], key=lambda mapping: cut_bytes(graph, mapping))

    def _descent(
        self, graph: JobGraph, start: StageMapping, room: NDArray[np.int64]
    ) -> StageMapping:
        nodes = np.flatnonzero(room)
        stages = len(graph.stages)
        # A free GPU is a replica of one more stage, which exchanges nothing.
        weight = np.zeros((stages + 1, stages + 1))
        weight[:stages, :stages] = exchange(graph)
        counts = np.zeros((len(nodes), stages + 1), dtype=np.int64)
        for node, row in start:
            counts[np.searchsorted(nodes, node), :stages] = row
        counts[:, stages] = room[nodes] - counts.sum(axis=1)
        least = _LEAST_GAIN * weight.max()
        for _ in range(self.swaps):
            if not _swap(counts, weight, least):
                break
        rows = counts[:, :stages].tolist()
        return tuple(
            (node, tuple(row)) for node, row in zip(nodes.tolist(), rows, strict=True) if any(row)
        )


def _swap(counts: NDArray[np.int64], weight: NDArray[np.float64], least: float) -> bool:
    """Make the best swap of two replicas on different nodes, if it saves more than ``least``."""
    inside = counts @ weight
    node, stage = np.nonzero(counts)
    stays = inside[node, stage] - weight[stage, stage]
    # Row i there, column j here: what i would exchange on the node of j, once j has left it.
    moved = inside[node][:, stage].T - weight[np.ix_(stage, stage)]
    gain = moved + moved.T - stays[:, None] - stays[None, :]
    gain[node[:, None] == node[None, :]] = 0.0
    i, j = divmod(int(gain.argmax()), len(node))
    if gain[i, j] <= least:
        return False
    for one, other in ((i, j), (j, i)):
        counts[node[one], stage[one]] -= 1
        counts[node[one], stage[other]] += 1
    return True


GRAPH_PLACEMENTS = (HeavyEdgeSwaps(),)
