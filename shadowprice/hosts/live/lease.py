"""Leases of a real run: how they end, and the known state of every job and of its lease."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from shadowprice.hosts.lease_cpu_memory import CpuMemoryByNode
from shadowprice.hosts.live.graphs.run_graphs import PlacedReplicas
from shadowprice.hosts.live.job_file import Job
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.protocol import (
    Device,
    Exit,
    LaunchSpec,
    LeaseKey,
    Phase,
    RankStatus,
)
from shadowprice.instances.features import Feature
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.terms.effect import Fields, Pieces

ABSENT, WAITING, RUNNING = "absent", "waiting", "running"
"""Where the engine thinks that a job is."""

FINISHED, CANCELLED, FAILED = "finished", "cancelled", "failed"
"""How a job ends for good."""

UNHEALTHY = "unhealthy"
"""Reason of an exit: the health check of the node failed, and the command never began."""

Holder = tuple[str, int]
"""Job and epoch of a lease."""


@dataclass(frozen=True)
class LeaseGrant:
    """Grant of a lease: what it was given, which never changes.

    Parameters
    ----------
    row : int
        Row of the job in the workload.
    orders : tuple of LaunchSpec
        One for each rank.
    from_step : int
        Committed step it goes on from.
    granted_s : float
        When its devices were taken [s].
    cpu_memory : mapping of str to (int, int)
        CPUs [thousandths] and memory [MiB] that it holds on each node; empty if they are not counted.
    replicas : PlacedReplicas or None
        Replicas of the job's graph on its devices.
    """

    row: int
    job: Job
    epoch: int
    pieces: Pieces
    devices: tuple[Device, ...]
    orders: tuple[LaunchSpec, ...]
    from_step: int
    granted_s: float
    cpu_memory: CpuMemoryByNode = field(default_factory=dict)
    replicas: PlacedReplicas | None = None

    @cached_property
    def keys(self) -> tuple[LeaseKey, ...]:
        """Its ranks."""
        return tuple(order.key for order in self.orders)

    @property
    def holder(self) -> Holder:
        """Job and epoch."""
        return self.job.name, self.epoch


@dataclass
class LeaseProgress:
    """Progress of a lease, as far as it was seen.

    Attributes
    ----------
    rate : float
        Rate against the job's fastest type that the engine knows.
    step : int
        Step it reached.
    synced_s : float
        Up to when the engine knows its progress [s].
    moved_s : float
        When the step last changed [s].
    running_s, stepping_s : float
        When all its ranks, and its first step, were first seen [s], infinity before.
    counted : (int, float)
        Timed steps and their seconds that are already among the observations.
    reports : bool
        Whether its command is known to report steps: it has, or an earlier lease of the job did.
    """

    rate: float
    step: int = 0
    synced_s: float = 0.0
    moved_s: float = 0.0
    running_s: float = math.inf
    stepping_s: float = math.inf
    counted: tuple[int, float] = (0, 0.0)
    reports: bool = False

    def timed_since(self, steps: int, seconds: float) -> tuple[int, float]:
        """Timed steps and their seconds since they were counted last.

        Fewer than were counted are those of processes that a launcher started again in this lease.
        """
        again = steps < self.counted[0] or seconds < self.counted[1]
        counted = (0, 0.0) if again else self.counted
        return steps - counted[0], seconds - counted[1]


@dataclass
class LeaseEnd:
    """End of a lease: what was asked of it, and what was seen.

    Attributes
    ----------
    stop_why : str
        Why it was asked to stop, empty if it was not.
    stop_by_s : float
        When it is waited for no more [s].
    ended_s, part_ended_s : float
        When its end, and the end of some of its ranks, were first seen [s], infinity before.
    abandoned : bool
        Whether it was written off: it is renewed no more, and asked to end whenever it is seen.
    ask_s : float
        When it is asked again [s].
    """

    stop_why: str = ""
    stop_by_s: float = math.inf
    ended_s: float = math.inf
    part_ended_s: float = math.inf
    abandoned: bool = False
    ask_s: float = -math.inf


@dataclass(eq=False)
class HeldLease:
    """A lease that was granted and whose end is not confirmed yet.

    Attributes
    ----------
    fields : mapping of Feature to object
        What the policy chose beside its devices: the job that shares them, as long as it does, CPUs and memory,
        where the replicas of its graph are.
    seen : dict of LeaseKey to RankStatus
        Its ranks, as they were polled last.
    unstarted : bool
        Whether its start is still to be carried out: no host knows it.
    ordered_s : float
        When its start was carried out, if later than its grant [s].
    """

    grant: LeaseGrant
    progress: LeaseProgress
    fields: Fields = field(default_factory=dict)
    end: LeaseEnd = field(default_factory=LeaseEnd)
    seen: dict[LeaseKey, RankStatus] = field(default_factory=dict)
    unstarted: bool = False
    ordered_s: float = -math.inf

    @property
    def partner(self) -> int:
        """Row of the job that shares its devices, -1 for none."""
        partner: int = self.fields.get(Feature.SHARING, ALONE)
        return partner

    @property
    def gone(self) -> bool:
        """True if all ranks are confirmed to have ended."""
        return all(phase is Phase.ENDED for phase in self._phases())

    @property
    def broken(self) -> bool:
        """True if some rank has ended, and another has not."""
        return Phase.ENDED in self._phases() and not self.gone

    @property
    def lost(self) -> bool:
        """True if a node of it does not answer."""
        return Phase.LOST in self._phases()

    @property
    def runs(self) -> bool:
        """True if no rank is still starting."""
        return Phase.STARTING not in self._phases()

    @property
    def began(self) -> bool:
        """True if all ranks run, or ran."""
        return self.runs and not any(
            seen.phase is Phase.LOST
            or (seen.exit is not None and seen.exit.reason in ("void", UNHEALTHY))
            for seen in self.seen.values()
        )

    @property
    def exits(self) -> list[tuple[LaunchSpec, Exit]]:
        """Exits of the ranks that have ended."""
        statuses = ((order, self.seen.get(order.key)) for order in self.grant.orders)
        return [(order, one.exit) for order, one in statuses if one is not None and one.exit]

    @property
    def report(self) -> Mapping[str, Any]:
        """Last report of rank 0."""
        seen = self.seen.get(self.grant.keys[0])
        return seen.report if seen is not None else {}

    def ending(self) -> Ending | None:
        """Ending of the lease; None if its processes may be left."""
        if not self.gone:
            return None
        job, exits = self.grant.job, [exit for _, exit in self.exits]
        return ending(exits, self.report, job.iterations, self.end.stop_why, job.done_exit_code)

    def _phases(self) -> list[Phase]:
        seen = (self.seen.get(key) for key in self.grant.keys)
        return [Phase.STARTING if one is None else one.phase for one in seen]


@dataclass
class JobRecord:
    """A job of the run.

    Attributes
    ----------
    step : int
        Step of its last committed checkpoint; all of its iterations once it finished.
    lived : bool
        Whether a lease of it came to a checkpoint, or lasted a minute.
    stopped_others : bool
        Whether others were stopped for it since it failed; until it has lived, it comes back only where
        there are free devices for it.
    estimated_s : float
        Work done by a command that reports no steps, as run time on its fastest type [s].
    tries, host_tries : int
        Failures in a row without a checkpoint between them: its own, and those of its hosts.
    over : str
        How it ended: ``finished``, ``cancelled``, ``failed``; empty before, and again if it is retried.
    view : str
        Where the engine thinks that it is: ``absent`` before its arrival, after its end, and while
        it waits to be tried again.
    return_s : float
        When it comes back after a failure [s], infinity if it does not wait for that.
    cancel, retry : bool
        Whether somebody wants it to be cancelled, or taken up again though it was given up.
    reports : bool
        Whether its command has reported steps.
    unreadable : str
        Why what is stored of it cannot be read, empty if it can: it gets no lease, and fails.
    """

    row: int
    job: Job
    step: int = 0
    epoch: int = 0
    estimated_s: float = 0.0
    tries: int = 0
    host_tries: int = 0
    lived: bool = False
    stopped_others: bool = False
    over: str = ""
    view: str = ABSENT
    return_s: float = math.inf
    cancel: bool = False
    retry: bool = False
    lease: HeldLease | None = None
    reports: bool = False
    unreadable: str = ""

    @property
    def barred(self) -> bool:
        """True if it is to get no lease: it is over, cancelled, or cannot be read."""
        return bool(self.over or self.cancel or self.unreadable)

    @property
    def unplaced(self) -> bool:
        """True if the engine thinks that it runs, but it got no devices."""
        return self.view == RUNNING and self.lease is None

    @property
    def retried(self) -> bool:
        """True if it was given up, and is to be taken up again."""
        return self.retry and self.over == FAILED


# Ends of leases: finished, preempted, failed, or never begun.


PREEMPTED_CODES = frozenset({75, 143})
"""Exit codes of a command that saved its work and wants to run again: EX_TEMPFAIL, 128 + SIGTERM."""

FAILED_WHY, HOST_FAILED_WHY = "failed: ", "host failed: "
"""Beginnings of reasons why a lease is asked to stop: it had failed, or its host had."""

_TERMINATED = -15


class Kind(StrEnum):
    """Kind of ending of the job."""

    FINISHED = "finished"
    PREEMPTED = "preempted"
    FAILED = "failed"
    UNSTARTED = "unstarted"


@dataclass(frozen=True)
class Ending:
    """The end of a lease.

    Parameters
    ----------
    code : int
        Of the rank that decided it.
    reason : str
        See :class:`Exit`.
    forced : bool
        Whether a rank had to be killed.
    why : str
        What to tell a person.
    host_failed : bool
        Whether it failed by its host's fault: that is not counted against the job.
    """

    kind: Kind
    code: int
    reason: str
    forced: bool
    why: str
    host_failed: bool = False


def ending(
    exits: Sequence[Exit],
    report: Mapping[str, Any],
    target: int,
    stop_why: str = "",
    done_exit_code: int | None = None,
) -> Ending:
    """Judge a lease by the exits of its ranks; the worst rank decides.

    Of a command that was asked to end the exit code alone says nothing: some exit 0 after a
    SIGTERM, launchers exit 1. It is preempted, and its steps and checkpoints say from where it goes
    on, unless it reported its last step, or ended with the code that says that it is done.

    Parameters
    ----------
    report : mapping
        The last report of rank 0, empty if the command knows nothing of leases.
    target : int
        Step at which the lease has nothing left to do.
    stop_why : str
        Why the lease was asked to stop, empty if it was not; ``failed: ...`` if because it had failed, or
        ``host failed: ...`` if its host had.
    done_exit_code : int, optional
        Exit code of a command that reports no steps which says that it is done, asked to end or not.
    """
    judged = [(*_judge(one, report, target, stop_why, done_exit_code), one) for one in exits]
    order = (Kind.FAILED, Kind.UNSTARTED, Kind.PREEMPTED, Kind.FINISHED)
    kind, why, one = min(judged, key=lambda each: order.index(each[0]))
    for prefix in (FAILED_WHY, HOST_FAILED_WHY):
        if stop_why.startswith(prefix):
            kind, why = Kind.FAILED, stop_why.removeprefix(prefix)
    host_failed = kind is Kind.FAILED and (
        stop_why.startswith(HOST_FAILED_WHY) or any(each.host_failed for each in exits)
    )
    forced = any(each.forced for each in exits)
    return Ending(kind, one.code, one.reason, forced, why, host_failed)


def _judge(
    one: Exit, report: Mapping[str, Any], target: int, stop_why: str, done_exit_code: int | None
) -> tuple[Kind, str]:
    if one.reason == "void":
        return Kind.UNSTARTED, "never began"
    if one.reason == UNHEALTHY:
        return Kind.UNSTARTED, f"its device is not healthy: {one.detail}"
    detail = f": {one.detail}" if one.detail else ""
    if one.reason == "unstartable":
        return Kind.FAILED, f"cannot be started{detail}"
    # By its supervisor, before it ended.
    asked = one.reason in ("stopped", "expired")
    if _done(one, report, target, done_exit_code, asked=asked):
        return Kind.FINISHED, ""
    ended = bool(stop_why) and (one.forced or one.code == _TERMINATED)
    if asked or ended or one.code in PREEMPTED_CODES:
        return Kind.PREEMPTED, stop_why or one.reason
    if one.code == 0:
        step = report.get("step")
        at = (
            f"but done_exit_code is {done_exit_code}"
            if step is None
            else f"at step {step} of {target}"
        )
        return Kind.FAILED, f"exited 0 {at}"
    if one.code < 0:
        return Kind.FAILED, f"was killed by signal {-one.code}{detail}"
    return Kind.FAILED, f"exited {one.code}{detail}"


def _done(
    one: Exit, report: Mapping[str, Any], target: int, done_exit_code: int | None, *, asked: bool
) -> bool:
    """True if an exit says that the command has nothing left to do."""
    step = report.get("step")
    if isinstance(step, int):
        return one.code == 0 and step >= target
    if done_exit_code is not None:
        return one.code == done_exit_code
    return one.code == 0 and not asked


# What follows from an ending for the job.


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
