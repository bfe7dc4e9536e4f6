"""Placement by count: any free GPUs will do, a gang may be spread over any nodes.

The rule of Tiresias' ``count`` scheme and of every scheduler that ignores locality. Nodes are
still assigned, last freed first, so that the schedule can be verified node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shadowprice.instances.cluster import Cluster
from shadowprice.solvers.placement.protocol import Allocator, Pieces


class CountAllocator(Allocator):
    """Stacks of nodes with free GPUs, one a pool; every operation is O(nodes of the gang)."""

    __slots__ = ("_free", "_free_in", "_on_one", "_pool", "_stacks", "anywhere", "free_gpus")

    anywhere: bool
    free_gpus: int

    def __init__(self, cluster: Cluster, pool_of_node: Sequence[int]) -> None:
        self._free: list[int] = cluster.gpus_per_node.tolist()
        self._pool = list(pool_of_node)
        pools = max(self._pool) + 1
        self._stacks: list[list[int]] = [[] for _ in range(pools)]
        self._free_in = [0] * pools
        for node in reversed(range(len(self._free))):
            self._stacks[self._pool[node]].append(node)
            self._free_in[self._pool[node]] += self._free[node]
        self._on_one: list[dict[int, Pieces]] = [{} for _ in self._free]
        self.free_gpus = sum(self._free)
        self.anywhere = pools == 1

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
        """Take GPUs from the nodes on top of the first stack that has enough."""
        free_in, free = self._free_in, self._free
        for pool in pools:
            if free_in[pool] >= gpus:
                free_in[pool] -= gpus
                self.free_gpus -= gpus
                stack = self._stacks[pool]
                node = stack[-1]
                if free[node] > gpus:
                    free[node] -= gpus
                elif free[node] == gpus:
                    free[node] = 0
                    stack.pop()
                else:
                    return self._pop(stack, gpus)
                # One object for all gangs of this size on the node: there are many, time and again.
                known = self._on_one[node]
                if gpus not in known:
                    known[gpus] = ((node, gpus),)
                return known[gpus]
        return None

    def _pop(self, stack: list[int], gpus: int) -> Pieces:
        """Take all GPUs of the nodes on top, and of the last of them as many as are missing."""
        free, pieces = self._free, []
        while gpus:
            node = stack[-1]
            part = free[node]
            if part > gpus:
                free[node] = part - gpus
                part = gpus
            else:
                free[node] = 0
                stack.pop()
            pieces.append((node, part))
            gpus -= part
        return tuple(pieces)

    def take_exact(self, pieces: Pieces) -> bool:
        """Take exactly these GPUs if they are all free; O(nodes of the pool)."""
        if any(self._free[node] < gpus for node, gpus in pieces):
            return False
        for node, gpus in pieces:
            pool = self._pool[node]
            self._free[node] -= gpus
            self._free_in[pool] -= gpus
            self.free_gpus -= gpus
            if not self._free[node]:
                self._stacks[pool].remove(node)
        return True

    def give_back(self, pieces: Pieces) -> None:
        """Free a gang's GPUs."""
        pools, free, free_in = self._pool, self._free, self._free_in
        for node, gpus in pieces:
            pool = pools[node]
            if not free[node]:
                self._stacks[pool].append(node)
            free[node] += gpus
            free_in[pool] += gpus
            self.free_gpus += gpus


@dataclass(frozen=True)
class Count:
    """GPUs are one pool for each type."""

    name: str = "count"

    def allocator(self, cluster: Cluster, pool_of_node: Sequence[int]) -> CountAllocator:
        """All GPUs of a cluster, free."""
        return CountAllocator(cluster, pool_of_node)


PLACEMENTS = (Count(),)
