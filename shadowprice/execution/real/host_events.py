"""Waiting for what happens on real hosts, and putting it into turns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

from shadowprice.errors import HostError
from shadowprice.execution.real import checkpoints as plain_checkpoints
from shadowprice.execution.real.checkpoints import committed_by, reported_commit
from shadowprice.execution.real.lease import (
    ABSENT,
    RUNNING,
    WAITING,
    Ending,
    HeldLease,
    JobRecord,
    Kind,
)
from shadowprice.execution.real.lease_outcome import LeaseOutcome, conclude, lease_ending
from shadowprice.execution.real.limits import SAMPLE_S, STEPS_S
from shadowprice.execution.real.measuring import JobProgress
from shadowprice.execution.real.run import RealRun

# What happened between two decisions of a real run.


@dataclass(frozen=True)
class HostEvents:
    """Everything that the engine has to know before the policy decides; plain data for the journal.

    Parameters
    ----------
    progress : list
        Fields of :class:`JobProgress` of every lease, those that ended included.
    ended : list
        Fields of :class:`LeaseOutcome` of leases that are over.
    unplaced : list of int
        Rows that the policy started, but that got no devices.
    confirmed : list of (int, int, int)
        Row and epoch of leases that were over before, and whose processes are gone now; the step
        that their job has committed.
    withdrawn : list of int
        Rows of waiting jobs that are over: cancelled, or finished while they were being stopped.
    cancelled : list of int
        Those of the unplaced and the withdrawn that a person cancelled.
    returned : list of int
        Rows that may run again.
    lost : list of str
        Nodes that do not answer.
    missing : list of str
        Uuids of devices that were not found again when the run was resumed.
    """

    progress: list[Any]
    ended: list[Any]
    unplaced: list[int]
    confirmed: list[Any]
    withdrawn: list[int]
    cancelled: list[int]
    returned: list[int]
    lost: list[str]
    missing: list[str]

    @classmethod
    def from_record(cls, data: Mapping[str, Any]) -> HostEvents:
        """Inverse of ``dataclasses.asdict``."""
        return cls(**{field.name: data[field.name] for field in fields(cls)})


_CLEAN = frozenset({0, 75, 143, -15})
"""Exit codes after which a command's own checkpoint folder is taken for whole."""


class EventCollector:
    """The live half of real hosts: nothing of it runs while a record is replayed."""

    def __init__(self, run: RealRun) -> None:
        self.run = run
        self._announced: set[tuple[int, int]] = set()
        self._stepped_s = self._sampled_s = -math.inf
        self._stuck_s = math.inf
        self._turned_s = -math.inf

    def take_over(self) -> None:
        """Adopt what another driver may have started."""
        run = self.run
        leases = run.leases()
        now_s = run.clock.now_s()
        for lease in leases:
            # What the driver before saw of it is not known: patience begins again.
            lease.moved_s = now_s
        told = run.ledger.leases_with("running")
        self._announced = {
            (lease.row, lease.epoch)
            for lease in leases
            if (run.tracked[lease.row].job.name, lease.epoch) in told
        }
        run.watch.host.adopt([order for lease in leases for order in lease.orders])
        run.watch.look(leases)

    def wait(self, until_s: float) -> float:
        """Wait until there is something for a turn, at the latest until a time."""
        while True:
            now_s = self._look()
            if self._happened(now_s):
                return now_s
            if now_s >= until_s:
                return until_s
            if until_s == math.inf and not self._expected():
                return math.inf
            self._mind_standstill(now_s, until_s)
            self._sleep(now_s, until_s)

    def sleep_until(self, due_s: float) -> float:
        """Look after all leases until a time."""
        while (now_s := self._look()) < due_s:
            self._sleep(now_s, due_s)
        return now_s

    def collect(self, now_s: float) -> HostEvents:
        """Put what happened into a turn, and write it down."""
        run = self.run
        self._turned_s = run.clock.now_s()
        run.record.nodes(run.devices.lost, run.watch.lost)
        run.record.missing(run.devices.missing, run.watch.missing)
        # First, for what follows tells of later leases of the same jobs.
        confirmed = self._confirmed()
        progress, ended = [], []
        for tracked in run.tracked:
            lease = tracked.lease
            if lease is None:
                continue
            progress.append(astuple(self.measure(tracked, lease, now_s)))
            if run.watch.over(lease):
                ended.append(self.conclude(tracked, lease, now_s))
        withdrawn = [
            tracked.row
            for tracked in run.tracked
            if tracked.view == WAITING and (tracked.over or tracked.cancel)
        ]
        unplaced = [
            tracked.row
            for tracked in run.tracked
            if tracked.view == RUNNING and tracked.lease is None
        ]
        cancelled = [
            row
            for row in (*withdrawn, *unplaced)
            if run.tracked[row].cancel and not run.tracked[row].over
        ]
        for row in cancelled:
            run.record.cancelled(run.tracked[row], now_s)
        return HostEvents(
            progress=progress,
            ended=[astuple(what) for what in ended],
            unplaced=unplaced,
            confirmed=confirmed,
            withdrawn=withdrawn,
            cancelled=cancelled,
            returned=self._returned(ended, set(unplaced) - set(cancelled), now_s),
            lost=sorted(run.watch.lost),
            missing=sorted(run.watch.missing),
        )

    def measure(self, tracked: JobRecord, lease: HeldLease, now_s: float) -> JobProgress:
        """Progress of a lease, written down."""
        run = self.run
        progress = run.measuring.progress(tracked, lease, now_s)
        run.record.progress(lease, progress, run.measuring, now_s)
        return progress

    def conclude(
        self, tracked: JobRecord, lease: HeldLease, now_s: float, *, at_once: bool = False
    ) -> LeaseOutcome:
        """Determine and record the outcome of a lease that is over.

        Parameters
        ----------
        at_once : bool
            Whether the job, unless it is over, waits from now on even if it failed.
        """
        run = self.run
        end = lease_ending(lease) if lease.gone else None
        step = self._committed(tracked, lease, end)
        what = conclude(tracked, lease, end, step, now_s, run.limits)
        if at_once and not what.over:
            what = replace(what, return_s=now_s)
        run.record.ended(lease, end, what, now_s)
        return what

    def _look(self) -> float:
        run = self.run
        leases = run.leases()
        now_s = run.watch.look(leases)
        for lease in leases:
            if lease.running_s < math.inf and (lease.row, lease.epoch) not in self._announced:
                self._announced.add((lease.row, lease.epoch))
                run.record.running(lease)
        if now_s - self._stepped_s >= STEPS_S:
            self._stepped_s = now_s
            run.record.steps(run.held())
        if now_s - self._sampled_s >= max(run.orders.checkpoint_s, SAMPLE_S):
            self._sampled_s = now_s
            run.record.samples(run.held(), run.measuring, now_s)
        wanted = set(run.ledger.cancelled())
        for tracked in run.tracked:
            if tracked.job.name in wanted and not tracked.over and not tracked.cancel:
                tracked.cancel = True
                if tracked.lease is not None:
                    run.watch.stop([tracked.lease], "cancelled")
        return now_s

    def _sleep(self, now_s: float, until_s: float) -> None:
        wait_s = min(self.run.limits.poll_s, until_s - now_s)
        for tracked in self.run.tracked:
            # Who has come back already waits for the end of the round, as everybody does.
            if now_s < tracked.return_s < now_s + wait_s:
                wait_s = max(tracked.return_s - now_s, 0.001)
        self.run.clock.sleep(wait_s)

    def _happened(self, now_s: float) -> bool:
        """True if there is something for a turn."""
        run = self.run
        if run.watch.lost != run.devices.lost or run.watch.missing != run.devices.missing:
            return True
        return any(self._news(tracked, now_s) for tracked in run.tracked)

    def _news(self, tracked: JobRecord, now_s: float) -> bool:
        if any(lease.gone for lease in tracked.written_off):
            return True
        if tracked.view == RUNNING and tracked.lease is None:
            # It got no devices: the policy may want the same again and again.
            limits = self.run.limits
            return now_s >= self._turned_s + max(limits.back_off_s, limits.poll_s)
        if tracked.view == RUNNING:
            return tracked.lease is not None and self.run.watch.over(tracked.lease)
        if tracked.view == WAITING:
            return bool(tracked.over) or tracked.cancel
        return tracked.return_s <= now_s

    def _expected(self) -> bool:
        """True if anything can still happen by itself."""
        tracked = self.run.tracked
        if all(one.over for one in tracked):
            return False
        if self.run.leases() or any(one.return_s < math.inf for one in tracked):
            return True
        if any(one.view == RUNNING for one in tracked):
            return True
        return bool(self.run.watch.lost) and any(one.view == WAITING for one in tracked)

    def _mind_standstill(self, now_s: float, until_s: float) -> None:
        """Give up when jobs wait for nodes that do not come back."""
        tracked = self.run.tracked
        aside = bool(self.run.watch.lost) or any(one.written_off for one in tracked)
        stuck = (until_s == math.inf or aside) and all(one.lease is None for one in tracked)
        stuck = stuck and all(one.return_s == math.inf for one in tracked)
        # Neither is anybody still to arrive.
        stuck = stuck and all(one.over or one.view != ABSENT for one in tracked)
        self._stuck_s = min(self._stuck_s, now_s) if stuck else math.inf
        if now_s - self._stuck_s > self.run.limits.node_s:
            waiting = sum(one.view == WAITING for one in tracked)
            lost = ", ".join(sorted(self.run.watch.lost)) or "devices that are kept aside"
            raise HostError(
                f"{waiting} jobs wait for {lost} since {self.run.limits.node_s:g} s; bring them back and "
                "run the same command again"
            )

    def _committed(self, tracked: JobRecord, lease: HeldLease, end: Ending | None) -> int:
        """Step from which the job goes on; its own folder of checkpoints is adopted if whole."""
        directory = self.run.orders.job_directory(tracked.job.name)
        clean = end is not None and end.code in _CLEAN and not end.forced
        if clean and tracked.job.keeps_checkpoints:
            plain_checkpoints.adopt(directory, lease.epoch)
        if end is not None and end.kind is Kind.FINISHED:
            return lease.target
        return committed_by(lease, directory)

    def _confirmed(self) -> list[tuple[int, int, int]]:
        """Leases that were written off and are gone now, and the step from which their jobs go on."""
        found = []
        for tracked in self.run.tracked:
            step = tracked.step
            for lease in tracked.written_off:
                if lease.gone:
                    end = lease_ending(lease)
                    # Until another lease was granted, it could still commit.
                    step = max(step, reported_commit(lease))
                    self.run.record.confirmed(lease, end, step)
                    found.append((tracked.row, lease.epoch, step))
        return found

    def _returned(
        self, ended: Iterable[LeaseOutcome], unplaced: Iterable[int], now_s: float
    ) -> list[int]:
        """Jobs that may run again: at once after a preemption, later after a failure."""
        rows = [what.row for what in ended if what.return_s <= now_s]
        rows += [row for row in sorted(unplaced) if not self.run.tracked[row].over]
        for tracked in self.run.tracked:
            if tracked.view == ABSENT and tracked.return_s <= now_s:
                rows.append(tracked.row)
        return rows
