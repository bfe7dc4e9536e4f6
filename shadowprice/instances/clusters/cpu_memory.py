"""CPUs and memory: what a job asks for, what its run holds, and what nodes have.

A job that says how many CPUs or how much memory its gang needs holds of each on a node in proportion to
its GPUs there; one that does not say holds the share of its GPUs, what the node has over its GPUs, or that part
of it where it holds a part of one. Shares of all GPUs of a node always fit, so that nothing changes where no job
says anything. Where two jobs share GPUs each holds what it asks for, and who does not say holds nothing: a share
of the same GPUs for both would be twice what there is. No job is faster for it. Where profiles say how speeds depend
on both, runs are given them, and what a job asks for is the least that it may be given. Derived, not of a paper.

What nodes have and runs hold is counted in whole numbers, thousandths of a CPU and MiB, or millionths of both where
runs are given them: sums are exact, and so is what is left.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.errors import InfeasibleJobError, InputError
from shadowprice.instances.cluster import CORES, Cluster
from shadowprice.instances.workload import WHOLE_GPU, Workload

CPU_MILLI = 1000
"""Thousandths of a CPU core."""
MIB_PER_GB = 1e9 / 2**20
_NOISE = 1e-6
"""Of a thousandth, or of a MiB: what rounding may have added to a number that was whole."""
_MILLIONTHS = 10**6
_ROUNDING = 1e-3
"""Of a millionth: the same of what runs are given."""

CpuMemory = tuple[float, float]
"""CPUs, and memory [GB]."""

RunCpuMemory = tuple[CpuMemory, ...]
"""CPUs and memory of a run on its nodes, one pair for each of its pieces."""

CountedCpuMemory = tuple[int, int]
"""CPUs in thousandths, memory in MiB; both in millionths where runs are given them."""


@dataclass(frozen=True)
class CpuMemoryDemand:
    """CPUs and memory that a job asks for.

    Parameters
    ----------
    gpus : int
        Gang size.
    cpus, memory_gb : float
        CPU cores and memory [GB] of the whole gang; 0 where it does not say.
    by_share : bool
        Whether it holds the share of its GPUs where it does not say; else nothing.
    milli : int
        Thousandths of each of its GPUs that it holds.
    default : tuple of (float, float)
        CPUs and memory [GB] for each of its GPUs where runs are given them and no policy says; no less than it
        asks for.
    """

    gpus: int
    cpus: float = 0.0
    memory_gb: float = 0.0
    by_share: bool = True
    milli: int = WHOLE_GPU
    default: CpuMemory = (0.0, 0.0)

    @property
    def says(self) -> bool:
        """True if it asks for any of them."""
        return self.cpus > 0 or self.memory_gb > 0

    def asked(self, gpus: int) -> CpuMemory:
        """CPUs and memory [GB] that it asks for with so many GPUs, as many as its gang or other."""
        return self.cpus / self.gpus * gpus, self.memory_gb / self.gpus * gpus


class CountedCapacity(ABC):
    """GPUs, CPUs and memory of a node, both in whole numbers.

    Attributes
    ----------
    gpus : int
    """

    gpus: int

    @classmethod
    @abstractmethod
    def pooled(cls, nodes: Sequence[Self]) -> Self:
        """Some nodes, taken for one."""

    @property
    @abstractmethod
    def most(self) -> CountedCpuMemory:
        """All of it."""

    @property
    @abstractmethod
    def cpu_memory(self) -> CpuMemory:
        """CPUs and memory [GB]."""

    @abstractmethod
    def held(self, demand: CpuMemoryDemand, gpus: int) -> CountedCpuMemory:
        """CPUs and memory of a job with so many of the node's GPUs, where no policy gives it others."""

    def most_gpus(self, demand: CpuMemoryDemand, left: CountedCpuMemory, gpus: int) -> int:
        """Most GPUs, up to a number, for which a job can have its CPUs and memory of what is left; O(log gpus)."""
        fewest, most = 0, gpus
        while fewest < most:
            middle = (fewest + most + 1) // 2
            if all(
                held <= free for held, free in zip(self.held(demand, middle), left, strict=True)
            ):
                fewest = middle
            else:
                most = middle - 1
        return fewest


@dataclass(frozen=True)
class NodeCapacity(CountedCapacity):
    """A node of which jobs hold what they ask for.

    Parameters
    ----------
    gpus : int
    cpu_milli, memory_mib : int
        CPUs in thousandths, memory in MiB; memory is 0 if unknown.
    whole_cpus : bool
        Whether CPUs are given out by whole ones only: of what jobs ask for the next larger number, of
        shares the next smaller one, at least 1.
    """

    gpus: int
    cpu_milli: int
    memory_mib: int
    whole_cpus: bool = False

    @classmethod
    def of(
        cls, gpus: int, cpus: float, memory_gb: float, *, whole_cpus: bool = False
    ) -> NodeCapacity:
        """The same in whole numbers, rounded down."""
        milli = math.floor(cpus * CPU_MILLI + _NOISE)
        return cls(gpus, milli, math.floor(memory_gb * MIB_PER_GB + _NOISE), whole_cpus)

    @classmethod
    def pooled(cls, nodes: Sequence[Self]) -> Self:
        """Some nodes, taken for one that gives out parts of CPUs."""
        sizes = ((node.gpus, node.cpu_milli, node.memory_mib) for node in nodes)
        gpus, cpu_milli, memory_mib = map(sum, zip(*sizes, strict=True))
        return cls(gpus, cpu_milli, memory_mib)

    @property
    def most(self) -> CountedCpuMemory:
        """All of it."""
        return self.cpu_milli, self.memory_mib

    @property
    def cpu_memory(self) -> CpuMemory:
        """CPUs and memory [GB]."""
        return self.cpu_milli / CPU_MILLI, self.memory_mib / MIB_PER_GB

    def held(self, demand: CpuMemoryDemand, gpus: int) -> CountedCpuMemory:
        """CPUs and memory of a job with so many of the node's GPUs: CPUs rounded up, memory down."""
        part = gpus / demand.gpus
        asked = math.ceil(demand.cpus * CPU_MILLI * part - _NOISE)
        # Down, so that a job may have all memory of a node.
        memory = math.floor(demand.memory_gb * MIB_PER_GB * part + _NOISE)
        held, of = gpus * demand.milli, self.gpus * WHOLE_GPU
        share = self.cpu_milli * held // of
        if self.whole_cpus:
            asked = -(-asked // CPU_MILLI) * CPU_MILLI
            share = max(share // CPU_MILLI, 1) * CPU_MILLI
        memory_share = self.memory_mib * held // of
        if not demand.by_share:
            share = memory_share = 0
        return (
            asked if demand.cpus > 0 else share,
            memory if demand.memory_gb > 0 else memory_share,
        )

    def rounded_down(self, cpus: float, memory_gb: float) -> CountedCpuMemory:
        """CPUs and memory that a policy gave, rounded down."""
        milli = math.floor(cpus * CPU_MILLI + _NOISE)
        if self.whole_cpus:
            milli = max(milli // CPU_MILLI, 1) * CPU_MILLI
        return milli, math.floor(memory_gb * MIB_PER_GB + _NOISE)


@dataclass(frozen=True)
class GrantCapacity(CountedCapacity):
    """A node of which runs are given CPUs and memory, as profiles have it.

    Parameters
    ----------
    gpus : int
    cpus, memory_gb : float
        CPUs and memory [GB].
    """

    gpus: int
    cpus: float
    memory_gb: float

    @classmethod
    def pooled(cls, nodes: Sequence[Self]) -> Self:
        """Some nodes, taken for one."""
        cpus, memory_gb = map(sum, zip(*(node.cpu_memory for node in nodes), strict=True))
        return cls(sum(node.gpus for node in nodes), cpus, memory_gb)

    @property
    def most(self) -> CountedCpuMemory:
        """All of it."""
        return in_millionths(self.cpu_memory)

    @property
    def cpu_memory(self) -> CpuMemory:
        """CPUs and memory [GB]."""
        return self.cpus, self.memory_gb

    def held(self, demand: CpuMemoryDemand, gpus: int) -> CountedCpuMemory:
        """CPUs and memory that a run is given with so many GPUs, no less than its job asks for."""
        asked = demand.asked(gpus)
        return in_millionths(
            (max(demand.default[0] * gpus, asked[0]), max(demand.default[1] * gpus, asked[1]))
        )


def in_millionths(held: CpuMemory) -> CountedCpuMemory:
    """CPUs and memory [GB] that a run is given, rounded down: thirds of 8 CPUs add up to no more than 8."""
    cpus, memory_gb = (math.floor(each * _MILLIONTHS + _ROUNDING) for each in held)
    return cpus, memory_gb


def combined(one: RunCpuMemory, other: RunCpuMemory) -> RunCpuMemory:
    """Sum of what two runs hold on the same nodes."""
    return tuple((a + c, b + d) for (a, b), (c, d) in zip(one, other, strict=True))


def per_node(per_gpu: CpuMemory, pieces: tuple[tuple[int, int], ...]) -> RunCpuMemory:
    """CPUs and memory of a run on its nodes, pairs (node, GPUs), that has so much for each GPU."""
    return tuple((per_gpu[0] * gpus, per_gpu[1] * gpus) for _, gpus in pieces)


def proportional_share(cluster: Cluster) -> CpuMemory:
    """CPUs and memory [GB] for each GPU when both are divided by GPUs; of checked clusters."""
    node = next(node for node in cluster.nodes if node.gpu_type != CORES)
    return node.cpus / node.gpus, node.memory_gb / node.gpus


def default_cpu_memory(cluster: Cluster, workload: Workload) -> NDArray[np.float64]:
    """CPUs and memory [GB] for each GPU of a run, or core, that is given some where no policy says, shape (n, 2).

    The GPU-proportional share, of which jobs on cores have none, or what the job asks for where that is more.
    """
    share = np.outer(workload.held_gpus / workload.gpus, proportional_share(cluster))
    asked = np.stack((workload.cpus, workload.memory_gb), axis=1) / workload.gpus[:, None]
    return np.asarray(np.maximum(share, asked))


def no_room(
    demand: CpuMemoryDemand, nodes: Sequence[CountedCapacity], pools: Sequence[Sequence[int]]
) -> str:
    """Reason why a job can never have its CPUs and memory; empty if it can on an empty cluster.

    Parameters
    ----------
    pools : sequence of sequence of int
        Nodes of each pool that it may use.
    """
    room = [
        sum(nodes[node].most_gpus(demand, nodes[node].most, nodes[node].gpus) for node in pool)
        for pool in pools
    ]
    if not demand.says or max(room, default=0) >= demand.gpus:
        return ""
    usable = [nodes[node].cpu_memory for pool in pools for node in pool]
    cpus = max((cpus for cpus, _ in usable), default=0.0)
    memory_gb = max((memory_gb for _, memory_gb in usable), default=0.0)
    told = f"{memory_gb:.4g} GB" if memory_gb else "an unknown memory"
    return (
        f"asks for {demand.cpus:g} CPUs and {demand.memory_gb:g} GB for {demand.gpus} GPUs, nodes that it may "
        f"use have at most {cpus:g} CPUs and {told} each, room for {max(room, default=0)} of its GPUs"
    )


@dataclass(frozen=True, repr=False)
class AskedCpuMemory(Brief):
    """CPUs and memory of the nodes of a cluster, and what the jobs of a workload ask for.

    Parameters
    ----------
    nodes : tuple of CountedCapacity
        In the order of the cluster.
    demands : tuple of CpuMemoryDemand
        Of each job by its row.
    """

    nodes: tuple[CountedCapacity, ...]
    demands: tuple[CpuMemoryDemand, ...]

    @classmethod
    def of(cls, cluster: Cluster, workload: Workload, *, shared: bool) -> AskedCpuMemory:
        """Those of a workload on a cluster; O(n + nodes).

        Parameters
        ----------
        shared : bool
            Whether jobs may share GPUs: then who does not say what it needs holds nothing, not a share.
        """
        rows = zip(
            workload.gpus.tolist(),
            workload.cpus.tolist(),
            workload.memory_gb.tolist(),
            workload.gpu_milli.tolist(),
            strict=True,
        )
        demands = (CpuMemoryDemand(*row[:3], not shared, row[3]) for row in rows)
        return cls(capacities(cluster), tuple(demands))

    @classmethod
    def by_default(cls, cluster: Cluster, workload: Workload) -> AskedCpuMemory:
        """Those that runs are given where no policy says, by profiles; O(n + nodes)."""
        given = default_cpu_memory(cluster, workload).tolist()
        demands = tuple(
            replace(demand_of_row(workload, job), default=(cpus, memory_gb))
            for job, (cpus, memory_gb) in enumerate(given)
        )
        return cls(grant_capacities(cluster), demands)


def capacities(cluster: Cluster) -> tuple[NodeCapacity, ...]:
    """CPUs and memory of every node, of which jobs hold what they ask for."""
    return tuple(
        NodeCapacity.of(node.gpus, node.cpus, node.memory_gb, whole_cpus=node.whole_cpus)
        for node in cluster.nodes
    )


def grant_capacities(cluster: Cluster) -> tuple[GrantCapacity, ...]:
    """CPUs and memory of every node, of which runs are given some."""
    return tuple(GrantCapacity(node.gpus, node.cpus, node.memory_gb) for node in cluster.nodes)


def has_room(
    cluster: Cluster, workload: Workload, nodes: Sequence[CountedCapacity]
) -> NDArray[np.bool_]:
    """True for jobs whose CPUs and memory an empty cluster has, on GPUs of one type that they may use, shape (n,).

    O(n types + demands nodes) for so many different demands.
    """
    able = np.ones(len(workload), dtype=np.bool_)
    jobs = np.flatnonzero(workload.asking)
    if not len(jobs):
        return able
    pools, may = _pools(cluster, workload), _may_use(cluster, workload)
    known: dict[tuple[CpuMemoryDemand, tuple[bool, ...]], bool] = {}
    for job in jobs.tolist():
        demand = demand_of_row(workload, job)
        key = demand, tuple(may[job].tolist())
        if key not in known:
            mine = [pool for pool, usable in zip(pools, key[1], strict=True) if usable]
            known[key] = not no_room(demand, nodes, mine)
        able[job] = known[key]
    return able


def expect_cpu_memory(
    cluster: Cluster, workload: Workload, nodes: Sequence[CountedCapacity]
) -> None:
    """Refuse jobs whose CPUs or memory no nodes of the cluster have, and nodes whose shares are no whole CPU.

    Parameters
    ----------
    nodes : sequence of CountedCapacity
        Of the cluster, in its order.

    Raises
    ------
    InfeasibleJobError
        Naming the first such job, what it asks for and what there is.
    InputError
        Naming a node that gives out whole CPUs and has fewer of them than GPUs.
    """
    twice = workload.on_cores & (workload.cpus > 0)
    if twice.any():
        job = int(twice.argmax())
        raise InputError(
            f"{workload.source}: job {workload.id[job]!r} holds {workload.gpus[job]} cores and asks for "
            f"{workload.cpus[job]:g} CPUs beside them, expected none: the cores are its CPUs"
        )
    able = has_room(cluster, workload, nodes)
    if not able.all():
        job = int((~able).argmax())
        may = _may_use(cluster, workload)[job].tolist()
        pools = [
            pool for pool, usable in zip(_pools(cluster, workload), may, strict=True) if usable
        ]
        why = no_room(demand_of_row(workload, job), nodes, pools)
        raise InfeasibleJobError(
            f"{workload.source}: job {workload.id[job]!r} {why}; give the nodes of the cluster more, such as "
            "2x8+64cpu+500gb, leave out the columns cpus and memory_gb or drop infeasible jobs"
        )
    for k, node in enumerate(cluster.nodes):
        if node.whole_cpus and node.cpus < node.gpus and workload.asking.any():
            raise InputError(
                f"cluster {cluster}: node {k} gives out whole CPUs and has {node.cpus:g} for {node.gpus} GPUs, "
                "expected one for each GPU where jobs ask for CPUs or memory"
            )


def expect_whole_nodes(cluster: Cluster, workload: Workload) -> None:
    """Refuse jobs that run as copies, each on a whole node, and ask for more than some node has.

    Raises
    ------
    InfeasibleJobError
        Naming the first such job, and the node.
    """
    for k, node in enumerate(cluster.nodes):
        more = (workload.cpus > node.cpus) | (workload.memory_gb > node.memory_gb)
        if more.any():
            job = int(more.argmax())
            raise InfeasibleJobError(
                f"{workload.source}: job {workload.id[job]!r} asks for {workload.cpus[job]:g} CPUs and "
                f"{workload.memory_gb[job]:g} GB, node {k} has {node.cpus:g} and {node.memory_gb:.6g} GB; "
                "expected nodes that all have as much, for a copy runs on any"
            )


def demand_of_row(workload: Workload, job: int) -> CpuMemoryDemand:
    """CPUs and memory that a job of a workload asks for."""
    asked = float(workload.cpus[job]), float(workload.memory_gb[job])
    return CpuMemoryDemand(int(workload.gpus[job]), *asked, milli=int(workload.gpu_milli[job]))


def _pools(cluster: Cluster, workload: Workload) -> list[list[int]]:
    """Nodes of each pool of GPUs that are alike to the jobs."""
    if workload.throughput is None:
        return [list(range(len(cluster.nodes)))]
    types = cluster.type_of_node
    return [np.flatnonzero(types == k).tolist() for k in range(len(cluster.gpu_types))]


def _may_use(cluster: Cluster, workload: Workload) -> NDArray[np.bool_]:
    """True where a job may use a pool, shape (n, pools)."""
    finite = np.isfinite(workload.processing_s(cluster))
    return finite[:, :1] if workload.throughput is None else finite
