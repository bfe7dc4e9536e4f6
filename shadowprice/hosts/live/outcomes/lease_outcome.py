"""Outcome for a job of the end of its lease."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shadowprice.hosts.live.lease import (
    CANCELLED,
    FAILED,
    FINISHED,
    Ending,
    HeldLease,
    JobRecord,
    Kind,
)
from shadowprice.hosts.live.limits import Limits


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
    host_tries : int
        Failures in a row of its hosts.
    lived : bool
        Whether the lease came to a checkpoint, or lasted a minute.
    """

    row: int
    epoch: int
    end_s: float
    step: int
    tries: int
    over: str
    return_s: float
    confirmed: bool
    host_tries: int = 0
    lived: bool = False


def conclude(
    tracked: JobRecord,
    lease: HeldLease,
    end: Ending | None,
    step: int,
    now_s: float,
    limits: Limits,
    *,
    with_others: bool = False,
) -> LeaseOutcome:
    """Outcome of an ending, or of a loss of sight if there is none.

    A failure counts against the job only if no checkpoint was committed since the one before;
    preemption, loss of a node and a lease that never began do not, nor does what its host did, unless
    that goes on for ever.

    Parameters
    ----------
    with_others : bool
        Whether all that was on its nodes failed within moments: that is the host's fault.
    """
    over, wait_s = "", 0.0
    advanced = step > tracked.step
    tries, host_tries = (0, 0) if advanced else (tracked.tries, tracked.host_tries)
    if end is not None and _finished(end, lease, step):
        tries, host_tries, over = 0, 0, FINISHED
    elif tracked.cancel:
        over = CANCELLED
    elif end is not None and _counts(end, lease, step):
        if (with_others or end.host_failed) and host_tries < limits.host_retries:
            host_tries += 1
            wait_s = limits.back_off(host_tries)
        else:
            over = FAILED if tries >= limits.retries else ""
            tries += 1
            wait_s = limits.back_off(tries)
    return LeaseOutcome(
        lease.grant.row,
        lease.grant.epoch,
        end_s=min(lease.end.ended_s, now_s),
        step=step,
        tries=tries,
        over=over,
        return_s=math.inf if over else now_s + wait_s,
        confirmed=lease.gone,
        host_tries=host_tries,
        lived=has_lived(tracked, lease, step, now_s, limits),
    )


def has_lived(
    tracked: JobRecord, lease: HeldLease, step: int, now_s: float, limits: Limits
) -> bool:
    """True if a lease came to a checkpoint, a committed step beyond that of its job, or lasted a minute."""
    lasted_s = min(lease.end.ended_s, now_s) - lease.progress.running_s
    return step > tracked.step or lasted_s >= limits.lived_s


def _finished(end: Ending, lease: HeldLease, step: int) -> bool:
    # Stopped after its last step: to start it again would only make it say so.
    done = end.kind is Kind.PREEMPTED and step >= lease.grant.job.iterations
    return done or end.kind is Kind.FINISHED


def _counts(end: Ending, lease: HeldLease, step: int) -> bool:
    if end.kind is Kind.FAILED:
        return True
    # A command that keeps leaving unasked, and saves nothing, would be started for ever.
    unasked = end.kind is Kind.PREEMPTED and not lease.end.stop_why and end.reason == "exited"
    return unasked and step <= lease.grant.from_step
