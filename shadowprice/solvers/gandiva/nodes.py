"""getNodes: the server for a job by affinity. Gandiva (OSDI'18), sec. 3.2.1, Algorithm 1.

The paper's condition ``height(n1) < 1`` cannot hold on a server with a job, since the height is
rounded up; meant is that there are enough free GPUs, which is what is tested here (derived). As
derived as well: where the paper queues a job of which no server has the affinity, it is put on the
server with the lowest load, so that it takes turns; a job that fits no server spans several; and
free GPUs of several servers are used before any are over-subscribed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shadowprice.solvers.gandiva.units import Book
from shadowprice.solvers.placement.protocol import Pieces


def free_home(book: Book, free: Sequence[int], gang: int, pools: Iterable[int]) -> Pieces | None:
    """Free GPUs for a gang on one server; None if there are none. O(nodes).

    The pools are tried in order; in each, first the servers with its affinity, least loaded first,
    then idle ones, then any (which mixes affinities), tightest first.
    """
    for pool in pools:
        node = one_server(book, free, gang, pool)
        if node is not None:
            return ((node, gang),)
    return None


def spread_home(book: Book, free: Sequence[int], gang: int, pools: Iterable[int]) -> Pieces | None:
    """Free GPUs for a gang on as few servers of a pool as there are; O(nodes log nodes)."""
    for pool in pools:
        nodes = book.nodes_of[pool]
        if sum(free[node] for node in nodes) >= gang:
            return _several(sorted(nodes, key=lambda node: (-free[node], node)), free, gang)
    return None


def one_server(book: Book, free: Sequence[int], gang: int, pool: int) -> int | None:
    """The server of a pool on which a gang is put without over-subscribing it; O(nodes)."""
    best: tuple[int, ...] | None = None
    for node in book.nodes_of[pool]:
        if free[node] < gang:
            continue
        affinity = book.affinity(node)
        if affinity == gang:
            rank: tuple[int, ...] = (0, book.load[node], node)
        elif affinity == 0:
            rank = (1, book.size[node], node)
        else:
            rank = (2, free[node], node)
        if best is None or rank < best:
            best = rank
    return None if best is None else best[-1]


def shared_home(book: Book, gang: int, pools: Iterable[int]) -> Pieces:
    """GPUs for a gang on servers that are over-subscribed for it; O(nodes log nodes).

    The server that will have the lowest height, among equals one with its affinity, then the least
    loaded; several, least loaded first, if none is large enough.
    """
    pools = tuple(pools)
    # Positions break ties, so the fastest of equally loaded pools comes first.
    place = {pool: k for k, pool in enumerate(pools)}
    large = [
        node for pool in pools for node in book.nodes_of[pool] if book.size[node] >= gang
    ]  # fmt: skip
    if large:
        node = min(
            large,
            key=lambda node: (
                -(-(book.load[node] + gang) // book.size[node]),
                book.affinity(node) != gang,
                book.load[node] / book.size[node],
                place[book.pool[node]],
                node,
            ),
        )
        return ((node, gang),)
    for pool in pools:
        nodes = book.nodes_of[pool]
        if sum(book.size[node] for node in nodes) >= gang:
            by_load = sorted(nodes, key=lambda node: (book.load[node] / book.size[node], node))
            return _several(by_load, book.size, gang)
    # The instance refuses jobs that fit no pool.
    return ()


def _several(nodes: Iterable[int], free: Sequence[int], gang: int) -> Pieces:
    pieces = []
    for node in nodes:
        part = min(free[node], gang)
        if part:
            pieces.append((node, part))
            gang -= part
    return tuple(pieces)
