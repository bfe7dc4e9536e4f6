"""Quotas of tenants whose jobs run as copies: whole nodes count, when a copy takes one that it did not have before."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.instance import Instance


class TenantNodes:
    """GPUs of the nodes that tenants take in a round, against their quotas.

    Who goes on, on a node that the job had in the round before, does not begin. Where a copy of a tenant begins, all
    that the tenant then holds has to be within its quota.

    Parameters
    ----------
    jobs : sequence of int
        Jobs of the round, by position.
    goes_on : collection of (int, int)
        Jobs and the nodes that they had in the round before.
    """

    def __init__(
        self,
        instance: Instance,
        quotas: Quotas,
        now_s: float,
        jobs: Sequence[int],
        goes_on: Collection[tuple[int, int]],
    ) -> None:
        place = {name: k for k, name in enumerate(quotas.tenants)}
        self._tenant = [place[name] for name in instance.workload.tenant[list(jobs)].tolist()]
        self._jobs, self._goes_on = jobs, goes_on
        self._size = [node.gpus for node in instance.cluster.nodes]
        self._quota = quotas.at(now_s)
        self._held = [0] * len(quotas.tenants)
        self._begun = [False] * len(quotas.tenants)

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
