"""Throughputs of jobs: work counts iterations, and a run takes work over throughput."""

from __future__ import annotations

from typing import ClassVar

from shadowprice.instances.features import Feature
from shadowprice.instances.terms.term import NodesAndJobs, Term


class RatesTerm(Term[NodesAndJobs]):
    """Columns ``throughput`` of the jobs; what a run takes follows from them in :class:`Workload`."""

    feature: ClassVar[Feature] = Feature.RATES
    origin: ClassVar[str] = (
        "columns iterations and model with --throughputs, or columns throughput:TYPE, of the trace"
    )

    def present(self, instance: NodesAndJobs) -> bool:
        """True if jobs have throughputs."""
        return instance.workload.throughput is not None
