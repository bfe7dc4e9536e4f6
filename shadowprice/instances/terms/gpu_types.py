"""GPU types that jobs tell apart: a job may be faster on some, and cannot run on others."""

from __future__ import annotations

from typing import ClassVar

from shadowprice.instances.features import Feature
from shadowprice.instances.terms.term import NodesAndJobs, Term


class TypesTerm(Term[NodesAndJobs]):
    """Columns ``throughput`` of several types, and nodes of several types."""

    feature: ClassVar[Feature] = Feature.TYPES
    origin: ClassVar[str] = (
        "nodes of several GPU types in --cluster, and --throughputs or allowed_types of jobs"
    )

    def present(self, instance: NodesAndJobs) -> bool:
        """True if there are nodes of several types, and throughputs by type."""
        return instance.workload.throughput is not None and len(instance.cluster.gpu_types) > 1
