"""Jobs that ask for CPUs or memory, and run where these are free beside their GPUs."""

from __future__ import annotations

from typing import ClassVar

from shadowprice.instances.clusters.cpu_memory import (
    capacities,
    expect_cpu_memory,
    expect_whole_nodes,
    grant_capacities,
)
from shadowprice.instances.features import Feature
from shadowprice.instances.terms.term import ColumnTerm, SeenInstance
from shadowprice.instances.workload import Workload


class CpuMemoryTerm(ColumnTerm):
    """Columns ``cpus`` and ``memory_gb`` of the jobs; the least that they are given where profiles give them some."""

    feature: ClassVar[Feature] = Feature.CPU_MEMORY
    origin: ClassVar[str] = "columns cpus and memory_gb of the trace"

    def present(self, instance: SeenInstance) -> bool:
        """True if some job asks for CPUs or memory."""
        return bool(instance.workload.asking.any())

    def check(self, value: Workload, instance: SeenInstance) -> None:
        """Refuse jobs whose CPUs or memory no nodes have."""
        cluster = instance.cluster
        if instance.copies is not None:
            expect_whole_nodes(cluster, value)
        else:
            # Where profiles say how fast runs are with CPUs and memory, these are given some.
            of_nodes = capacities if instance.sensitivity is None else grant_capacities
            expect_cpu_memory(cluster, value, of_nodes(cluster))
