"""The protocol of an online scheduling policy: one method, ``decide``."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, runtime_checkable

from shadowprice.solvers.decision import Decision
from shadowprice.solvers.state import State


class Knowledge(StrEnum):
    """Knowledge of a policy beyond the past. Reading anything undeclared is an error."""

    DURATION = "duration"
    """The processing time of every job that has arrived (a clairvoyant policy)."""

    DISTRIBUTION = "distribution"
    """The distribution of service over the workload, without knowing whose is which."""


@runtime_checkable
class Policy(Protocol):
    """An online scheduling policy.

    A policy is usually a small frozen dataclass of parameters in one file of
    ``shadowprice.solvers`` whose module lists ready-made ones in ``POLICIES``; nothing else has
    to be edited for it to be found by name, tested by the common battery and compared.
    """

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def knows(self) -> frozenset[Knowledge]:
        """Knowledge of the policy beyond the past."""

    @property
    def preemptive(self) -> bool:
        """True if it ever stops a running job; decides which optimum it is compared with."""

    def decide(self, state: State) -> Decision:
        """Say which jobs start and stop now, and optionally when to ask again."""
