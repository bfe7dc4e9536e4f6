"""Nodes that copies may take in a round: those that are up, within quotas of tenants.

Of a quota whole nodes count, when a copy takes one that its job did not have in the round before.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.instance import Instance


class RoundNodes:
    """Nodes of a round, and what tenants take of them against their quotas.

    Who goes on, on a node that the job had in the round before, does not begin. Where a copy of a tenant begins, all
    that the tenant then holds has to be within its quota.

    Parameters
    ----------
    jobs : sequence of int
        Jobs of the round, by position.
    goes_on : collection of (int, int)
        Jobs and the nodes that they had in the round before.
    up : set of int
        Nodes that are there.
    """

    def __init__(
        self,
        instance: Instance,
        quotas: Quotas | None,
        now_s: float,
        jobs: Sequence[int],
        goes_on: Collection[tuple[int, int]],
        up: set[int],
    ) -> None:
        tenants = () if quotas is None else quotas.tenants
        place = {name: k for k, name in enumerate(tenants)}
        # Without quotas all are of one tenant, which may hold whatever there is.
        self._tenant = [
            place.get(name, 0) for name in instance.workload.tenant[list(jobs)].tolist()
        ]
        self._jobs, self._goes_on, self._up = jobs, goes_on, up
        self._size = [node.gpus for node in instance.cluster.nodes]
        self._quota = (math.inf,) if quotas is None else quotas.at(now_s)
        self._held = [0] * len(self._quota)
        self._begun = [False] * len(self._quota)

    def nodes(self, count: int) -> set[int]:
        """Nodes that are there."""
        return set(self._up)

    def within(self, position: int, nodes: Sequence[int], most: int) -> list[int]:
        """The first of these nodes that a job may take beside what was taken, at most so many."""
        tenant = self._tenant[position]
        held, begun, found = self._held[tenant], self._begun[tenant], list[int]()
        for node in nodes:
            if len(found) == most:
                break
            begins = begun or self._begins(position, node)
            if begins and held + self._size[node] > self._quota[tenant]:
                continue
            held, begun = held + self._size[node], begins
            found.append(node)
        return found

    def take(self, position: int, nodes: Sequence[int]) -> None:
        """Take note that a job takes nodes."""
        tenant = self._tenant[position]
        for node in nodes:
            self._held[tenant] += self._size[node]
            self._begun[tenant] |= self._begins(position, node)

    def _begins(self, position: int, node: int) -> bool:
        return (self._jobs[position], node) not in self._goes_on
