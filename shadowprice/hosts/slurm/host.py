"""Slurm: the nodes of one allocation, in which supervisors are started as steps.

A run needs a job of Slurm that holds its nodes, which the pilot (:mod:`.pilot`) asks for, or ``salloc``:
what is in it is this host's to give out. Each rank of a lease is a step, ``srun --overlap``, of one
supervisor. Nodes are called by their place in the allocation, ``node-0``: the run goes on in another
allocation of the same shape, whatever nodes that has.

The state directory must be on storage that the driver and all nodes share, with locks that work
between them (NFS 4, Lustre mounted with ``flock``). Tested with Slurm 22.05.8.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from shadowprice.errors import HostError
from shadowprice.hosts import lease_files
from shadowprice.hosts.protocol import (
    Device,
    DiscoveredNode,
    HostKind,
    LaunchSpec,
    Phase,
    RankStatus,
    cpu_slots,
)
from shadowprice.hosts.shared_storage import LoggedProcess, SharedStorageHost, StoredLease
from shadowprice.hosts.slurm.commands import (
    GB_PER_MIB,
    STEP_TIMEOUT_S,
    CachedQuery,
    Slurm,
    SlurmNode,
    outside_jobs,
)
from shadowprice.hosts.supervision.files import ending, read_json, write_json

JOB = "SLURM_JOB_ID"
NODES, NOTE, LOG = "slurm_nodes.json", "slurm.json", "supervisor.log"
"""In the state directory: which node is called what; in that of a lease: its job and node, and what it said."""
SWEEP_AGAIN_S = 5.0
SLOT_TYPE = "cpu"
_PROBE = (
    "import json, os, sys; e = os.environ; print(json.dumps([e['SLURMD_NODENAME'], "
    "e.get('CUDA_VISIBLE_DEVICES', ''), int(e['SLURM_CPUS_ON_NODE']), os.access(sys.argv[1], os.W_OK)]))"
)


def open_host(address: str, state: Path, run_id: str) -> SlurmHost:
    """The allocation of a job of Slurm.

    Parameters
    ----------
    address : str
        Number of the job; that in which this process is if it is empty.

    Raises
    ------
    HostError
        If there is none, or Slurm's commands are missing.
    """
    slurm = Slurm()
    number = address or os.environ.get(JOB, "")
    if not number.isdigit():
        raise HostError(
            f"slurm: {address!r} is no number of a job, and this is no job of Slurm; start runs by "
            "`python -m shadowprice.hosts.slurm.pilot`, inside `salloc`, or with --hosts slurm:JOBID"
        )
    return SlurmHost(slurm, int(number), state)


@dataclass
class SlurmLease(StoredLease):
    """One rank: the step of its supervisor, and that which ends what a dead one left."""

    step: LoggedProcess | None = None
    sweep: LoggedProcess | None = None
    sweep_s: float = float("-inf")

    def step_is_over(self) -> bool:
        """True if this driver started its step, and that has ended."""
        return self.step is not None and self.step.is_over()


class SlurmHost(SharedStorageHost[SlurmLease]):
    """Host of one allocation.

    A lease has ended when its supervisor wrote so. Where a supervisor was killed, another step on its
    node ends what it left and writes the file; where its job is over, Slurm has ended it. While a node
    does not answer nothing of this can happen, and the lease is lost, not ended.
    """

    name = "slurm"
    lease_type = SlurmLease

    def __init__(self, slurm: Slurm, job: int, state: Path) -> None:
        super().__init__(state)
        self._slurm, self._job = slurm, job
        self._real: dict[str, str] = {}  # names in the cluster, by names in the run
        self._visible: dict[str, list[str]] = {}
        nodes: dict[str, SlurmNode] = {}
        self._nodes = CachedQuery(lambda: slurm.nodes(list(self._real.values())), nodes)
        living: dict[int, str] = {}
        self._living = CachedQuery(slurm.living_jobs, living)
        self._lists: dict[str, frozenset[str]] = {}

    def discover(self) -> tuple[DiscoveredNode, ...]:
        """Nodes of the allocation that answer, with the GPUs that it has of them, else a slot for each CPU.

        Raises
        ------
        HostError
            If the job does not run, another one of this run does, no node answers, one does not see the
            state directory, or mixes types of GPU.
        """
        jobs = self._slurm.living_jobs()
        if self._job not in jobs:
            raise HostError(f"slurm: job {self._job} does not run; see `squeue --me`")
        held = sorted(self._slurm.hostnames(jobs[self._job]), key=_natural)
        known = self._slurm.nodes(held)
        self._real = self._named(jobs, held, known)
        open_nodes = [name for name in held if name in known and known[name].answers]
        if not open_nodes:
            raise HostError(f"slurm: no node of job {self._job} answers: {', '.join(held)}")
        seen = self._probe(open_nodes)
        has_gpus = any(visible for visible, _ in seen.values())
        found = []
        for name, real in self._real.items():
            if real in seen:
                visible, cpus = seen[real]
                self._visible[name] = visible
                found.append(_node(name, known[real], visible if has_gpus else None, cpus))
        return tuple(node for node in found if node.devices)

    def _named(
        self, jobs: Mapping[int, str], held: Sequence[str], known: Mapping[str, SlurmNode]
    ) -> dict[str, str]:
        """Nodes by their names in the run, which stay what they were: Slurm takes lost ones out of a job."""
        path = f"{self._state}/{NODES}"
        before = read_json(path) or {}
        job, names = before.get("job"), before.get("nodes")
        if job == self._job and isinstance(names, dict):
            return {str(name): str(real) for name, real in names.items()}
        if job in jobs:
            raise HostError(
                f"slurm: this run has job {job}, which still runs; run in it with --hosts slurm:{job}, or end "
                f"it with `scancel {job}` first"
            )
        by_type = sorted(held, key=lambda name: sorted(known[name].gpus) if name in known else [])
        found = {f"node-{k}": name for k, name in enumerate(by_type)}
        try:
            write_json(path, {"job": self._job, "nodes": found})
        except OSError as error:
            raise HostError(f"slurm: {path} cannot be written: {error.strerror}") from None
        return found

    def _probe(self, names: Sequence[str]) -> dict[str, tuple[list[str], int]]:
        """GPUs and CPUs that the allocation has of nodes."""
        count = str(len(names))
        said = self._slurm.run(
            *self._srun(names),
            *(f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1"),
            *(sys.executable, "-I", "-S", "-c", _PROBE, str(self._state)),
            timeout_s=STEP_TIMEOUT_S,
        )
        found = {}
        for line in said.splitlines():
            with suppress(ValueError):
                name, visible, cpus, writable = json.loads(line)
                if not writable:
                    raise HostError(
                        f"slurm: node {name} cannot write {self._state}; put --state on storage that "
                        "all nodes of the allocation share"
                    )
                found[name] = [each for each in visible.split(",") if each], int(cpus)
        return found

    def _srun(self, names: Sequence[str]) -> list[str]:
        """A step beside the others of the allocation; what of its nodes a lease uses is the run's affair."""
        return [
            *("srun", f"--jobid={self._job}", "--overlap", "--mem=0", "--quiet"),
            *("--kill-on-bad-exit=0", "--chdir=/", f"--nodelist={','.join(names)}"),
        ]

    def _environment(self, order: LaunchSpec) -> Mapping[str, str]:
        """With the numbers that GPUs have in the allocation; slots stand for GPUs that must not be visible."""
        visible = self._visible.get(order.node, [])
        if not visible:
            return order.env
        numbers = [visible[device.index] for device in order.devices]
        return {**order.env, "CUDA_VISIBLE_DEVICES": ",".join(numbers)}

    def _launch(self, leases: Sequence[SlurmLease]) -> None:
        for lease in leases:
            try:
                if lease.order.node not in self._real:
                    raise HostError(f"slurm: node {lease.order.node} was not discovered")
                write_json(f"{lease.directory}/{NOTE}", {"job": self._job})
                lease.step = self._begin(lease)
            except (OSError, HostError) as error:
                lease.refuse(str(error))

    def _begin(self, lease: SlurmLease) -> LoggedProcess:
        """A step with the supervisor of a lease; where one died before it ends what that left."""
        task = lease_files.supervisor_argv(self._state, str(lease.directory))
        srun = self._srun([self._real[lease.order.node]])
        return LoggedProcess(
            [*srun, "--nodes=1", "--ntasks=1", *task],
            f"{lease.directory}/{LOG}",
            outside_jobs(os.environ),
        )

    def _look(self, lease: SlurmLease) -> RankStatus:
        status = lease.reader.status(doubt=lease.step_is_over())
        if status.phase is Phase.ENDED:
            return status
        if self._is_ended_by_slurm(lease):
            return self._written_off(lease)
        silent = lease.order.node in self.lost_nodes()
        if status.phase is Phase.STARTING:
            if lease.step_is_over():
                lease.void(f"its step on {self._real.get(lease.order.node)} did not begin")
                return lease.reader.status(doubt=True)
            return status
        if silent:
            return replace(status, phase=Phase.LOST)
        if status.phase is Phase.LOST or lease.step_is_over():
            self._sweep(lease)
        # Slurm's word that the node answers: whatever is left there ends, or is swept.
        return replace(status, phase=Phase.RUNNING)

    def _is_ended_by_slurm(self, lease: SlurmLease) -> bool:
        """True if a lease was started in another allocation, which is over: Slurm has killed all of it."""
        job = (read_json(f"{lease.directory}/{NOTE}") or {}).get("job", self._job)
        if job == self._job or type(job) is not int:
            return False
        living = self._living.get()
        return bool(living) and job not in living

    def _written_off(self, lease: SlurmLease) -> RankStatus:
        """Write the end of a lease whose allocation is over."""
        detail = "the allocation it ran in is over"
        end = ending(-9, "exited", detail=detail, host_failed=True)
        lease_files.write_off(lease.directory, end)
        return lease.reader.status(doubt=True)

    def _sweep(self, lease: SlurmLease) -> None:
        """Have a step on its node end what is left of a lease whose supervisor was killed."""
        if lease.sweep is not None and not lease.sweep.is_over():
            return
        now_s = time.monotonic()
        if now_s - lease.sweep_s >= SWEEP_AGAIN_S and lease.order.node in self._real:
            lease.sweep_s = now_s
            with suppress(OSError):
                lease.sweep = self._begin(lease)

    def lost_nodes(self) -> frozenset[str]:
        """Nodes of the allocation that do not answer, or are taken out of it since they did not for long."""
        nodes = self._nodes.get() if self._real else {}
        held = self._held()
        return frozenset(
            name
            for name, real in self._real.items()
            if (real in nodes and not nodes[real].answers) or (held and real not in held)
        )

    def _held(self) -> frozenset[str]:
        """Nodes that the job has now; empty if that is not known."""
        listed = self._living.get().get(self._job, "")
        if listed not in self._lists:
            try:
                self._lists = {listed: frozenset(self._slurm.hostnames(listed) if listed else ())}
            except HostError:
                return frozenset()
        return self._lists[listed]


def _natural(name: str) -> tuple[str, int, str]:
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0), name


def _node(name: str, node: SlurmNode, visible: Sequence[str] | None, cpus: int) -> DiscoveredNode:
    """A node with the GPUs that the allocation has of it, or with a slot for each CPU."""
    if len(node.gpus) > 1 and visible is not None:
        raise HostError(
            f"slurm: node {node.name} has GPUs of types {', '.join(sorted(node.gpus))}, expected one "
            "type a node; ask for an allocation without it"
        )
    if visible is None:
        kind, devices = SLOT_TYPE, cpu_slots(name, cpus)
    else:
        kind = next(iter(node.gpus), "gpu")
        devices = tuple(Device(name, k, f"{name}/gpu:{k}") for k in range(len(visible)))
    memory_gb = node.memory_mb * GB_PER_MIB
    return DiscoveredNode(name, kind, devices, float(cpus), memory_gb, node.address)


HOST = HostKind(name="slurm", open_host=open_host)
