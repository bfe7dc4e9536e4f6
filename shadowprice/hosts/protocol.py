"""Host protocol: discover devices; start, renew, stop and poll leases.

A *lease* is the right of one run of a job to hold devices until it is stopped, or until nobody
renews it. It carries an *epoch*, a number that only grows for each job, and has one *rank* for each
node of its gang; every rank is one supervisor with one command
(:mod:`shadowprice.hosts.supervisor`). A host moves orders to nodes and tells what became of
them; it decides nothing and remembers nothing that it could not find again after the driver was
killed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from shadowprice.brief import Brief


@dataclass(frozen=True, order=True)
class Device:
    """A GPU, or a CPU slot that stands for one.

    Parameters
    ----------
    node : str
        Node it is in.
    index : int
        Position on the node, from 0.
    uuid : str
        Its own name, the same after a restart: an NVIDIA UUID on the driver's machine, ``NODE/gpu:INDEX`` on nodes of
        Ray and Slurm, or ``NODE/cpu:INDEX``.
    """

    node: str
    index: int
    uuid: str


def cpu_slots(node: str, count: int) -> tuple[Device, ...]:
    """CPU slots of a node."""
    return tuple(Device(node, k, f"{node}/cpu:{k}") for k in range(count))


@dataclass(frozen=True, repr=False)
class DiscoveredNode(Brief):
    """A node and what it has.

    Parameters
    ----------
    gpu_type : str
        Type of all its devices, ``cpu`` for slots.
    cpus : float
        CPU cores.
    memory_gb : float
        Main memory [GB], 0 if unknown.
    address : str
        Where other nodes reach it; the first rank's is ``MASTER_ADDR`` of a gang.
    whole_cpus : bool
        Whether the host gives CPUs to leases by whole ones only.
    """

    name: str
    gpu_type: str
    devices: tuple[Device, ...]
    cpus: float = 0.0
    memory_gb: float = 0.0
    address: str = "127.0.0.1"
    whole_cpus: bool = False

    def record(self) -> dict[str, Any]:
        """Plain data, for a ledger."""
        devices = [{"index": device.index, "uuid": device.uuid} for device in self.devices]
        return {field.name: getattr(self, field.name) for field in fields(self)} | {
            "devices": devices
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> DiscoveredNode:
        """Inverse of :meth:`record`."""
        devices = tuple(Device(record["name"], **device) for device in record["devices"])
        known = {each.name for each in fields(cls)}  # a release before knew more of them
        return cls(
            **{name: value for name, value in record.items() if name in known}
            | {"devices": devices}
        )


@dataclass(frozen=True, order=True)
class LeaseKey:
    """One rank of one lease."""

    job: str
    epoch: int
    rank: int = 0

    @property
    def folder(self) -> str:
        """Name of the lease's directory."""
        return f"e{self.epoch}-r{self.rank}"


@dataclass(frozen=True, repr=False)
class LaunchSpec(Brief):
    """Everything a node has to know to run one rank.

    Parameters
    ----------
    devices : tuple of Device
        All on one node.
    shared : bool
        Whether another lease holds the same devices.
    argv : tuple of str
        Program and arguments; no shell is involved.
    env : mapping of str to str
        Added to the environment of the node.
    poll_s : float
        Between two looks of its supervisor at the lease, where nothing wakes it [s].
    private : frozenset of str
        Names of those variables whose values may be secrets: a host keeps them nowhere longer than
        until the command begins.
    directory : Path
        The lease's directory, ``STATE/jobs/JOB/leases/FOLDER``, on storage that driver and node
        share; nobody else's.
    working_directory : Path
        Where the command runs.
    ttl_s : float
        Without a renewal for so long [s] the supervisor stops the command.
    grace_s : float
        From SIGTERM to SIGKILL [s].
    health_check : tuple of str
        Program and arguments that have to end with 0 on the node before the command begins; none
        if empty.
    log_bytes : int
        Output kept; of more, the first and the last half of it.
    cpu_milli, memory_mib : int or None
        CPUs [thousandths] and memory [MiB] that it is kept to, where its node can do so; None for no limit.
    """

    key: LeaseKey
    devices: tuple[Device, ...]
    shared: bool
    argv: tuple[str, ...]
    env: Mapping[str, str]
    directory: Path
    working_directory: Path
    ttl_s: float
    grace_s: float
    log_bytes: int = 4 << 20
    health_check: tuple[str, ...] = ()
    private: frozenset[str] = frozenset()
    poll_s: float = 0.05
    cpu_milli: int | None = None
    memory_mib: int | None = None

    @property
    def node(self) -> str:
        """The node of its devices."""
        return self.devices[0].node


class Phase(StrEnum):
    """Phase of a rank."""

    STARTING = "starting"
    """Ordered; the command does not run yet."""
    RUNNING = "running"
    """The command runs, or its processes are not all gone."""
    ENDED = "ended"
    """Confirmed: no process of it is left. Its devices are free."""
    LOST = "lost"
    """Its node does not answer. Its devices are not free."""


@dataclass(frozen=True)
class Exit:
    """Ending of a rank.

    Parameters
    ----------
    code : int
        Exit code of the command; ``-N`` if signal N ended it.
    reason : str
        ``exited`` by itself, ``stopped`` as asked, ``expired`` without renewal, ``void`` if it never
        began, ``unstartable`` if the command could not be executed, ``unhealthy`` if the check of
        its node failed before.
    forced : bool
        Whether SIGKILL was needed.
    detail : str
        What to tell a person, the last lines of its output for instance.
    host_failed : bool
        Whether supervision, its launcher or the disk failed, and not the command.
    """

    code: int
    reason: str
    forced: bool = False
    detail: str = ""
    host_failed: bool = False


@dataclass(frozen=True, repr=False)
class RankStatus(Brief):
    """Status of a rank, as far as it is known.

    Parameters
    ----------
    report : mapping
        The last thing the job said of itself, empty if nothing; see
        :mod:`shadowprice.hosts.job`.
    exit : Exit or None
        Only in phase ``ENDED``.
    """

    phase: Phase
    report: Mapping[str, Any] = field(default_factory=dict)
    exit: Exit | None = None


@runtime_checkable
class Host(Protocol):
    """Host that runs leases.

    No call blocks for longer than a few seconds, and none raises for one lease what would hide the
    others: what goes wrong with a lease is seen by polling it. ``HostError`` is for the host as a
    whole: it cannot be reached, or never could.
    """

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Devices that the last discovery left out, and why, a line each."""

    def discover(self) -> tuple[DiscoveredNode, ...]:
        """Nodes and devices that this run may use; claims them against other runs.

        Who misses some asks again while a run goes on; those that are held already are among them.

        Raises
        ------
        HostError
            If the host cannot be reached or has nothing free, saying what to do.
        """

    def start(self, orders: Sequence[LaunchSpec]) -> None:
        """Start all ranks of leases; returns before they run. A second call for a key does nothing."""

    def adopt(self, orders: Sequence[LaunchSpec]) -> None:
        """Take leases over that another driver of the same run may have started; void the others.

        A rank that no supervisor has taken when this returns never begins, and is seen as ``ENDED``
        with reason ``void``. One that a supervisor has taken begins, however long that takes, or is
        void once the supervisor is gone.
        """

    def renew(self, keys: Collection[LeaseKey]) -> None:
        """Let leases go on for another ``ttl_s``."""

    def stop(self, keys: Collection[LeaseKey], grace_s: float, reason: str) -> None:
        """Ask commands to end, and kill them after ``grace_s``; returns at once."""

    def poll(self, keys: Collection[LeaseKey]) -> Mapping[LeaseKey, RankStatus]:
        """Status of these ranks, which were started or adopted before."""

    def lost_nodes(self) -> frozenset[str]:
        """Names of discovered nodes that do not answer now."""

    def close(self) -> None:
        """Let go of the host; leases that run are left to their supervisors."""


@dataclass(frozen=True, repr=False)
class HostKind(Brief):
    """A kind of host, to be found by name.

    Parameters
    ----------
    name : str
        Name on the command line.
    open_host : callable
        Reaches a host: its address, which is what follows the colon on the command line, the state
        directory, and the name of the run.
    """

    name: str
    open_host: Callable[[str, Path, str], Host]
