"""A simulation that somebody else drives, decision by decision: the same engine, its loop held at each."""

from __future__ import annotations

import time

from shadowprice.execution.engine import Engine, EngineRun, Rounds, answered
from shadowprice.instances.instance import Instance
from shadowprice.solvers.placement.protocol import Pieces, Placement
from shadowprice.solvers.policy import Decision, Policy, State
from shadowprice.solvers.policy_checks import check_decision


class _NotesEnds(Engine):
    """The engine, which notes when jobs completed."""

    ends: list[tuple[int, float]]

    def _depart(self, job: int, end_s: float, pieces: Pieces) -> None:
        super()._depart(job, end_s, pieces)
        self.ends.append((job, end_s))


class StepwiseRun:
    """A run that waits for its next decision.

    Parameters
    ----------
    policy : Policy
        What is known beyond the past, whether it preempts, and a name for messages; it is not asked.

    Attributes
    ----------
    state : State
        The state that the next decision is about.
    over : bool
        True once all jobs are complete, and no decision is due.
    ends : list of (int, float)
        Jobs that completed since the last decision, and when [s].
    """

    def __init__(
        self, instance: Instance, policy: Policy, placement: Placement, rounds: Rounds
    ) -> None:
        self._began = time.process_time()
        self._engine = _NotesEnds(instance, policy, placement, rounds)
        self.ends = self._engine.ends = []
        self.state: State = self._engine.state
        self._points = self._engine.decision_points()
        self.over = next(self._points, None) is None
        self._free = self.state.allocator.free_gpus

    def decide(self, decision: Decision) -> None:
        """Carry a decision out and go on to the next that is due.

        Raises
        ------
        PolicyError
            If it cannot be carried out, or leaves jobs waiting for ever.
        """
        check_decision(self._engine.policy, self.state, decision, self._free)
        self.ends.clear()
        self.over = answered(self._points, decision) is None
        self._free = self.state.allocator.free_gpus

    def result(self) -> EngineRun:
        """Everything done so far, unverified."""
        return self._engine.result(time.process_time() - self._began)
