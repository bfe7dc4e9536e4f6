"""Looking after all leases of a run, and writing down what people want to see of them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from shadowprice.hosts.live.clock import suspended_s
from shadowprice.hosts.live.devices import Drains
from shadowprice.hosts.live.lease import UNHEALTHY, HeldLease
from shadowprice.hosts.live.limits import SAMPLE_S, STEPS_S
from shadowprice.hosts.live.run import RealRun
from shadowprice.hosts.protocol import LaunchSpec, LeaseKey

GAP_S = 2.0
"""Between two looks without work of its own a driver was not running [s]."""


class RunObserver:
    """Looks at the leases of a run."""

    def __init__(self, run: RealRun) -> None:
        self.run = run
        self._announced: set[tuple[str, int]] = set()
        self._stepped_s = self._sampled_s = -math.inf
        self._stuck_s = math.inf
        self._why: dict[str, str] = {}
        self._unreleased: tuple[LeaseKey, ...] | None = None
        self._renew_s = -math.inf
        self._looked: tuple[float, float, float] | None = None

    def keep_alive(self) -> None:
        """Renew what another driver left running, if that is due; O(events) the first time.

        The record of weeks takes minutes to replay, longer than leases last without a renewal, and
        only at its end the jobs' records have them. What runs is known from the events: granted,
        and not released.
        """
        run = self.run
        now_s = run.clock.now_s()
        if now_s < self._renew_s:
            return
        if self._unreleased is None:
            orders = self._unreleased_orders()
            run.watch.host.adopt(orders)
            self._unreleased = tuple(order.key for order in orders)
        run.watch.host.renew(self._unreleased)
        run.watch.on_tick()
        self._renew_s = now_s + run.limits.ttl_s / 4.0

    def _unreleased_orders(self) -> list[LaunchSpec]:
        """Orders of the leases whose end is not written down."""
        run, held = self.run, dict[tuple[str, int], list[str]]()
        for event in run.ledger.events():
            lease = event["job"], event["epoch"]
            if event["kind"] == "granted":
                held[lease] = event["data"]["devices"]
            elif event["kind"] == "released":
                del held[lease]
        jobs = run.known_jobs()
        return [
            order
            for (name, epoch), uuids in held.items()
            for order in run.orders.orders(jobs[name], epoch, run.devices.named(uuids))
        ]

    def take_over(self) -> None:
        """Adopt what another driver may have started; what it wrote down is not written down again."""
        recorded = self.run.ledger.leases_with("running")
        self._announced = {
            key for lease in self.run.take_over() if (key := self._key(lease)) in recorded
        }

    def look(self) -> float:
        """Look at all leases once; returns the time [s].

        Whoever a person wants to be cancelled is marked, and all leases of it are asked to stop; so is, if it
        was given up, whoever is to be taken up again.
        """
        run = self.run
        leases = run.leases()
        now_s = run.watch.look(leases)
        self._note_gap(now_s)
        self._announce(leases)
        if now_s - self._stepped_s >= STEPS_S:
            self._stepped_s = now_s
            if run.held():
                run.record.steps(run.held())
        if now_s - self._sampled_s >= max(run.orders.checkpoint_s, SAMPLE_S):
            self._sampled_s = now_s
            if run.held():
                run.record.samples(run.held(), run.measuring, now_s)
        run.drain_at_once()
        cancelled, retried = run.ledger.cancelled(), run.ledger.retried()
        for tracked in run.tracked:
            if tracked.job.name in cancelled and not tracked.over and not tracked.cancel:
                tracked.cancel = True
                run.ask_stop(tracked.held, "cancelled")
            tracked.retry = tracked.job.name in retried
        return now_s

    def _note_gap(self, now_s: float) -> None:
        """Write down for how long the driver was not running, if it was not since the last look.

        It was stopped, or all of the machine was; work of its own takes processor time.
        """
        before, self._looked = self._looked, (now_s, time.process_time(), suspended_s())
        if before is None:
            return
        passed_s, worked_s, asleep_s = (b - a for a, b in zip(before, self._looked, strict=True))
        gap_s = max(passed_s - worked_s, 0.0)
        if gap_s > max(GAP_S, 10 * self.run.limits.poll_s) and gap_s > worked_s:
            text = f"the driver was not running for {gap_s:.1f} s: it was stopped, or waited for its disk"
            self.run.record.note("note", text=text, gap_s=gap_s)
        elif asleep_s > GAP_S:
            text = f"the machine was suspended for {asleep_s:.1f} s, which the run does not count"
            self.run.record.note("note", text=text, gap_s=asleep_s)

    def _announce(self, leases: Sequence[HeldLease]) -> None:
        """Write down, all at once, which leases are seen to run for the first time."""
        fresh = [
            lease
            for lease in leases
            if lease.running_s < math.inf and self._key(lease) not in self._announced
        ]
        if fresh:
            with self.run.ledger.transaction():
                for lease in fresh:
                    self.run.record.running(lease)
            self._announced |= set(map(self._key, fresh))

    def drain_unhealthy(self, lease: HeldLease) -> None:
        """Drain the devices of those ranks of a lease whose health check failed."""
        run = self.run
        for order in lease.orders:
            seen = lease.seen.get(order.key)
            if seen is not None and seen.exit is not None and seen.exit.reason == UNHEALTHY:
                uuids = [device.uuid for device in order.devices]
                Drains(run.ledger).drain(uuids, seen.exit.detail)
                run.watch.drained |= set(uuids)

    def tell_drained(self) -> None:
        """Write down which devices are drained since the last time, and which are no more."""
        run, drains = self.run, Drains(self.run.ledger)
        told, why = drains.drained(), drains.why()
        if told != run.watch.drained:
            run.record.drained(told, {uuid: why.get(uuid, "") for uuid in run.watch.drained})
            drains.tell(run.watch.drained)

    def decided(self, data: dict[str, Any], why: dict[str, str]) -> None:
        """Write down a decision that changes something, or why jobs wait if that is new."""
        if data["starts"] or data["stops"] or why != self._why:
            self._why = why
            self.run.record.decided(data, why)

    def check_standstill(self, stuck: bool, now_s: float, waiting: int) -> None:
        """Give up when jobs wait for nodes that do not come back.

        Parameters
        ----------
        stuck : bool
            Whether nothing runs, and only a node that comes back could change that.
        waiting : int
            Number of jobs that wait.
        """
        self._stuck_s = min(self._stuck_s, now_s) if stuck else math.inf
        if now_s - self._stuck_s > self.run.limits.node_s:
            self.run.give_up(waiting)

    def _key(self, lease: HeldLease) -> tuple[str, int]:
        return self.run.tracked[lease.row].job.name, lease.epoch
