"""Throughputs of jobs: a run takes work, in iterations, over throughput; by type of node where there are several."""

from __future__ import annotations

from typing import ClassVar

from shadowprice.instances.features import Feature
from shadowprice.instances.terms.term import ColumnTerm, SeenInstance


class RatesTerm(ColumnTerm):
    """Columns ``throughput`` of the jobs; what a run takes follows from them in :class:`Workload`."""

    feature: ClassVar[Feature] = Feature.RATES
    origin: ClassVar[str] = (
        "columns iterations and model with --throughputs, or columns throughput:TYPE, of the trace"
    )

    def present(self, instance: SeenInstance) -> bool:
        """True if jobs have throughputs."""
        return instance.workload.throughput is not None


class TypesTerm(ColumnTerm):
    """Columns ``throughput`` of several types, and nodes of several types."""

    feature: ClassVar[Feature] = Feature.TYPES
    origin: ClassVar[str] = (
        "nodes of several GPU types in --cluster, and --throughputs or allowed_types of jobs"
    )

    def present(self, instance: SeenInstance) -> bool:
        """True if there are nodes of several types, and throughputs by type."""
        return instance.workload.throughput is not None and len(instance.cluster.gpu_types) > 1


class CoresTerm(ColumnTerm):
    """Jobs whose ``allowed_types`` are cores alone."""

    feature: ClassVar[Feature] = Feature.CORES
    origin: ClassVar[str] = (
        "jobs of allowed_types cores (--format helios:cpu-jobs=keep), on nodes of type cores"
    )

    def present(self, instance: SeenInstance) -> bool:
        """True if some job holds cores."""
        return bool(instance.workload.on_cores.any())
