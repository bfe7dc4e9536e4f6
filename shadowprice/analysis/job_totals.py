"""Totals of a verified schedule, a job a row: all that its metrics need, in O(n) memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis import metrics
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule


@dataclass(frozen=True, eq=False)
class JobTotals:
    """Totals of a schedule.

    Parameters
    ----------
    first_start_s, last_end_s : ndarray, shape (n,)
        First start of every job and end of its last run [s]; plus and minus infinity if it never runs.
    ran_s : ndarray, shape (n,)
        Time in which it held GPUs [s].
    preemptions : ndarray of int, shape (n,)
        Runs beyond its first.
    types_used : ndarray of bool, shape (n, types)
        GPU types on which it ran, in order of their names.
    copies : ndarray of int, shape (n,), or None
        Largest number of copies in a round, of jobs that run as several.
    held_gpu_s, held_core_s : Fraction
        GPU time held by all [GPU-s], and time of cores on nodes without GPUs [core-s], exactly.
    busy_s : Fraction
        Busy time of all GPUs, or of all nodes where copies hold nodes [s], exactly.
    begin_s, end_s : float
        First start and last end of all [s]; plus and minus infinity if nothing runs.
    """

    first_start_s: NDArray[np.float64]
    last_end_s: NDArray[np.float64]
    ran_s: NDArray[np.float64]
    preemptions: NDArray[np.int64]
    types_used: NDArray[np.bool_]
    copies: NDArray[np.int64] | None
    held_gpu_s: Fraction
    held_core_s: Fraction
    busy_s: Fraction
    begin_s: float
    end_s: float

    @classmethod
    def of(cls, instance: Instance, schedule: Schedule) -> JobTotals:
        """Totals of all jobs of an instance; O(n + R log R)."""
        held, copied = metrics.exact_held_gpu_s(instance, schedule), instance.copies is not None
        ones = np.ones(len(schedule), dtype=np.int64)
        return cls(
            metrics.first_start_s(instance, schedule),
            metrics.end_s(instance, schedule),
            metrics.ran_s(instance, schedule),
            metrics.preemptions(instance, schedule),
            metrics.types_used(instance, schedule),
            metrics.most_copies(instance, schedule) if copied else None,
            held,
            metrics.exact_held_core_s(instance, schedule),
            metrics.exact_total_s(ones, schedule) if copied else held,
            float(schedule.start_s.min(initial=math.inf)),
            float(schedule.end_s.max(initial=-math.inf)),
        )

    @classmethod
    def joined(cls, parts: Sequence[JobTotals]) -> JobTotals:
        """Totals of consecutive jobs together, none of which run as several copies."""

        def column(name: str) -> NDArray[np.float64]:
            return np.concatenate([getattr(part, name) for part in parts])

        return cls(
            column("first_start_s"),
            column("last_end_s"),
            column("ran_s"),
            np.concatenate([part.preemptions for part in parts]),
            np.concatenate([part.types_used for part in parts]),
            None,
            sum((part.held_gpu_s for part in parts), Fraction(0)),
            sum((part.held_core_s for part in parts), Fraction(0)),
            sum((part.busy_s for part in parts), Fraction(0)),
            min(part.begin_s for part in parts),
            max(part.end_s for part in parts),
        )

    def makespan_s(self, instance: Instance) -> float:
        """Last end minus first arrival [s]; 0 if nothing runs."""
        if self.end_s == -math.inf:
            return 0.0
        return float(self.end_s - instance.workload.arrival_s.min())

    def utilization(self, instance: Instance) -> float:
        """Share of the cluster's GPU time that jobs held over the makespan; 0 if nothing runs, or of no GPUs."""
        gpu_s = self.makespan_s(instance) * instance.cluster.physical_gpus
        return float(self.held_gpu_s) / gpu_s if gpu_s else 0.0

    def core_utilization(self, instance: Instance) -> float:
        """Share of the time of cores on nodes without GPUs that jobs held over the makespan; 0 as above."""
        core_s = self.makespan_s(instance) * instance.cluster.cores
        return float(self.held_core_s) / core_s if core_s else 0.0
