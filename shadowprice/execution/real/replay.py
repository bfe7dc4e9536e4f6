"""Journal of hosts' answers to the engine, so that a new driver can restore a policy's state.

A policy keeps notes, and its notes follow from what it was told. So everything that comes from
outside passes through here: time, ends, failures, measurements, which devices a start got. A driver
that takes a run over lets the same policy decide again on the recorded answers, checks that it
decides the same, and goes on with real ones where the record ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from shadowprice.errors import PolicyError
from shadowprice.execution.hosts.protocol import LaunchSpec, LeaseKey
from shadowprice.execution.real.ledger import RunLedger
from shadowprice.execution.real.run import RealRun


class Journal:
    """Recorded answers first, then new ones.

    Parameters
    ----------
    ledger : Ledger
        Where answers are kept.
    on_read : callable
        Called before every recorded answer is given: a long record takes long.
    """

    def __init__(self, ledger: RunLedger, on_read: Callable[[], None] = lambda: None) -> None:
        self._ledger = ledger
        self._on_read = on_read
        self._recorded = ledger.answers()
        self._ahead = next(self._recorded, None)

    @property
    def replaying(self) -> bool:
        """True if there are recorded answers left."""
        return self._ahead is not None

    def next(self, call: str) -> Any:
        """The recorded answer to a call.

        Raises
        ------
        PolicyError
            If another call was recorded: the policy does not decide as it did.
        """
        assert self._ahead is not None
        self._on_read()
        recorded, data = self._ahead
        self._ahead = next(self._recorded, None)
        if recorded != call:
            raise PolicyError(
                f"{self._ledger.path}: the record says {recorded!r}, but the policy now leads to {call!r}; "
                "resume with the program and parameters that began the run"
            )
        return data

    def record(self, call: str, data: object) -> None:
        """Keep an answer."""
        self._ledger.answer(call, data)


# Keeping leases alive while a long record is replayed.


class Resuming:
    """Renews what another driver left running, long before the books know of it again.

    The record of weeks takes minutes to replay, longer than leases last without a renewal. What runs
    is known from the events: granted, and not released.
    """

    def __init__(self, run: RealRun) -> None:
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

    def _orders(self) -> list[LaunchSpec]:
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
