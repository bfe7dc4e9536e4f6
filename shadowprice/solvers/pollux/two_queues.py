"""Tiresias as Pollux' simulator has it: two queues by attained GPU time, gangs as asked, the emptiest nodes.

Source: Gu et al., "Tiresias", NSDI'19, and the simulator of Qiao et al., OSDI'21 (github.com/petuum/adaptdl, branch
osdi21-artifact, read). A job is in the first queue until the time for which it held its GPUs, times these, reaches a
threshold, then behind the others of the second. Queues in order, each as its jobs came to it: who fits by the number of
GPUs runs, who does not is overlooked and loses its GPUs. Unlike ``las2d`` it counts time in which a job pays for its
restart, and its queues never change their order. Jobs with run times instead of goodput go where the placement has
room.

Guarantee: none beyond Tiresias'. Complexity: O(n + starts x nodes) a decision. It knows nothing of jobs to come or of
how long they run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shadowprice.instances.grid import TICK_S
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.list_scheduling import run_exactly
from shadowprice.solvers.policy import Decision, State
from shadowprice.solvers.pollux.emptiest import allotted


@dataclass
class _Queues:
    """Both queues as the last decision left them, and times for which jobs held their GPUs until then [s]."""

    first: list[int] = field(default_factory=list)
    second: list[int] = field(default_factory=list)
    held_s: dict[int, float] = field(default_factory=dict)
    at_s: float = 0.0


@dataclass(frozen=True)
class TwoQueues:
    """Tiresias with two queues.

    Parameters
    ----------
    threshold_gpu_s : float
        GPU time at which a job leaves the first queue [GPU-s].
    """

    threshold_gpu_s: float = 16 * 3600.0
    name: ClassVar[str] = "pollux-tiresias"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Demote who has had its time, then serve both queues."""
        queues = state.notes(_Queues)
        self._update(state, queues)
        order = [*queues.first, *queues.second]
        decision = self._served(state, order)
        runs = (state.running.keys() - set(decision.stops)) | decision.starts.keys()
        for job in queues.first:
            if job in runs:
                left_s = self.threshold_gpu_s / state.gang[job] - queues.held_s.get(job, 0.0)
                decision.wake_at(state.now_s + max(left_s, TICK_S))
        return decision

    def _served(self, state: State, order: list[int]) -> Decision:
        """Decision by count in this order; jobs with run times run where the placement has room for them."""
        if state.goodput is None:
            return run_exactly(state, state.columns(order), np.arange(len(order)))
        free, wanted = state.up_gpus, {}
        for job in order:
            gang = state.gang[job]
            wanted[job] = gang if gang <= free else 0
            free -= wanted[job]
        return allotted(state, wanted)

    def _update(self, state: State, queues: _Queues) -> None:
        gone, since_s = set(state.finished), state.now_s - queues.at_s
        queues.first = [job for job in queues.first if job not in gone] + list(state.arrived)
        queues.second = [job for job in queues.second if job not in gone]
        queues.at_s = state.now_s
        demoted = []
        for job in sorted(state.running):
            queues.held_s[job] = queues.held_s.get(job, 0.0) + since_s
            if job in queues.first and queues.held_s[job] * state.gang[job] >= self.threshold_gpu_s:
                demoted.append(job)
        queues.first = [job for job in queues.first if job not in demoted]
        queues.second += demoted


POLICIES = (TwoQueues(),)
