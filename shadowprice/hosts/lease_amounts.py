"""CPUs and memory that leases of a real run hold on their nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from shadowprice.errors import InfeasibleJobError, InputError
from shadowprice.hosts.live.job_file import Job
from shadowprice.hosts.protocol import DiscoveredNode
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.clusters.amounts import (
    AmountsDemand,
    HeldAmounts,
    NodeCapacity,
    no_room,
)
from shadowprice.instances.speeds.sensitivity import Amounts
from shadowprice.solvers.placement.amounts import CpusAndMemory
from shadowprice.solvers.placement.protocol import Pieces

NodeAmounts = Mapping[str, HeldAmounts]
"""Thousandths of CPUs and MiB of memory by the name of the node."""


@dataclass(frozen=True)
class GrantedAmounts:
    """CPUs and memory of a lease.

    Parameters
    ----------
    by_node : mapping of str to (int, int)
        Empty where they are not counted.
    chosen : tuple of (float, float) or None
        CPUs and memory [GB] for each piece of the gang, as the policy chose them; None where they are
        what the job asks for, or its share.
    """

    by_node: NodeAmounts = field(default_factory=dict)
    chosen: Amounts | None = None


def demand_of(job: Job) -> AmountsDemand:
    """CPUs and memory that a job asks for."""
    return AmountsDemand(job.gpus, job.cpus, job.memory_gb)


def capacity_of(node: DiscoveredNode) -> NodeCapacity:
    """CPUs and memory of a node, in whole numbers."""
    return NodeCapacity.of(len(node.devices), node.cpus, node.memory_gb, whole_cpus=node.whole_cpus)


@dataclass(frozen=True)
class LeaseAmounts:
    """CPUs and memory of all leases of a run.

    Parameters
    ----------
    nodes : sequence of DiscoveredNode
        In the order of the cluster.
    by_policy : bool
        Whether they follow from the policy's decision, by profiles, or as the share of a width; else the
        placement looks at them.
    shared : bool
        Whether jobs may share GPUs: then who does not say what it needs holds nothing, not a share.
    demands : list of AmountsDemand
        Of each job by its row.
    """

    nodes: Sequence[DiscoveredNode]
    by_policy: bool
    shared: bool = False
    demands: list[AmountsDemand] = field(default_factory=list)

    def add(self, job: Job) -> None:
        """Know one more job, in the next row."""
        self.demands.append(replace(demand_of(job), by_share=not self.shared))

    def resource(self, pool_of_node: Sequence[int]) -> CpusAndMemory | None:
        """CPUs and memory that the placement looks at beside GPUs; None where it does not."""
        if self.by_policy:
            return None
        return CpusAndMemory([capacity_of(node) for node in self.nodes], self.demands, pool_of_node)

    def of(self, row: int, pieces: Pieces, chosen: Amounts | None) -> GrantedAmounts:
        """Amounts that a lease holds.

        Parameters
        ----------
        chosen : tuple of (float, float), optional
            What the policy gave, for each of the pieces.
        """
        held = {}
        for k, (node, gpus) in enumerate(pieces):
            capacity = capacity_of(self.nodes[node])
            held[self.nodes[node].name] = (
                capacity.held(self.demands[row], gpus)
                if chosen is None
                else capacity.rounded_down(*chosen[k])
            )
        return GrantedAmounts(held, chosen)


def expect_room(
    jobs: Sequence[Job], nodes: Sequence[NodeCapacity], cluster: Cluster, path: Path
) -> None:
    """Refuse jobs whose CPUs or memory no nodes of the cluster can hold.

    Parameters
    ----------
    nodes : sequence of NodeCapacity
        Of the cluster, in its order.

    Raises
    ------
    InfeasibleJobError
        Naming the job, what it asks for and what there is.
    """
    for k, job in enumerate(jobs, 1):
        names = [name for name in cluster.gpu_types if not job.gpu_types or name in job.gpu_types]
        pools = [
            [at for at, node in enumerate(cluster.nodes) if node.gpu_type == name] for name in names
        ]
        why = no_room(demand_of(job), nodes, pools)
        if why:
            raise InfeasibleJobError(f"{path}: job {k} ({job.name}) {why}")


def expect_none_asked(jobs: Sequence[Job], why: str) -> None:
    """Refuse jobs that ask for CPUs or memory in a run that does not count them.

    Raises
    ------
    InputError
        Naming the first, and why.
    """
    for job in jobs:
        if demand_of(job).says:
            raise InputError(f"job {job.name}: asks for CPUs or memory, expected none: {why}")
