"""Granting leases: devices, an epoch, a fence, orders."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from shadowprice.errors import HostError
from shadowprice.execution.hosts.protocol import Device, LaunchSpec
from shadowprice.execution.real import checkpoints as plain_checkpoints
from shadowprice.execution.real.checkpoints import raise_fence
from shadowprice.execution.real.lease import HeldLease, JobRecord
from shadowprice.execution.real.run import RealRun
from shadowprice.instances.schedule import ALONE
from shadowprice.solvers.placement.protocol import Pieces


class Grants:
    """Turns starts into leases."""

    def __init__(self, run: RealRun) -> None:
        self.run = run

    def grant(
        self, tracked: JobRecord, pieces: Pieces, partner: int
    ) -> tuple[int, list[str], tuple[LaunchSpec, ...] | None]:
        """Write a grant down: epoch, devices and orders; no devices if some are not to be had."""
        devices = () if tracked.over or tracked.cancel else self._find(pieces, partner)
        if not devices:
            return tracked.epoch, [], None
        epoch = tracked.epoch + 1
        rate = self.run.measuring.work_rate(tracked.row, pieces, partner)
        self.run.record.granted(tracked, epoch, devices, partner, rate)
        orders = self._orders(tracked, epoch, devices, partner)
        return epoch, [device.uuid for device in devices], orders

    def lease(
        self,
        tracked: JobRecord,
        epoch: int,
        uuids: Sequence[str],
        pieces: Pieces,
        partner: int,
        now_s: float,
    ) -> HeldLease:
        """Book a lease that was granted."""
        run = self.run
        devices = run.devices.named(uuids)
        # Later than the end of the round, if there was much to do at it.
        granted_s = max(now_s, run.clock.now_s())
        lease = HeldLease(
            tracked.row,
            epoch,
            pieces,
            devices,
            self._orders(tracked, epoch, devices, partner),
            from_step=tracked.step,
            target=tracked.job.iterations,
            granted_s=granted_s,
            rate=run.measuring.prior_rate(tracked.row, pieces, partner),
            partner=partner,
            synced_s=now_s,
            moved_s=granted_s,
            step=tracked.step,
        )
        run.devices.hold(devices, (tracked.job.name, epoch))
        tracked.lease = lease
        return lease

    def start(self, lease: HeldLease) -> None:
        """Carry a grant out. The fence is raised first: whoever ran this job before is refused."""
        run = self.run
        tracked = run.tracked[lease.row]
        directory = run.orders.job_directory(tracked.job.name)
        try:
            raise_fence(directory, lease.epoch)
        except HostError as error:
            # Without a fence nobody may start: the lease is void, and is tried again.
            run.record.note("note", text=str(error))
            run.watch.host.adopt(lease.orders)
            return
        try:
            if tracked.job.keeps_checkpoints:
                plain_checkpoints.prepare(directory, lease.epoch)
        except shutil.Error as error:
            # What the command left cannot be copied, a pipe for instance: its failure, not the run's.
            lease.stop_why = f"failed: its checkpoints cannot be copied: {error}"
            run.watch.host.adopt(lease.orders)
            return
        run.watch.host.start(lease.orders)

    def _find(self, pieces: Pieces, partner: int) -> tuple[Device, ...]:
        devices = self.run.devices
        other = None if partner == ALONE else self.run.tracked[partner].lease
        if other is not None:
            return other.devices if devices.joinable(other.devices) else ()
        found = [devices.find(node, count) for node, count in pieces]
        if not all(found):
            return ()
        devices_found = tuple(device for part in found for device in part)
        # The books are told in the next turn only.
        missing = self.run.watch.missing
        return () if any(device.uuid in missing for device in devices_found) else devices_found

    def _orders(
        self, tracked: JobRecord, epoch: int, devices: Sequence[Device], partner: int
    ) -> tuple[LaunchSpec, ...]:
        return self.run.orders.orders(tracked.job, epoch, devices, shared=partner != ALONE)
