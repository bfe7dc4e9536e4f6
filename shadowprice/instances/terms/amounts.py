"""Jobs that ask for fixed amounts of CPUs or memory, and run where these are free beside their GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from shadowprice.instances.clusters.amounts import (
    capacities,
    expect_amounts,
    expect_whole_nodes,
    grant_capacities,
)
from shadowprice.instances.features import Feature
from shadowprice.instances.terms.term import NodesAndJobs, Term

if TYPE_CHECKING:
    from shadowprice.instances.speeds.sensitivity import Sensitivity
    from shadowprice.instances.terms.copies import CopyRules


class HandsOutAmounts(NodesAndJobs, Protocol):
    """Instance whose CPUs and memory are handed out, or go with whole nodes."""

    @property
    def copies(self) -> CopyRules | None:
        """Rules of copies."""

    @property
    def sensitivity(self) -> Sensitivity | None:
        """Profiles by CPUs and memory."""


class AmountsTerm(Term[HandsOutAmounts]):
    """Columns ``cpus`` and ``memory_gb`` of the jobs; the least that they are given where profiles give them some."""

    feature: ClassVar[Feature] = Feature.AMOUNTS
    origin: ClassVar[str] = "columns cpus and memory_gb of the trace"

    def present(self, instance: HandsOutAmounts) -> bool:
        """True if some job asks for CPUs or memory."""
        return bool(instance.workload.asking.any())

    def check(self, instance: HandsOutAmounts) -> None:
        """Refuse jobs whose amounts no nodes have."""
        cluster, jobs = instance.cluster, instance.workload
        if instance.copies is not None:
            expect_whole_nodes(cluster, jobs)
        else:
            # Where profiles say how fast runs are with CPUs and memory, these are given some.
            of_nodes = capacities if instance.sensitivity is None else grant_capacities
            expect_amounts(cluster, jobs, of_nodes(cluster))
