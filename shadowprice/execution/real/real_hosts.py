"""Real hosts as the engine sees them: decisions become leases, ends of leases become events.

Every answer to the engine goes through the journal. A method first obtains its answer, recorded or
new, and then brings its books up to date from the answer alone, so that a driver that takes a run
over has the books of the one before it where the record ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple
from typing import Any

from shadowprice.execution.real.event_log import told
from shadowprice.execution.real.granting import Grants
from shadowprice.execution.real.host_events import EventCollector, HostEvents
from shadowprice.execution.real.lease import ABSENT, RUNNING, WAITING, HeldLease, JobRecord
from shadowprice.execution.real.lease_outcome import CANCELLED, LeaseOutcome
from shadowprice.execution.real.measuring import JobProgress
from shadowprice.execution.real.replay import Journal, Resuming
from shadowprice.execution.real.run import RealRun
from shadowprice.instances.schedule import ALONE
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, State


class RealHosts:
    """The hosts of the engine of a real run.

    Parameters
    ----------
    run : Run
        What is run, where, and its books.
    """

    next_end_s = math.inf
    """Nobody knows when a real run ends: ends come with the turns."""

    def __init__(self, run: RealRun) -> None:
        self.run = run
        self.journal = Journal(run.ledger, Resuming(run).keep)
        self.sensing = EventCollector(run)
        # A turn tells the books what is missing: a policy that decides again did not know it then.
        run.watch.missing, run.devices.missing = run.devices.missing, frozenset()
        self.grants = Grants(run)
        self._live = False
        self._why: dict[str, str] = {}
        self._granted: list[HeldLease] = []

    def await_event(self, until_s: float) -> float:
        """Wait until something happens, at the latest until a time; infinity if nothing will."""
        if self.journal.replaying:
            return float(self.journal.next("await"))
        self._go_live()
        event_s = self.sensing.wait(until_s)
        self.journal.record("await", event_s)
        return event_s

    def await_time(self, due_s: float) -> float:
        """Wait until a time; returns the time it is."""
        if self.journal.replaying:
            return float(self.journal.next("time"))
        self._go_live()
        now_s = self.sensing.sleep_until(due_s)
        self.journal.record("time", now_s)
        return now_s

    def turn(self, now_s: float) -> HostEvents:
        """Events since the last turn."""
        run = self.run
        if self.journal.replaying:
            turn = HostEvents.from_record(self.journal.next("turn"))
        else:
            self._go_live()
            with run.ledger.transaction():
                turn = self.sensing.collect(now_s)
                self.journal.record("turn", asdict(turn))
        self._note(turn, now_s)
        return turn

    def admit(self, row: int) -> None:
        """A job arrives."""
        self.run.tracked[row].view = WAITING
        if not self.journal.replaying:
            self.run.record.arrived(self.run.tracked[row])

    def decided(self, state: State, decision: Decision, cpu_s: float) -> None:
        """Write a decision down, with the reasons why jobs wait that can be seen from outside."""
        if self.journal.replaying:
            return
        data, why = told(self.run.tracked, state, decision, cpu_s)
        if data["starts"] or data["stops"] or why != self._why:
            self._why = why
            self.run.record.decided(data, why)

    def prepare(self, stops: Sequence[int]) -> None:
        """Ask all leases that a decision stops to end, so that they do so at the same time."""
        if self.journal.replaying or not stops:
            return
        self._go_live()
        leases = [lease for row in stops if (lease := self.run.tracked[row].lease) is not None]
        self._ask(leases)

    @contextmanager
    def applying(self, stops: Sequence[int]) -> Iterator[None]:
        """Write down at once all that a decision changes; carry its starts out after that.

        Where a record ends in the middle of a decision, what it lacks is written one by one.
        """
        run = self.run
        if self.journal.replaying:
            yield
        else:
            self._go_live()
            for lease in [run.tracked[row].lease for row in stops]:
                if lease is not None:
                    run.watch.wait_for(lease, run.leases())
            with run.ledger.transaction():
                yield
        granted, self._granted = self._granted, []
        for position, lease in enumerate(granted):
            # Starting many takes long. Those that are still to be started nobody knows yet.
            later = {other.keys for other in granted[position:]}
            run.watch.renew([each for each in run.leases() if each.keys not in later])
            self.grants.start(lease)

    def start(
        self, job: int, pieces: Pieces, now_s: float, partner: int = ALONE
    ) -> tuple[float, float]:
        """Grant a lease. One for which no devices are free is seen to be over in the next turn."""
        run, tracked = self.run, self.run.tracked[job]
        call = f"start {job} {list(map(list, pieces))} {partner}"
        orders = None
        if self.journal.replaying:
            epoch, uuids = self.journal.next(call)
        else:
            self._go_live()
            with run.ledger.transaction():
                epoch, uuids, orders = self.grants.grant(tracked, pieces, partner)
                self.journal.record(call, [epoch, uuids])
        tracked.view, tracked.pieces, tracked.epoch = RUNNING, pieces, epoch
        if not uuids:
            return now_s, 1.0
        lease = self.grants.lease(tracked, epoch, uuids, pieces, partner, now_s)
        if orders is not None:
            self._granted.append(lease)
        return now_s, lease.rate

    def stop(self, job: int, now_s: float) -> tuple[float, float, float]:
        """End a lease and wait until its devices are free, or known not to be."""
        run, tracked = self.run, self.run.tracked[job]
        lease = tracked.lease
        call = f"stop {job}"
        if self.journal.replaying:
            data = self.journal.next(call)
        else:
            self._go_live()
            if lease is not None:
                self._ask([lease])
                run.watch.wait_for(lease, run.leases())
            with run.ledger.transaction():
                data = self._stopped(tracked, lease, now_s)
                self.journal.record(call, data)
        ran_s = 0.0
        if lease is not None and data is not None:
            self._book(lease, JobProgress(*data["progress"]), now_s)
            ran_s = data["progress"][1]
            self._conclude(LeaseOutcome(**data["conclusion"]))
        # For the policy it waits from now on, whatever became of the lease.
        tracked.view, tracked.return_s = WAITING, math.inf
        return ran_s, self.left_s(tracked), 0.0

    def go_on(self, job: int, partner: int, at_s: float) -> tuple[float, float, float, float]:
        """A lease has another partner, or none, from now on."""
        run, tracked = self.run, self.run.tracked[job]
        lease = tracked.lease
        call = f"go on {job} {partner}"
        if self.journal.replaying:
            data = self.journal.next(call)
        else:
            self._go_live()
            with run.ledger.transaction():
                data = self._went_on(tracked, lease, partner, at_s)
                self.journal.record(call, data)
        if lease is None or data is None:
            return 0.0, self.left_s(tracked), at_s, 1.0
        progress = JobProgress(*data)
        self._book(lease, progress, at_s)
        lease.partner = partner
        lease.rate = run.measuring.prior_rate(job, lease.pieces, partner)
        return progress.ran_s, progress.left_s, lease.synced_s, lease.rate

    def left_s(self, tracked: JobRecord) -> float:
        """Work left of a job that does not run, as run time on its fastest type [s]."""
        return self.run.measuring.left_s(tracked)

    def finish_next(self) -> tuple[int, float, Pieces]:
        """Never called: no end is known before it happened."""
        raise AssertionError("ends of real runs come with the turns")

    def end_s(self, job: int) -> float:
        """End of a lease [s], infinity while it runs."""
        lease = self.run.tracked[job].lease
        return -math.inf if lease is None else math.inf

    def _go_live(self) -> None:
        """Take over what runs, at the end of the record."""
        if not self._live:
            self._live = True
            self.sensing.take_over()

    def _ask(self, leases: Sequence[HeldLease]) -> None:
        fresh = [lease for lease in leases if not lease.stop_why and not lease.gone]
        self.run.watch.stop(fresh, "the policy stops it")
        with self.run.ledger.transaction():
            for lease in fresh:
                self.run.record.stop_asked(lease)

    def _stopped(
        self, tracked: JobRecord, lease: HeldLease | None, now_s: float
    ) -> dict[str, Any] | None:
        if lease is None:
            return None
        progress = self.sensing.measure(tracked, lease, now_s)
        conclusion = self.sensing.conclude(tracked, lease, now_s, at_once=True)
        return {"progress": astuple(progress), "conclusion": asdict(conclusion)}

    def _went_on(
        self, tracked: JobRecord, lease: HeldLease | None, partner: int, at_s: float
    ) -> tuple[Any, ...] | None:
        if lease is None:
            return None
        progress = self.sensing.measure(tracked, lease, at_s)
        self.run.record.partner(lease, partner)
        return astuple(progress)

    def _note(self, turn: HostEvents, now_s: float) -> None:
        """Bring the books up to date with a turn."""
        run = self.run
        for data in turn.progress:
            progress = JobProgress(*data)
            lease = run.tracked[progress.row].lease
            assert lease is not None
            self._book(lease, progress, now_s)
        # As it was written down: before what is told of later leases of the same jobs.
        for row, epoch, step in turn.confirmed:
            self._confirm(run.tracked[row], epoch, step)
        for what in turn.ended:
            conclusion = LeaseOutcome(*what)
            self._conclude(conclusion)
            run.tracked[conclusion.row].view = ABSENT
        for row in (*turn.unplaced, *turn.withdrawn):
            run.tracked[row].view = ABSENT
        for row in turn.cancelled:
            run.tracked[row].over, run.tracked[row].return_s = CANCELLED, math.inf
        for row in turn.returned:
            run.tracked[row].view, run.tracked[row].return_s = WAITING, math.inf
        run.devices.lost, run.devices.missing = set(turn.lost), frozenset(turn.missing)

    def _book(self, lease: HeldLease, progress: JobProgress, now_s: float) -> None:
        """The engine was told of this progress."""
        tracked = self.run.tracked[lease.row]
        self.run.measuring.count(lease, progress)
        if not progress.reported:
            tracked.estimated_s += progress.ran_s * progress.rate
        # The end of a partner may be told later than what came after it.
        lease.stepping_s = min(lease.stepping_s, progress.stepping_s)
        lease.rate, lease.synced_s = progress.rate, max(now_s, lease.synced_s)

    def _conclude(self, what: LeaseOutcome) -> None:
        """A lease is over."""
        tracked = self.run.tracked[what.row]
        lease = tracked.lease
        assert lease is not None
        holder = (tracked.job.name, lease.epoch)
        if what.confirmed:
            self.run.devices.free(lease.devices, holder)
        else:
            self.run.devices.write_off(lease.devices, holder)
            tracked.written_off.append(lease)
            lease.given_up = True
        tracked.lease = None
        tracked.step, tracked.tries, tracked.over = what.step, what.tries, what.over
        tracked.return_s = what.return_s

    def _confirm(self, tracked: JobRecord, epoch: int, step: int) -> None:
        """The processes of a lease that was written off are gone."""
        tracked.step = step
        for lease in [lease for lease in tracked.written_off if lease.epoch == epoch]:
            tracked.written_off.remove(lease)
            self.run.devices.free(lease.devices, (tracked.job.name, epoch))
