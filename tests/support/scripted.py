"""A policy that starts jobs where it was told to, at each time, and stops them before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shadowprice.instances.goodput.application import Batching
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, State

Step = Mapping[int, Pieces | Batching | None]
"""Of jobs: the GPUs on which they start from then on, None to stop, or the batch at which they go on."""


@dataclass(frozen=True)
class Scripted:
    """What to do at each time [s]."""

    steps: Mapping[float, Step]
    name: str = "scripted"
    knows: frozenset[Knowledge] = field(default=frozenset())
    preemptive: bool = True

    def decide(self, state: State) -> Decision:
        """The step of the present moment."""
        decision = Decision(state)
        step = self.steps.get(state.now_s, {})
        for job, pieces in step.items():
            if job in state.running and not isinstance(pieces, Batching):
                decision.stop(job)
        for job, pieces in step.items():
            if isinstance(pieces, Batching):
                decision.train(job, pieces)
            elif pieces is not None:
                assert decision.start_at(job, pieces)
        later = [at for at in self.steps if at > state.now_s]
        if later:
            decision.wake_at(min(later))
        return decision
