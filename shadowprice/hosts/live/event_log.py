"""Event log of a run's leases and jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shadowprice.hosts.live.checkpoints import damaged_before
from shadowprice.hosts.live.clock import Clock
from shadowprice.hosts.live.lease import (
    CANCELLED,
    FAILED,
    FINISHED,
    Ending,
    HeldLease,
    JobRecord,
    Kind,
    LeaseGrant,
    LeaseOutcome,
)
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.measuring import JobProgress, Measuring, timed
from shadowprice.hosts.protocol import Device
from shadowprice.instances.features import Feature
from shadowprice.instances.schedule import ALONE
from shadowprice.solvers.policy import Decision, State

_CONDITIONS = ("job", "co_runner", "gpu_type", "gpus", "nodes")
_TRACEBACK = "Traceback (most recent call last):"
_CANCELLED = "cancelled by a person"

# Reasons, for people who wait.


def waiting_reasons(
    tracked: Sequence[JobRecord], state: State, decision: Decision
) -> dict[str, str]:
    """Reason that each job waits after a decision, as far as can be seen from outside."""
    return {
        tracked[job].job.name: _reason(state.gang[job], decision.free_gpus)
        for job in (*state.waiting, *decision.stops)
        if job not in decision.starts
    }


def _reason(gpus: int, free: int) -> str:
    """Reason that a job waits, as far as numbers tell."""
    numbers = f"needs {gpus} GPU{'s' * (gpus > 1)}, {free} free"
    if gpus > free:
        return numbers
    return f"{numbers}: the policy lets it wait, or they are badly spread"


def reason_line(why: str) -> str:
    r"""Reason in one line; of a traceback the last line, which says what was wrong, for the first.

    >>> reason_line("exited 1: Traceback (most recent call last):\n  File x\nImportError: no nope\n")
    'exited 1: ImportError: no nope'
    """
    before, traceback, after = why.partition(_TRACEBACK)
    lines = [line.strip() for line in (after if traceback else before).splitlines()]
    lines = [line for line in lines if line]
    return before + lines[-1] if traceback and lines else " ".join(lines)


@dataclass(frozen=True)
class EventWriter:
    """Writes into the ledger; every method belongs into a transaction of its caller.

    Events have the time at which they are written, which never decreases.
    """

    ledger: RunLedger
    tracked: Sequence[JobRecord]
    clock: Clock

    def granted(
        self,
        tracked: JobRecord,
        epoch: int,
        devices: Sequence[Device],
        partner: int,
        rate: float,
        more: Mapping[str, object],
    ) -> None:
        """A lease holds devices from now on.

        Parameters
        ----------
        more : mapping
            ``amounts``: thousandths of CPUs and MiB of memory by node; ``speed`` by its profile;
            ``replicas`` of its graph, ``[device, stage, number]`` by rank, and ``iteration_s``, what the
            graph says of an iteration with them [s].
        """
        name = tracked.job.name
        self._event(
            "granted",
            name,
            epoch,
            devices=[device.uuid for device in devices],
            node_of={device.uuid: device.node for device in devices},
            ranks=len({device.node for device in devices}),
            partner=self._partner(partner),
            from_step=tracked.step,
            **more,
        )
        columns = {"epoch": epoch, "why": "", "predicted_rate": rate, "step": tracked.step}
        if epoch == 1:
            columns["first_start_s"] = self.clock.now_s()
        self.ledger.update_job(name, state="running", **columns)

    def running(self, lease: HeldLease) -> None:
        """Its command was seen to run, for the first time."""
        self._of(lease, "running", after_s=lease.progress.running_s - lease.grant.granted_s)

    def partner(self, lease: HeldLease, partner: int) -> None:
        """A running lease shares its devices with another job from now on, or with nobody."""
        self._of(lease, "partner", partner=self._partner(partner))

    def stop_asked(self, lease: HeldLease) -> None:
        """It was asked to stop."""
        self._of(lease, "stop-asked", why=lease.end.stop_why)

    def ended(self, lease: HeldLease, end: Ending | None, what: LeaseOutcome, now_s: float) -> None:
        """A lease is over: its devices are free, or quarantined until that is confirmed."""
        step = damaged_before(lease)
        if step is None and what.step < lease.grant.from_step:
            # Its report is lost, and nothing else says how far it went back: to this step or an earlier one.
            step = what.step
        if step is not None:
            self._of(lease, "damaged", step=step)
        if end is None or not what.confirmed:
            self.quarantined(lease)
        else:
            self.released(lease, end, what.step, what.step)
        self._follow(lease.grant, end, what, now_s)

    def paused(self, lease: HeldLease) -> None:
        """The driver ends, and with it this lease; its end is written down by who resumes."""
        self.stop_asked(lease)
        why = "the driver ended; resume the run"
        self.ledger.update_job(lease.grant.job.name, state="waiting", why=why)

    def quarantined(self, lease: HeldLease) -> None:
        """Its devices are quarantined until its end is confirmed."""
        why = "its node does not answer" if lease.lost else "its processes may be left"
        for device in lease.grant.devices:
            self._of(lease, "quarantined", device=device.uuid, why=why)

    def released(self, lease: HeldLease, end: Ending, committed: int, own: int) -> None:
        """Its processes are confirmed gone.

        Parameters
        ----------
        committed : int
            Committed step of the job.
        own : int
            Step that it committed itself.
        """
        reached = lease.progress.step
        self._of(
            lease,
            "released",
            devices=[device.uuid for device in lease.grant.devices],
            code=end.code,
            reason=end.reason,
            forced=end.forced,
            step=reached,
            checkpoint_step=committed,
            lost_steps=max(reached - own, 0),
            detail=end.why[-2000:],
        )

    def confirmed(self, lease: HeldLease, end: Ending, committed: int, own: int) -> None:
        """Record that devices which were quarantined are free again; see :meth:`released`."""
        self.released(lease, end, committed, own)
        for device in lease.grant.devices:
            self._of(lease, "unquarantined", device=device.uuid)

    def nodes(self, before: set[str], now: frozenset[str]) -> None:
        """Nodes that went or came back."""
        for node in sorted(now - before):
            self._event("node-lost", node=node)
        for node in sorted(before - now):
            self._event("node-back", node=node)

    def missing(self, before: frozenset[str], now: frozenset[str]) -> None:
        """Devices that were not found again, or are back."""
        for what, uuids in (
            ("not found again, quarantined", now - before),
            ("found again", before - now),
        ):
            if uuids:
                self._event("note", text=f"{what}: {', '.join(sorted(uuids))}")

    def drained(self, before: frozenset[str], now: Mapping[str, str]) -> None:
        """Devices that are to be given out no more, with the reason, or may be again."""
        for uuid in sorted(now.keys() - before):
            self._event("quarantined", device=uuid, why=f"drained: {now[uuid]}")
        for uuid in sorted(before - now.keys()):
            self._event("unquarantined", device=uuid)

    def cancelled(self, tracked: JobRecord, now_s: float) -> None:
        """A job that held nothing is cancelled."""
        name = tracked.job.name
        self._event("cancelled", name, tracked.epoch)
        self.ledger.update_job(name, state=CANCELLED, finish_s=now_s, why=_CANCELLED)

    def retried(self, tracked: JobRecord) -> None:
        """A job that was given up is taken up again."""
        name = tracked.job.name
        self._event("retried", name, tracked.epoch, step=tracked.step)
        self.ledger.update_job(
            name, state="waiting", retry=0, tries=0, finish_s=None, why="taken up again"
        )

    def held_back(self, tracked: JobRecord) -> None:
        """A job that crashed at once waits for devices that are free without stopping others again."""
        why = "waits for free devices: it failed, and others were stopped for it since"
        self.ledger.update_job(tracked.job.name, why=why)

    def refused(self, tracked: JobRecord, now_s: float) -> None:
        """A job that holds nothing fails: what is stored of it cannot be read."""
        name, why = tracked.job.name, f"it cannot be read: {tracked.unreadable}"
        self._event("gave-up", name, tracked.epoch, why=why, tries=0)
        self.ledger.update_job(name, state=FAILED, finish_s=now_s, why=why[-500:])

    def arrived(self, tracked: JobRecord) -> None:
        """A job arrived."""
        job = tracked.job
        asks: dict[str, Any] = {"cpus": job.cpus, "memory_gb": job.memory_gb}
        self._event("arrived", job.name, **{key: value for key, value in asks.items() if value})
        self.ledger.update_job(job.name, state="waiting")

    def progress(
        self, lease: HeldLease, progress: JobProgress, measuring: Measuring, now_s: float
    ) -> None:
        """Record a running job's progress, as the engine knows it; keep its timed steps for good."""
        window = measuring.window(lease, progress.steps, progress.seconds)
        self._sample(lease, progress.step, window, measuring, now_s)
        if window is not None:
            self.ledger.observe(measuring.observation(lease, window))

    def samples(self, leases: Sequence[HeldLease], measuring: Measuring, now_s: float) -> None:
        """Record the rates of jobs, between two decisions."""
        with self.ledger.transaction():
            for lease in leases:
                window = measuring.window(lease, *timed(lease.report))
                self._sample(lease, lease.progress.step, window, measuring, now_s)

    def steps(self, leases: Sequence[HeldLease]) -> None:
        """Record the steps of jobs, between two decisions."""
        with self.ledger.transaction():
            for lease in leases:
                self.ledger.update_job(lease.grant.job.name, step=lease.progress.step)

    def _sample(
        self,
        lease: HeldLease,
        step: int,
        window: tuple[int, float] | None,
        measuring: Measuring,
        now_s: float,
    ) -> None:
        """A measurement for people who look, with the step of the job, and its rate where that was measured."""
        rate = None if window is None else window[0] / window[1]
        seen = measuring.observation(lease, window or (0, 0.0))
        columns = {name: getattr(seen, name) for name in _CONDITIONS}
        self.ledger.sample(time_s=now_s, epoch=lease.grant.epoch, step=step, rate=rate, **columns)
        measured = {} if rate is None else {"measured_rate": rate}
        self.ledger.update_job(seen.job, step=lease.progress.step, **measured)

    def decided(self, decision: Decision, why: Mapping[str, str], cpu_s: float) -> None:
        """Record what the policy decided, and why each waiting job waits."""
        names = [one.job.name for one in self.tracked]
        starts, mappings = decision.starts, decision.of(Feature.GRAPHS)
        data: dict[str, Any] = {
            "starts": {names[job]: list(map(list, pieces)) for job, pieces in starts.items()},
            "stops": [names[job] for job in decision.stops],
            "cpu_s": cpu_s,
        }
        if mappings:
            data["mappings"] = {
                names[job]: [[node, list(stages)] for node, stages in mapping]
                for job, mapping in mappings.items()
            }
        self._event("decided", **data, waiting=dict(why))
        for name, reason in why.items():
            self.ledger.update_job(name, why=reason)

    def note(self, kind: str, **data: Any) -> None:
        """Something about the run as a whole."""
        self._event(kind, **data)

    def _follow(
        self, grant: LeaseGrant, end: Ending | None, what: LeaseOutcome, now_s: float
    ) -> None:
        """Record what becomes of the job."""
        name, epoch = grant.holder
        columns: dict[str, Any] = {"step": what.step, "tries": what.tries}
        why = "lost sight of its node" if end is None else reason_line(end.why)[-500:]
        if what.over == FINISHED:
            self._event("finished", name, epoch, step=what.step, at_s=what.end_s)
            columns |= {"state": FINISHED, "finish_s": what.end_s, "why": ""}
        elif what.over == CANCELLED:
            self._event("cancelled", name, epoch)
            columns |= {"state": CANCELLED, "finish_s": now_s, "why": _CANCELLED}
        elif what.over == FAILED:
            self._event("gave-up", name, epoch, why=why, tries=what.tries)
            log = f"jobs/{name}/leases/{grant.keys[0].folder}/output.log"
            columns |= {"state": FAILED, "finish_s": now_s, "why": f"given up: {why}; see {log}"}
        elif end is not None and end.kind is Kind.FAILED:
            back_off_s = max(what.return_s - now_s, 0.0)
            if what.host_tries > self.tracked[grant.row].host_tries:
                why = f"its host failed, which is not counted: {why}"
            self._event("failed", name, epoch, why=why, tries=what.tries, back_off_s=back_off_s)
            columns |= {"state": "backing-off", "why": f"tried again in {back_off_s:.0f} s: {why}"}
        else:
            columns |= {"state": "waiting", "why": why}
        self.ledger.update_job(name, **columns)

    def _of(self, lease: HeldLease, kind: str, **data: Any) -> None:
        self._event(kind, *lease.grant.holder, **data)

    def _event(self, kind: str, job: str = "", epoch: int = 0, **data: Any) -> None:
        self.ledger.event(self.clock.now_s(), kind, job, epoch, **data)

    def _partner(self, row: int) -> str | None:
        """Name of a partner, None for nobody."""
        return None if row == ALONE else self.tracked[row].job.name
