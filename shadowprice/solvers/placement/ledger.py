"""Ledger of who holds what: GPUs by a placement, and what jobs hold beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shadowprice.instances.cluster import CORES
from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.declared import HoldingTerm
from shadowprice.solvers.placement.cpu_memory import CpuMemoryResource
from shadowprice.solvers.placement.declared import DeclaredResource
from shadowprice.solvers.placement.parts import PartsAllocator
from shadowprice.solvers.placement.protocol import Allocator, Pieces
from shadowprice.solvers.placement.resource import PlannedStarts, Resource
from shadowprice.solvers.placement.tenant_quotas import TenantQuotas

if TYPE_CHECKING:
    from shadowprice.solvers.job_table import JobTable


class ResourceLedger(Allocator):
    """Free GPUs, given out only where there is room for all that a job holds beside them.

    Taking looks at all nodes once jobs hold something on nodes that may be in their way; GPUs without room for it
    are hidden from the placement.

    Parameters
    ----------
    gpus : Allocator
        Of GPUs, or of parts of them.
    resources : sequence of Resource
        What jobs hold beside them.
    cpu_memory : CpuMemoryResource, optional
        CPUs and memory, one more of them, of which policies ask more than of the others.
    """

    counts_by_job = True

    def __init__(
        self,
        gpus: Allocator,
        resources: Sequence[Resource],
        cpu_memory: CpuMemoryResource | None = None,
    ) -> None:
        self._gpus = gpus
        if cpu_memory is not None:
            resources, self.cpu_memory = (*resources, cpu_memory), cpu_memory
        self._resources = tuple(resources)
        self._on_nodes = tuple(each for each in resources if each.on_nodes)
        self._elsewhere = tuple(each for each in resources if not each.on_nodes)
        self._of_gangs = tuple(each for each in resources if each.of_gangs)
        self._of_starts = tuple(each for each in resources if each.of_starts)
        self.changes = self.next_change_s < math.inf
        self.limits_starts, self.in_parts = bool(self._elsewhere), gpus.in_parts
        self._always = tuple(each for each in resources if not each.of_starts)

    # Limits that change.

    def at(self, now_s: float) -> None:
        """Take note of the time, which never goes back."""
        for each in self._resources:
            each.at(now_s)

    @property
    def next_change_s(self) -> float:
        """Time at which some limit changes next [s]; infinity for never."""
        return min((each.next_change_s for each in self._resources), default=math.inf)

    # Free GPUs.

    @property
    def free_gpus(self) -> int:
        """Free GPUs, whether there is room for all else or not."""
        return self._gpus.free_gpus

    @property
    def anywhere(self) -> bool:
        """True if the placement says so and nothing on its nodes can be in the way of a job that has arrived."""
        beside = any(each.says for each in (*self._on_nodes, *self._of_gangs))
        return self._gpus.anywhere and not beside

    @property
    def by_count(self) -> bool:
        """True if the number of free GPUs of a pool says whether a gang fits."""
        return self._gpus.by_count and not any(each.says for each in self._resources)

    def free_in(self, pool: int) -> int:
        """Free GPUs of one pool."""
        return self._gpus.free_in(pool)

    def free_milli_in(self, pool: int) -> int:
        """Thousandths of GPUs that nobody holds in a pool."""
        return self._gpus.free_milli_in(pool)

    def pool_of(self, node: int) -> int:
        """Pool of a node."""
        return self._gpus.pool_of(node)

    def free_by_node(self) -> list[int]:
        """Free GPUs of every node, a copy."""
        return self._gpus.free_by_node()

    def take_exact(self, pieces: Pieces) -> bool:
        """Take exactly these GPUs, whole, if they are all free, and nothing else."""
        return self._gpus.take_exact(pieces)

    def give_back(self, pieces: Pieces) -> None:
        """Free whole GPUs that were taken with nothing else."""
        self._gpus.give_back(pieces)

    # What jobs hold.

    def arrive(self, jobs: JobTable, rows: range) -> None:
        """Take note of jobs that arrive."""
        self._gpus.arrive(jobs, rows)
        for each in self._resources:
            each.arrive(jobs, rows)

    def fields_of(self, job: int) -> dict[Feature, Any]:
        """Fields of a run that were chosen with its GPUs."""
        return self._gpus.fields_of(job)

    def admits(self, job: int, gpus: int) -> bool:
        """True if a job may begin on so many GPUs, as far as what is on no node goes."""
        return all(each.room(job, ((0, gpus),)) for each in self._elsewhere)

    def planned_starts(self) -> PlannedStarts:
        """Room for gangs as if nobody held anything, as far as what is on no node goes."""
        return PlannedStarts(self._elsewhere)

    def take(self, job: int, gpus: int, pools: Sequence[int]) -> Pieces | None:
        """Take a gang, and all else that it holds, from the first of the pools in which both fit."""
        if self._elsewhere and not self.admits(job, gpus):
            return None
        asked = [each for each in self._on_nodes if each.says]

        def most(node: int, count: int) -> int:
            for each in asked:
                count = each.most(job, node, count)
            return count

        whole = self._gpus
        pieces = whole.take_where(job, gpus, pools, most) if asked else whole.take(job, gpus, pools)
        if pieces is None:
            return None
        if not all(each.room(job, pieces) for each in self._of_gangs):
            whole.release(job, pieces)
            return None
        self._count(job, pieces)
        return pieces

    def hold(self, job: int, pieces: Pieces) -> bool:
        """Take what a job holds on exactly these GPUs, if all of it is free; limits of beginnings are not asked."""
        if not self._has_room(job, pieces) or not self._gpus.hold(job, pieces):
            return False
        self._count(job, pieces)
        return True

    def resume(
        self, job: int, pieces: Pieces, partner: int | None, begun: Mapping[int, Pieces]
    ) -> bool:
        """Take the very same again that a job held before it was stopped, if it is free."""
        limits = tuple(
            each
            for each in self._of_starts
            if begun and each.begun_at(each.places(job, pieces), begun)
        )
        if partner is not None:
            return self._share(job, partner, pieces, (*limits, *self._always))
        if not all(each.room(job, pieces) for each in limits):
            return False
        if not self._has_room(job, pieces) or not self._gpus.resume(job, pieces, None, begun):
            return False
        self._count(job, pieces)
        return True

    def release(self, job: int, pieces: Pieces) -> None:
        """Free what a job holds."""
        self._gpus.release(job, pieces)
        for each in self._resources:
            each.give_back(job, pieces)
        self.cpu_memory.give(job, pieces, None)

    def join(self, job: int, partner: int, pieces: Pieces) -> bool:
        """Take what a job holds beside GPUs that it shares from now on; False, and no change, if it is not free."""
        return self._share(job, partner, pieces, self._resources)

    def leave(self, job: int, partner: int, pieces: Pieces) -> None:
        """Free what a job holds beside GPUs that its partner has to itself from now on."""
        for each in self._resources:
            each.part(job, partner, pieces)
        self.cpu_memory.give(job, pieces, None)

    def crowded(self, job: int, pieces: Pieces, begun: Mapping[int, Pieces]) -> bool:
        """True if more is held than may be where a job is counted and one of these runs begins."""
        for each in self._of_starts:
            places = each.places(job, pieces)
            if not each.within(places) and each.begun_at(places, begun):
                return True
        return False

    def _share(self, job: int, partner: int, pieces: Pieces, limits: Sequence[Resource]) -> bool:
        """Count a job that shares GPUs, if that is within some of the limits."""
        for each in self._resources:
            each.share(job, partner, pieces)
        if all(each.within(each.places(job, pieces)) for each in limits):
            return True
        self.leave(job, partner, pieces)
        return False

    def _has_room(self, job: int, pieces: Pieces) -> bool:
        return all(each.room(job, pieces) for each in self._always if each.says)

    def _count(self, job: int, pieces: Pieces) -> None:
        for each in self._resources:
            each.take(job, pieces)


def ledger_of(instance: Instance, gpus: Allocator, pool_of_node: Sequence[int]) -> Allocator:
    """Allocator of a simulated run: the placement's own where jobs hold whole GPUs and nothing beside them."""
    if Feature.PARTS in instance.features:
        gpus = PartsAllocator(gpus, instance.cluster)
    asked = instance.asked_cpu_memory
    cpu_memory = (
        None if asked is None else CpuMemoryResource(asked.nodes, asked.demands, pool_of_node)
    )
    return with_resources(gpus, instance, cpu_memory)


def with_resources(
    gpus: Allocator, instance: Instance, cpu_memory: CpuMemoryResource | None
) -> Allocator:
    """The same allocator, which counts what jobs hold beside GPUs, if they hold anything.

    Parameters
    ----------
    cpu_memory : CpuMemoryResource, optional
        CPUs and memory: of simulated runs those that jobs ask for, of real ones those of their leases.
    """
    quotas, resources = instance.cluster.quotas, list[Resource]()
    if quotas is not None:
        names = instance.pools.names
        resources.append(TenantQuotas(quotas, names.index(CORES) if CORES in names else -1))
    resources += [
        DeclaredResource(term, instance.cluster, instance.workload)
        for term in instance.declared
        if isinstance(term, HoldingTerm)
    ]
    return ResourceLedger(gpus, resources, cpu_memory) if resources or cpu_memory else gpus
