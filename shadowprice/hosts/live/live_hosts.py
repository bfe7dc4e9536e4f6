"""The live half of real hosts: grants, waits, stops, and what happened since the last decision.

Nothing here runs while a record is replayed, but for the renewal of what runs. Its answers to the
engine pass through the journal, each in the transaction of its events.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from shadowprice.hosts.lease_amounts import GrantedAmounts
from shadowprice.hosts.lease_files import prune
from shadowprice.hosts.live import checkpoints as plain_checkpoints
from shadowprice.hosts.live.checkpoints import (
    FolderCopy,
    committed_by,
    raise_fences,
    reported_commit,
)
from shadowprice.hosts.live.devices import Drains
from shadowprice.hosts.live.event_log import describe_decision
from shadowprice.hosts.live.graphs.replicas import PlacedReplicas
from shadowprice.hosts.live.lease import (
    ABSENT,
    FAILED_WHY,
    RUNNING,
    WAITING,
    Ending,
    HeldLease,
    JobRecord,
    Kind,
)
from shadowprice.hosts.live.measuring import JobProgress
from shadowprice.hosts.live.observer import RunObserver
from shadowprice.hosts.live.outcomes.failures import CommonFailures, may_return
from shadowprice.hosts.live.outcomes.lease_outcome import (
    FAILED,
    LeaseOutcome,
    conclude,
    lease_ending,
)
from shadowprice.hosts.live.run import RealRun
from shadowprice.hosts.protocol import Device
from shadowprice.instances.schedule import ALONE
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision
from shadowprice.solvers.state import State

# Events between two decisions of a real run.


@dataclass(frozen=True)
class HostEvents:
    """Everything that the engine has to know before the policy decides.

    Parameters
    ----------
    progress : list of JobProgress
        Of every lease, those that ended included.
    ended : list of LeaseOutcome
        Of leases that are over.
    unplaced : list of int
        Rows that the policy started, but that got no devices.
    confirmed : list of (int, int, int)
        Row and epoch of leases that were over before, and whose processes are gone now; the step
        that their job has committed.
    withdrawn : list of int
        Rows of waiting jobs that are over: cancelled, unreadable, or finished while they were being
        stopped.
    cancelled : list of int
        Those of the unplaced and the withdrawn that a person cancelled.
    returned : list of int
        Rows that may run again.
    lost : list of str
        Nodes that do not answer.
    missing : list of str
        Uuids of devices that were not found again when the run was resumed.
    submitted : list of int
        Numbers of jobs that were added to the queue and are taken in now.
    refused : list of int
        Those of the unplaced and the withdrawn that fail, since what is stored of them cannot be read.
    retried : list of int
        Those of the returned that were given up before.
    """

    progress: list[JobProgress]
    ended: list[LeaseOutcome]
    unplaced: list[int]
    confirmed: list[tuple[int, int, int]]
    withdrawn: list[int]
    cancelled: list[int]
    returned: list[int]
    lost: list[str]
    missing: list[str]
    submitted: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    retried: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class StoppedRun:
    """A lease that was stopped: its progress since the engine was informed last, and its outcome."""

    progress: JobProgress
    outcome: LeaseOutcome


KEPT_LEASES = 20
"""Of each job: directories of its last leases, with what it said, beside that which begins; the ledger
has the rest."""
STOPPED_BY_POLICY = "the policy stops it"
_SAVED = frozenset({0, 75, 143})
"""Exit codes by which a command says that its own checkpoint folder is whole."""


class LiveHosts:
    """Acts on hosts, and sees what becomes of leases.

    Methods that make an answer for the engine are contexts, in which it is to be written down.
    """

    def __init__(self, run: RealRun) -> None:
        self.run = run
        self.observer = RunObserver(run)
        self._failures = CommonFailures(run)
        self._held_back: set[int] = set()
        self._collected_s = -math.inf
        self._granted: list[int] = []
        self._copies: list[tuple[HeldLease, FolderCopy]] = []

    def wait(self, until_s: float) -> float:
        """Wait until the engine has something to know, at the latest until a time."""
        while True:
            now_s = self._look()
            if self._happened(now_s):
                return now_s
            if now_s >= until_s:
                return until_s
            if until_s == math.inf and not self._expected():
                return math.inf
            self._check_standstill(now_s, until_s)
            self._sleep(now_s, until_s)

    def sleep_until(self, due_s: float) -> float:
        """Look after all leases until a time."""
        while (now_s := self._look()) < due_s:
            self._sleep(now_s, due_s)
        return now_s

    @contextmanager
    def events(self, now_s: float) -> Iterator[HostEvents]:
        """Collect what happened since the last time, and write it down."""
        with self.run.ledger.transaction():
            yield self._collect(now_s)

    def _collect(self, now_s: float) -> HostEvents:
        run = self.run
        self._collected_s = run.clock.now_s()
        run.record.nodes(run.devices.lost, run.watch.lost)
        drained = Drains(run.ledger).drained() | run.watch.drained
        run.record.missing(run.devices.missing - drained, run.watch.missing - drained)
        # First, for what follows tells of later leases of the same jobs.
        confirmed = self._confirmed()
        progress, ended = [], []
        for tracked in run.tracked:
            lease = tracked.lease
            if lease is None:
                continue
            progress.append(self._measure(lease, now_s))
            if run.watch.over(lease):
                ended.append(self._conclude(lease, now_s))
        withdrawn = [
            tracked.row
            for tracked in run.tracked
            if tracked.view == WAITING and (tracked.over or tracked.cancel or tracked.unreadable)
        ]
        unplaced = [
            tracked.row
            for tracked in run.tracked
            if tracked.view == RUNNING and tracked.lease is None
        ]
        cancelled, refused = [], []
        for one in (run.tracked[row] for row in (*withdrawn, *unplaced)):
            if one.cancel and not one.over:
                cancelled.append(one.row)
                run.record.cancelled(one, now_s)
            elif one.unreadable and not one.over:
                refused.append(one.row)
                run.record.refused(one, now_s)
        retried = [one.row for one in run.tracked if one.retry and one.over == FAILED]
        for row in retried:
            run.record.retried(run.tracked[row])
        self.observer.tell_drained()
        left = set(unplaced) - {*cancelled, *refused}
        return HostEvents(
            progress=progress,
            ended=ended,
            unplaced=unplaced,
            confirmed=confirmed,
            withdrawn=withdrawn,
            cancelled=cancelled,
            returned=[*self._returned(ended, left, now_s), *retried],
            lost=sorted(run.watch.lost),
            missing=sorted(run.unusable()),
            submitted=run.arrivals.fresh(),
            refused=refused,
            retried=retried,
        )

    def decided(self, state: State, decision: Decision, cpu_s: float) -> None:
        """Write a decision down, with the reasons why jobs wait that can be seen from outside."""
        told = describe_decision(self.run.tracked, state, decision, cpu_s)
        self.observer.decided(*told)

    def ask_stop(self, rows: Sequence[int]) -> None:
        """Ask the leases of jobs to end, so that they do so at the same time."""
        run = self.run
        leases = [lease for row in rows if (lease := run.tracked[row].lease) is not None]
        run.ask_stop(leases, STOPPED_BY_POLICY)

    def wait_stops(self, rows: Sequence[int], until_s: float) -> list[int]:
        """Wait until some of the leases that were asked to end are over, at the latest until a time.

        Returns
        -------
        list of int
            Rows of those that are; empty only when the time has come.
        """
        self.ask_stop(rows)  # by who takes a run over, once more
        while True:
            leases = [(row, self.run.tracked[row].lease) for row in rows]
            over = [row for row, lease in leases if lease is None or self.run.watch.over(lease)]
            if over or self.run.clock.now_s() >= until_s:
                return over
            self.run.clock.sleep(min(self.run.limits.poll_s, 0.01))
            self._look()

    @contextmanager
    def stopped(self, rows: Sequence[int], until_s: float) -> Iterator[list[int]]:
        """Wait as :meth:`wait_stops` does; write down at once what follows."""
        over = self.wait_stops(rows, until_s)
        with self.run.ledger.transaction():
            yield over

    @contextmanager
    def applying(self, stops: Sequence[int]) -> Iterator[None]:
        """Write down at once all that a decision changes, when what it stops is over."""
        run = self.run
        for lease in [run.tracked[row].lease for row in stops]:
            if lease is not None:
                run.watch.wait_for(lease, run.leases())
        with run.ledger.transaction():
            yield

    @contextmanager
    def grant(
        self,
        tracked: JobRecord,
        pieces: Pieces,
        partner: int,
        amounts: GrantedAmounts,
        replicas: PlacedReplicas | None = None,
    ) -> Iterator[tuple[int, list[str]]]:
        """Epoch and devices of a new lease; no devices if some, or its amounts, are not to be had."""
        run = self.run
        with run.ledger.transaction():
            may = not (tracked.over or tracked.cancel or tracked.unreadable)
            may = may and run.devices.has_amounts(amounts.by_node)
            devices = self._find(pieces, partner) if may else ()
            if not devices:
                yield tracked.epoch, []
                return
            epoch = tracked.epoch + 1
            mapping = None if replicas is None else replicas.mapping
            rate = run.measuring.work_rate(tracked.row, pieces, partner, amounts.chosen, mapping)
            told: dict[str, object] = {"amounts": amounts.by_node} if amounts.by_node else {}
            if amounts.chosen is not None:
                told["speed"] = run.measuring.speed(tracked.row, pieces, amounts.chosen)
            if replicas is not None:
                told |= replicas.event_fields(devices)
            run.record.granted(tracked, epoch, devices, partner, rate, told)
            self._granted.append(tracked.row)
            yield epoch, [device.uuid for device in devices]

    def _find(self, pieces: Pieces, partner: int) -> tuple[Device, ...]:
        devices = self.run.devices
        other = None if partner == ALONE else self.run.tracked[partner].lease
        if other is not None:
            return other.devices if devices.joinable(other.devices) else ()
        found = [devices.find(node, count) for node, count in pieces]
        if not all(found):
            return ()
        devices_found = tuple(device for part in found for device in part)
        # The pool of devices learns what is missing with the next events only.
        missing = self.run.unusable()
        return () if any(device.uuid in missing for device in devices_found) else devices_found

    def start_granted(self) -> None:
        """Carry out the grants that were written down."""
        run, rows = self.run, self._granted
        self._granted = []
        granted = [lease for row in rows if (lease := run.tracked[row].lease) is not None]
        for lease in granted:
            lease.unstarted = True
        epochs = {self._directory(lease): lease.epoch for lease in granted}
        # The fence is raised first: whoever ran this job before is refused.
        for lease, refused in zip(granted, raise_fences(epochs), strict=True):
            # Starting many takes long, and the others go on meanwhile.
            run.watch.renew(run.leases())
            if refused is None:
                self._prepare(lease)
            else:
                # Without a fence nobody may start: the lease is void, and is tried again.
                run.record.note("note", text=str(refused))
                run.watch.void(lease)
        for lease in granted:
            if not run.tracked[lease.row].written_off:
                prune(self._directory(lease) / "leases", KEPT_LEASES + len(lease.orders))

    def _directory(self, lease: HeldLease) -> Path:
        """Directory of its job."""
        return self.run.orders.job_directory(self.run.tracked[lease.row].job.name)

    def _prepare(self, lease: HeldLease) -> None:
        """Carry a grant out whose fence is raised."""
        tracked, directory = self.run.tracked[lease.row], self._directory(lease)
        if not tracked.job.keeps_checkpoints:
            self._start(lease)
            return
        copy = FolderCopy(directory, lease.epoch)
        if copy.over:
            self._start(lease, copy.error)
        else:
            self._copies.append((lease, copy))

    def _start(self, lease: HeldLease, error: OSError | None = None) -> None:
        """Start a lease whose folder of checkpoints, if it has one, is prepared.

        Parameters
        ----------
        error : OSError, optional
            Why the folder could not be prepared.
        """
        if not lease.unstarted:
            return  # it was stopped meanwhile
        watch = self.run.watch
        if isinstance(error, shutil.Error):
            # What the command left cannot be copied, a pipe for instance: its failure, not the run's.
            lease.stop_why = f"{FAILED_WHY}its checkpoints cannot be copied: {error}"
            watch.void(lease)
            return
        if error is not None:
            # Of its disk, say: it is void, and is tried again.
            name = self.run.tracked[lease.row].job.name
            self.run.record.note(
                "note", text=f"job {name}: its checkpoints cannot be copied: {error}"
            )
            watch.void(lease)
            return
        lease.unstarted, lease.ordered_s = False, self.run.clock.now_s()
        lease.moved_s = max(lease.moved_s, lease.ordered_s)
        watch.host.start(lease.orders)

    def _look(self) -> float:
        """Look at all leases once, and start those that are prepared; returns the time [s]."""
        for lease, copy in [each for each in self._copies if each[1].over]:
            self._copies.remove((lease, copy))
            self._start(lease, copy.error)
        return self.observer.look()

    @contextmanager
    def stop(self, lease: HeldLease, now_s: float) -> Iterator[StoppedRun]:
        """End a lease, and wait until its devices are free, or known not to be."""
        run = self.run
        run.ask_stop([lease], STOPPED_BY_POLICY)
        run.watch.wait_for(lease, run.leases())
        with run.ledger.transaction():
            progress = self._measure(lease, now_s)
            yield StoppedRun(progress, self._conclude(lease, now_s, at_once=True))

    @contextmanager
    def continue_run(self, lease: HeldLease, partner: int, at_s: float) -> Iterator[JobProgress]:
        """Progress of a lease that has another partner, or none, from now on."""
        with self.run.ledger.transaction():
            progress = self._measure(lease, at_s)
            self.run.record.partner(lease, partner)
            yield progress

    def _measure(self, lease: HeldLease, now_s: float) -> JobProgress:
        """Progress of a lease, written down."""
        run = self.run
        progress = run.measuring.progress(run.tracked[lease.row], lease, now_s)
        run.record.progress(lease, progress, run.measuring, now_s)
        return progress

    def _conclude(self, lease: HeldLease, now_s: float, *, at_once: bool = False) -> LeaseOutcome:
        """Determine and record the outcome of a lease that is over.

        Parameters
        ----------
        at_once : bool
            Whether the job, unless it is over, waits from now on even if it failed.
        """
        run, tracked = self.run, self.run.tracked[lease.row]
        end = lease_ending(lease)
        step = self._committed(tracked, lease, end)
        self.observer.drain_unhealthy(lease)
        together = self._failures.include(lease, step, now_s)
        outcome = conclude(tracked, lease, end, step, now_s, run.limits, with_others=together)
        self._failures.note(lease, end, now_s)
        if at_once and not outcome.over:
            outcome = replace(outcome, return_s=now_s)
        run.record.ended(lease, end, outcome, now_s)
        return outcome

    def _sleep(self, now_s: float, until_s: float) -> None:
        wait_s = min(self.run.limits.poll_s, until_s - now_s)
        for tracked in self.run.tracked:
            # Who has come back already waits for the end of the round, as everybody does.
            if now_s < tracked.return_s < now_s + wait_s:
                wait_s = max(tracked.return_s - now_s, 0.001)
        self.run.clock.sleep(wait_s)

    def _happened(self, now_s: float) -> bool:
        """True if the engine has something to know."""
        run = self.run
        if run.watch.lost != run.devices.lost or run.unusable() != run.devices.missing:
            return True
        if run.arrivals.fresh():
            return True
        return any(self._news(tracked, now_s) for tracked in run.tracked)

    def _news(self, tracked: JobRecord, now_s: float) -> bool:
        if any(lease.gone for lease in tracked.written_off):
            return True
        if tracked.view == RUNNING and tracked.lease is None:
            # It got no devices: the policy may want the same again and again.
            limits = self.run.limits
            return now_s >= self._collected_s + max(limits.back_off_s, limits.poll_s)
        if tracked.view == RUNNING:
            return tracked.lease is not None and self.run.watch.over(tracked.lease)
        if tracked.view == WAITING:
            return bool(tracked.over or tracked.cancel or tracked.unreadable)
        if tracked.retry and tracked.over == FAILED:
            return True
        return tracked.return_s <= now_s and self._may_return(tracked)

    def _expected(self) -> bool:
        """True if anything can still happen by itself."""
        tracked = self.run.tracked
        if self.run.arrivals.open:
            return True
        if any(one.retry and one.over == FAILED for one in tracked):
            return True
        if all(one.over for one in tracked):
            return False
        if self.run.leases() or any(one.return_s < math.inf for one in tracked):
            return True
        if any(one.view == RUNNING for one in tracked):
            return True
        return self._lacks_devices() and any(one.view == WAITING for one in tracked)

    def _lacks_devices(self) -> bool:
        """True if nodes or devices of the run cannot be given out now, but may be later."""
        return bool(self.run.watch.lost or self.run.unusable())

    def _check_standstill(self, now_s: float, until_s: float) -> None:
        """Give up when jobs wait for nodes that do not come back."""
        tracked = self.run.tracked
        if self.run.arrivals.open:
            return  # it waits with its jobs
        quarantined = self._lacks_devices() or any(one.written_off for one in tracked)
        stuck = (until_s == math.inf or quarantined) and all(one.lease is None for one in tracked)
        stuck = stuck and all(one.return_s == math.inf for one in tracked)
        # Neither is anybody still to arrive.
        stuck = stuck and all(one.over or one.view != ABSENT for one in tracked)
        self.observer.check_standstill(stuck, now_s, sum(one.view == WAITING for one in tracked))

    def _committed(self, tracked: JobRecord, lease: HeldLease, end: Ending | None) -> int:
        """Step from which the job goes on; its own folder of checkpoints is adopted if whole."""
        directory = self.run.orders.job_directory(tracked.job.name)
        if end is not None and tracked.job.keeps_checkpoints:
            # What its host ended may have saved, as what was killed after the grace.
            by_host = end.host_failed and lease.began
            if end.kind in (Kind.FINISHED, Kind.PREEMPTED) or by_host:
                whole = end.code in _SAVED and not end.forced and not by_host
                plain_checkpoints.adopt(directory, lease.epoch, whole=whole)
            elif end.kind is Kind.FAILED and not end.host_failed:
                plain_checkpoints.fall_back(directory)
        if end is not None and end.kind is Kind.FINISHED:
            return lease.target
        return committed_by(lease, directory)

    def _confirmed(self) -> list[tuple[int, int, int]]:
        """Leases that were written off and are gone now, and the step from which their jobs go on."""
        found = []
        for tracked in self.run.tracked:
            step = tracked.step
            for lease in tracked.written_off:
                if (end := lease_ending(lease)) is not None:
                    # Until another lease was granted, it could still commit.
                    own = reported_commit(lease)
                    step = max(step, own)
                    self.run.record.confirmed(lease, end, lease.step, step, own)
                    found.append((tracked.row, lease.epoch, step))
        return found

    def _returned(
        self, ended: Iterable[LeaseOutcome], unplaced: Iterable[int], now_s: float
    ) -> list[int]:
        """Jobs that may run again: at once after a preemption, later after a failure."""
        rows = [outcome.row for outcome in ended if outcome.return_s <= now_s]
        rows += [row for row in sorted(unplaced) if not self.run.tracked[row].over]
        leases = [self.run.tracked[each.row].lease for each in ended if each.confirmed]
        freed = {device.uuid for lease in leases if lease for device in lease.devices}
        for tracked in self.run.tracked:
            due = tracked.view == ABSENT and tracked.return_s <= now_s
            if due and self._may_return(tracked, freed):
                rows.append(tracked.row)
        return rows

    def _may_return(self, tracked: JobRecord, freed: Collection[str] = ()) -> bool:
        """True if a job that failed is offered to the policy again; of one that is not, that is noted once."""
        if may_return(self.run, tracked, freed):
            self._held_back.discard(tracked.row)
            return True
        if tracked.row not in self._held_back:
            self._held_back.add(tracked.row)
            self.run.record.held_back(tracked)
        return False
