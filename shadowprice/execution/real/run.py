"""Everything that belongs to one real run, put together by the driver."""

from __future__ import annotations

from dataclasses import dataclass

from shadowprice.execution.real.clock import Clock
from shadowprice.execution.real.devices import DevicePool
from shadowprice.execution.real.event_log import Record
from shadowprice.execution.real.launch_specs import LaunchSpecs
from shadowprice.execution.real.lease import HeldLease, JobRecord
from shadowprice.execution.real.lease_monitor import LeaseMonitor
from shadowprice.execution.real.ledger import RunLedger
from shadowprice.execution.real.limits import Limits
from shadowprice.execution.real.measuring import Measuring


@dataclass(frozen=True)
class RealRun:
    """The parts of a run, none of which knows the others' insides.

    Parameters
    ----------
    tracked : list of Tracked
        Every job, by its row in the workload.
    """

    tracked: list[JobRecord]
    ledger: RunLedger
    record: Record
    watch: LeaseMonitor
    devices: DevicePool
    measuring: Measuring
    orders: LaunchSpecs
    limits: Limits
    clock: Clock

    def leases(self) -> list[HeldLease]:
        """All leases whose end is not confirmed."""
        lost = [lease for tracked in self.tracked for lease in tracked.written_off]
        return self.held() + lost

    def held(self) -> list[HeldLease]:
        """Those that were not written off."""
        running = [tracked.lease for tracked in self.tracked if tracked.lease is not None]
        copies = [lease for tracked in self.tracked for lease in tracked.copies]
        return running + copies
