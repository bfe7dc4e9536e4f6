"""The orders of a lease: what each of its nodes has to run, with which environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shadowprice.hosts.containers import PYTHON
from shadowprice.hosts.lease_cpu_memory import LeaseCpuMemory
from shadowprice.hosts.live.checkpoints import folder_of
from shadowprice.hosts.live.graphs.run_graphs import PlacedReplicas
from shadowprice.hosts.live.job_file import Job
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.meeting import Meeting
from shadowprice.hosts.protocol import Device, DiscoveredNode, LaunchSpec, LeaseKey
from shadowprice.instances.clusters.cpu_memory import CPU_MILLI, MIB_PER_GB, CountedCpuMemory

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Variables by which numerical libraries are told how many threads to use."""


@dataclass(frozen=True)
class LaunchSpecs:
    """Makes the orders of a run.

    Parameters
    ----------
    state : Path
        State directory of the run.
    nodes : sequence of DiscoveredNode
        In the order of the cluster.
    checkpoint_s : float
        How often jobs should make checkpoints [s]: a round.
    health_check : tuple of str
        Program and arguments that have to end with 0 on a node before a lease begins there.
    """

    state: Path
    nodes: Sequence[DiscoveredNode]
    limits: Limits
    checkpoint_s: float
    health_check: tuple[str, ...] = ()

    def job_directory(self, job: str) -> Path:
        """Directory of all files of a job."""
        return self.state / "jobs" / job

    def build(
        self,
        job: Job,
        epoch: int,
        devices: Sequence[Device],
        *,
        shared: bool = False,
        cpu_memory: LeaseCpuMemory | None = None,
        replicas: PlacedReplicas | None = None,
    ) -> tuple[LaunchSpec, ...]:
        """One order for each node of a gang, rank 0 on the node of the first device.

        Parameters
        ----------
        cpu_memory : LeaseCpuMemory, optional
            CPUs and memory that it holds on each node.
        replicas : PlacedReplicas, optional
            Replicas of its graph, in the order of the devices.
        """
        by_node: dict[str, list[Device]] = {}
        for device in devices:
            by_node.setdefault(device.node, []).append(device)
        addresses = {node.name: node.address for node in self.nodes}
        directory = self.job_directory(job.name)
        common = {
            **job.env,
            "SHADOWPRICE_JOB": job.name,
            "SHADOWPRICE_EPOCH": str(epoch),
            "SHADOWPRICE_JOB_DIRECTORY": str(directory),
            "SHADOWPRICE_ITERATIONS": str(job.iterations),
            "SHADOWPRICE_CHECKPOINT_S": repr(self.checkpoint_s),
            "SHADOWPRICE_RANKS": str(len(by_node)),
            "SHADOWPRICE_REPORT_DIRECTORY": str(self._place(LeaseKey(job.name, epoch, 0))),
        }
        folder = str(folder_of(directory, epoch))
        first, granted = devices[0], cpu_memory or LeaseCpuMemory()
        gpus = "cpu:" not in first.uuid
        meeting = Meeting(
            job.name,
            epoch,
            addresses[first.node],
            first.index,
            fixed_ranks=replicas is not None,
        )
        made = []
        for rank, held in enumerate(by_node.values()):
            key = LeaseKey(job.name, epoch, rank)
            place = self._place(key)
            own = granted.by_node.get(held[0].node)
            limits = ResourceLimits.of(job, own, chosen=granted.chosen is not None)
            argv = command_line(job, directory, folder, gpus=gpus, limits=limits)
            env = (
                common
                | _devices(held)
                | limits.variables(own, slots=not gpus)
                | meeting.variables(rank, len(by_node), len(held), addresses[held[0].node])
                | ({} if replicas is None else replicas.variables(rank))
                | {"SHADOWPRICE_LEASE": str(place), "SHADOWPRICE_RANK": str(rank)}
            )
            made.append(
                LaunchSpec(
                    key,
                    tuple(held),
                    shared,
                    argv,
                    env,
                    place,
                    job.directory,
                    ttl_s=self.limits.ttl_s,
                    grace_s=self.limits.grace_s,
                    private=frozenset(job.env),
                    health_check=self.health_check,
                    cpu_milli=limits.cpu_milli,
                    memory_mib=limits.memory_mib,
                )
            )
        return tuple(made)

    def _place(self, key: LeaseKey) -> Path:
        """Directory of a rank of a lease."""
        return self.job_directory(key.job) / "leases" / key.folder


@dataclass(frozen=True)
class ResourceLimits:
    """CPUs and memory that a command is to keep to: what was asked for, or chosen, not mere shares.

    Parameters
    ----------
    cpu_milli, memory_mib : int or None
        None for no limit.
    """

    cpu_milli: int | None = None
    memory_mib: int | None = None

    @classmethod
    def of(cls, job: Job, held: CountedCpuMemory | None, *, chosen: bool) -> ResourceLimits:
        """Limits of a job that holds these CPUs and memory on a node, which the policy may have chosen."""
        if held is None:
            return cls()
        return cls(
            held[0] if chosen or job.cpus else None, held[1] if chosen or job.memory_gb else None
        )

    def variables(self, held: CountedCpuMemory | None, *, slots: bool) -> dict[str, str]:
        """Variables by which a command finds what it holds; threads of libraries on CPU slots."""
        if held is None:
            return {}
        variables = {}  # a job that shares GPUs holds nothing of what it does not ask for
        if held[0]:
            variables["SHADOWPRICE_CPUS"] = f"{held[0] / CPU_MILLI:g}"
        if held[1]:
            variables["SHADOWPRICE_MEMORY_GB"] = f"{held[1] / MIB_PER_GB:.6g}"
        if slots and self.cpu_milli is not None:
            variables |= dict.fromkeys(THREADS, str(max(self.cpu_milli // CPU_MILLI, 1)))
        return variables


def command_line(
    job: Job, own: Path, folder: str, *, gpus: bool, limits: ResourceLimits
) -> tuple[str, ...]:
    """Command line of a job, in its container if it has one.

    Parameters
    ----------
    own : Path
        The job's files in the state directory.
    folder : str
        For its checkpoints.
    gpus : bool
        Whether it has GPUs, not slots of a CPU.
    limits : ResourceLimits
        CPUs and memory that a container is kept to.
    """
    if job.container is None:
        return job.argv(sys.executable, folder)
    cpus = None if limits.cpu_milli is None else limits.cpu_milli / CPU_MILLI
    return job.container.argv(
        job.argv(PYTHON, folder),
        job.directory,
        own,
        gpus=gpus,
        cpus=cpus,
        memory_mib=limits.memory_mib,
    )


def _devices(held: Sequence[Device]) -> dict[str, str]:
    """The variables by which a command finds its devices."""
    uuids = ",".join(device.uuid for device in held)
    if "cpu:" in held[0].uuid:
        # Slots stand for GPUs: none is visible, and numerical libraries use a thread a slot.
        visible = {"CUDA_VISIBLE_DEVICES": ""} | dict.fromkeys(THREADS, str(len(held)))
    else:
        visible = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": uuids}
    return {"SHADOWPRICE_DEVICES": uuids} | visible
