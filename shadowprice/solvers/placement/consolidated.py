"""Consolidated placements: a gang on as few nodes as its size allows.

``consolidate`` is strict, as in Helios and YARN-CS: a gang that fits one node gets exactly one
(best fit), a larger one gets wholly free nodes and at most one partly free node for the rest;
it waits if there is no such place. ``pack`` prefers the same place, but never waits for it: if
there is none it takes the nodes with most free GPUs.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from shadowprice.instances.cluster import Cluster
from shadowprice.solvers.placement.protocol import Allocator, Pieces, in_turn


class ConsolidatedAllocator(Allocator):
    """Nodes in buckets by free GPUs; ties go to the node with the lowest position.

    Buckets are heaps with lazy deletion, so a gang costs O(GPUs of a node + log nodes) for each
    node it takes. With ``strict=False``, gangs that cannot be consolidated are spread; with
    ``best_fit=False`` the first node with room is taken instead of the fullest.
    """

    # Set in each object; what is here only says that they are no properties.
    anywhere: bool = False
    free_gpus: int = 0

    def __init__(
        self, cluster: Cluster, pool_of_node: Sequence[int], *, strict: bool, best_fit: bool = True
    ) -> None:
        self._free: list[int] = cluster.gpus_per_node.tolist()
        self._size: list[int] = list(self._free)
        self._pool = list(pool_of_node)
        self._strict = strict
        self._choose = self._best_fit if best_fit else self._first_fit
        pools, largest = max(self._pool) + 1, max(self._size)
        self._largest = [0] * pools
        self._free_in = [0] * pools
        self._buckets: list[list[list[int]]] = [
            [[] for _ in range(largest + 1)] for _ in range(pools)
        ]
        for node, (gpus, pool) in enumerate(zip(self._size, self._pool, strict=True)):
            self._buckets[pool][gpus].append(node)
            self._largest[pool] = max(self._largest[pool], gpus)
            self._free_in[pool] += gpus
        self.free_gpus = sum(self._free)
        self.anywhere = not strict and pools == 1

    def free_in(self, pool: int) -> int:
        """Free GPUs of one pool."""
        return self._free_in[pool]

    def free_by_node(self) -> list[int]:
        """Free GPUs of every node, a copy."""
        return list(self._free)

    def pool_of(self, node: int) -> int:
        """Pool of a node."""
        return self._pool[node]

    def take(self, job: int, gpus: int, pools: Sequence[int]) -> Pieces | None:
        """Take a gang, consolidated, from the first pool with a place for it."""
        for pool in pools:
            if self._free_in[pool] < gpus:
                continue
            pieces = self._find(gpus, pool)
            if pieces is None and not self._strict:
                pieces = self._spread(gpus, pool)
            if pieces is not None:
                for node, part in pieces:
                    self._change(node, -part)
                return pieces
        return None

    def _find(self, gpus: int, pool: int) -> Pieces | None:
        node = self._choose(gpus, pool, set())
        if node is not None:
            return ((node, gpus),)
        if gpus <= self._largest[pool]:
            return None
        pieces: list[tuple[int, int]] = []
        for whole in self._whole_nodes(pool):
            pieces.append((whole, self._size[whole]))
            gpus -= self._size[whole]
            rest = self._choose(gpus, pool, {node for node, _ in pieces}) if gpus else whole
            if rest is not None:
                return tuple([*pieces, (rest, gpus)] if gpus else pieces)
        return None

    def _whole_nodes(self, pool: int) -> list[int]:
        free = [
            node for node, (f, s) in enumerate(zip(self._free, self._size, strict=True)) if f == s
        ]
        return sorted(
            (node for node in free if self._pool[node] == pool), key=lambda node: -self._size[node]
        )

    def _best_fit(self, gpus: int, pool: int, taken: set[int]) -> int | None:
        buckets = self._buckets[pool]
        for free in range(gpus, len(buckets)):
            bucket = buckets[free]
            while bucket and self._free[bucket[0]] != free:
                heapq.heappop(bucket)
            if bucket:
                candidates = (
                    node for node in bucket if self._free[node] == free and node not in taken
                )
                node = bucket[0] if not taken else min(candidates, default=None)
                if node is not None:
                    return node
        return None

    def _first_fit(self, gpus: int, pool: int, taken: set[int]) -> int | None:
        for node, free in enumerate(self._free):
            if free >= gpus and self._pool[node] == pool and node not in taken:
                return node
        return None

    def _spread(self, gpus: int, pool: int) -> Pieces:
        nodes = [node for node, free in enumerate(self._free) if free and self._pool[node] == pool]
        return in_turn(sorted(nodes, key=lambda node: -self._free[node]), self._free, gpus)

    def _change(self, node: int, gpus: int) -> None:
        pool = self._pool[node]
        self._free[node] += gpus
        self._free_in[pool] += gpus
        self.free_gpus += gpus
        heapq.heappush(self._buckets[pool][self._free[node]], node)

    def take_exact(self, pieces: Pieces) -> bool:
        """Take exactly these GPUs if they are all free."""
        if any(self._free[node] < gpus for node, gpus in pieces):
            return False
        for node, gpus in pieces:
            self._change(node, -gpus)
        return True

    def give_back(self, pieces: Pieces) -> None:
        """Free a gang's GPUs."""
        for node, gpus in pieces:
            self._change(node, gpus)


@dataclass(frozen=True)
class Consolidate:
    """As few nodes as the gang's size allows, or wait."""

    name: str = "consolidate"

    def allocator(self, cluster: Cluster, pool_of_node: Sequence[int]) -> ConsolidatedAllocator:
        """All GPUs of a cluster, free."""
        return ConsolidatedAllocator(cluster, pool_of_node, strict=True)


@dataclass(frozen=True)
class Pack:
    """As few nodes as the gang's size allows if there is such a place, else spread."""

    name: str = "pack"

    def allocator(self, cluster: Cluster, pool_of_node: Sequence[int]) -> ConsolidatedAllocator:
        """All GPUs of a cluster, free."""
        return ConsolidatedAllocator(cluster, pool_of_node, strict=False)


PLACEMENTS = (Consolidate(), Pack())
