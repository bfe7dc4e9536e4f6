"""Slurm: one job for each rank of a lease, by the command line alone.

A lease is one ``--no-requeue`` job with its epoch in its environment; stopping it is ``scancel``.
Leases that share devices are in one job (:mod:`.agent`), since Slurm lets nobody choose who
shares one. Slurm also chooses *which* devices of a node a job gets: the run's ``n0/gpu:1`` is a place
in a count, and ``CUDA_VISIBLE_DEVICES`` is what Slurm sets. Its own queue decides when a job starts;
on a cluster with other users, run inside one long allocation instead (:mod:`.pilot`).

The state directory must be on storage that the driver and all nodes share, with locks that work
between them (NFS 4, Lustre mounted with ``flock``). Tested with Slurm 22.05.8.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from shadowprice.errors import HostError
from shadowprice.execution.hosts import lease_files
from shadowprice.execution.hosts.protocol import FoundNode, LaunchSpec, LeaseKey, Phase, RankStatus
from shadowprice.execution.hosts.slurm import jobs as slurm_jobs
from shadowprice.execution.hosts.slurm import leases as slurm_leases
from shadowprice.execution.hosts.slurm.cached_queries import SlurmView
from shadowprice.execution.hosts.slurm.commands import Slurm, SlurmJob
from shadowprice.execution.hosts.slurm.discovery import found_nodes
from shadowprice.execution.hosts.slurm.inspector import LeaseInspector, refuse
from shadowprice.execution.hosts.slurm.jobs import Comment
from shadowprice.execution.hosts.slurm.leases import HeldJob, Refused, SlurmLease
from shadowprice.execution.hosts.slurm.options import SlurmOptions
from shadowprice.execution.supervision.files import write_text

NAME = "slurm"
KILL_AFTER_S = 5.0
"""After a supervisor should have killed its command [s]: it hangs, and Slurm is told to kill."""
SUBMITTERS = 8
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


class SlurmHost:
    """Host of one Slurm cluster.

    Attributes
    ----------
    shares : bool
        Leases may share devices, if one lease's are all among the other's.
    """

    name = NAME
    shares = True

    def __init__(self, slurm: Slurm, options: SlurmOptions, state: Path, run_id: str) -> None:
        self._slurm, self._options = slurm, options
        self._state, self._run = state.resolve(), run_id
        self._view = SlurmView(slurm, options.partition)
        self._nodes: dict[str, FoundNode] = {}
        self._leases: dict[LeaseKey, SlurmLease] = {}
        self._jobs: dict[LeaseKey, HeldJob] = {}
        self._look = LeaseInspector(slurm, options, self._view, self._state, run_id, self._leases)
        self._began = False
        lease_files.copy_supervisor(self._state)
        agent = files("shadowprice.execution.hosts.slurm").joinpath("agent.py")
        write_text(str(self._state / slurm_jobs.AGENT), agent.read_text(encoding="utf-8"))

    def discover(self) -> tuple[FoundNode, ...]:
        """Nodes that take jobs, with what strangers' jobs leave of their GPUs.

        Raises
        ------
        HostError
            If Slurm does not answer, or nothing is free.
        """
        own: Counter[str] = Counter()
        for job in self._slurm.jobs().values():
            comment = Comment.parse(job.comment)
            if comment and comment.run == self._run and not job.is_over and not job.is_pending:
                own[job.node] += comment.gpus
        partition = self._options.partition
        where = f"partition {partition}" if partition else "the cluster"
        nodes = self._slurm.nodes(partition)
        found = found_nodes(nodes, own, self._options.exclude, where)
        self._nodes = {node.name: node for node in found}
        return found

    def start(self, orders: Sequence[LaunchSpec]) -> None:
        """Submit a job for each order, or hand it to the job that holds its devices."""
        submit = []
        for order in orders:
            if order.key in self._leases:
                continue
            try:
                env = {
                    k: v for k, v in order.env.items() if k not in _SLURM_SETS or _has_slots(order)
                }
                fresh = lease_files.write_order(replace(order, env=env))
                lease = self._admit(order) if fresh else self._take_over(order)
                if fresh and lease.job.holder == order.key:
                    submit.append(lease)
            except (OSError, Refused) as error:
                refuse(self._alone(order), str(error))
        with ThreadPoolExecutor(SUBMITTERS) as pool:
            list(pool.map(self._submit, submit))

    def _admit(self, order: LaunchSpec) -> SlurmLease:
        """Find or make the job of a new lease, and write it down."""
        living = {
            lease.job.holder for lease in self._leases.values() if not self._look.is_over(lease)
        }
        job = slurm_leases.place(order, [self._jobs[holder] for holder in living])
        if job is not None:
            slurm_leases.write_note(order, job)
            if slurm_leases.invite(order, job):
                return self._keep(order, job)
        lease = self._alone(order)
        slurm_leases.write_note(order, lease.job)
        slurm_leases.open_house(lease.job)
        return lease

    def _alone(self, order: LaunchSpec) -> SlurmLease:
        devices = tuple(device.uuid for device in order.devices)
        return self._keep(
            order, HeldJob(order.key, slurm_jobs.guests_of(self._state, order.directory), devices)
        )

    def _keep(self, order: LaunchSpec, job: HeldJob) -> SlurmLease:
        job.members.add(order.key)
        self._jobs[job.holder] = job
        lease = SlurmLease(order, job, lease_files.LeaseReader(order.directory))
        self._leases[order.key] = lease
        return lease

    def _submit(self, lease: SlurmLease) -> None:
        order = lease.order
        try:
            if order.node not in self._nodes:
                raise HostError(f"slurm: node {order.node} was not discovered")
            node = self._nodes[order.node]
            options = slurm_jobs.lease_options(order, node, self._run, self._options)
            text = slurm_jobs.script(self._state, order.directory, sys.executable, "hold")
            tags = {"SHADOWPRICE_JOB": order.key.job, "SHADOWPRICE_EPOCH": str(order.key.epoch)}
            lease.job.identity = self._slurm.submit(options, text, tags)
            lease.job.submitted_s = time.monotonic()
        except HostError as error:
            refuse(lease, str(error))

    def adopt(self, orders: Sequence[LaunchSpec]) -> None:
        """Go on with leases that have begun; the others are void, and their jobs cancelled."""
        self._view.jobs.get(0.0)
        for order in orders:
            if order.key not in self._leases:
                self._take_over(order)
            lease_files.adopt_or_void(order.directory)
        pending = [
            job.identity
            for job in self._view.jobs.answer.values()
            if job.is_pending and self._is_ours(job)
        ]
        with suppress(HostError):  # they end by themselves when they start
            self._slurm.cancel(pending)

    def _take_over(self, order: LaunchSpec) -> SlurmLease:
        """A lease of an earlier driver, and its job if that is known to Slurm."""
        job = slurm_leases.read_note(order, self._state, self._jobs)
        if job.identity is None:
            job.submitted_s = time.monotonic() - 1e-3
            for found in self._view.jobs.get(0.0).values():
                comment = Comment.parse(found.comment)
                if (
                    comment
                    and not comment.sweep
                    and (comment.run, comment.key) == (self._run, job.holder)
                ):
                    job.identity = found.identity
        return self._keep(order, job)

    def _is_ours(self, job: SlurmJob) -> bool:
        comment = Comment.parse(job.comment)
        return comment is not None and comment.run == self._run and not comment.sweep

    def renew(self, keys: Collection[LeaseKey]) -> None:
        """Write a new serial for each."""
        for key in keys:
            lease_files.renew(self._lease(key).order.directory)

    def stop(self, keys: Collection[LeaseKey], grace_s: float, reason: str) -> None:
        """Write the wish for each, and have ``scancel`` tell the jobs' scripts to look at once."""
        waiting, running = [], []
        for key in keys:
            lease = self._lease(key)
            lease_files.ask_stop(lease.order.directory, grace_s, reason)
            lease.kill_at_s = time.monotonic() + grace_s + KILL_AFTER_S
            job = lease.job
            if job.identity is None:
                continue
            if not self._look.is_over(lease):
                running.append(job.identity)
            elif all(self._look.is_over(self._leases[member]) for member in job.members):
                waiting.append(job.identity)
        # Each may have ended meanwhile, which scancel calls an error.
        with suppress(HostError):
            self._slurm.cancel(sorted(set(waiting)), only_pending=True)
        with suppress(HostError):
            self._slurm.signal(sorted(set(running)), "USR1")

    def poll(self, keys: Collection[LeaseKey]) -> Mapping[LeaseKey, RankStatus]:
        """Read files; Slurm is asked for nodes once a second, for jobs only where files leave a doubt.

        Raises
        ------
        HostError
            If the nodes do not see the state directory, as the first leases of a run find out.
        """
        found = {key: self._look.see(self._lease(key)) for key in keys}
        self._began = self._began or any(seen.phase is Phase.RUNNING for seen in found.values())
        if self._look.blind and not self._began:
            raise HostError(f"slurm: {next(iter(self._look.blind.values()))}")
        return found

    def _lease(self, key: LeaseKey) -> SlurmLease:
        if key not in self._leases:
            raise HostError(f"lease {key.folder} of job {key.job} was neither started nor adopted")
        return self._leases[key]

    def lost_nodes(self) -> frozenset[str]:
        """Discovered nodes that are down, take no jobs, or do not see the state directory."""
        nodes = self._view.nodes.get()
        closed = {name for name in self._nodes if name in nodes and not nodes[name].takes_jobs}
        return frozenset(closed | self._look.blind.keys())

    def close(self) -> None:
        """Nothing to let go of: jobs are left to their supervisors."""


def _has_slots(order: LaunchSpec) -> bool:
    return "/cpu:" in order.devices[0].uuid
