"""Outcome of a round of copies for their job."""

from __future__ import annotations

from shadowprice.hosts.live.copies.rounds import CountedCopies, JobRound
from shadowprice.hosts.live.lease import Ending, HeldLease, JobRecord, Kind
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.outcomes.lease_outcome import FINISHED, LeaseOutcome, consequence

ROUND_ENDS = "the round ends"
"""Why copies are asked to stop."""


def conclude_round(
    tracked: JobRecord,
    round_: JobRound,
    counted: CountedCopies,
    trouble: str,
    now_s: float,
    limits: Limits,
) -> tuple[Ending, LeaseOutcome]:
    """Ending of a round for a job as a whole, and what follows.

    Survivors count: the round has failed only if no step of any copy was committed, and some copy
    failed, left by itself, or was stopped by the end of the round before it made a step.

    Parameters
    ----------
    trouble : str
        Why there is no average, empty if there is one, or nothing to be averaged.
    """
    steps, grant = 0 if trouble else sum(counted.steps), round_.grant
    step = grant.from_step + steps
    end = _as_a_whole(round_, counted, trouble, steps)
    finished = step >= tracked.job.iterations
    what = consequence(
        tracked,
        now_s,
        limits,
        advanced=steps > 0,
        finished=finished,
        failed=end.kind is Kind.FAILED,
        by_host=end.host_failed,
    )
    end_s = now_s
    if what.over == FINISHED:
        end_s = min(max(lease.ended_s for lease in round_.leases), now_s)
    confirmed = None not in counted.ends
    return end, LeaseOutcome(
        *(grant.row, grant.epoch, end_s, step, what.tries, what.over, what.return_s),
        confirmed=confirmed,
        host_tries=what.host_tries,
    )


def _as_a_whole(round_: JobRound, counted: CountedCopies, trouble: str, steps: int) -> Ending:
    if trouble:
        return Ending(Kind.FAILED, 0, "exited", False, trouble)
    if steps:
        return Ending(Kind.PREEMPTED, 0, "stopped", False, "between two rounds")
    ends = [end for end in counted.ends if end is not None]
    for number, (end, lease) in enumerate(zip(counted.ends, round_.leases, strict=True)):
        if end is not None and (why := _failure(end, lease)):
            why = f"copy {number}: {why}"
            return Ending(Kind.FAILED, end.code, end.reason, end.forced, why, end.host_failed)
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
