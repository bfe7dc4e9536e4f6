"""Totals of a verified schedule, a job a row: all that its metrics need, in O(n) memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis import metrics
from shadowprice.brief import Brief
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule


@dataclass(frozen=True, eq=False, repr=False)
class JobTotals(Brief):
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


class TotalsOfSegments:
    """Totals of a schedule whose rows come in segments, in whatever order; O(n) memory.

    The totals are those of :meth:`JobTotals.of`, if the schedule is verified in the end: a run that holds
    exactly its gang is counted by the GPUs of its rows, which need not be in one segment.

    Parameters
    ----------
    instance : Instance
        One that is verifiable in segments (:mod:`shadowprice.proofs.verification.segments`).
    """

    def __init__(self, instance: Instance) -> None:
        n = len(instance.workload)
        self._instance = instance
        self._first_start_s, self._last_end_s = np.full(n, np.inf), np.full(n, -np.inf)
        self._gpus = np.zeros(n, dtype=np.int64)
        # Whole seconds and the rest of them apart, so that sums of products are exact.
        self._gpu_s, self._gpu_rest_s = np.zeros(n), np.zeros(n)
        self._core_s = Fraction(0)
        self._types = metrics.types_used(instance, _NO_ROWS)

    def add(self, rows: Schedule) -> None:
        """Count the rows of a segment, each of which is one by itself; O(R)."""
        job, length_s = rows.job, rows.end_s - rows.start_s
        np.minimum.at(self._first_start_s, job, rows.start_s)
        np.maximum.at(self._last_end_s, job, rows.end_s)
        np.add.at(self._gpus, job, rows.gpus)
        if self._instance.cluster.cores:
            self._core_s += metrics.exact_held_core_s(self._instance, rows)
        whole_s = np.floor(length_s)
        np.add.at(self._gpu_s, job, rows.gpus * whole_s)
        np.add.at(self._gpu_rest_s, job, rows.gpus * (length_s - whole_s))
        if self._types.shape[1] > 1:
            self._types |= metrics.types_used(self._instance, rows)
        else:
            self._types[job] = True

    def whole(self) -> JobTotals:
        """Totals of all rows."""
        gang = self._instance.workload.gpus
        held = Fraction(int(self._gpu_s.astype(np.int64).sum()))
        held += Fraction(int((self._gpu_rest_s * TICKS_PER_S).astype(np.int64).sum()), TICKS_PER_S)
        held -= self._core_s
        return JobTotals(
            self._first_start_s,
            self._last_end_s,
            self._gpu_s / gang + self._gpu_rest_s / gang,
            np.maximum(self._gpus // gang - 1, 0),
            self._types,
            None,
            held,
            self._core_s,
            held,
            float(self._first_start_s.min(initial=math.inf)),
            float(self._last_end_s.max(initial=-math.inf)),
        )


_NO_ROWS = Schedule(*(np.zeros(0, dtype=np.int64),) * 3, *(np.zeros(0),) * 3)
