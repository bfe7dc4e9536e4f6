"""Jobs that hold cores instead of GPUs, of nodes that have only these."""

from __future__ import annotations

from typing import ClassVar

from shadowprice.instances.features import Feature
from shadowprice.instances.terms.term import NodesAndJobs, Term


class CoresTerm(Term[NodesAndJobs]):
    """Jobs whose ``allowed_types`` are cores alone."""

    feature: ClassVar[Feature] = Feature.CORES
    origin: ClassVar[str] = (
        "jobs of allowed_types cores (--format helios:cpu-jobs=keep), on nodes of type cores"
    )

    def present(self, instance: NodesAndJobs) -> bool:
        """True if some job holds cores."""
        return bool(instance.workload.on_cores.any())
