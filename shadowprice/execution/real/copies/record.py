"""Record of a run's copies: the same events as of other leases, with the number of the copy.

The last committed step of a job grows with each copy that is released by what that copy added to
it. All of these are written at once, after the average was committed.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from shadowprice.execution.real.copies.books import Fork
from shadowprice.execution.real.copies.rates import ForkRates, MeasuredCopy
from shadowprice.execution.real.lease import Ending, HeldLease
from shadowprice.execution.real.lease_outcome import FINISHED, LeaseOutcome
from shadowprice.execution.real.measuring import timed
from shadowprice.execution.real.run import RealRun


class ForkRecord:
    """Writes into the ledger; every method belongs into a transaction of its caller."""

    def __init__(self, run: RealRun, rates: ForkRates) -> None:
        self.run, self.rates = run, rates

    def granted(self, fork: Fork) -> None:
        """Copies hold their nodes from now on."""
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
        """All copies are over; returns what they measured, for the journal."""
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

    def confirmed(self, lease: HeldLease, end: Ending, step: int) -> None:
        """The processes of a copy that was lost from sight are gone; nothing of it was taken."""
        made = lease.from_step
        self.run.record.confirmed(lease, end, max(lease.step, made), step, made)

    def step(self, fork: Fork) -> None:
        """Record the progress of a job: the steps of its copies, added up."""
        step = fork.from_step + sum(lease.step - fork.from_step for lease in fork.leases)
        self.run.ledger.update_job(self._name(fork.leases[0]), step=step)

    def sample(self, fork: Fork, now_s: float) -> None:
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
