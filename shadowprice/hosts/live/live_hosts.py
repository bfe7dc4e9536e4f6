"""The live half of real hosts: grants, waits, stops, and what happened since the last decision.

Nothing here runs while a record is replayed, but for the renewal of what runs. Its answers to the
engine pass through the journal, each in the transaction of its events.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shadowprice.errors import HostError
from shadowprice.hosts.lease_cpu_memory import LeaseCpuMemory
from shadowprice.hosts.lease_files import prune
from shadowprice.hosts.live import checkpoints as plain_checkpoints
from shadowprice.hosts.live.checkpoints import (
    FolderCopy,
    committed_by,
    raise_fences,
    reported_commit,
)
from shadowprice.hosts.live.graphs.run_graphs import PlacedReplicas
from shadowprice.hosts.live.lease import (
    ABSENT,
    CANCELLED,
    FAILED,
    FAILED_WHY,
    RUNNING,
    WAITING,
    Ending,
    HeldLease,
    JobRecord,
    Kind,
    LeaseOutcome,
    conclude,
    has_lived,
)
from shadowprice.hosts.live.measuring import JobProgress
from shadowprice.hosts.live.observer import RunObserver
from shadowprice.hosts.live.run import RealRun
from shadowprice.hosts.protocol import Device
from shadowprice.instances.features import Feature
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.terms.effect import Fields, Pieces

# Events between two decisions of a real run.


@dataclass(frozen=True)
class HostEvents:
    """Everything that the engine has to know before the policy decides.

    Parameters
    ----------
    progress : list of JobProgress
        Of every lease, those that ended included.
    ended : list of LeaseOutcome
        Of leases that are over.
    left : list of (int, str)
        Rows that the policy started but that got no devices, and of waiting jobs that are to get none; how the
        job is over now, cancelled by a person, or failed since what is stored of it cannot be read, if it is.
    confirmed : list of (int, int, int)
        Row and epoch of leases that were over before, and whose processes are gone now; the step
        that their job has committed.
    returned : list of int
        Rows that may run again, those that were given up before included.
    lost : list of str
        Nodes that do not answer.
    missing : list of str
        Uuids of devices that are absent or drained.
    submitted : list of int
        Numbers of jobs that were added to the queue and are taken in now.
    """

    progress: list[JobProgress]
    ended: list[LeaseOutcome]
    left: list[tuple[int, str]]
    confirmed: list[tuple[int, int, int]]
    returned: list[int]
    lost: list[str]
    missing: list[str]
    submitted: list[int]


LAST_LEASES = 20
"""Of each job: directories of its last leases that stay, with their output, when another begins; the ledger
has the rest."""
STOPPED_BY_POLICY = "the policy stops it"
_SAVED = frozenset({0, 75, 143})
"""Exit codes by which a command says that its own checkpoint folder is whole."""


class LiveHosts:
    """Acts on hosts, and sees what becomes of leases; answers that have events are made in a transaction."""

    def __init__(self, run: RealRun) -> None:
        self.run = run
        self.observer = RunObserver(run)
        self._failures = CommonFailures(run)
        self._held_back: set[int] = set()
        self._collected_s, self._stuck_s = -math.inf, math.inf
        self._granted: list[int] = []
        self._copies: list[tuple[HeldLease, FolderCopy]] = []

    def wait(self, until_s: float) -> float:
        """Wait until the engine has something to know, at the latest until a time."""
        while True:
            now_s = self._look()
            if self._happened(now_s):
                return now_s
            if now_s >= until_s:
                return until_s
            if until_s == math.inf and not self._expected():
                return math.inf
            self._check_standstill(now_s, until_s)
            self._sleep(now_s, until_s)

    def sleep_until(self, due_s: float) -> float:
        """Look after all leases until a time."""
        while (now_s := self._look()) < due_s:
            self._sleep(now_s, due_s)
        return now_s

    def events(self, now_s: float) -> HostEvents:
        """Collect what happened since the last time, and write it down."""
        run = self.run
        self._collected_s = run.clock.now_s()
        self.observer.log_absent()
        # First, for what follows tells of later leases of the same jobs.
        confirmed = self._confirmed()
        progress, ended = [], []
        for tracked in run.tracked:
            lease = tracked.lease
            if lease is None:
                continue
            progress.append(self._measure(lease, now_s))
            if run.monitor.over(lease):
                ended.append(self._conclude(lease, now_s))
        left = [
            (tracked.row, self._left(tracked, now_s))
            for tracked in run.tracked
            if tracked.unplaced or (tracked.view == WAITING and tracked.barred)
        ]
        retried = [one for one in run.tracked if one.retried]
        for tracked in retried:
            run.events.retried(tracked)
        self.observer.log_drained()
        returned = self._returned(ended, now_s)
        returned += [row for row, over in left if not (over or run.tracked[row].over)]
        return HostEvents(
            progress=progress,
            ended=ended,
            left=left,
            confirmed=confirmed,
            returned=[*returned, *(tracked.row for tracked in retried)],
            lost=sorted(run.monitor.lost),
            missing=sorted(run.unusable()),
            submitted=run.arrivals.fresh(),
        )

    def _left(self, tracked: JobRecord, now_s: float) -> str:
        """Write down how a job that holds nothing is over now; empty if it was before, or goes on."""
        if tracked.over or not tracked.barred:
            return ""
        if tracked.cancel:
            self.run.events.cancelled(tracked, now_s)
            return CANCELLED
        self.run.events.refused(tracked, now_s)
        return FAILED

    def wait_stops(self, rows: Sequence[int], until_s: float) -> list[int]:
        """Ask leases to end, all at the same time, and wait until some are over.

        Parameters
        ----------
        until_s : float
            Until when at the latest [s]; infinity waits for all of them.

        Returns
        -------
        list of int
            Rows of those that are; without any of them only when the time has come.
        """
        leases = [lease for row in rows if (lease := self.run.tracked[row].lease) is not None]
        self.observer.ask_stop(leases, STOPPED_BY_POLICY)
        while not (over := self._over(rows, until_s)) and self.run.clock.now_s() < until_s and rows:
            self.run.clock.sleep(min(self.run.limits.poll_s, 0.01))
            self._look()
        return over

    def _over(self, rows: Sequence[int], until_s: float) -> list[int]:
        """Rows whose leases are over, where some are enough, else if all are."""
        leases = [(row, self.run.tracked[row].lease) for row in rows]
        over = [row for row, lease in leases if lease is None or self.run.monitor.over(lease)]
        return over if until_s < math.inf or len(over) == len(rows) else []

    def grant(
        self,
        tracked: JobRecord,
        pieces: Pieces,
        fields: Fields,
        cpu_memory: LeaseCpuMemory,
        replicas: PlacedReplicas | None = None,
    ) -> tuple[int, list[str]]:
        """Epoch and devices of a new lease; no devices if some, or its CPUs or memory, are not to be had."""
        run, partner = self.run, fields.get(Feature.SHARING, ALONE)
        may = not tracked.barred and run.devices.has_cpu_memory(cpu_memory.by_node)
        devices = self._find(pieces, partner) if may else ()
        if not devices:
            return tracked.epoch, []
        epoch = tracked.epoch + 1
        rate = run.measuring.work_rate(tracked.row, pieces, fields)
        held = cpu_memory.by_node
        more: dict[str, object] = {"amounts": held} if held else {}
        if cpu_memory.chosen is not None:
            more["speed"] = run.measuring.speed(tracked.row, pieces, fields)
        if replicas is not None:
            more |= replicas.event_fields(devices)
        run.events.granted(tracked, epoch, devices, partner, rate, more)
        self._granted.append(tracked.row)
        return epoch, [device.uuid for device in devices]

    def _find(self, pieces: Pieces, partner: int) -> tuple[Device, ...]:
        devices = self.run.devices
        other = None if partner == ALONE else self.run.tracked[partner].lease
        if other is not None:
            shared = other.grant.devices
            return shared if devices.joinable(shared) else ()
        free = [devices.find(node, count) for node, count in pieces]
        # The pool of devices learns what is missing with the next events only.
        missing = self.run.unusable()
        if not all(free) or any(device.uuid in missing for part in free for device in part):
            return ()
        return tuple(device for part in free for device in part)

    def start_granted(self) -> None:
        """Carry out the grants that were written down."""
        run, rows = self.run, self._granted
        self._granted = []
        granted = [lease for row in rows if (lease := run.tracked[row].lease) is not None]
        for lease in granted:
            lease.unstarted = True
        epochs = {self._directory(lease): lease.grant.epoch for lease in granted}
        # The fence is raised first: whoever ran this job before is refused.
        for lease, refused in zip(granted, raise_fences(epochs), strict=True):
            # Starting many takes long, and the others go on meanwhile.
            run.monitor.renew(run.leases())
            if refused is None:
                self._prepare(lease)
            else:
                # Without a fence nobody may start: the lease is void, and is tried again.
                run.events.note("note", text=str(refused))
                run.monitor.void(lease)
        lost = {lease.grant.row for lease in run.devices.written_off()}
        for lease in granted:
            if lease.grant.row not in lost:
                prune(self._directory(lease) / "leases", LAST_LEASES + len(lease.grant.orders))

    def _directory(self, lease: HeldLease) -> Path:
        """Directory of its job."""
        return self.run.launch_specs.job_directory(lease.grant.job.name)

    def _prepare(self, lease: HeldLease) -> None:
        """Carry a grant out whose fence is raised."""
        if not lease.grant.job.keeps_checkpoints:
            self._start(lease, None)
            return
        self._copies.append((lease, FolderCopy(self._directory(lease), lease.grant.epoch)))
        self._start_copied()

    def _start_copied(self) -> None:
        """Start leases of which the folder of checkpoints is prepared, or cannot be."""
        for lease, copy in [each for each in self._copies if each[1].over]:
            self._copies.remove((lease, copy))
            self._start(lease, copy.error)

    def _start(self, lease: HeldLease, error: OSError | None) -> None:
        """Start a lease, unless its folder of checkpoints could not be prepared."""
        if not lease.unstarted:
            return  # it was stopped meanwhile
        run = self.run
        if error is not None:
            text = f"its checkpoints cannot be copied: {error}"
            if isinstance(error, shutil.Error):
                # What the command left cannot be copied, a pipe for instance: its failure, not the run's.
                lease.end.stop_why = f"{FAILED_WHY}{text}"
            else:
                # Of its disk, say: it is void, and is tried again.
                run.events.note("note", text=f"job {lease.grant.job.name}: {text}")
            run.monitor.void(lease)
            return
        lease.unstarted, lease.ordered_s = False, run.clock.now_s()
        lease.progress.moved_s = max(lease.progress.moved_s, lease.ordered_s)
        run.monitor.host.start(lease.grant.orders)

    def _look(self) -> float:
        """Look at all leases once, and start those that are prepared; returns the time [s]."""
        self._start_copied()
        return self.observer.look()

    def stop(self, lease: HeldLease, now_s: float) -> tuple[JobProgress, LeaseOutcome]:
        """Progress and outcome of a lease that was stopped, and is over: its devices are free, or known not to be."""
        progress = self._measure(lease, now_s)
        return progress, self._conclude(lease, now_s, at_once=True)

    def continue_run(self, lease: HeldLease, partner: int, at_s: float) -> JobProgress:
        """Progress of a lease that has another partner, or none, from now on."""
        progress = self._measure(lease, at_s)
        self.run.events.partner(lease, partner)
        return progress

    def _measure(self, lease: HeldLease, now_s: float) -> JobProgress:
        """Progress of a lease, written down."""
        run = self.run
        progress = run.measuring.progress(run.tracked[lease.grant.row], lease, now_s)
        run.events.progress(lease, progress, run.measuring, now_s)
        return progress

    def _conclude(self, lease: HeldLease, now_s: float, *, at_once: bool = False) -> LeaseOutcome:
        """Determine and record the outcome of a lease that is over.

        Parameters
        ----------
        at_once : bool
            Whether the job, unless it is over, waits from now on even if it failed.
        """
        run, tracked = self.run, self.run.tracked[lease.grant.row]
        end = lease.ending()
        step = self._committed(lease, end)
        self.observer.drain_unhealthy(lease)
        common = self._failures.include(lease, end, step, now_s)
        outcome = conclude(tracked, lease, end, step, now_s, run.limits, with_others=common)
        if at_once and not outcome.over:
            outcome = replace(outcome, return_s=now_s)
        run.events.ended(lease, end, outcome, now_s)
        return outcome

    def _sleep(self, now_s: float, until_s: float) -> None:
        wait_s = min(self.run.limits.poll_s, until_s - now_s)
        for tracked in self.run.tracked:
            # Who has come back already waits for the end of the round, as everybody does.
            if now_s < tracked.return_s < now_s + wait_s:
                wait_s = max(tracked.return_s - now_s, 0.001)
        self.run.clock.sleep(wait_s)

    def _happened(self, now_s: float) -> bool:
        """True if the engine has something to know."""
        run = self.run
        if run.monitor.lost != run.devices.lost or run.unusable() != run.devices.missing:
            return True
        if run.arrivals.fresh() or any(lease.gone for lease in run.devices.written_off()):
            return True
        return any(self._news(tracked, now_s) for tracked in run.tracked)

    def _news(self, tracked: JobRecord, now_s: float) -> bool:
        if tracked.lease is not None:
            return self.run.monitor.over(tracked.lease)
        if tracked.unplaced:
            # It got no devices: the policy may want the same again and again.
            limits = self.run.limits
            return now_s >= self._collected_s + max(limits.back_off_s, limits.poll_s)
        if tracked.view == WAITING:
            return tracked.barred
        return tracked.retried or (tracked.return_s <= now_s and self._may_return(tracked))

    def _expected(self) -> bool:
        """True if anything can still happen by itself."""
        tracked = self.run.tracked
        if self.run.arrivals.open or any(one.retried for one in tracked):
            return True
        if all(one.over for one in tracked):
            return False
        return (
            bool(self.run.leases())
            or any(one.return_s < math.inf or one.view == RUNNING for one in tracked)
            or (self._lacks_devices() and any(one.view == WAITING for one in tracked))
        )

    def _lacks_devices(self) -> bool:
        """True if nodes or devices of the run cannot be given out now, but may be later."""
        return bool(self.run.monitor.lost or self.run.unusable())

    def _check_standstill(self, now_s: float, until_s: float) -> None:
        """Give up when jobs wait for nodes that do not come back, and nothing else could change that.

        Raises
        ------
        HostError
            Saying what they wait for, and since when.
        """
        run, tracked = self.run, self.run.tracked
        quarantined = self._lacks_devices() or bool(run.devices.written_off())
        stuck = (
            not run.arrivals.open  # which waits with its jobs
            and (until_s == math.inf or quarantined)
            and all(one.lease is None and one.return_s == math.inf for one in tracked)
            # Neither is anybody still to arrive.
            and all(one.over or one.view != ABSENT for one in tracked)
        )
        self._stuck_s = min(self._stuck_s, now_s) if stuck else math.inf
        if now_s - self._stuck_s > run.limits.node_s:
            waiting = sum(one.view == WAITING for one in tracked)
            lost = ", ".join(sorted(run.monitor.lost)) or "devices in quarantine"
            raise HostError(
                f"{waiting} jobs wait for {lost} since {run.limits.node_s:g} s; bring them back and "
                "run the same command again"
            )

    def _committed(self, lease: HeldLease, end: Ending | None) -> int:
        """Step from which the job goes on; its own folder of checkpoints is adopted if whole."""
        job, directory = lease.grant.job, self._directory(lease)
        if end is not None and job.keeps_checkpoints:
            # What its host ended may have saved, as what was killed after the grace.
            by_host = end.host_failed and lease.began
            if end.kind in (Kind.FINISHED, Kind.PREEMPTED) or by_host:
                whole = end.code in _SAVED and not end.forced and not by_host
                plain_checkpoints.adopt(directory, lease.grant.epoch, whole=whole)
            elif end.kind is Kind.FAILED and not end.host_failed:
                plain_checkpoints.fall_back(directory)
        if end is not None and end.kind is Kind.FINISHED:
            return job.iterations
        return committed_by(lease, directory)

    def _confirmed(self) -> list[tuple[int, int, int]]:
        """Leases that were written off and are gone now, and the step from which their jobs go on."""
        confirmed, steps = [], dict[int, int]()
        for lease in self.run.devices.written_off():
            if (end := lease.ending()) is not None:
                row = lease.grant.row
                # Until another lease was granted, it could still commit.
                own = reported_commit(lease)
                steps[row] = step = max(steps.get(row, self.run.tracked[row].step), own)
                self.run.events.confirmed(lease, end, step, own)
                confirmed.append((row, lease.grant.epoch, step))
        return confirmed

    def _returned(self, ended: Sequence[LeaseOutcome], now_s: float) -> list[int]:
        """Jobs that may run again: at once after a preemption, later after a failure."""
        rows = [outcome.row for outcome in ended if outcome.return_s <= now_s]
        leases = [self.run.tracked[each.row].lease for each in ended if each.confirmed]
        freed = {device.uuid for lease in leases if lease for device in lease.grant.devices}
        for tracked in self.run.tracked:
            due = tracked.view == ABSENT and tracked.return_s <= now_s
            if due and self._may_return(tracked, freed):
                rows.append(tracked.row)
        return rows

    def _may_return(self, tracked: JobRecord, freed: Collection[str] = ()) -> bool:
        """True if a job that failed may be offered to the policy again, now that it has waited.

        One for which others were stopped since, and that has not lived, waits for free devices: a job that
        crashes at once would stop them again each time. That it waits for them is noted once.

        Parameters
        ----------
        freed : collection of str
            Uuids of devices that are free from now on.
        """
        if not tracked.stopped_others or self._most_free(tracked, freed) >= tracked.job.gpus:
            self._held_back.discard(tracked.row)
            return True
        if tracked.row not in self._held_back:
            self._held_back.add(tracked.row)
            self.run.events.held_back(tracked)
        return False

    def _most_free(self, tracked: JobRecord, freed: Collection[str]) -> int:
        """Free devices of the GPU type that has most, of those on which a job can run."""
        instance = self.run.measuring.instance
        rates, free = instance.workload.throughput, dict[int, int]()
        for node, column in enumerate(instance.cluster.type_of_node):
            if rates is None or rates[tracked.row, column] > 0:
                free[column] = free.get(column, 0) + self.run.devices.count_free(node, freed)
        return max(free.values(), default=0)


# Failures that are not a job's own.


MOMENTS_S = 10.0
"""Jobs of a node that fail within so long of one another [s] have a cause in common."""


@dataclass(frozen=True)
class _End:
    """An end of a lease of a job."""

    time_s: float
    nodes: frozenset[str]
    failed: bool


class CommonFailures:
    """Last ends of the leases of a run, by which a failure of all that was on a node is known.

    A driver that takes a run over knows of none: what followed from them is in the journal.
    """

    def __init__(self, run: RealRun) -> None:
        self._run = run
        self._last: dict[int, _End] = {}

    def include(self, lease: HeldLease, end: Ending | None, step: int, now_s: float) -> bool:
        """True if a lease ends, and fails, with all other jobs on its nodes, or, alone there, of the run.

        A job that never came to a checkpoint, nor lasted a minute, has failed by itself.

        Parameters
        ----------
        step : int
            Step that its job has committed.
        """
        run, row, nodes = self._run, lease.grant.row, _nodes(lease)
        others = [end for of, end in self._ends(now_s) if of != row]
        self._last[row] = _End(now_s, nodes, _failed(end))
        tracked = run.tracked[row]
        if not (tracked.lived or has_lived(tracked, lease, step, now_s, run.limits)):
            return False
        near = [end for end in others if end.nodes & nodes] or others
        return bool(near) and all(end.failed for end in near)

    def _ends(self, now_s: float) -> Iterator[tuple[int, _End]]:
        """Ends of moments ago, those that are not concluded yet, and leases that go on."""
        for row, end in self._last.items():
            if now_s - end.time_s <= MOMENTS_S:
                yield row, end
        for tracked in self._run.tracked:
            lease = tracked.lease
            # Of one that has just begun, or is to end, nothing can be said.
            if lease is None or (lease.end.stop_why and not lease.gone):
                continue
            if lease.gone or now_s - lease.grant.granted_s > MOMENTS_S:
                yield tracked.row, _End(now_s, _nodes(lease), _failed(lease.ending()))


def _nodes(lease: HeldLease) -> frozenset[str]:
    return frozenset(device.node for device in lease.grant.devices)


def _failed(end: Ending | None) -> bool:
    return end is not None and end.kind is Kind.FAILED
