"""Outcome of a round of copies for their job."""

from __future__ import annotations

import math

from shadowprice.execution.real.copies.books import Fork
from shadowprice.execution.real.lease import Ending, HeldLease, JobRecord, Kind
from shadowprice.execution.real.lease_outcome import (
    CANCELLED,
    FAILED,
    FINISHED,
    LeaseOutcome,
    lease_ending,
)
from shadowprice.execution.real.limits import Limits

ROUND_ENDS = "the round ends"
"""Why copies are asked to stop."""

_GOOD = frozenset({Kind.FINISHED, Kind.PREEMPTED})


def copy_ending(lease: HeldLease) -> Ending | None:
    """Ending of a copy; None if its processes may be left."""
    return lease_ending(lease) if lease.gone else None


def contributes(end: Ending | None) -> bool:
    """True if what a copy committed is averaged: those that failed or were lost are left out."""
    return end is not None and end.kind in _GOOD


def conclude_fork(
    tracked: JobRecord, fork: Fork, trouble: str, now_s: float, limits: Limits
) -> tuple[Ending, LeaseOutcome]:
    """Ending of a round for a job as a whole, and what follows.

    Survivors count: the round has failed only if no step of any copy was committed, and some copy
    failed, left by itself, or was stopped by the end of the round before it made a step.

    Parameters
    ----------
    trouble : str
        Why there is no average, empty if there is one, or nothing to be averaged.
    """
    steps = 0 if trouble else sum((fork.steps or {}).values())
    step = fork.from_step + steps
    end = _as_a_whole(fork, trouble, steps)
    tries, over, return_s, end_s = tracked.tries, "", now_s, now_s
    if steps:
        tries = 0
    if step >= tracked.job.iterations:
        over, return_s = FINISHED, math.inf
        end_s = min(max(lease.ended_s for lease in fork.leases), now_s)
    elif tracked.cancel:
        over, return_s = CANCELLED, math.inf
    elif end.kind is Kind.FAILED:
        tries += 1
        over = FAILED if tries > limits.retries else ""
        return_s = math.inf if over else now_s + limits.back_off(tries)
    confirmed = all(own is not None for own in fork.ends)
    what = LeaseOutcome(
        fork.row, fork.epoch, end_s, step, tries, over, return_s, confirmed=confirmed
    )
    return end, what


def _as_a_whole(fork: Fork, trouble: str, steps: int) -> Ending:
    if trouble:
        return Ending(Kind.FAILED, 0, "exited", False, trouble)
    if steps:
        return Ending(Kind.PREEMPTED, 0, "stopped", False, "between two rounds")
    ends = [end for end in fork.ends if end is not None]
    for number, end in enumerate(fork.ends):
        if end is not None and (why := _failure(end, fork.leases[number])):
            return Ending(Kind.FAILED, end.code, end.reason, end.forced, f"copy {number}: {why}")
    if not ends:
        return Ending(Kind.UNSTARTED, 0, "void", False, "lost sight of its nodes")
    return Ending(Kind.PREEMPTED, 0, "stopped", False, ends[0].why or "between two rounds")


def _failure(end: Ending, lease: HeldLease) -> str:
    """Reason that a copy without a step counts against its job, empty if it does not."""
    if end.kind is Kind.FAILED:
        return end.why
    if end.kind is Kind.FINISHED:
        return "ended without a checkpoint that could be averaged"
    if end.kind is Kind.PREEMPTED and not lease.stop_why and end.reason == "exited":
        return end.why
    if lease.stop_why == ROUND_ENDS and end.kind is Kind.PREEMPTED:
        # It would be so in every round.
        return "the round ended before a step was committed; a longer --round gives it time"
    return ""
