"""Outcome for a job of the end of its lease."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from shadowprice.hosts.live.lease import Ending, HeldLease, JobRecord, Kind, ending
from shadowprice.hosts.live.limits import Limits

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
    *,
    with_others: bool = False,
) -> LeaseOutcome:
    """Outcome of an ending, or of a loss of sight if there is none.

    A failure counts against the job only if no checkpoint was committed since the one before;
    preemption, loss of a node and a lease that never began do not, nor does what its host did.

    Parameters
    ----------
    with_others : bool
        Whether all that was on its nodes failed within moments: that is the host's fault.
    """
    # Stopped after its last step: to start it again would only make it say so.
    done = end is not None and end.kind is Kind.PREEMPTED and step >= lease.target
    finished = done or (end is not None and end.kind is Kind.FINISHED)
    failed = end is not None and _counts(end, lease, step)
    by_host = failed and (with_others or (end is not None and end.host_failed))
    what = consequence(
        tracked,
        now_s,
        limits,
        advanced=step > tracked.step,
        finished=finished,
        failed=failed,
        by_host=by_host,
    )
    end_s = min(lease.ended_s, now_s)
    return LeaseOutcome(
        *(lease.row, lease.epoch, end_s, step, what.tries, what.over, what.return_s),
        confirmed=lease.gone,
        host_tries=what.host_tries,
        lived=has_lived(tracked, lease, step, now_s, limits),
    )


def has_lived(
    tracked: JobRecord, lease: HeldLease, step: int, now_s: float, limits: Limits
) -> bool:
    """True if a lease came to a checkpoint, a committed step beyond that of its job, or lasted a minute."""
    lasted_s = min(lease.ended_s, now_s) - lease.running_s
    return step > tracked.step or lasted_s >= limits.lived_s


class Consequence(NamedTuple):
    """Failures in a row of a job and of its hosts, how it is over, and when it may run again [s]."""

    tries: int
    host_tries: int
    over: str
    return_s: float


def consequence(
    tracked: JobRecord,
    now_s: float,
    limits: Limits,
    *,
    advanced: bool,
    finished: bool,
    failed: bool,
    by_host: bool = False,
) -> Consequence:
    """Consequence for a job of the end of a lease.

    Parameters
    ----------
    advanced : bool
        Whether a checkpoint was committed since the last failure.
    by_host : bool
        Whether it failed by its host's fault, which is not counted against it, unless that goes on for
        ever.
    """
    if finished:
        return Consequence(0, 0, FINISHED, math.inf)
    tries, host_tries = (0, 0) if advanced else (tracked.tries, tracked.host_tries)
    if tracked.cancel:
        return Consequence(tries, host_tries, CANCELLED, math.inf)
    if not failed:
        return Consequence(tries, host_tries, "", now_s)
    if by_host and host_tries < limits.host_retries:
        return Consequence(tries, host_tries + 1, "", now_s + limits.back_off(host_tries + 1))
    over = FAILED if tries >= limits.retries else ""
    return_s = math.inf if over else now_s + limits.back_off(tries + 1)
    return Consequence(tries + 1, host_tries, over, return_s)


def _counts(end: Ending, lease: HeldLease, step: int) -> bool:
    if end.kind is Kind.FAILED:
        return True
    # A command that keeps leaving unasked, and saves nothing, would be started for ever.
    unasked = end.kind is Kind.PREEMPTED and not lease.stop_why and end.reason == "exited"
    return unasked and step <= lease.from_step
