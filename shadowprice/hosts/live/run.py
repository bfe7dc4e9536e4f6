"""Everything that belongs to one real run, put together by the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from shadowprice.errors import HostError
from shadowprice.hosts.lease_amounts import LeaseAmounts
from shadowprice.hosts.live.clock import Clock
from shadowprice.hosts.live.devices import DevicePool, Drains
from shadowprice.hosts.live.event_log import EventWriter
from shadowprice.hosts.live.job_file import Job
from shadowprice.hosts.live.launch_specs import LaunchSpecs
from shadowprice.hosts.live.lease import HeldLease, JobRecord
from shadowprice.hosts.live.lease_monitor import LeaseMonitor
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.measuring import Measuring
from shadowprice.hosts.live.outcomes.lease_outcome import LeaseOutcome
from shadowprice.hosts.live.queue.arrivals import Arrivals


@dataclass(frozen=True)
class RealRun:
    """The parts of a run, none of which knows the others' insides.

    Parameters
    ----------
    tracked : list of JobRecord
        Every job, by its row in the workload; further ones come with the arrivals.
    """

    tracked: list[JobRecord]
    ledger: RunLedger
    record: EventWriter
    watch: LeaseMonitor
    devices: DevicePool
    measuring: Measuring
    orders: LaunchSpecs
    limits: Limits
    clock: Clock
    arrivals: Arrivals
    amounts: LeaseAmounts

    def leases(self) -> list[HeldLease]:
        """All leases whose end is not confirmed."""
        lost = [lease for tracked in self.tracked for lease in tracked.written_off]
        return self.held() + lost

    def held(self) -> list[HeldLease]:
        """Those that were not written off."""
        return [lease for tracked in self.tracked for lease in tracked.held]

    def known_jobs(self) -> dict[str, Job]:
        """Jobs by name: those that were taken in, and all that were added."""
        listed = [*(tracked.job for tracked in self.tracked), *self.arrivals.jobs()]
        return {job.name: job for job in listed}

    def unusable(self) -> frozenset[str]:
        """Devices that were not found again, or are drained."""
        return self.watch.missing | self.watch.drained

    def drain_at_once(self) -> None:
        """Learn what is drained, and ask those to stop that are to leave drained devices at once."""
        drains = Drains(self.ledger)
        why = drains.why()
        self.watch.drained = frozenset(why) & self.devices.of_uuid.keys()
        if not why:
            return
        leave = drains.at_once()
        for lease in self.held():
            reasons = [why[device.uuid] for device in lease.devices if device.uuid in leave]
            if reasons:
                self.ask_stop([lease], f"its device is drained: {reasons[0]}")

    def release(self, lease: HeldLease, *, confirmed: bool) -> None:
        """A lease is over: its devices are free, or quarantined until its end is confirmed."""
        tracked = self.tracked[lease.row]
        holder = (tracked.job.name, lease.epoch)
        if confirmed:
            self.devices.free(lease.devices, holder)
            return
        self.devices.write_off(lease.devices, holder)
        tracked.written_off.append(lease)
        lease.abandoned = True

    def conclude(self, outcome: LeaseOutcome) -> None:
        """A job goes on, or is over, as an outcome says."""
        tracked = self.tracked[outcome.row]
        tracked.step, tracked.over, tracked.return_s = outcome.step, outcome.over, outcome.return_s
        tracked.tries, tracked.host_tries = outcome.tries, outcome.host_tries
        tracked.lived = tracked.lived or outcome.lived
        tracked.stopped_others = tracked.stopped_others and not outcome.lived

    def take_up(self, row: int) -> None:
        """A job that was given up is tried again, from its last checkpoint."""
        tracked = self.tracked[row]
        tracked.over, tracked.tries, tracked.host_tries = "", 0, 0
        tracked.retry = False

    def confirm(self, row: int, epoch: int) -> None:
        """The processes of a lease that was written off are gone."""
        tracked = self.tracked[row]
        for lease in [each for each in tracked.written_off if each.epoch == epoch]:
            tracked.written_off.remove(lease)
            self.devices.free(lease.devices, (tracked.job.name, epoch))

    def take_over(self) -> list[HeldLease]:
        """Adopt leases that another driver may have started; what has not begun never begins."""
        leases, now_s = self.leases(), self.clock.now_s()
        for lease in leases:
            # What the driver before saw of it is not known: patience begins again.
            lease.moved_s = now_s
        self.watch.host.adopt([order for lease in leases for order in lease.orders])
        self.watch.look(leases)
        return leases

    def ask_stop(self, leases: Sequence[HeldLease], why: str) -> None:
        """Ask leases that were not asked yet, and are not gone, to stop; write it down."""
        fresh = [lease for lease in leases if not lease.stop_why and not lease.gone]
        if not fresh:
            return
        self.watch.stop(fresh, why)
        with self.ledger.transaction():
            for lease in fresh:
                self.record.stop_asked(lease)

    def give_up(self, waiting: int) -> NoReturn:
        """Say that jobs wait for nodes that do not come back."""
        lost = ", ".join(sorted(self.watch.lost)) or "devices in quarantine"
        raise HostError(
            f"{waiting} jobs wait for {lost} since {self.limits.node_s:g} s; bring them back and "
            "run the same command again"
        )
