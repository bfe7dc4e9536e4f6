"""First fit: nodes in their order, stages in theirs; blind to what replicas exchange."""

from __future__ import annotations

from dataclasses import dataclass

from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.solvers.graph_placement.protocol import FreeGpus, as_free


@dataclass(frozen=True)
class FirstFit:
    """Every replica, stage by stage, on the first node with a free GPU."""

    name: str = "first-fit"

    def place(self, graph: JobGraph, free: FreeGpus, network: Network) -> StageMapping | None:
        """Replicas on nodes, full before the next; ``network`` does not matter. O(M + S nodes used)."""
        room = as_free(free)
        if int(room.sum()) < graph.gpus:
            return None
        left = [stage.replicas for stage in graph.stages]
        mapping: list[tuple[int, tuple[int, ...]]] = []
        stage, unplaced = 0, graph.gpus
        for node in room.nonzero()[0].tolist():
            here, gpus = [0] * len(left), int(room[node])
            while gpus and unplaced:
                part = min(gpus, left[stage])
                here[stage] += part
                left[stage] -= part
                gpus, unplaced = gpus - part, unplaced - part
                if not left[stage]:
                    stage += 1
            mapping.append((node, tuple(here)))
            if not unplaced:
                break
        return tuple(mapping)


GRAPH_PLACEMENTS = (FirstFit(),)
