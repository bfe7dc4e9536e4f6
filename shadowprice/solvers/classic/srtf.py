"""Shortest remaining time first (``srtf``) and shortest remaining service first (``srsf``).

Source: Schrage, Operations Research 16(3), 1968 (SRPT on one machine); SRSF is remaining time
times GPUs, Tiresias (NSDI'19), section 2.

Guarantee: with one GPU, and no rounds, charges or conditions, SRTF minimises sum C_j and sum (C_j -
r_j) among all offline schedules (SRPT-1; Schrage). On several, with single-GPU jobs of equal speed, it is
Theta(log min(n/m, Delta))-competitive for total flow time against the preemptive optimum (Leonardi and
Raz, STOC 1997; recalled); with gangs it has no constant ratio for total flow time, on two GPUs already
(derived: a gang waits for as long as single-GPU jobs that are a little shorter keep coming). Knows:
durations. Preempts.
Cost per decision: O(L log L) for L live jobs, O(1) a job when all fit.
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
    WhileRunning,
)
from shadowprice.solvers.policy import Knowledge


@dataclass(frozen=True)
class Srtf(IndexPolicy):
    """Least remaining run time first, ties by arrival."""

    name: str = "srtf"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex:
        """Order by remaining time."""
        return JobIndex(
            QueueRule.PREEMPTS, remaining_s, while_running=WhileRunning.ALIKE, elementwise=True
        )


@dataclass(frozen=True)
class Srsf(IndexPolicy):
    """Least remaining run time x GPUs first, ties by arrival."""

    name: str = "srsf"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex:
        """Order by remaining service."""
        return JobIndex(
            QueueRule.PREEMPTS,
            remaining_gpu_s,
            while_running=WhileRunning.ALIKE,
            elementwise=True,
        )


def remaining_s(job: IndexedJob, table: Table) -> float:
    """Remaining run time [s]."""
    return job.remaining_s


def remaining_gpu_s(job: IndexedJob, table: Table) -> float:
    """Remaining service [GPU-s]."""
    return job.remaining_s * job.gpus


POLICIES = (Srtf(), Srsf())
