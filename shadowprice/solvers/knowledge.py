"""Knowledge that a policy may declare."""

from __future__ import annotations

from enum import StrEnum


class Knowledge(StrEnum):
    """Knowledge of a policy beyond the past. Reading anything undeclared is an error."""

    DURATION = "duration"
    """The processing time of every job that has arrived (a clairvoyant policy)."""

    DISTRIBUTION = "distribution"
    """The distribution of service over the workload, without knowing whose is which."""

    SPEED_UP = "speed-up"
    """The speed of every job that has arrived on each number of GPUs that it may hold."""


OF_RUN_TIMES = frozenset({Knowledge.DURATION, Knowledge.DISTRIBUTION})
"""Knowledge that says something of how long jobs run."""
