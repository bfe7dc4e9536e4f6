"""Shortest job first: the least duration starts next and is never interrupted.

Source: Smith, Naval Research Logistics Quarterly 3, 1956 (SPT, all released at 0). In Tiresias'
simulator ``sjf`` means fewest GPUs first; here it is the shortest duration.

Guarantee: optimal for unweighted sum C_j, among all offline schedules, on one GPU without charges or
conditions when all jobs are released at 0; none with release dates. Never preempts; the shortest job
blocks those behind it. Knows: durations.
Cost per decision: O(W log W) for W waiting jobs when something can start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.index_policy import (
    IndexedJob,
    IndexPolicy,
    JobIndex,
    QueueRule,
    Table,
)
from shadowprice.solvers.policy import Knowledge


@dataclass(frozen=True)
class Sjf(IndexPolicy):
    """Start waiting jobs in order of duration, ties by arrival; the first that does not fit blocks."""

    name: str = "sjf"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = False

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex:
        """Order by duration."""
        return JobIndex(QueueRule.HEAD_BLOCKS, processing_s, elementwise=True)


def processing_s(job: IndexedJob, table: Table) -> float:
    """Duration [s]."""
    return job.processing_s


POLICIES = (Sjf(),)
