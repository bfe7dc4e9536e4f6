"""Looking after all leases of a run, and writing down what people want to see of them."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from shadowprice.hosts.live.clock import suspended_s
from shadowprice.hosts.live.devices import Drains
from shadowprice.hosts.live.event_log import waiting_reasons
from shadowprice.hosts.live.lease import UNHEALTHY, HeldLease, Holder
from shadowprice.hosts.live.limits import SAMPLE_S, STEPS_S
from shadowprice.hosts.live.run import RealRun
from shadowprice.hosts.live.state_directory import write_notice
from shadowprice.hosts.protocol import LaunchSpec, LeaseKey
from shadowprice.solvers.policy import Decision, State

GAP_S = 2.0
"""Between two looks without work of its own a driver was not running [s]."""


class RunObserver:
    """Looks at the leases of a run."""

    def __init__(self, run: RealRun) -> None:
        self.run = run
        self._announced: frozenset[Holder] = frozenset()
        self._stepped_s = self._sampled_s = -math.inf
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
            run.monitor.host.adopt(orders)
            self._unreleased = tuple(order.key for order in orders)
        run.monitor.host.renew(self._unreleased)
        run.monitor.on_tick()
        self._renew_s = now_s + run.limits.ttl_s / 4.0

    def _unreleased_orders(self) -> list[LaunchSpec]:
        """Orders of the leases whose end is not written down."""
        run, held = self.run, dict[Holder, list[str]]()
        for event in run.ledger.events():
            lease = event["job"], event["epoch"]
            if event["kind"] == "granted":
                held[lease] = event["data"]["devices"]
            elif event["kind"] == "released":
                del held[lease]
        known = [*(tracked.job for tracked in run.tracked), *run.arrivals.jobs()]
        jobs = {job.name: job for job in known}
        return [
            order
            for (name, epoch), uuids in held.items()
            for order in run.launch_specs.build(jobs[name], epoch, run.devices.named(uuids))
        ]

    def take_over(self) -> None:
        """Adopt leases that another driver may have started; what has not begun never begins.

        What that driver wrote down is not written down again.
        """
        run, now_s = self.run, self.run.clock.now_s()
        leases = run.leases()
        for lease in leases:
            # What the driver before saw of it is not known: patience begins again.
            lease.progress.moved_s = now_s
        run.monitor.host.adopt([order for lease in leases for order in lease.grant.orders])
        run.monitor.look(leases)
        self._announced = run.ledger.leases_with("running")

    def look(self) -> float:
        """Look at all leases once; returns the time [s].

        Whoever a person wants to be cancelled is marked, and all leases of it are asked to stop; so is, if it
        was given up, whoever is to be taken up again.
        """
        run = self.run
        leases = run.leases()
        now_s = run.monitor.look(leases)
        self._note_gap(now_s)
        self._announce(leases)
        held = run.held()
        if held and now_s - self._stepped_s >= STEPS_S:
            self._stepped_s = now_s
            run.events.steps(held)
        if held and now_s - self._sampled_s >= max(run.launch_specs.checkpoint_s, SAMPLE_S):
            self._sampled_s = now_s
            run.events.samples(held, run.measuring, now_s)
        self._drain()
        cancelled, retried = run.ledger.cancelled(), run.ledger.retried()
        for tracked in run.tracked:
            if tracked.job.name in cancelled and not tracked.over and not tracked.cancel:
                tracked.cancel = True
                self.ask_stop([] if tracked.lease is None else [tracked.lease], "cancelled")
            tracked.retry = tracked.job.name in retried
        return now_s

    def ask_stop(self, leases: Sequence[HeldLease], why: str) -> None:
        """Ask leases that were not asked yet, and are not gone, to stop; write it down."""
        fresh = [lease for lease in leases if not lease.end.stop_why and not lease.gone]
        if fresh:
            self.run.monitor.stop(fresh, why)
            with self.run.ledger.transaction():
                for lease in fresh:
                    self.run.events.stop_asked(lease)

    def _note_gap(self, now_s: float) -> None:
        """Write down for how long the driver was not running, if it was not since the last look.

        It was stopped, or all of the machine was; work of its own takes processor time. It waits for an answer on
        absent devices, too.
        """
        before, clocks = self._looked, (now_s, time.process_time(), suspended_s())
        self._looked = (now_s + self.run.monitor.asked_s, *clocks[1:])
        if before is None:
            return
        passed_s, worked_s, asleep_s = (b - a for a, b in zip(before, clocks, strict=True))
        gap_s = max(passed_s - worked_s, 0.0)
        if gap_s > max(GAP_S, 10 * self.run.limits.poll_s) and gap_s > worked_s:
            text = f"the driver was not running for {gap_s:.1f} s: it was stopped, or waited for its disk"
            self.run.events.note("note", text=text, gap_s=gap_s)
        elif asleep_s > GAP_S:
            text = f"the machine was suspended for {asleep_s:.1f} s, which the run does not count"
            self.run.events.note("note", text=text, gap_s=asleep_s)

    def _announce(self, leases: Sequence[HeldLease]) -> None:
        """Write down, all at once, which leases are seen to run for the first time."""
        fresh = [
            lease
            for lease in leases
            if lease.progress.running_s < math.inf and lease.grant.holder not in self._announced
        ]
        if fresh:
            with self.run.ledger.transaction():
                for lease in fresh:
                    self.run.events.running(lease)
            self._announced |= {lease.grant.holder for lease in fresh}

    def _drain(self) -> None:
        """Learn what is drained, and ask those to stop that are to leave drained devices at once."""
        run, drains = self.run, Drains(self.run.ledger)
        wishes = drains.wishes()
        run.monitor.drained = frozenset(wishes) & run.devices.of_uuid.keys()
        leave = {uuid: wish["reason"] for uuid, wish in wishes.items() if wish["now"]}
        for lease in run.held() if leave else ():
            reasons = [leave[each.uuid] for each in lease.grant.devices if each.uuid in leave]
            if reasons:
                self.ask_stop([lease], f"its device is drained: {reasons[0]}")

    def drain_unhealthy(self, lease: HeldLease) -> None:
        """Drain the devices of those ranks of a lease whose health check failed."""
        for order, exit in lease.exits:
            if exit.reason == UNHEALTHY:
                uuids = [device.uuid for device in order.devices]
                Drains(self.run.ledger).drain(uuids, exit.detail)
                self.run.monitor.drained |= set(uuids)

    def log_absent(self) -> None:
        """Write down which nodes and devices are absent since the last time, and which are back."""
        run = self.run
        drained = Drains(run.ledger).logged() | run.monitor.drained
        run.events.nodes(run.devices.lost, run.monitor.lost)
        run.events.missing(run.devices.missing - drained, run.monitor.missing - drained)

    def log_drained(self) -> None:
        """Write down which devices are drained since the last time, and which are no more."""
        run, drains = self.run, Drains(self.run.ledger)
        logged, now, wishes = drains.logged(), run.monitor.drained, drains.wishes()
        if logged != now:
            why = {uuid: wishes[uuid]["reason"] if uuid in wishes else "" for uuid in now}
            run.events.drained(logged, why)
            drains.log(now)

    def decided(self, state: State, decision: Decision, cpu_s: float) -> None:
        """Write down a decision that changes something, or the reasons why jobs wait if these are new.

        Reasons are those that can be seen from outside.
        """
        why = waiting_reasons(self.run.tracked, state, decision)
        if decision.starts or decision.stops or why != self._why:
            self._why = why
            self.run.events.decided(decision, why, cpu_s)


# While the disk of the state directory is full: jobs run on meanwhile.


AGAIN_S = 0.5
"""Between two tries to write [s]."""


class FullDisk:
    """Behaviour of a driver while its ledger cannot be written since the disk is full.

    It renews its leases, whose files have their space, and says in the file of its lock, which has
    its space too, that it waits: ``status`` reads it there.

    Parameters
    ----------
    run : RealRun
        The run, whose leases go on.
    lock : Path
        File of the driver's lock.
    """

    def __init__(self, run: RealRun, lock: Path) -> None:
        self._run, self._lock = run, lock
        self._since_s: float | None = None

    def full(self, why: str) -> None:
        """Let some time pass; looks after what runs."""
        run = self._run
        if self._since_s is None:
            self._since_s = run.clock.now_s()
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            self._say(f"the driver waits since {since}: {why}; free space on its disk")
        run.clock.sleep(AGAIN_S)
        run.monitor.renew(run.leases())
        run.monitor.on_tick()

    def free(self) -> None:
        """Note for how long it waited, if it did: it could write again."""
        if self._since_s is None:
            return
        waited_s = self._run.clock.now_s() - self._since_s
        self._since_s = None
        self._say("")
        text = f"the disk was full, and the driver waited for {waited_s:.1f} s"
        self._run.events.note("note", text=text, disk_full_s=waited_s)

    def _say(self, text: str) -> None:
        with suppress(OSError):
            write_notice(self._lock, text)
