"""The live half of a real run of copies: what is seen, planned, averaged and written down.

Nothing here runs while a record is read, but for the renewal of what runs. Events of copies are
those of other leases, with the number of the copy. The last committed step of a job grows with each
copy that is released by what that copy added to it; all of these are written at once, after the
average was committed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager

from shadowprice.execution.copies.hadare import HadarE
from shadowprice.hosts.live.copies.leases import CopyLeases
from shadowprice.hosts.live.copies.outcome import ROUND_ENDS, conclude_round
from shadowprice.hosts.live.copies.plan import Candidate, CopyPlan
from shadowprice.hosts.live.copies.rates import MeasuredCopy
from shadowprice.hosts.live.copies.rounds import (
    Copy,
    CopyGrant,
    CountedCopies,
    JobRound,
    RoundEvents,
    RoundOutcome,
    RoundStart,
    contributes,
)
from shadowprice.hosts.live.copies.state import CopyState
from shadowprice.hosts.live.lease import JobRecord
from shadowprice.hosts.live.measuring import timed
from shadowprice.hosts.live.observer import RunObserver
from shadowprice.hosts.live.outcomes.lease_outcome import FAILED, FINISHED, lease_ending


class LiveCopies:
    """Acts on hosts, and sees what becomes of copies.

    Parameters
    ----------
    round_s : float
        Length of a round [s].
    averaging : Executor
        Where averages are made, so that leases are looked after meanwhile.
    """

    def __init__(
        self,
        state: CopyState,
        leases: CopyLeases,
        policy: HadarE,
        round_s: float,
        averaging: Executor,
    ) -> None:
        self.run, self.state, self.leases = state.run, state, leases
        self.policy, self.round_s = policy, round_s
        self.observer = RunObserver(state.run)
        self._averaging = averaging
        self._averages: dict[int, Future[str]] = {}
        self._granted: list[CopyGrant] = []

    def take_over(self) -> None:
        """Adopt what another driver may have started, and remove the folders that it left."""
        self.observer.take_over()
        self.clean()

    def clean(self) -> None:
        """Remove the folders of copies that are over."""
        for tracked in self.run.tracked:
            self.leases.clean(tracked.row)

    def start_granted(self) -> None:
        """Carry out the grants that were written down."""
        granted, self._granted = self._granted, []
        for grant in granted:
            for lease in self.state.under_way[grant.row].leases:
                lease.unstarted = True
        for grant in granted:
            # Starting many takes long, and the others go on meanwhile.
            self.run.watch.renew(self.run.leases())
            self.leases.start(grant, self.state.under_way[grant.row].leases)

    @contextmanager
    def events(self) -> Iterator[RoundEvents]:
        """Wait until something happens, or a round begins, and write it down."""
        events, now_s = self._wait()
        with self.run.ledger.transaction():
            self._write(events, now_s)
            yield events

    def _wait(self) -> tuple[RoundEvents, float]:
        while True:
            now_s = self.observer.look()
            with self.run.ledger.transaction():
                self.observer.tell_drained()
            self._ask_stops(now_s)
            self._submit_averages()
            nothing = RoundEvents(sorted(self.run.devices.lost))
            events = self._collect(now_s)
            if events == nothing and not self.state.under_way:
                events = self._begin_round(now_s)
            if events != nothing:
                return events, now_s
            self._sleep(now_s)

    def _sleep(self, now_s: float) -> None:
        rounds = self.state.under_way.values()
        ends_s = [each.grant.end_s for each in rounds if each.grant.end_s > now_s]
        next_s = min(ends_s, default=(math.floor(now_s / self.round_s) + 1) * self.round_s)
        self.run.clock.sleep(max(min(self.run.limits.poll_s, next_s - now_s), 0.001))

    def _ask_stops(self, now_s: float) -> None:
        """Ask copies to stop when the round is over."""
        over = [each for each in self.state.under_way.values() if now_s >= each.grant.end_s]
        self.run.ask_stop([lease for each in over for lease in each.leases], ROUND_ENDS)

    def _submit_averages(self) -> None:
        """Average the copies that were counted."""
        for row, each in self.state.under_way.items():
            if each.counted is not None and any(each.counted.steps) and row not in self._averages:
                self._averages[row] = self._averaging.submit(
                    self.leases.average, each.grant, each.counted.steps
                )

    # What happened.

    def _collect(self, now_s: float) -> RoundEvents:
        run, state = self.run, self.state
        jobs = run.tracked
        return RoundEvents(
            lost=sorted(run.watch.lost),
            arrived=[
                job.row
                for job in jobs
                if job.row not in state.arrived and not job.over and job.job.arrival_s <= now_s
            ],
            confirmed=[
                (job.row, lease.epoch, lease.copy or 0)
                for job in jobs
                for lease in job.written_off
                if lease.gone
            ],
            withdrawn=[
                job.row
                for job in jobs
                if job.cancel and not job.over and job.row not in state.under_way
            ],
            retried=[job.row for job in jobs if job.retry and job.over == FAILED],
            counted=[
                self._count(each)
                for each in state.under_way.values()
                if each.counted is None and all(map(run.watch.over, each.leases))
            ],
            concluded=[
                self._conclude(each, each.counted, now_s)
                for row, each in list(state.under_way.items())
                if each.counted is not None and self._averaged(row, each.counted)
            ],
        )

    def _count(self, round_: JobRound) -> CountedCopies:
        """Decide what is averaged, before anything is."""
        grant, ends = round_.grant, tuple(map(lease_ending, round_.leases))
        for lease in round_.leases:
            self.observer.drain_unhealthy(lease)
        for k, end in enumerate(ends):
            if end is None:
                self.leases.bar(grant, k)
        steps = [
            self.leases.done(grant, k) if contributes(end) else 0 for k, end in enumerate(ends)
        ]
        return CountedCopies(grant.row, tuple(steps), ends)

    def _averaged(self, row: int, counted: CountedCopies) -> bool:
        return not any(counted.steps) or self._averages[row].done()

    def _conclude(self, round_: JobRound, counted: CountedCopies, now_s: float) -> RoundOutcome:
        run, row = self.run, counted.row
        trouble = self._averages.pop(row).result() if any(counted.steps) else ""
        end, outcome = conclude_round(run.tracked[row], round_, counted, trouble, now_s, run.limits)
        measured = [self._measured(round_, k) for k in range(len(round_.leases))]
        return RoundOutcome(end, outcome, measured)

    def _measured(self, round_: JobRound, k: int) -> MeasuredCopy:
        lease, copy = round_.leases[k], round_.grant.copies[k]
        began_s = lease.stepping_s - lease.granted_s
        start_s = began_s if lease.stepping_s < lease.ended_s else None
        return MeasuredCopy(lease.row, copy.node, copy.gpus, *timed(lease.report), start_s)

    # A round begins.

    def _begin_round(self, now_s: float) -> RoundEvents:
        """Begin the round of this time, unless there was one or it is half over."""
        events = RoundEvents(sorted(self.run.devices.lost))
        number = math.floor(now_s / self.round_s)
        began_s = number * self.round_s
        if number <= self.state.round or now_s - began_s > self.round_s / 2.0:
            return events
        waiting = [
            job
            for job in self.state.waiting()
            if job.job.arrival_s <= began_s and (job.return_s == math.inf or job.return_s <= now_s)
        ]
        if not waiting:
            return events
        end_s = began_s + self.round_s
        cpu_s = time.process_time()
        steps, plan = self._plan(waiting, now_s, end_s - now_s)
        cpu_s = time.process_time() - cpu_s
        self.observer.check_standstill(not plan, now_s, len(self.state.waiting()))
        jobs = self.run.tracked
        grants = [
            CopyGrant(row, jobs[row].epoch + 1, steps[row], jobs[row].step, now_s, end_s, copies)
            for row, copies in plan.items()
        ]
        if grants:
            return RoundEvents(events.lost, started=RoundStart(number, grants, cpu_s))
        self._decided([], cpu_s)
        return events

    def _plan(
        self, waiting: Sequence[JobRecord], now_s: float, length_s: float
    ) -> tuple[dict[int, int], dict[int, tuple[Copy, ...]]]:
        """The step from which each job goes on, and the copies of those that do.

        Checkpoints are looked at only where they are needed: if the last one of a job was damaged,
        it has more to do, and the plan is made again.
        """
        devices, drained = self.run.devices, self.run.watch.drained
        nodes = [
            k
            for k, node in enumerate(devices.nodes)
            if devices.find(k, len(node.devices))
            and drained.isdisjoint(device.uuid for device in node.devices)
        ]
        steps = {job.row: job.step for job in waiting}
        while True:
            candidates = [Candidate(job, steps[job.row]) for job in waiting]
            plan = CopyPlan(self.state, self.policy, candidates, nodes, length_s).copies(now_s)
            found = {row: self.leases.start_of(row) for row in plan}
            if all(steps[row] == step for row, step in found.items()):
                return steps, plan
            steps |= found

    def _reason(self, tracked: JobRecord) -> str:
        if tracked.return_s < math.inf and tracked.tries:
            return "waits before it is tried again"
        lost, drained = self.run.devices.lost, self.run.watch.drained
        if lost:
            return f"no node is left for it; {', '.join(sorted(lost))} do not answer"
        if drained:
            nodes = {self.run.devices.of_uuid[uuid].node for uuid in drained}
            return f"no node is left for it; {', '.join(sorted(nodes))} are drained"
        return "arrived during the round, or others are served first in it"

    # Writing it down.

    def _write(self, events: RoundEvents, now_s: float) -> None:
        """Write events into the ledger, in the transaction of the caller."""
        run, record = self.run, self.run.record
        record.nodes(run.devices.lost, frozenset(events.lost))
        for row in events.arrived:
            record.arrived(run.tracked[row])
        for row, epoch, copy in events.confirmed:
            self._write_confirmed(run.tracked[row], epoch, copy)
        for row in events.withdrawn:
            record.cancelled(run.tracked[row], now_s)
        for row in events.retried:
            record.retried(run.tracked[row])
        for concluded in events.concluded:
            self._write_concluded(self.state.under_way[concluded.outcome.row], concluded, now_s)
        if events.started is not None:
            self._write_started(events.started)

    def _write_confirmed(self, tracked: JobRecord, epoch: int, copy: int) -> None:
        (lease,) = [
            each for each in tracked.written_off if (each.epoch, each.copy) == (epoch, copy)
        ]
        end, own = lease_ending(lease), lease.from_step  # nothing of it was taken
        assert end is not None
        self.run.record.confirmed(lease, end, max(lease.step, own), tracked.step, own)

    def _write_concluded(self, round_: JobRound, concluded: RoundOutcome, now_s: float) -> None:
        run, outcome, counted = self.run, concluded.outcome, round_.counted
        assert counted is not None
        committed, gained = round_.grant.from_step, outcome.step > round_.grant.from_step
        for lease, end, count in zip(round_.leases, counted.ends, counted.steps, strict=True):
            if end is None:
                run.record.quarantined(lease)
                continue
            steps = count if gained else 0
            committed += steps
            made = lease.from_step + steps
            run.record.released(lease, end, max(lease.step, made), committed, made)
        for lease in round_.leases:
            window = run.measuring.window(lease, *timed(lease.report))
            if window is not None:
                run.record.observe(lease, window, run.measuring)
        tracked = run.tracked[outcome.row]
        run.record.follow(tracked, round_.leases[0], concluded.end, outcome, now_s)
        if outcome.over != FINISHED and gained:
            run.ledger.update_job(tracked.job.name, why="between two rounds")

    def _write_started(self, started: RoundStart) -> None:
        self._decided(started.grants, started.cpu_s)
        for grant in started.grants:
            self._write_granted(grant)
        self._granted = started.grants

    def _decided(self, grants: Sequence[CopyGrant], cpu_s: float) -> None:
        """Write down who starts, and of the others why they wait, as far as can be seen from outside."""
        tracked, rows = self.run.tracked, {grant.row for grant in grants}
        starts = {
            tracked[grant.row].job.name: [[copy.node, copy.gpus] for copy in grant.copies]
            for grant in grants
        }
        others = [job for job in self.state.waiting() if job.row not in rows]
        why = {job.job.name: self._reason(job) for job in others}
        self.observer.decided({"starts": starts, "stops": [], "cpu_s": cpu_s}, why)

    def _write_granted(self, grant: CopyGrant) -> None:
        """Copies hold their nodes from now on."""
        run, before = self.run, grant.before
        name = run.tracked[grant.row].job.name
        for lease, copy in zip(self.leases.of(grant), grant.copies, strict=True):
            run.record.holds(
                name,
                lease.epoch,
                lease.devices,
                partner=None,
                from_step=before,
                whole_node=True,
                gpus=copy.gpus,
                stop_at=lease.target,
                copy=lease.copy,
            )
            if grant.from_step < before:
                # Whoever goes on next does so from the one that was found whole.
                run.record.damaged(lease, grant.from_step)
                before = grant.from_step
        rate = sum(copy.rate for copy in grant.copies)
        run.record.begins(name, grant.epoch, rate, grant.from_step)
