"""Keeping leases alive while a long record is replayed."""

from __future__ import annotations

import math

from shadowprice.execution.hosts.protocol import LeaseKey, Order
from shadowprice.execution.real.run import Run


class Resuming:
    """Renews what another driver left running, long before the books know of it again.

    The record of weeks takes minutes to replay, longer than leases last without a renewal. What runs
    is known from the events: granted, and not released.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self._keys: tuple[LeaseKey, ...] | None = None
        self._renew_s = -math.inf

    def keep(self) -> None:
        """Renew all leases if that is due; O(events) the first time."""
        run = self.run
        now_s = run.clock.now_s()
        if now_s < self._renew_s:
            return
        if self._keys is None:
            orders = self._orders()
            run.watch.host.adopt(orders)
            self._keys = tuple(order.key for order in orders)
        run.watch.host.renew(self._keys)
        run.watch.on_tick()
        self._renew_s = now_s + run.limits.ttl_s / 4.0

    def _orders(self) -> list[Order]:
        """Orders of the leases whose end is not written down."""
        run, held = self.run, dict[tuple[str, int], list[str]]()
        for event in run.ledger.events():
            lease = event["job"], event["epoch"]
            if event["kind"] == "granted":
                held[lease] = event["data"]["devices"]
            elif event["kind"] == "released":
                del held[lease]
        jobs = {tracked.job.name: tracked.job for tracked in run.tracked}
        return [
            order
            for (name, epoch), uuids in held.items()
            for order in run.orders.orders(jobs[name], epoch, run.devices.named(uuids))
        ]
