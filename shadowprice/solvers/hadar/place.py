"""From the parts of gangs to nodes: who keeps its GPUs, and where the others go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from shadowprice.solvers.hadar.find import Shape
from shadowprice.solvers.placement.protocol import Pieces


def place(
    shapes: Mapping[int, Shape],
    running: Mapping[int, Pieces],
    capacity: Sequence[int],
    type_of_node: Sequence[int],
    *,
    scattered: bool,
) -> dict[int, Pieces]:
    """Nodes for gangs whose parts are given by GPU type and size.

    A running job that is to have as many GPUs of each type as it holds keeps them, on no more nodes
    than asked for (on any if ``scattered``). The others are packed best fit, largest first.
    Since the parts were found before who stays where, a part may have to be split over
    nodes of its type; by type there are always enough GPUs. O(parts x nodes).
    """
    free = list(capacity)
    placed: dict[int, Pieces] = {}
    for job, shape in shapes.items():
        pieces = running.get(job)
        if pieces is not None and _stays(pieces, shape, type_of_node, scattered):
            placed[job] = pieces
            for node, gpus in pieces:
                free[node] -= gpus
    nodes_of: dict[int, list[int]] = {}
    for node, kind in enumerate(type_of_node):
        nodes_of.setdefault(kind, []).append(node)
    parts = [
        (size, -order, job, kind)
        for order, (job, shape) in enumerate(shapes.items())
        if job not in placed
        for kind, _, size in shape
    ]
    found: dict[int, Counter[int]] = {}
    for size, _, job, kind in sorted(parts, reverse=True):
        _pack(found.setdefault(job, Counter()), size, nodes_of[kind], free)
    return placed | {job: tuple(sorted(nodes.items())) for job, nodes in found.items()}


def _stays(pieces: Pieces, shape: Shape, type_of_node: Sequence[int], scattered: bool) -> bool:
    held: Counter[int] = Counter()
    for node, gpus in pieces:
        held[type_of_node[node]] += gpus
    wanted: Counter[int] = Counter()
    for kind, _, gpus in shape:
        wanted[kind] += gpus
    return held == wanted and (scattered or len(pieces) <= len(shape))


def _pack(found: Counter[int], size: int, nodes: Sequence[int], free: list[int]) -> None:
    """Give a part to the fullest node with room for it, or spread it over the emptiest ones."""
    roomy = [node for node in nodes if free[node] >= size]
    if roomy:
        node = min(roomy, key=free.__getitem__)
        found[node] += size
        free[node] -= size
        return
    for node in sorted(nodes, key=lambda each: -free[each]):
        part = min(size, free[node])
        if part:
            found[node] += part
            free[node] -= part
            size -= part
        if not size:
            return
