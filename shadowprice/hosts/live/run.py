"""Everything that belongs to one real run, put together by the driver, and what follows from hosts' answers."""

from __future__ import annotations

from dataclasses import dataclass

from shadowprice.hosts.lease_cpu_memory import CpuMemoryGrants
from shadowprice.hosts.live.clock import Clock
from shadowprice.hosts.live.devices import DevicePool
from shadowprice.hosts.live.event_log import EventWriter
from shadowprice.hosts.live.launch_specs import LaunchSpecs
from shadowprice.hosts.live.lease import HeldLease, JobRecord, LeaseOutcome
from shadowprice.hosts.live.lease_monitor import LeaseMonitor
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.measuring import JobProgress, Measuring
from shadowprice.hosts.live.queue.job_queue import Arrivals


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
    events: EventWriter
    monitor: LeaseMonitor
    devices: DevicePool
    measuring: Measuring
    launch_specs: LaunchSpecs
    limits: Limits
    clock: Clock
    arrivals: Arrivals
    cpu_memory: CpuMemoryGrants

    def leases(self) -> list[HeldLease]:
        """All leases whose end is not confirmed."""
        return list(self.devices.leases.values())

    def held(self) -> list[HeldLease]:
        """Those that were not written off."""
        return [lease for lease in self.leases() if not lease.end.abandoned]

    def unusable(self) -> frozenset[str]:
        """Devices that are absent, or are drained."""
        return self.monitor.missing | self.monitor.drained

    # What follows from answers, which a driver that takes the run over reads again.

    def advance(self, lease: HeldLease, progress: JobProgress, now_s: float) -> None:
        """The engine knows of this progress."""
        tracked, known = self.tracked[lease.grant.row], lease.progress
        self.measuring.count(lease, progress)
        tracked.reports = tracked.reports or progress.reported
        if not progress.reported:
            tracked.estimated_s += progress.ran_s * progress.rate
        # The end of a partner may become known later than what came after it.
        known.stepping_s = min(known.stepping_s, progress.stepping_s)
        known.rate, known.synced_s = progress.rate, max(now_s, known.synced_s)

    def conclude(self, outcome: LeaseOutcome) -> None:
        """A lease is over, its devices are free or quarantined, and its job goes on or is over."""
        tracked = self.tracked[outcome.row]
        lease, tracked.lease = tracked.lease, None
        assert lease is not None
        if outcome.confirmed:
            self.devices.free(lease)
        lease.end.abandoned = not outcome.confirmed
        tracked.step, tracked.over, tracked.return_s = outcome.step, outcome.over, outcome.return_s
        tracked.tries, tracked.host_tries = outcome.tries, outcome.host_tries
        tracked.lived = tracked.lived or outcome.lived
        tracked.stopped_others = tracked.stopped_others and not outcome.lived

    def confirm(self, row: int, epoch: int, step: int) -> None:
        """The processes of a lease that was written off are gone; its job goes on from a step."""
        tracked = self.tracked[row]
        tracked.step = step
        self.devices.free(self.devices.leases[tracked.job.name, epoch])

    def retry(self, row: int) -> None:
        """A job that was given up is tried again, from its last checkpoint."""
        tracked = self.tracked[row]
        tracked.over, tracked.tries, tracked.host_tries = "", 0, 0
        tracked.retry = False

    def take(self, number: int) -> list[str]:
        """A job that was added is known from now on; it arrives in its turn. Returns notes of what is assumed."""
        tracked, instance, notes = self.arrivals.take(number, self.measuring.instance)
        self.tracked.append(tracked)
        self.cpu_memory.add(tracked.job)
        self.measuring.know(instance)
        return notes
