"""Real hosts as the engine sees them: decisions become leases, ends of leases become events.

Every answer to the engine is asked of the journal, which has it recorded or made by
:class:`.LiveHosts`. Then the records of jobs, leases and devices follow from the answer alone, so
that a driver that takes a run over has those of the one before it where the answers end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext

from shadowprice.hosts.lease_amounts import GrantedAmounts
from shadowprice.hosts.live.graphs.replicas import PlacedReplicas
from shadowprice.hosts.live.lease import ABSENT, RUNNING, WAITING, HeldLease, JobRecord
from shadowprice.hosts.live.live_hosts import HostEvents, LiveHosts, StoppedRun
from shadowprice.hosts.live.measuring import JobProgress
from shadowprice.hosts.live.outcomes.lease_outcome import CANCELLED, FAILED, LeaseOutcome
from shadowprice.hosts.live.replay import Journal
from shadowprice.hosts.live.run import RealRun
from shadowprice.hosts.protocol import Device
from shadowprice.instances.features import Feature
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.terms.effect import NO_FIELDS, Fields, Pieces
from shadowprice.solvers.policy import Decision, State


class RealHosts:
    """The hosts of the engine of a real run.

    Parameters
    ----------
    run : RealRun
        What is run, where, and what is known of it.
    """

    next_end_s = math.inf
    """Nobody knows when a real run ends: ends come with the events."""

    def __init__(self, run: RealRun) -> None:
        self.run = run
        self.live = LiveHosts(run)
        self._arrived: list[JobRecord] = []
        self.journal = Journal(
            run.ledger, self.live.observer.keep_alive, self.live.observer.take_over
        )

    def await_event(self, until_s: float) -> float:
        """Wait until something happens, at the latest until a time; infinity if nothing will."""
        # That nothing will is not written down: jobs that were given up may be taken up again.
        return self.journal.ask(
            "await",
            float,
            lambda: nullcontext(self.live.wait(until_s)),
            unless=math.inf,
            with_next=True,
        )

    def await_time(self, due_s: float) -> float:
        """Wait until a time; returns the time it is."""
        return self.journal.ask(
            "time", float, lambda: nullcontext(self.live.sleep_until(due_s)), with_next=True
        )

    def events(self, now_s: float) -> HostEvents:
        """Events since the last time that they were asked for."""
        found = self.journal.ask("events", HostEvents, lambda: self.live.events(now_s))
        self._take_in(found, now_s)
        return found

    def admit(self, rows: Sequence[int]) -> None:
        """Jobs arrive; they are written down with the decision that sees them, at once."""
        arrived = [self.run.tracked[row] for row in rows]
        for tracked in arrived:
            tracked.view = WAITING
        self.journal.act(lambda: self._arrived.extend(arrived))

    def decided(self, state: State, decision: Decision, cpu_s: float) -> None:
        """Write a decision down, with the reasons why jobs wait that can be seen from outside."""
        self.journal.act(lambda: self._write_decided(state, decision, cpu_s))

    def _write_decided(self, state: State, decision: Decision, cpu_s: float) -> None:
        with self.run.ledger.transaction():
            for tracked in self._arrived:
                self.run.record.arrived(tracked)
            self._arrived.clear()
            self.live.decided(state, decision, cpu_s)

    def prepare(self, stops: Sequence[int]) -> None:
        """Ask all leases that a decision stops to end, so that they do so at the same time."""
        if stops:
            self.journal.act(lambda: self.live.ask_stop(stops))

    def has_free(self, job: int, pieces: Pieces, fields: Fields) -> bool:
        """True if there are free devices for pieces of a job, with their CPUs and memory."""
        devices = self.run.devices
        return devices.has_amounts(self._amounts(job, pieces, fields).by_node) and all(
            devices.find(node, count) for node, count in pieces
        )

    def _amounts(self, job: int, pieces: Pieces, fields: Fields) -> GrantedAmounts:
        return self.run.amounts.of(job, pieces, fields.get(Feature.PROFILES))

    @contextmanager
    def applying(self, stops: Sequence[int]) -> Iterator[None]:
        """Write down at once all that a decision changes; carry its starts out after that.

        Where a record ends in the middle of a decision, what it lacks is written one by one.
        """
        with ExitStack() as stack:
            self.journal.act(lambda: stack.enter_context(self.live.applying(stops)))
            yield
        self.live.start_granted()

    @contextmanager
    def stopped(self, stops: Sequence[int], until_s: float) -> Iterator[list[int]]:
        """Wait until some stops are over, at the latest until a time; those that are.

        That they are, and what is done about it inside, is written down at once; starts are carried
        out after that.
        """
        with ExitStack() as stack:
            yield self.journal.ask(
                "stopped",
                list[int],
                lambda: nullcontext(stack.enter_context(self.live.stopped(stops, until_s))),
            )
        self.live.start_granted()

    def start(
        self, job: int, pieces: Pieces, now_s: float, fields: Fields = NO_FIELDS
    ) -> tuple[float, float]:
        """Grant a lease. One for which no devices are free is over with the next events."""
        tracked, amounts = self.run.tracked[job], self._amounts(job, pieces, fields)
        partner = fields.get(Feature.SHARING, ALONE)
        call = f"start {job} {list(map(list, pieces))} {partner}"
        if amounts.chosen is not None:
            call = f"{call} {list(map(list, amounts.by_node.values()))}"
        replicas = self.run.measuring.placed(tracked, fields.get(Feature.GRAPHS))
        if replicas is not None:
            call = f"{call} {[list(stages) for _, stages in replicas.mapping]}"
        epoch, uuids = self.journal.ask(
            call,
            tuple[int, list[str]],
            lambda: self.live.grant(tracked, pieces, partner, amounts, replicas),
        )
        tracked.mapping = None if replicas is None else replicas.mapping
        tracked.view, tracked.pieces, tracked.epoch = RUNNING, pieces, epoch
        if not uuids:
            return now_s, 1.0
        devices = self.run.devices.named(uuids)
        tracked.lease = self._lease(tracked, devices, partner, amounts, replicas, now_s)
        return now_s, tracked.lease.rate

    def _lease(
        self,
        tracked: JobRecord,
        devices: tuple[Device, ...],
        partner: int,
        amounts: GrantedAmounts,
        replicas: PlacedReplicas | None,
        now_s: float,
    ) -> HeldLease:
        """A lease that was granted, whose devices are held from now on."""
        run, epoch = self.run, tracked.epoch
        # Later than the end of the round, if there was much to do at it.
        granted_s = max(now_s, run.clock.now_s())
        run.devices.hold(devices, (tracked.job.name, epoch), amounts.by_node)
        orders = run.orders.orders(
            tracked.job,
            epoch,
            devices,
            shared=partner != ALONE,
            amounts=amounts,
            replicas=replicas,
        )
        return HeldLease(
            tracked.row,
            epoch,
            tracked.pieces,
            devices,
            orders,
            from_step=tracked.step,
            target=tracked.job.iterations,
            granted_s=granted_s,
            rate=run.measuring.prior_rate(
                tracked.row, tracked.pieces, partner, amounts.chosen, tracked.mapping
            ),
            partner=partner,
            synced_s=now_s,
            moved_s=granted_s,
            step=tracked.step,
            done_exit_code=tracked.job.done_exit_code,
            reports=tracked.reports or tracked.step > 0,
            amounts=amounts.by_node,
            chosen_amounts=amounts.chosen,
            replicas=replicas,
        )

    def stop(self, job: int, now_s: float) -> tuple[float, float, float]:
        """End a lease and wait until its devices are free, or known not to be."""
        tracked = self.run.tracked[job]
        lease, ran_s = tracked.lease, 0.0
        if lease is not None:
            stopped = self.journal.ask(
                f"stop {job}", StoppedRun, lambda: self.live.stop(lease, now_s)
            )
            self._advance(lease, stopped.progress, now_s)
            ran_s = stopped.progress.ran_s
            self._conclude(stopped.outcome)
        # For the policy it waits from now on, whatever became of the lease.
        tracked.view, tracked.return_s = WAITING, math.inf
        return ran_s, self.left_s(tracked), 0.0

    def continue_run(
        self, job: int, fields: Fields, at_s: float
    ) -> tuple[float, float, float, float]:
        """A lease has another partner, or none, from now on."""
        tracked, partner = self.run.tracked[job], fields[Feature.SHARING]
        lease = tracked.lease
        if lease is None:
            return 0.0, self.left_s(tracked), at_s, 1.0
        progress = self.journal.ask(
            f"continue {job} {partner}",
            JobProgress,
            lambda: self.live.continue_run(lease, partner, at_s),
        )
        self._advance(lease, progress, at_s)
        lease.partner = partner
        lease.rate = self.run.measuring.prior_rate(
            job, lease.pieces, partner, lease.chosen_amounts, lease.mapping
        )
        return progress.ran_s, progress.left_s, lease.synced_s, lease.rate

    def left_s(self, tracked: JobRecord) -> float:
        """Work left of a job that does not run, as run time on its fastest type [s]."""
        return self.run.measuring.left_s(tracked)

    def steps_of(self, progress: JobProgress) -> float:
        """Steps that a lease has come to: those that it reports, else by its time."""
        if progress.reported:
            return progress.step
        return self.run.measuring.steps_done(self.run.tracked[progress.row])

    def finish_next(self) -> tuple[int, float, Pieces]:
        """Never called: no end is known before it happened."""
        raise AssertionError("ends of real runs come with the events")

    def end_s(self, job: int) -> float:
        """End of a lease [s], infinity while it runs."""
        lease = self.run.tracked[job].lease
        return -math.inf if lease is None else math.inf

    def _take_in(self, events: HostEvents, now_s: float) -> None:
        """Bring the records of jobs, leases and devices up to date with events."""
        run = self.run
        for progress in events.progress:
            lease = run.tracked[progress.row].lease
            assert lease is not None
            self._advance(lease, progress, now_s)
        # As they were written down: before what is known of later leases of the same jobs.
        for row, epoch, step in events.confirmed:
            self._confirm(row, epoch, step)
        for outcome in events.ended:
            self._conclude(outcome)
            run.tracked[outcome.row].view = ABSENT
        for row in (*events.unplaced, *events.withdrawn):
            run.tracked[row].view = ABSENT
        for how, rows in ((CANCELLED, events.cancelled), (FAILED, events.refused)):
            for row in rows:
                run.tracked[row].over, run.tracked[row].return_s = how, math.inf
        for row in events.retried:
            run.take_up(row)
        for row in events.returned:
            run.tracked[row].view, run.tracked[row].return_s = WAITING, math.inf
        run.devices.lost, run.devices.missing = set(events.lost), frozenset(events.missing)
        for number in events.submitted:
            self._take(number)

    def _take(self, number: int) -> None:
        """A job that was added is known from now on; it arrives in its turn."""
        run = self.run
        arrival = run.arrivals.take(number, run.measuring.instance)
        tracked = JobRecord(len(run.tracked), arrival.job, unreadable=arrival.unreadable)
        run.tracked.append(tracked)
        run.amounts.add(arrival.job)
        run.measuring.grow(arrival.instance)
        for text in arrival.notes:
            self.journal.act(lambda text=text: run.record.note("note", text=text))  # type: ignore[misc]

    def _advance(self, lease: HeldLease, progress: JobProgress, now_s: float) -> None:
        """The engine knows of this progress."""
        tracked = self.run.tracked[lease.row]
        self.run.measuring.count(lease, progress)
        tracked.reports = tracked.reports or progress.reported
        if not progress.reported:
            tracked.estimated_s += progress.ran_s * progress.rate
        # The end of a partner may become known later than what came after it.
        lease.stepping_s = min(lease.stepping_s, progress.stepping_s)
        lease.rate, lease.synced_s = progress.rate, max(now_s, lease.synced_s)

    def _conclude(self, outcome: LeaseOutcome) -> None:
        """A lease is over."""
        tracked = self.run.tracked[outcome.row]
        lease, tracked.lease = tracked.lease, None
        assert lease is not None
        self.run.release(lease, confirmed=outcome.confirmed)
        self.run.conclude(outcome)

    def _confirm(self, row: int, epoch: int, step: int) -> None:
        """The processes of a lease that was written off are gone."""
        self.run.tracked[row].step = step
        self.run.confirm(row, epoch)
