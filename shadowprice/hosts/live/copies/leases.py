"""Copies of a job as leases: their folders and orders, what they did, and their average.

A copy has a folder of its own, ``STATE/jobs/JOB/copies/e7-c1/``, with a fence and checkpoints, where
it finds the job's last checkpoint by a link and cannot touch the job's own. What it leaves there
belongs to the job only when the driver commits the average.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from shadowprice.errors import HostError, InputError
from shadowprice.hosts.job import last_checkpoint
from shadowprice.hosts.live.checkpoints import last_commit, raise_fence
from shadowprice.hosts.live.copies.averaging import commit_average
from shadowprice.hosts.live.copies.rounds import CopyGrant
from shadowprice.hosts.live.launch_specs import CopyShare
from shadowprice.hosts.live.lease import HeldLease
from shadowprice.hosts.live.measuring import number
from shadowprice.hosts.live.run import RealRun
from shadowprice.hosts.protocol import Device
from shadowprice.hosts.supervision.files import make_folder

_COPIES, _CHECKPOINTS = "copies", "checkpoints"


class CopyLeases:
    """Folders and leases of copies."""

    def __init__(self, run: RealRun) -> None:
        self.run = run
        self._start: dict[int, Path | None] = {}

    def start_of(self, row: int) -> int:
        """Step of the job's last undamaged checkpoint, 0 if there is none; :meth:`start` takes it."""
        folder, manifest, _ = last_checkpoint(self._job(row) / _CHECKPOINTS)
        self._start[row] = folder
        return 0 if folder is None else int(manifest["step"])

    def of(self, grant: CopyGrant) -> list[HeldLease]:
        """The leases of the copies, as they were or will be granted; nothing happens."""
        return [self._lease(grant, k) for k in range(len(grant.copies))]

    def _lease(self, grant: CopyGrant, k: int) -> HeldLease:
        run, copy = self.run, grant.copies[k]
        job = run.tracked[grant.row].job
        node = run.devices.nodes[copy.node]
        used: tuple[Device, ...] = node.devices[: copy.gpus]
        stop_at = grant.from_step + copy.steps
        orders = run.orders.orders(
            job, grant.epoch, used, copy=CopyShare(k, stop_at, self._folder(grant, k))
        )
        return HeldLease(
            grant.row,
            grant.epoch,
            ((copy.node, len(node.devices)),),
            node.devices,
            orders,
            from_step=grant.from_step,
            target=stop_at,
            granted_s=grant.begun_s,
            rate=1.0,
            synced_s=grant.begun_s,
            moved_s=grant.begun_s,
            step=grant.from_step,
            copy=k,
        )

    def start(self, grant: CopyGrant, leases: Sequence[HeldLease]) -> None:
        """Make the folders of copies and start them; void them if that is not possible."""
        run = self.run
        orders = [order for lease in leases for order in lease.orders]
        try:
            raise_fence(self._job(grant.row), grant.epoch)
            self.clean(grant.row)
            for k in range(len(grant.copies)):
                self._prepare(self._folder(grant, k), grant.epoch, self._start[grant.row])
        except (HostError, OSError) as error:
            name = run.tracked[grant.row].job.name
            run.record.note("note", text=f"job {name}: its copies cannot be started: {error}")
            for lease in leases:
                run.watch.void(lease)
            return
        for lease in leases:
            lease.unstarted, lease.ordered_s = False, run.clock.now_s()
        run.watch.host.start(orders)

    def _prepare(self, folder: Path, epoch: int, start: Path | None) -> None:
        checkpoints = folder / _CHECKPOINTS
        make_folder(str(checkpoints))
        raise_fence(folder, epoch)
        if start is not None:
            link = checkpoints / start.name
            if not link.is_symlink():
                link.symlink_to(os.path.relpath(start, checkpoints))
            (checkpoints / "LATEST").write_text(f"{start.name}\n")

    def done(self, grant: CopyGrant, k: int) -> int:
        """Steps of a copy in its last checkpoint of this round, at most those it was given."""
        _, manifest, _ = last_checkpoint(self._folder(grant, k) / _CHECKPOINTS)
        if manifest.get("epoch") != grant.epoch:
            return 0
        return min(max(int(manifest["step"]) - grant.from_step, 0), grant.copies[k].steps)

    def average(self, grant: CopyGrant, steps: Sequence[int]) -> str:
        """Commit the average of copies as the job's checkpoint, once; why not, empty if it is.

        Touches files only, so that it may run beside the driver's loop.
        """
        job, trouble = self._job(grant.row), ""
        if last_commit(job)[1] < grant.epoch:
            try:
                self._commit(grant, steps)
            except Exception as error:  # what a job leaves can break its reader in any way
                trouble = f"the average of its copies cannot be committed: {error}"
        # It is what the next driver would see that counts.
        return "" if last_commit(job)[1] == grant.epoch else trouble

    def _commit(self, grant: CopyGrant, steps: Sequence[int]) -> None:
        job, folders = self._job(grant.row), []
        _, before, _ = last_checkpoint(job / _CHECKPOINTS)
        begun_s = number(before, "seconds", 0.0)
        seconds = begun_s
        for copy in [copy for copy, count in enumerate(steps) if count]:
            folder, manifest, troubles = last_checkpoint(self._folder(grant, copy) / _CHECKPOINTS)
            if folder is None or manifest["epoch"] != grant.epoch:
                raise InputError(f"copy {copy}: its checkpoint is gone ({'; '.join(troubles)})")
            folders.append(folder)
            seconds += max(number(manifest, "seconds", 0.0) - begun_s, 0.0)
        commit_average(
            folders,
            [count for count in steps if count],
            job / _CHECKPOINTS,
            epoch=grant.epoch,
            step=grant.from_step + sum(steps),
            seconds=seconds,
            fence=job / "fence",
        )

    def bar(self, grant: CopyGrant, k: int) -> None:
        """Refuse what a copy that was lost from sight may still want to commit."""
        with contextlib.suppress(HostError, OSError):  # it has a folder of its own in any case
            raise_fence(self._folder(grant, k), grant.epoch + 1)

    def clean(self, row: int) -> None:
        """Remove the folders of copies, but those whose processes may be left."""
        tracked = self.run.tracked[row]
        kept = {
            _name(lease.epoch, lease.copy or 0) for lease in (*tracked.written_off, *tracked.copies)
        }
        try:
            found = list((self._job(row) / _COPIES).iterdir())
        except OSError:
            return
        for path in found:
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def _job(self, row: int) -> Path:
        return self.run.orders.job_directory(self.run.tracked[row].job.name)

    def _folder(self, grant: CopyGrant, k: int) -> Path:
        return self._job(grant.row) / _COPIES / _name(grant.epoch, k)


def _name(epoch: int, copy: int) -> str:
    return f"e{epoch}-c{copy}"
