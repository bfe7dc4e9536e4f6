"""Decisions of a policy in words, for the log and for people who wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shadowprice.execution.real.lease import Tracked
from shadowprice.solvers.decision import Decision
from shadowprice.solvers.state import State


def told(
    tracked: Sequence[Tracked], state: State, decision: Decision, cpu_s: float
) -> tuple[dict[str, Any], dict[str, str]]:
    """A decision as data of an event, and why each job waits, as far as can be seen from outside."""
    names = [one.job.name for one in tracked]
    starting = {job for job, _ in decision.starts}
    why = {
        names[job]: _reason(state.gang[job], decision.free_gpus)
        for job in (*state.waiting, *decision.stops)
        if job not in starting
    }
    data = {
        "starts": {names[job]: list(map(list, pieces)) for job, pieces in decision.starts},
        "stops": [names[job] for job in decision.stops],
        "cpu_s": cpu_s,
    }
    return data, why


def _reason(gpus: int, free: int) -> str:
    """Why a job waits, as far as numbers tell."""
    numbers = f"needs {gpus} GPU{'s' * (gpus > 1)}, {free} free"
    if gpus > free:
        return numbers
    return f"{numbers}: the policy lets it wait, or they are badly spread"
