"""Alibaba PAI's simulator: github.com/alibaba/clusterdata at 7a6c496, cluster-trace-gpu-v2020.

One-second ticks, one big pool of GPUs, never preempts. Jobs that do not fit are skipped, so its
``FIFO`` is Tiresias' ``fjf``; ``SJF`` is by true duration, ties by id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shadowprice.execution.engine import Rounds
from shadowprice.execution.preset import Preset, in_engine
from shadowprice.solvers.classic.fifo import FifoSkip
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.policy import Decision, Knowledge, State

TICK = Rounds(length_s=1.0)


@dataclass(frozen=True)
class SkippingSjf:
    """Start waiting jobs in order of duration, passing over those that do not fit."""

    name: str = "SJF"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = False

    def decide(self, state: State) -> Decision:
        """Start everything that fits, shortest first, ties by order of arrival."""
        decision = Decision(state)
        if not state.waiting or not decision.free_gpus:
            return decision
        waiting = state.columns(state.waiting)
        order = np.lexsort((waiting.jobs, waiting.processing_s))
        for job in waiting.jobs[order].tolist():
            if not decision.free_gpus:
                break
            decision.start(job)
        return decision


PRESET = Preset(
    name="pai",
    source="github.com/alibaba/clusterdata at 7a6c496, cluster-trace-gpu-v2020/simulator",
    placements={"count": Count()},
    recipes={
        "FIFO": in_engine(FifoSkip("FIFO"), TICK),
        "SJF": in_engine(SkippingSjf(), TICK),
    },
)
