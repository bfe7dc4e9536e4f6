"""CPU time of a policy's first decisions, taken where the engine asks for them."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field

from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.execution.engine import run
from shadowprice.instances.instance import Instance
from shadowprice.solvers.policy import Decision, Knowledge, Policy, State


class _EnoughError(ShadowpriceError):
    """Ends a run once enough decisions have been timed; never leaves this module.

    One of the package's own errors, since any other is taken for a mistake of the policy.
    """


@dataclass
class _Timed:
    """A policy that decides as another one and keeps the time that takes."""

    policy: Policy
    decisions: int
    cpu_s: list[float] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def knows(self) -> frozenset[Knowledge]:
        return self.policy.knows

    @property
    def preemptive(self) -> bool:
        return self.policy.preemptive

    def decide(self, state: State) -> Decision:
        if len(self.cpu_s) == self.decisions:
            raise _EnoughError
        began = time.process_time()
        decision = self.policy.decide(state)
        self.cpu_s.append(time.process_time() - began)
        return decision


def first_decisions_s(instance: Instance, policy: Policy, decisions: int = 1) -> list[float]:
    """CPU time [s] of each of the first decisions of a run, fewer if it ends before.

    What the engine does in between is not counted, and not done after the last. Where all jobs
    are there at time 0 the first decision is about all of them.

    Raises
    ------
    InputError
        If ``decisions`` is below 1.
    """
    if decisions < 1:
        raise InputError(f"decision time: decisions is {decisions!r}, expected at least 1")
    timed = _Timed(policy, decisions)
    with suppress(_EnoughError):
        run(instance, timed)
    return timed.cpu_s
