"""Outcome for a job of the end of its lease."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shadowprice.execution.real.lease import Ending, HeldLease, JobRecord, Kind, ending
from shadowprice.execution.real.limits import Limits

FINISHED, CANCELLED, FAILED = "finished", "cancelled", "failed"
"""How a job ends for good."""


@dataclass(frozen=True)
class LeaseOutcome:
    """The end of a lease, as the engine and the journal know it.

    Parameters
    ----------
    end_s : float
        When it was over [s].
    step : int
        Committed step of the job.
    tries : int
        Failures in a row of the job.
    over : str
        How the job ended for good, empty if it goes on.
    return_s : float
        When it may run again [s], infinity if it is over.
    confirmed : bool
        Whether all its processes are gone; else its devices are quarantined.
    """

    row: int
    epoch: int
    end_s: float
    step: int
    tries: int
    over: str
    return_s: float
    confirmed: bool


def lease_ending(lease: HeldLease) -> Ending | None:
    """Ending of a lease; None if its processes may be left."""
    if not lease.gone:
        return None
    exits = [seen.exit for seen in lease.seen.values() if seen.exit is not None]
    return ending(exits, lease.report, lease.target, lease.stop_why, lease.done_exit_code)


def conclude(
    tracked: JobRecord,
    lease: HeldLease,
    end: Ending | None,
    step: int,
    now_s: float,
    limits: Limits,
) -> LeaseOutcome:
    """Outcome of an ending, or of a loss of sight if there is none.

    A failure counts against the job only if no checkpoint was committed since the one before;
    preemption, loss of a node and a lease that never began do not.
    """
    # Stopped after its last step: to start it again would only make it say so.
    done = end is not None and end.kind is Kind.PREEMPTED and step >= lease.target
    finished = done or (end is not None and end.kind is Kind.FINISHED)
    failed = end is not None and _counts(end, lease, step)
    tries, over, return_s = consequence(
        tracked, now_s, limits, advanced=step > tracked.step, finished=finished, failed=failed
    )
    end_s = min(lease.ended_s, now_s)
    return LeaseOutcome(
        lease.row, lease.epoch, end_s, step, tries, over, return_s, confirmed=lease.gone
    )


def consequence(
    tracked: JobRecord,
    now_s: float,
    limits: Limits,
    *,
    advanced: bool,
    finished: bool,
    failed: bool,
) -> tuple[int, str, float]:
    """Failures in a row of a job, how it is over, and when it may run again [s].

    Parameters
    ----------
    advanced : bool
        Whether a checkpoint was committed since the last failure.
    """
    if finished:
        return 0, FINISHED, math.inf
    tries = 0 if advanced else tracked.tries
    if tracked.cancel:
        return tries, CANCELLED, math.inf
    if not failed:
        return tries, "", now_s
    if tries >= limits.retries:
        return tries + 1, FAILED, math.inf
    return tries + 1, "", now_s + limits.back_off(tries + 1)


def _counts(end: Ending, lease: HeldLease, step: int) -> bool:
    if end.kind is Kind.FAILED:
        return True
    # A command that keeps leaving unasked, and saves nothing, would be started for ever.
    unasked = end.kind is Kind.PREEMPTED and not lease.stop_why and end.reason == "exited"
    return unasked and step <= lease.from_step
