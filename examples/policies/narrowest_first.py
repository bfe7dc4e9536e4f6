"""The narrowest gang first, unless another one has waited too long.

Source: an example. Guarantee: none.
"""

from dataclasses import dataclass
from typing import ClassVar

from shadowprice.solvers.policy import Decision, Knowledge, State


@dataclass(frozen=True)
class NarrowestFirst:
    """Start waiting jobs, the narrowest gang first; those that waited longer than patience_s go before them.

    Parameters
    ----------
    patience_s : float
        Time [s] after which a job goes first.
    """

    name: str = "narrowest-first"
    patience_s: float = 3600.0
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def decide(self, state: State) -> Decision:
        """Start what fits; ask again when the next job becomes impatient."""
        decision = Decision(state)
        waiting = state.columns(state.waiting)
        left_s = self.patience_s - waiting.waited_s
        order = sorted(
            zip(left_s.tolist(), waiting.gpus.tolist(), waiting.jobs.tolist(), strict=True),
            key=lambda row: (row[0] > 0.0, row[1], row[2]),
        )
        later_s = []
        for seconds, _, job in order:
            if not decision.start(job) and seconds > 0.0:
                later_s.append(seconds)
        if later_s:
            decision.wake_at(state.now_s + min(later_s))
        return decision
