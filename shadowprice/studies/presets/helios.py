"""Helios' simulator (QSSF service): github.com/S-Lab-System-Group/HeliosArtifact at bdaae10.

One-second ticks. ``fifo`` and ``sjf`` block at the head and never preempt. ``srtf`` reserves by
total GPU count in order of remaining time, then places; a preempted job has 7 s (1 GPU), 30 s
(2 to 8) or 60 s (more) added to its remaining time. The placer ``consolidate`` is best fit on
one node, whole nodes for larger gangs; ``random`` amounts to a GPU count.

Quirk kept: under ``srtf`` the end of a job is tested before its remaining time is decremented,
so every job takes one second more than its duration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from shadowprice.execution.engine import Rounds
from shadowprice.execution.preset import Preset, RecipeInputs, RunSetup, in_engine
from shadowprice.instances.terms.charges import Overheads
from shadowprice.solvers.classic.fifo import Fifo
from shadowprice.solvers.classic.sjf import Sjf
from shadowprice.solvers.list_scheduling import choose_by_count
from shadowprice.solvers.placement.consolidated import Consolidate
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.policy import Decision, Knowledge, State

TICK = Rounds(length_s=1.0)
PREEMPTION = Overheads(restart_by_gpus=((1, 7.0), (8, 30.0), (10_000_000, 60.0)))


@dataclass(frozen=True)
class HeliosSrtf:
    """Reserve GPUs by count in order of remaining time, preempt the rest, place what was reserved.

    A job reserved by count that cannot be placed waits, and its GPUs stay idle.
    """

    name: str = "srtf"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Decide again one tick after any change: a preempted job has a new remaining time."""
        decision = Decision(state)
        if not state.waiting:
            return decision
        live = state.live()
        order = np.argsort(live.remaining_s + live.owed_s, kind="stable")
        jobs, running = live.jobs[order], live.running[order]
        reserved = choose_by_count(live.gpus[order], state.total_gpus)
        for job in jobs[running & ~reserved].tolist():
            decision.stop(job)
        for job in jobs[reserved & ~running].tolist():
            decision.start(job)
        if decision.stops or decision.starts:
            decision.wake_at(state.now_s + TICK.length_s)
        return decision


def _srtf(inputs: RecipeInputs) -> RunSetup:
    one_second_more = replace(inputs.workload, work=inputs.workload.work + 1.0)
    return RunSetup(one_second_more, HeliosSrtf(), inputs.placement, TICK, PREEMPTION)


PRESET = Preset(
    name="helios",
    source="github.com/S-Lab-System-Group/HeliosArtifact at bdaae10",
    placements={"random": Count(), "count": Count(), "consolidate": Consolidate()},
    recipes={
        "fifo": in_engine(Fifo(), TICK),
        "sjf": in_engine(Sjf(), TICK),
        "srtf": _srtf,
    },
)
