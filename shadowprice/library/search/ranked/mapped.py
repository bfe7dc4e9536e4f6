"""Jobs with graphs: replicas where a placement of graphs puts them, in order of rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shadowprice.instances.instance import Instance
from shadowprice.library.search.ranked.protocol import Ints, Ranked
from shadowprice.solvers.asrpt.predicted_jobs import GraphStarts
from shadowprice.solvers.policy import Decision, State

PLACEMENT = "heavy-edge"


@dataclass(frozen=True, eq=False, repr=False)
class RankedGraphs(Ranked):
    """Gangs that do not fit are passed over, but while a job with an odd ``choice`` waits.

    One with a ``choice`` of 2 or 3 does not begin where an iteration takes longer than on the empty cluster.
    """

    @classmethod
    def choices(cls, instance: Instance) -> Ints:
        """Passed over or not, anywhere or at full speed alone."""
        return np.full(len(instance.workload), 4, dtype=np.int64)

    def decide(self, state: State) -> Decision:
        """Stop whom those before leave no GPUs, then start by rank."""
        starts = state.notes(GraphStarts, lambda: GraphStarts(state, PLACEMENT))
        decision = Decision(state)
        if self.preemptive:
            room, planned = state.up_gpus, set[int]()
            for job in self.in_order((*state.waiting, *state.running)):
                if state.gang[job] <= room:
                    room -= state.gang[job]
                    planned.add(job)
            for job in [*state.running]:
                if job not in planned:
                    decision.stop(job)
        for job in self.in_order(state.waiting):
            if state.gang[job] <= decision.free_gpus and self._begin(state, starts, decision, job):
                continue
            if not decision.free_gpus or (self.choice[job] % 2 and not self.preemptive):
                break
        for job in [*decision.stops]:
            if state.gang[job] <= decision.free_gpus:
                decision.resume_in_place(job)
        return decision

    def _begin(self, state: State, starts: GraphStarts, decision: Decision, job: int) -> bool:
        mapping = starts.plan(state, job)
        if mapping is None:
            return False
        if self.choice[job] >= 2 and state.running:
            slower = (
                state.iteration_s(job, mapping) > starts.best_iteration_s(state, job) * 1.000001
            )
            if slower:
                return False
        return decision.start_mapped(job, mapping)
