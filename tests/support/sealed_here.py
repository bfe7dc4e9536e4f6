"""A sealed policy without its process: all its messages, written and read, and the state that it rebuilds."""

from __future__ import annotations

from typing import Any

from shadowprice.execution.sealed.answers import decision_of, written_answer
from shadowprice.execution.sealed.changes import Changes
from shadowprice.execution.sealed.mirror import Mirror
from shadowprice.execution.sealed.outline import outline
from shadowprice.execution.sealed.protocol import Begin, Due, answer_of, encoded, message_of
from shadowprice.solvers.policy import ChoosesCpuMemory, ChoosesNodes, Decision, Policy, State


class SealedHere:
    """A policy that decides about the state which messages rebuild."""

    enforced: tuple[str, ...] = ()

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.name, self.knows, self.preemptive = policy.name, policy.knows, policy.preemptive
        if isinstance(policy, ChoosesNodes):
            self.chooses_nodes = True
        if isinstance(policy, ChoosesCpuMemory):
            self.chooses_cpu_memory = True
        self.lines: list[bytes] = []

    def begin(self, instance: Any, placement: Any, service_gpu_s: Any) -> None:
        """Send and read what is known before a job arrives."""
        services = None if service_gpu_s is None else service_gpu_s.tolist()
        self.lines = [encoded(outline(instance, sorted(self.knows), placement, services))]
        begin = message_of(self.lines[0])
        assert isinstance(begin, Begin)
        self.changes, self.mirror = Changes(instance, self.knows), Mirror(begin)
        self.last: Decision | None = None

    def decide(self, state: State) -> Decision:
        """Send and read changes, and the answer."""
        self.lines.append(encoded(self.changes.since(state, self.last)))
        due = message_of(self.lines[-1])
        assert isinstance(due, Due)
        mirrored = self.mirror.advance(due)
        decision = self.policy.decide(mirrored)
        self.mirror.decided(decision)
        self.last = decision_of(answer_of(encoded(written_answer(decision, mirrored))), state)
        return self.last
