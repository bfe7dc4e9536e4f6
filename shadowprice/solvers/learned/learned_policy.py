"""A learned policy in the engine: it makes the choices of a decision one by one, as when it was trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError
from shadowprice.solvers.learned.job_choices import JobChoices
from shadowprice.solvers.policy import Decision, Knowledge, State

Chooser = Callable[[NDArray[np.float32], NDArray[np.bool_]], int]
"""From an observation and a mask to the number of a choice that the mask allows."""


@dataclass(frozen=True)
class LearnedPolicy:
    """A policy that chooses jobs as a function of what it is shown.

    Parameters
    ----------
    choose : callable
        From an observation, shape (features,), and a mask, shape (actions,), to a choice; not asked where
        there is nothing to do but wait.
    choices : JobChoices
        What it is shown, and what it may choose; as in training.
    """

    choose: Chooser
    choices: JobChoices = field(default_factory=JobChoices)
    name: str = "learned"

    @property
    def knows(self) -> frozenset[Knowledge]:
        """Knowledge beyond the past: that of its choices."""
        return self.choices.knows

    @property
    def preemptive(self) -> bool:
        """True if its choices stop jobs."""
        return self.choices.preemptive

    def decide(self, state: State) -> Decision:
        """Choose until it waits.

        Raises
        ------
        PolicyError
            If it makes a choice that the mask does not allow.
        """
        decision = Decision(state)
        while True:
            view = self.choices.view(state, decision)
            if view.forced:
                return decision
            action = int(self.choose(view.observation(), view.mask))
            if not (0 <= action < self.choices.actions and view.mask[action]):
                allowed = np.flatnonzero(view.mask).tolist()
                raise PolicyError(
                    f"chooses {action}, expected one of {allowed}, which the mask allows"
                )
            if view.choose(action):
                return decision
