"""Looking after the copies of a run's jobs, and writing down what is seen and done.

Events are those of other leases, with the number of the copy. The last committed step of a job
grows with each copy that is released by what that copy added to it. All of these are written at
once, after the average was committed.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from shadowprice.execution.real.copies.books import (
    ARRIVED,
    CONFIRMED,
    NODES,
    WITHDRAWN,
    Books,
    Fork,
)
from shadowprice.execution.real.copies.conclusion import copy_ending
from shadowprice.execution.real.copies.rates import ForkRates, MeasuredCopy
from shadowprice.execution.real.lease import Ending, HeldLease
from shadowprice.execution.real.lease_outcome import FINISHED, LeaseOutcome
from shadowprice.execution.real.limits import SAMPLE_S, STEPS_S
from shadowprice.execution.real.measuring import timed
from shadowprice.execution.real.run import RealRun


class ForkWatch:
    """Eyes of a run whose jobs are forked."""

    def __init__(self, run: RealRun, books: Books, rates: ForkRates) -> None:
        self.run, self.books, self.rates = run, books, rates
        self._announced: set[tuple[int, int, int | None]] = set()
        self._stepped_s = self._sampled_s = -math.inf

    def look(self) -> float:
        """Look at all leases once, and write down what is new; returns the time [s]."""
        run = self.run
        now_s = run.watch.look(run.leases())
        self._nodes()
        self._arrivals(now_s)
        self._confirm()
        self._cancel(now_s)
        self._announce()
        self._measure(now_s)
        return now_s

    def _announce(self) -> None:
        for lease in (lease for fork in self.books.forks.values() for lease in fork.leases):
            key = (lease.row, lease.epoch, lease.copy)
            if lease.running_s < math.inf and key not in self._announced:
                self._announced.add(key)
                self.run.record.running(lease)

    def _measure(self, now_s: float) -> None:
        """For people who look."""
        forks, ledger = list(self.books.forks.values()), self.run.ledger
        if now_s - self._stepped_s >= STEPS_S:
            self._stepped_s = now_s
            with ledger.transaction():
                for fork in forks:
                    self._step(fork)
        if now_s - self._sampled_s >= max(self.run.orders.checkpoint_s, SAMPLE_S):
            self._sampled_s = now_s
            with ledger.transaction():
                for fork in forks:
                    self._sample(fork, now_s)

    def _nodes(self) -> None:
        run = self.run
        if run.watch.lost == run.devices.lost:
            return
        lost = sorted(run.watch.lost)
        with self.books.keep(NODES, lost):
            run.record.nodes(run.devices.lost, run.watch.lost)

    def _arrivals(self, now_s: float) -> None:
        for tracked in self.run.tracked:
            row = tracked.row
            if row in self.books.arrived or tracked.over or tracked.job.arrival_s > now_s:
                continue
            with self.books.keep(ARRIVED, row):
                self.run.record.arrived(tracked)

    def _confirm(self) -> None:
        """Copies that were lost from sight: ask them to stop when seen, free what they held after."""
        for tracked in self.run.tracked:
            for lease in list(tracked.written_off):
                if not lease.gone:
                    if not lease.lost and not lease.stop_why:
                        self.run.watch.stop([lease], "its round is over")
                    continue
                end = copy_ending(lease)
                assert end is not None
                own = lease.from_step  # nothing of it was taken
                reached = max(lease.step, own)
                with self.books.keep(CONFIRMED, [tracked.row, lease.epoch, lease.copy]):
                    self.run.record.confirmed(lease, end, reached, tracked.step, own)

    def _cancel(self, now_s: float) -> None:
        wanted = set(self.run.ledger.cancelled())
        for tracked in self.run.tracked:
            if tracked.job.name not in wanted or tracked.over:
                continue
            tracked.cancel = True
            if tracked.row in self.books.forks:
                self.run.ask_stop(self.books.forks[tracked.row].leases, "cancelled")
                continue
            with self.books.keep(WITHDRAWN, tracked.row):
                self.run.record.cancelled(tracked, now_s)

    def granted(self, fork: Fork) -> None:
        """Copies hold their nodes from now on; belongs into a transaction of the caller."""
        run, before = self.run, fork.before
        name = run.tracked[fork.row].job.name
        for lease, copy in zip(fork.leases, fork.copies, strict=True):
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
            if fork.from_step < before:
                # Whoever goes on next does so from the one that was found whole.
                run.record.damaged(lease, fork.from_step)
                before = fork.from_step
        rate = sum(copy.rate for copy in fork.copies)
        run.ledger.update_job(
            name,
            state="running",
            epoch=fork.epoch,
            why="",
            predicted_rate=rate,
            step=fork.from_step,
        )
        run.ledger.first_start(name, run.clock.now_s())

    def concluded(
        self, fork: Fork, end: Ending, what: LeaseOutcome, now_s: float
    ) -> list[dict[str, Any]]:
        """All copies are over; returns what they measured, for the journal, in one transaction."""
        committed, gained = fork.from_step, what.step > fork.from_step
        for number, (lease, own) in enumerate(zip(fork.leases, fork.ends, strict=True)):
            if own is None:
                self.run.record.quarantined(lease)
                continue
            steps = (fork.steps or {}).get(number, 0) if gained else 0
            committed += steps
            made = lease.from_step + steps
            self.run.record.released(lease, own, max(lease.step, made), committed, made)
        measured = [self._measured(fork, number) for number in range(len(fork.leases))]
        self.run.record.follow(self.run.tracked[fork.row], fork.leases[0], end, what, now_s)
        if what.over != FINISHED and gained:
            self.run.ledger.update_job(self._name(fork.leases[0]), why="between two rounds")
        return measured

    def _step(self, fork: Fork) -> None:
        """Record the progress of a job: the steps of its copies, added up."""
        step = fork.from_step + sum(lease.step - fork.from_step for lease in fork.leases)
        self.run.ledger.update_job(self._name(fork.leases[0]), step=step)

    def _sample(self, fork: Fork, now_s: float) -> None:
        """Record the rates of copies, since they began."""
        rates = []
        for lease, copy in zip(fork.leases, fork.copies, strict=True):
            steps, seconds = timed(lease.report)
            rates.append(steps / seconds if steps and seconds > 0 else None)
            self.run.ledger.sample(
                time_s=now_s,
                job=self._name(lease),
                epoch=lease.epoch,
                step=lease.step,
                rate=rates[-1],
                co_runner="",
                gpu_type=self.rates.class_of(copy.node)[0],
                gpus=copy.gpus,
                nodes=1,
            )
        if all(rates):
            total = sum(rate or 0.0 for rate in rates)
            self.run.ledger.update_job(self._name(fork.leases[0]), measured_rate=total)

    def _measured(self, fork: Fork, number: int) -> dict[str, Any]:
        lease, copy = fork.leases[number], fork.copies[number]
        steps, seconds = timed(lease.report)
        job = self.run.tracked[fork.row].job
        if steps and seconds > 0:
            where = {
                "job": job.name,
                "model": job.model,
                "gpus": copy.gpus,
                "nodes": 1,
                "gpu_type": self.rates.class_of(copy.node)[0],
                "co_runner": "",
                "co_model": "",
            }
            self.run.ledger.observe(where, steps, seconds)
        began_s = lease.stepping_s - lease.granted_s
        start_s = began_s if lease.stepping_s < lease.ended_s else None
        return asdict(MeasuredCopy(fork.row, copy.node, copy.gpus, steps, seconds, start_s))

    def _name(self, lease: HeldLease) -> str:
        return self.run.tracked[lease.row].job.name
