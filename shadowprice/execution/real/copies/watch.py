"""Looking after the copies of a run's jobs, and writing down what is seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shadowprice.execution.real.copies.books import ARRIVED, CONFIRMED, NODES, WITHDRAWN, Books
from shadowprice.execution.real.copies.conclusion import copy_ending
from shadowprice.execution.real.copies.record import ForkRecord
from shadowprice.execution.real.lease import HeldLease
from shadowprice.execution.real.limits import SAMPLE_S, STEPS_S
from shadowprice.execution.real.run import RealRun


class ForkWatch:
    """Eyes of a run whose jobs are forked."""

    def __init__(self, run: RealRun, books: Books, record: ForkRecord) -> None:
        self.run, self.books, self.record = run, books, record
        self._announced: set[tuple[int, int, int | None]] = set()
        self._stepped_s = self._sampled_s = -math.inf

    def take_over(self) -> None:
        """Adopt what another driver may have started; what it had not started never begins."""
        run = self.run
        leases, now_s = run.leases(), run.clock.now_s()
        for lease in leases:
            lease.moved_s = now_s
        run.watch.host.adopt([order for lease in leases for order in lease.orders])
        run.watch.look(leases)

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
                    self.record.step(fork)
        if now_s - self._sampled_s >= max(self.run.orders.checkpoint_s, SAMPLE_S):
            self._sampled_s = now_s
            with ledger.transaction():
                for fork in forks:
                    self.record.sample(fork, now_s)

    def stop(self, leases: Sequence[HeldLease], why: str) -> None:
        """Ask leases to stop, and write it down."""
        if not leases:
            return
        self.run.watch.stop(leases, why)
        with self.run.ledger.transaction():
            for lease in leases:
                self.run.record.stop_asked(lease)

    def _nodes(self) -> None:
        run = self.run
        if run.watch.lost == run.devices.lost:
            return
        lost = sorted(run.watch.lost)
        with run.ledger.transaction():
            run.record.nodes(run.devices.lost, run.watch.lost)
            self.books.write(NODES, lost)
        self.books.apply(NODES, lost)

    def _arrivals(self, now_s: float) -> None:
        for tracked in self.run.tracked:
            row = tracked.row
            if row in self.books.arrived or tracked.over or tracked.job.arrival_s > now_s:
                continue
            with self.run.ledger.transaction():
                self.run.record.arrived(tracked)
                self.books.write(ARRIVED, row)
            self.books.apply(ARRIVED, row)

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
                entry = [tracked.row, lease.epoch, lease.copy]
                with self.run.ledger.transaction():
                    self.record.confirmed(lease, end, tracked.step)
                    self.books.write(CONFIRMED, entry)
                self.books.apply(CONFIRMED, entry)

    def _cancel(self, now_s: float) -> None:
        wanted = set(self.run.ledger.cancelled())
        for tracked in self.run.tracked:
            if tracked.job.name not in wanted or tracked.over:
                continue
            tracked.cancel = True
            if tracked.row in self.books.forks:
                leases = self.books.forks[tracked.row].leases
                self.stop(
                    [each for each in leases if not each.stop_why and not each.gone], "cancelled"
                )
                continue
            with self.run.ledger.transaction():
                self.run.record.cancelled(tracked, now_s)
                self.books.write(WITHDRAWN, tracked.row)
            self.books.apply(WITHDRAWN, tracked.row)
