"""Slurm: one job for each rank of a lease, by the command line alone.

A lease is one ``--no-requeue`` job with its epoch in its environment; stopping it is ``scancel``.
Leases that share devices are in one job, since Slurm lets nobody choose who shares one
(:mod:`shadowprice.hosts.supervision.slurm_job`). Slurm also chooses *which* devices of a node a
job gets: the run's ``n0/gpu:1`` is a place in a count, and ``CUDA_VISIBLE_DEVICES`` is what Slurm
sets. Its own queue decides when a job starts; on a cluster with other users, run inside one long
allocation instead (:mod:`.pilot`).

The state directory must be on storage that the driver and all nodes share, with locks that work
between them (NFS 4, Lustre mounted with ``flock``). Tested with Slurm 22.05.8.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from shadowprice.errors import HostError
from shadowprice.hosts import lease_files
from shadowprice.hosts.protocol import (
    Device,
    DiscoveredNode,
    HostKind,
    LaunchSpec,
    LeaseKey,
    Phase,
    RankStatus,
)
from shadowprice.hosts.shared_storage import SharedStorageHost
from shadowprice.hosts.slurm.commands import (
    GB_PER_MIB,
    Slurm,
    SlurmJob,
    SlurmNode,
    SlurmView,
)
from shadowprice.hosts.slurm.jobs import (
    Comment,
    HeldJob,
    Refused,
    SlurmLease,
    SlurmOptions,
    add_guest,
    lease_options,
    place,
    read_note,
    script,
    sweep_options,
    why_not,
    write_note,
)
from shadowprice.hosts.supervision.files import make_folder, read_json

KILL_AFTER_S = 5.0
"""After a supervisor should have killed its command [s]: it hangs, and Slurm is told to kill."""
SWEEP_AGAIN_S = 5.0
COUNTS_S = 1.5
"""Until Slurm's counts of GPUs in use know of a job that began or ended [s]."""
SUBMITTERS = 8
SLOT_TYPE = "cpu"
# Which devices of a node a job has, only Slurm knows.
_SLURM_SETS = frozenset({"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"})


def open_host(address: str, state: Path, run_id: str) -> SlurmHost:
    """The cluster that Slurm's commands reach from here.

    Parameters
    ----------
    address : str
        ``PARTITION[,time=LIMIT][,account=NAME][,qos=NAME][,reservation=NAME][,exclude=NODE]``.

    Raises
    ------
    HostError
        If the address is malformed or Slurm's commands are missing.
    """
    return SlurmHost(Slurm(), SlurmOptions.parse(address), state, run_id)


class SlurmHost(SharedStorageHost[SlurmLease]):
    """Host of one Slurm cluster.

    A lease has ended when its supervisor wrote so. Where a supervisor was killed, a job on its
    node, the *sweep*, ends what it left and writes the file. While Slurm calls the node down
    nothing of this can happen, and the lease is lost, not ended: the processes of a node that only
    lost its daemon go on. Leases may share devices if the devices of one are all among those of the other.
    """

    name = "slurm"

    def __init__(self, slurm: Slurm, options: SlurmOptions, state: Path, run_id: str) -> None:
        super().__init__(state)
        self._slurm, self._options, self._run = slurm, options, run_id
        self._view = SlurmView(slurm, options.partition)
        self._nodes: dict[str, DiscoveredNode] = {}
        self._jobs: dict[LeaseKey, HeldJob] = {}
        # Nodes that do not see the state directory or this Python, and what to say of them.
        self._blind: dict[str, str] = {}
        self._began = False

    def discover(self) -> tuple[DiscoveredNode, ...]:
        """Nodes that take jobs, with what strangers' jobs leave of their GPUs.

        Where strangers seem to hold some, Slurm is asked twice: its counts are up to a second old, and
        one that is over, or a job of this run, may be counted.

        Raises
        ------
        HostError
            If Slurm does not answer, nothing is free, or the time limit is longer than that of the
            partition.
        """
        strangers = self._strangers(*self._ask())
        self._options.check_limit(self._slurm.time_limit(self._options.partition))
        if strangers:
            time.sleep(COUNTS_S)
        return self.rediscover()

    def rediscover(self) -> tuple[DiscoveredNode, ...]:
        """The same by one question, as Slurm counts now.

        Raises
        ------
        HostError
            If Slurm does not answer, or nothing is free.
        """
        partition = self._options.partition
        where = f"partition {partition}" if partition else "the cluster"
        nodes, own = self._ask()
        found = discovered_nodes(nodes, own, self._options.exclude, where)
        self._nodes = {node.name: node for node in found}
        return found

    def _ask(self) -> tuple[dict[str, SlurmNode], Counter[str]]:
        """Nodes of the partition, and the GPUs of each that jobs of this run hold."""
        own: Counter[str] = Counter()
        for job, comment in self._own(self._slurm.jobs()):
            if not job.is_over and not job.is_pending:
                own[job.node] += comment.gpus
        return self._slurm.nodes(self._options.partition), own

    def _strangers(self, nodes: Mapping[str, SlurmNode], own: Mapping[str, int]) -> bool:
        """True if jobs of others seem to hold GPUs of nodes that this run may use."""
        return any(
            sum(node.gpus_used.values()) > own.get(name, 0)
            for name, node in nodes.items()
            if name not in self._options.exclude
        )

    def _lease_of(self, order: LaunchSpec) -> SlurmLease:
        return SlurmLease(order, HeldJob.of(order, self._state))

    def _environment(self, order: LaunchSpec) -> Mapping[str, str]:
        """Without what Slurm sets; slots stand for GPUs that must not be visible."""
        if "/cpu:" in order.devices[0].uuid:
            return order.env
        return {name: value for name, value in order.env.items() if name not in _SLURM_SETS}

    def _launch(self, leases: Sequence[SlurmLease]) -> None:
        """Submit a job for each lease, or hand it to the job that holds its devices."""
        submit = []
        for lease in leases:
            try:
                if self._assign(lease):
                    submit.append(lease)
            except (OSError, Refused) as error:
                lease.refuse(str(error))
        with ThreadPoolExecutor(SUBMITTERS) as pool:
            list(pool.map(self._submit, submit))

    def _assign(self, lease: SlurmLease) -> bool:
        """Find a new lease's job, and write it down; true if that is its own, to be submitted."""
        known = [other for other in self._leases.values() if other.job.members]
        living = {other.job.holder for other in known if not other.is_over}
        job = place(lease.order, [self._jobs[holder] for holder in living])
        if job is not None:
            write_note(lease.order, job)
            if add_guest(lease.order, job):
                self._join(lease, job)
                return False
        write_note(lease.order, lease.job)
        make_folder(str(lease.job.guests))
        self._join(lease, lease.job)
        return True

    def _join(self, lease: SlurmLease, job: HeldJob) -> None:
        lease.job = self._jobs[job.holder] = job
        job.members.add(lease.order.key)

    def _submit(self, lease: SlurmLease) -> None:
        order = lease.order
        try:
            if order.node not in self._nodes:
                raise HostError(f"slurm: node {order.node} was not discovered")
            node = self._nodes[order.node]
            options = lease_options(order, node, self._run, self._options)
            text = script(self._state, order.directory, sys.executable, "hold")
            tags = {"SHADOWPRICE_JOB": order.key.job, "SHADOWPRICE_EPOCH": str(order.key.epoch)}
            lease.job.identity = self._slurm.submit(options, text, tags)
            lease.job.submitted_s = time.monotonic()
        except HostError as error:
            lease.refuse(str(error))

    def adopt(self, orders: Sequence[LaunchSpec]) -> None:
        """Go on with leases that have begun; the others are void, and their jobs cancelled."""
        self._view.jobs.get(0.0)
        super().adopt(orders)
        pending = [job.identity for job, _ in self._own(self._view.jobs.answer) if job.is_pending]
        with suppress(HostError):  # they end by themselves when they start
            self._slurm.cancel(pending)

    def _find(self, lease: SlurmLease) -> None:
        """Find the job of a lease of an earlier driver, if it is known to Slurm."""
        job = read_note(lease.order, self._state, self._jobs)
        if job.identity is None:
            job.submitted_s = time.monotonic() - 1e-3
            for found, comment in self._own(self._view.jobs.get(0.0)):
                if comment.key == job.holder:
                    job.identity = found.identity
        self._join(lease, job)

    def _own(self, jobs: Mapping[int, SlurmJob]) -> Iterator[tuple[SlurmJob, Comment]]:
        """Jobs of leases of this run."""
        for job in jobs.values():
            comment = Comment.parse(job.comment)
            if comment is not None and comment.run == self._run and not comment.sweep:
                yield job, comment

    def _wake(self, leases: Sequence[SlurmLease], grace_s: float) -> None:
        """Have ``scancel`` tell the jobs' scripts to look at once."""
        waiting, running = set(), set()
        for lease in leases:
            lease.kill_at_s = time.monotonic() + grace_s + KILL_AFTER_S
            job = lease.job
            if job.identity is None:
                continue
            if not lease.is_over:
                running.add(job.identity)
            elif all(self._leases[member].is_over for member in job.members):
                waiting.add(job.identity)
        # Each may have ended meanwhile, which scancel calls an error.
        with suppress(HostError):
            self._slurm.cancel(sorted(waiting), only_pending=True)
        with suppress(HostError):
            self._slurm.signal(sorted(running), "USR1")

    def poll(self, keys: Collection[LeaseKey]) -> Mapping[LeaseKey, RankStatus]:
        """Read files; Slurm is asked for nodes once a second, for jobs only where files leave a doubt.

        Raises
        ------
        HostError
            If the nodes do not see the state directory, as the first leases of a run find out.
        """
        found = super().poll(keys)
        self._began = self._began or any(status.phase is Phase.RUNNING for status in found.values())
        if self._blind and not self._began:
            raise HostError(f"slurm: {next(iter(self._blind.values()))}")
        return found

    def _look(self, lease: SlurmLease) -> RankStatus:
        status = lease.reader.status()
        if status.phase is Phase.ENDED:
            return self._explained(lease, status)
        down = self._view.is_down(lease.order.node)
        if status.phase is Phase.RUNNING and not down:
            self._kill_overdue(lease)
            return status
        job = self._job(lease)
        if status.phase is Phase.STARTING:
            return self._not_begun(lease, status, job, down)
        if down:
            return replace(status, phase=Phase.LOST)
        if job is not None and job.is_over:
            self._sweep(lease)
        if self._view.is_closed(lease.order.node):
            return replace(status, phase=Phase.LOST)  # no sweep starts there
        # Slurm's word that the node answers: whatever is left there ends, or is swept.
        return replace(status, phase=Phase.RUNNING)

    def _job(self, lease: SlurmLease) -> SlurmJob | None:
        """Slurm's record of a lease's job; None if nothing is known yet."""
        job = lease.job
        return self._view.job(-1 if job.identity is None else job.identity, job.submitted_s)

    def _not_begun(
        self, lease: SlurmLease, status: RankStatus, job: SlurmJob | None, down: bool
    ) -> RankStatus:
        node, state = lease.order.node, self._state
        if job is not None and job.is_pending and self._view.is_closed(node):
            return self._withdraw(lease, status)
        if job is None or job.is_pending or not job.is_over:
            began = job is not None and not job.is_pending
            return replace(status, phase=Phase.LOST) if down and began else status
        why = why_not(job.code, node, state, sys.executable)
        detail = why or f"Slurm job {job.identity} is {job.state} ({job.reason}) and never began"
        if lease_files.void(lease.directory, detail):
            if why:
                lease.refuse(detail)
                self._blind[node] = detail
            return self._status(lease)
        return status

    def _withdraw(self, lease: SlurmLease, status: RankStatus) -> RankStatus:
        """Let a lease never begin whose job waits for a node that starts none; others are open."""
        if not lease_files.void(lease.directory, f"node {lease.order.node} takes no jobs now"):
            return status
        # Its supervisor, should it be started all the same, finds that it is void.
        if lease.job.identity is not None:
            with suppress(HostError):
                self._slurm.cancel([lease.job.identity], only_pending=True)
        return self._status(lease)

    def _explained(self, lease: SlurmLease, status: RankStatus) -> RankStatus:
        """Say so where somebody else stopped a lease: scancel by hand, a time limit, an administrator."""
        if status.exit is None or status.exit.reason != "stopped" or status.exit.detail:
            return status
        if (read_json(f"{lease.directory}/lease.json") or {}).get("stop") is True:
            return status
        detail = (
            f"Slurm ended job {lease.job.identity}: cancelled by somebody, or out of its time limit"
        )
        return replace(status, exit=replace(status.exit, detail=detail))

    def _kill_overdue(self, lease: SlurmLease) -> None:
        """Kill a job whose supervisor should have ended long ago, unless another lease is in it."""
        job = lease.job
        if lease.kill_at_s is None or time.monotonic() < lease.kill_at_s or job.identity is None:
            return
        lease.kill_at_s = None
        others = [self._leases[key] for key in job.members if key != lease.order.key]
        if all(other.is_over for other in others):
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
        options = sweep_options(lease.order, self._run, self._options)
        text = script(self._state, lease.directory, sys.executable, "sweep")
        with suppress(HostError):
            lease.sweep = self._slurm.submit(options, text)

    def lost_nodes(self) -> frozenset[str]:
        """Discovered nodes that are down, take no jobs, or do not see the state directory."""
        nodes = self._view.nodes.get()
        closed = {name for name in self._nodes if name in nodes and not nodes[name].takes_jobs}
        return frozenset(closed | self._blind.keys())

    def close(self) -> None:
        """Nothing to let go of: jobs are left to their supervisors."""


def discovered_nodes(
    nodes: Mapping[str, SlurmNode], own: Mapping[str, int], exclude: frozenset[str], where: str
) -> tuple[DiscoveredNode, ...]:
    """Nodes that take jobs, with the devices on them that no stranger's job holds.

    Where no node has a GPU, each CPU is a slot that stands for one. A device is a place in Slurm's
    count, not an index on the node: which GPU a job gets is Slurm's own choice.

    Parameters
    ----------
    nodes : mapping of str to SlurmNode
        As ``sinfo`` tells.
    own : mapping of str to int
        GPUs that jobs of this run hold, by node.
    where : str
        For messages.

    Raises
    ------
    HostError
        If a node mixes types of GPU, or nothing is free.
    """
    usable = [
        node
        for name, node in sorted(nodes.items(), key=_natural)
        if node.takes_jobs and name not in exclude
    ]
    has_gpus = any(node.gpus for node in nodes.values())
    found = []
    for node in usable:
        made = _with_gpus(node, own.get(node.name, 0)) if has_gpus else _with_slots(node)
        if made.devices:
            found.append(made)
    if not found:
        states = Counter("+".join(sorted(node.states)).lower() for node in nodes.values())
        listed = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        raise HostError(
            f"slurm: no free device in {where} ({listed or 'no nodes at all'}); "
            "see `sinfo -N -l` and `squeue`, or name another partition"
        )
    return tuple(found)


def _natural(item: tuple[str, SlurmNode]) -> tuple[str, int, str]:
    name = item[0]
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0), name


def _with_gpus(node: SlurmNode, own: int) -> DiscoveredNode:
    if len(node.gpus) > 1:
        raise HostError(
            f"slurm: node {node.name} has GPUs of types {', '.join(sorted(node.gpus))}, expected one "
            f"type a node; leave it out with exclude={node.name}"
        )
    kind, count = next(iter(node.gpus.items()), ("gpu", 0))
    strangers = max(0, sum(node.gpus_used.values()) - own)
    devices = tuple(
        Device(node.name, index, f"{node.name}/gpu:{index}") for index in range(count - strangers)
    )
    return _node(node, kind, devices)


def _with_slots(node: SlurmNode) -> DiscoveredNode:
    devices = tuple(
        Device(node.name, index, f"{node.name}/cpu:{index}") for index in range(node.cpus)
    )
    return _node(node, SLOT_TYPE, devices)


def _node(node: SlurmNode, kind: str, devices: tuple[Device, ...]) -> DiscoveredNode:
    return DiscoveredNode(
        node.name,
        kind,
        devices,
        float(node.cpus),
        node.memory_mb * GB_PER_MIB,
        node.address,
        whole_cpus=True,
        amounts_in_pairs=False,
    )


HOST = HostKind(name="slurm", open_host=open_host)
