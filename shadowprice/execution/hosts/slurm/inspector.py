"""Status of leases: by their files, and by Slurm where those leave a doubt."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from shadowprice.errors import HostError
from shadowprice.execution.hosts import lease_files
from shadowprice.execution.hosts.protocol import Exit, LeaseKey, Phase, RankStatus
from shadowprice.execution.hosts.slurm import jobs as slurm_jobs
from shadowprice.execution.hosts.slurm.cached_queries import SlurmView
from shadowprice.execution.hosts.slurm.commands import Slurm, SlurmJob
from shadowprice.execution.hosts.slurm.leases import SlurmLease
from shadowprice.execution.hosts.slurm.options import SlurmOptions
from shadowprice.execution.supervision.files import read_json

SWEEP_AGAIN_S = 5.0


def refuse(lease: SlurmLease, why: str) -> None:
    """Let a lease never begin. Should ``sbatch`` have queued it after all, its script ends at once."""
    lease_files.void(lease.order.directory, why)
    lease.refused = Exit(127, "unstartable", detail=why)


class LeaseInspector:
    """Looks at leases, and ends what should have ended.

    A lease has ended when its supervisor wrote so, in a file on shared storage. Where a supervisor
    was killed, a job on its node, the *sweep*, ends what it left and writes the file. While Slurm
    calls the node down nothing of this can happen, and the lease is lost, not ended: the processes
    of a node that only lost its daemon go on.

    Attributes
    ----------
    blind : dict of str to str
        Nodes that do not see the state directory or this Python, and the message that says so.
    """

    def __init__(
        self,
        slurm: Slurm,
        options: SlurmOptions,
        view: SlurmView,
        state: Path,
        run: str,
        leases: Mapping[LeaseKey, SlurmLease],
    ) -> None:
        self._slurm, self._options, self._view = slurm, options, view
        self._state, self._run, self._leases = state, run, leases
        self.blind: dict[str, str] = {}

    def is_over(self, lease: SlurmLease) -> bool:
        """True if nothing of a lease is left."""
        return lease.refused is not None or lease.reader.see().phase is Phase.ENDED

    def see(self, lease: SlurmLease) -> RankStatus:
        """Status of a lease now."""
        if lease.refused is not None:
            return RankStatus(Phase.ENDED, exit=lease.refused)
        seen = lease.reader.see()
        if seen.phase is Phase.ENDED:
            return self._explained(lease, seen)
        down = self._view.is_down(lease.order.node)
        if seen.phase is Phase.RUNNING and not down:
            self._press(lease)
            return seen
        job = self._job(lease)
        if seen.phase is Phase.STARTING:
            return self._not_begun(lease, seen, job, down)
        if down:
            return replace(seen, phase=Phase.LOST)
        if job is not None and job.is_over:
            self._sweep(lease)
        # Slurm's word that the node answers: whatever is left there ends, or is swept.
        return replace(seen, phase=Phase.RUNNING)

    def _job(self, lease: SlurmLease) -> SlurmJob | None:
        """Slurm's record of a lease's job; None if nothing is known yet."""
        job = lease.job
        return self._view.job(-1 if job.identity is None else job.identity, job.submitted_s)

    def _not_begun(
        self, lease: SlurmLease, seen: RankStatus, job: SlurmJob | None, down: bool
    ) -> RankStatus:
        if job is None or job.is_pending or not job.is_over:
            began = job is not None and not job.is_pending
            return replace(seen, phase=Phase.LOST) if down and began else seen
        node, state = lease.order.node, self._state
        why = slurm_jobs.why_not(job.code, node, state, sys.executable)
        detail = why or f"Slurm job {job.identity} is {job.state} ({job.reason}) and never began"
        if lease_files.void(lease.order.directory, detail):
            if why:
                refuse(lease, detail)
                self.blind[node] = detail
            return self.see(lease)
        return seen

    def _explained(self, lease: SlurmLease, seen: RankStatus) -> RankStatus:
        """Say so where somebody else stopped a lease: scancel by hand, a time limit, an administrator."""
        if seen.exit is None or seen.exit.reason != "stopped" or seen.exit.detail:
            return seen
        told = read_json(f"{lease.order.directory}/lease.json") or {}
        if told.get("stop") is True:
            return seen
        detail = (
            f"Slurm ended job {lease.job.identity}: cancelled by somebody, or out of its time limit"
        )
        return replace(seen, exit=replace(seen.exit, detail=detail))

    def _press(self, lease: SlurmLease) -> None:
        """Kill a job whose supervisor should have ended long ago, unless another lease is in it."""
        job = lease.job
        if lease.kill_at_s is None or time.monotonic() < lease.kill_at_s or job.identity is None:
            return
        lease.kill_at_s = None
        others = [self._leases[key] for key in job.members if key != lease.order.key]
        if all(self.is_over(other) for other in others):
            with suppress(HostError):
                self._slurm.signal([job.identity], "KILL", everyone=True)

    def _sweep(self, lease: SlurmLease) -> None:
        """Have a job on its node end what is left of a lease whose supervisor was killed."""
        if lease.sweep is not None:
            job = self._view.job(lease.sweep, lease.sweep_s)
            if job is None or not job.is_over:
                return
        if time.monotonic() - lease.sweep_s < SWEEP_AGAIN_S:
            return
        lease.sweep_s = time.monotonic()
        options = slurm_jobs.sweep_options(lease.order, self._run, self._options)
        text = slurm_jobs.script(self._state, lease.order.directory, sys.executable, "sweep")
        with suppress(HostError):
            lease.sweep = self._slurm.submit(options, text)
