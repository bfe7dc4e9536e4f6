"""Real hosts as the engine sees them: decisions become leases, ends of leases become events.

Every answer to the engine is asked of the journal, which has it recorded or made by
:class:`.LiveHosts`. Then the records of jobs, leases and devices follow from the answer alone, so
that a driver that takes a run over has those of the one before it where the answers end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from shadowprice.hosts.lease_cpu_memory import LeaseCpuMemory
from shadowprice.hosts.live.lease import (
    ABSENT,
    RUNNING,
    WAITING,
    HeldLease,
    JobRecord,
    LeaseGrant,
    LeaseOutcome,
    LeaseProgress,
)
from shadowprice.hosts.live.live_hosts import HostEvents, LiveHosts
from shadowprice.hosts.live.measuring import JobProgress
from shadowprice.hosts.live.replay import Journal
from shadowprice.hosts.live.run import RealRun
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
            "await", float, lambda: self.live.wait(until_s), unless=math.inf, with_next=True
        )

    def await_time(self, due_s: float) -> float:
        """Wait until a time; returns the time it is."""
        return self.journal.ask("time", float, lambda: self.live.sleep_until(due_s), with_next=True)

    def events(self, now_s: float) -> HostEvents:
        """Events since the last time that they were asked for."""
        events = self.journal.ask("events", HostEvents, lambda: self.live.events(now_s))
        self._take_in(events, now_s)
        return events

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
                self.run.events.arrived(tracked)
            self._arrived.clear()
            self.live.observer.decided(state, decision, cpu_s)

    def has_free(self, job: int, pieces: Pieces, fields: Fields) -> bool:
        """True if there are free devices for pieces of a job, with their CPUs and memory."""
        devices = self.run.devices
        return devices.has_cpu_memory(self._cpu_memory(job, pieces, fields).by_node) and all(
            devices.find(node, count) for node, count in pieces
        )

    def _cpu_memory(self, job: int, pieces: Pieces, fields: Fields) -> LeaseCpuMemory:
        return self.run.cpu_memory.of(job, pieces, fields.get(Feature.PROFILES))

    @contextmanager
    def stopped(self, stops: Sequence[int], until_s: float) -> Iterator[list[int]]:
        """Wait until some stops are over, at the latest until a time; those that are. Infinity waits for all.

        That they are, and what is done about it inside, is written down at once; starts are carried
        out after that. Where a record ends in the middle, what it lacks is written one by one.
        """
        over: list[int] = []
        self.journal.act(lambda: over.extend(self.live.wait_stops(stops, until_s)))
        with ExitStack() as stack:
            self.journal.act(lambda: stack.enter_context(self.run.ledger.transaction()))
            yield self.journal.ask("stopped", list[int], lambda: over)
        self.live.start_granted()

    def start(
        self, job: int, pieces: Pieces, now_s: float, fields: Fields = NO_FIELDS
    ) -> tuple[float, float]:
        """Grant a lease. One for which no devices are free is over with the next events."""
        run, tracked = self.run, self.run.tracked[job]
        cpu_memory = self._cpu_memory(job, pieces, fields)
        call = f"start {job} {list(map(list, pieces))} {fields.get(Feature.SHARING, ALONE)}"
        if cpu_memory.chosen is not None:
            call = f"{call} {list(map(list, cpu_memory.by_node.values()))}"
        replicas = run.measuring.placed(job, fields.get(Feature.GRAPHS))
        if replicas is not None:
            call = f"{call} {[list(stages) for _, stages in replicas.mapping]}"
        epoch, uuids = self.journal.ask(
            call,
            tuple[int, list[str]],
            lambda: self.live.grant(tracked, pieces, fields, cpu_memory, replicas),
        )
        tracked.view, tracked.epoch = RUNNING, epoch
        if not uuids:
            return now_s, 1.0
        devices = run.devices.named(uuids)
        orders = run.launch_specs.build(
            tracked.job,
            epoch,
            devices,
            shared=fields.get(Feature.SHARING, ALONE) != ALONE,
            cpu_memory=cpu_memory,
            replicas=replicas,
        )
        # Later than the end of the round, if there was much to do at it.
        granted_s = max(now_s, run.clock.now_s())
        held = (cpu_memory.by_node, replicas)
        lease = HeldLease(
            LeaseGrant(
                job, tracked.job, epoch, pieces, devices, orders, tracked.step, granted_s, *held
            ),
            LeaseProgress(
                run.measuring.prior_rate(job, pieces, fields),
                tracked.step,
                now_s,
                granted_s,
                reports=tracked.reports or tracked.step > 0,
            ),
            fields,
        )
        run.devices.hold(lease)
        tracked.lease = lease
        return now_s, lease.progress.rate

    def stop(self, job: int, now_s: float) -> tuple[float, float, float]:
        """End a lease and wait until its devices are free, or known not to be."""
        tracked = self.run.tracked[job]
        lease, ran_s = tracked.lease, 0.0
        if lease is not None:
            self.journal.act(lambda: self.live.wait_stops([job], math.inf))
            progress, outcome = self.journal.ask(
                f"stop {job}",
                tuple[JobProgress, LeaseOutcome],
                lambda: self.live.stop(lease, now_s),
            )
            self.run.advance(lease, progress, now_s)
            ran_s = progress.ran_s
            self.run.conclude(outcome)
        # For the policy it waits from now on, whatever became of the lease.
        tracked.view, tracked.return_s = WAITING, math.inf
        return ran_s, self.run.measuring.left_s(tracked), 0.0

    def continue_run(
        self, job: int, fields: Fields, at_s: float
    ) -> tuple[float, float, float, float]:
        """A lease has another partner, or none, from now on."""
        tracked, partner = self.run.tracked[job], fields[Feature.SHARING]
        lease = tracked.lease
        if lease is None:
            return 0.0, self.run.measuring.left_s(tracked), at_s, 1.0
        progress = self.journal.ask(
            f"continue {job} {partner}",
            JobProgress,
            lambda: self.live.continue_run(lease, partner, at_s),
        )
        self.run.advance(lease, progress, at_s)
        lease.fields = {**lease.fields, Feature.SHARING: partner}
        rate = self.run.measuring.prior_rate(job, lease.grant.pieces, lease.fields)
        lease.progress.rate = rate
        return progress.ran_s, progress.left_s, lease.progress.synced_s, rate

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
            run.advance(lease, progress, now_s)
        # As they were written down: before what is known of later leases of the same jobs.
        for confirmed in events.confirmed:
            run.confirm(*confirmed)
        for outcome in events.ended:
            run.conclude(outcome)
            run.tracked[outcome.row].view = ABSENT
        for row, over in events.left:
            tracked = run.tracked[row]
            tracked.view = ABSENT
            if over:
                tracked.over, tracked.return_s = over, math.inf
        for row in events.returned:
            tracked = run.tracked[row]
            if tracked.over:
                run.retry(row)
            tracked.view, tracked.return_s = WAITING, math.inf
        run.devices.lost, run.devices.missing = set(events.lost), frozenset(events.missing)
        for number in events.submitted:
            for text in run.take(number):
                self.journal.act(partial(run.events.note, "note", text=text))
