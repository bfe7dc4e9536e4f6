"""The policy that an evolving loop begins with: what is between the marks may change, the rest stays."""

from dataclasses import dataclass
from typing import ClassVar

from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State


# EVOLVE-BLOCK-START
def priority(jobs: JobColumns) -> list[float]:
    """A number for each job that waits; the smallest is started first."""
    return (-jobs.waited_s).tolist()


# EVOLVE-BLOCK-END


@dataclass(frozen=True)
class Evolved:
    """Start the jobs that fit, in the order of their priorities."""

    name: str = "evolved"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = False

    def decide(self, state: State) -> Decision:
        """Start what fits."""
        decision = Decision(state)
        waiting = state.columns(state.waiting)
        rows = zip(priority(waiting), waiting.jobs.tolist(), strict=True)
        for _, job in sorted(rows):
            decision.start(job)
        return decision
