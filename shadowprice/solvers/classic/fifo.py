"""First in, first out: ``fifo`` (the head blocks) and ``fifo-skip`` (it does not).

Source: folklore; the head-blocking variant is the YARN capacity scheduler's behaviour used as a
baseline by Tiresias (NSDI'19, section 6). Four public simulators mean four different things by
FIFO: Tiresias' ``fifo`` and Helios' ``fifo`` block at the head, Tiresias' ``fjf`` and PAI's
``FIFO`` skip what does not fit.

Guarantee: none for total completion or flow time (a long job at the head delays all others without
bound); neither ever preempts. Knows: nothing but arrivals and gang sizes.
Cost per decision: ``fifo`` O(jobs started), ``fifo-skip`` O(jobs waiting).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.index_policy import IndexPolicy, JobIndex, QueueRule, same_key
from shadowprice.solvers.policy import Knowledge


@dataclass(frozen=True)
class Fifo(IndexPolicy):
    """Start jobs in order of arrival; a job that does not fit blocks all behind it."""

    name: str = "fifo"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex:
        """Order of arrival."""
        return JobIndex(QueueRule.HEAD_BLOCKS, same_key, elementwise=True)


@dataclass(frozen=True)
class FifoSkip(IndexPolicy):
    """Start jobs in order of arrival, passing over those that do not fit (unlimited backfill)."""

    name: str = "fifo-skip"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex:
        """Order of arrival."""
        return JobIndex(QueueRule.SKIPS, same_key, elementwise=True)


POLICIES = (Fifo(), FifoSkip())
