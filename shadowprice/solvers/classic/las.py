"""Least attained service: the job that has run least goes first.

Source: Kleinrock, Queueing Systems vol. 2, 1976 (foreground-background); Nuyens and Wierman,
Performance Evaluation 65, 2008. True LAS shares the GPUs among equals without end; this one
re-decides every ``quantum_s`` while jobs wait, as every implementation does.

Guarantee: with one GPU a job, all released at 0 and no charges, rounds or unequal speeds, on m GPUs job j ends by
sum_i min(p_i, p_j + quantum) / m + (1 - 1 / m) p_j (TIR-las (a); classic): sum C_j <= 2 OPT against preemptive offline
schedules in which nobody shares, but for what the quantum adds.
Knows: nothing. Preempts. Cost per decision: O(L log L) for L live jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
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
class Las(IndexPolicy):
    """Least executed time first, ties by arrival, reconsidered every quantum.

    Parameters
    ----------
    quantum_s : float
        Longest time between two decisions while jobs wait [s].
    """

    name: str = "las"
    quantum_s: float = 60.0
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1e-3 <= self.quantum_s <= 1e9:
            raise InputError(
                f"las: quantum_s is {self.quantum_s!r}, expected seconds from 0.001 to 1e9"
            )

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex:
        """Order by executed time."""
        return JobIndex(
            QueueRule.PREEMPTS,
            attained_s,
            while_running=WhileRunning.ALIKE,
            quantum_s=self.quantum_s,
            elementwise=True,
        )


def attained_s(job: IndexedJob, table: Table) -> float:
    """Executed time [s]."""
    return job.attained_s


POLICIES = (Las(),)
