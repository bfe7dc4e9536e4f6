"""The machine of the driver: supervisors are processes, devices are its GPUs or slots of its CPU.

GPUs are claimed against the other runs of all users. CPU slots are shares of a machine that its
operating system shares out anyway; they are not claimed.
"""

from __future__ import annotations

import os
import pwd
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from shadowprice.errors import HostError, InputError
from shadowprice.hosts import lease_files
from shadowprice.hosts.local.claims import DeviceClaims
from shadowprice.hosts.local.discovery import DiscoveredGpu, find_gpus
from shadowprice.hosts.local.launching import LauncherProcess, has_orphans
from shadowprice.hosts.protocol import (
    Device,
    DiscoveredNode,
    Exit,
    HostKind,
    LaunchSpec,
    Phase,
    RankStatus,
    cpu_slots,
)
from shadowprice.hosts.shared_storage import SharedStorageHost, StoredLease
from shadowprice.hosts.supervision.processes import lease_of, machine, process, send

IDLE_POLL_S = 2.0
_ADDRESS = re.compile(r"((?P<nodes>[1-9][0-9]{0,3})x)?(?P<slots>[1-9][0-9]{0,3})")
_AMOUNT = re.compile(r"(?P<name>cpus|memory_gb)=(?P<value>[0-9]{1,9}(\.[0-9]{1,6})?)")


def open_host(address: str, state: Path, run_id: str) -> LocalHost:
    """The driver's machine; the address is a number of CPU slots to use instead of GPUs.

    ``2x1`` makes two nodes of one slot each out of the machine, for what needs several nodes;
    ``cpus=N`` and ``memory_gb=N`` after it, or alone, say how much of the machine jobs may hold.

    Raises
    ------
    InputError
        If a part of the address is something else, or is there twice.
    HostError
        If the state directory cannot be written.
    """
    cpu_memory: dict[str, float] = {}
    slots, nodes = None, 1
    for position, part in enumerate(address.split(",")) if address else ():
        found, amount = _ADDRESS.fullmatch(part), _AMOUNT.fullmatch(part)
        if position == 0 and found is not None:
            slots, nodes = int(found["slots"]), int(found["nodes"] or 1)
        elif amount is not None and amount["name"] not in cpu_memory and float(amount["value"]) > 0:
            cpu_memory[amount["name"]] = float(amount["value"])
        else:
            raise InputError(
                f"hosts local:{address}: expected a number of CPU slots, from 1, or NODESxSLOTS, and cpus=N and "
                f"memory_gb=N, each once and above 0; {part!r} is none of them"
            )
    return LocalHost(
        state,
        slots,
        nodes,
        claims=DeviceClaims(run_id),
        cpus=cpu_memory.get("cpus", 0.0),
        memory_gb=cpu_memory.get("memory_gb", 0.0),
    )


@dataclass
class LocalLease(StoredLease):
    """A lease of this machine; ``launcher`` is that of this driver which starts its supervisor."""

    on_this_machine: ClassVar[bool] = True
    launcher: LauncherProcess | None = None

    def ask_stop(self, grace_s: float, why: str) -> None:
        """Write the wish that it ends, and wake its supervisor, which takes SIGTERM for one to look for."""
        super().ask_stop(grace_s, why)
        found = self.reader.supervisor()
        if found is not None and found.get("machine") == machine():
            about = process(found["pid"])
            if about is not None and about[3] == found["start_ticks"]:
                send(found["pid"], signal.SIGTERM)

    def orphaned(self) -> bool:
        """True while the launcher has still to kill what dead supervisors left."""
        found = self.reader.supervisor()
        return found is not None and found.get("machine") == machine() and has_orphans(found)


class LocalHost(SharedStorageHost[LocalLease]):
    """Host of one machine.

    Parameters
    ----------
    state : Path
        State directory of the run.
    slots : int or None
        CPU slots of a node to use; None for GPUs, or one slot a core where there is none.
    nodes : int
        Nodes to make of CPU slots.
    claims : DeviceClaims
        The run's claims on GPUs.
    smi : str
        Program that lists GPUs.
    cpus, memory_gb : float
        CPU cores and memory [GB] that jobs may hold; 0 for all that the driver may use.
    """

    name = "local"
    lease_type = LocalLease

    def __init__(
        self,
        state: Path,
        slots: int | None,
        nodes: int = 1,
        *,
        claims: DeviceClaims,
        smi: str = "nvidia-smi",
        cpus: float = 0.0,
        memory_gb: float = 0.0,
    ) -> None:
        super().__init__(state)
        self._slots, self._nodes = slots, nodes
        self._smi = smi
        self._cpus = cpus or float(len(os.sched_getaffinity(0)))
        machine_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
        self._memory_gb = memory_gb or machine_gb
        self._claims = claims
        self._claimed: frozenset[str] = frozenset()
        self._launcher: LauncherProcess | None = None

    def discover(self) -> tuple[DiscoveredNode, ...]:
        """GPUs that are free or this run's, a node for each type; else CPU slots.

        Raises
        ------
        HostError
            If there are GPUs but none is free, or the driver does not answer.
        """
        found = () if self._slots else find_gpus(self._smi)
        if not found:
            count = self._slots or len(os.sched_getaffinity(0))
            return tuple(
                self._node(name, "cpu", cpu_slots(name, count), 1.0 / self._nodes)
                for name in map(_name, range(self._nodes))
            )
        notes = {gpu.uuid: self._taken(gpu) for gpu in found}
        taken = tuple(note for note in notes.values() if note)
        free = [gpu for gpu in found if not notes[gpu.uuid]]
        if not free:
            raise HostError(f"no GPU of this machine is free: {'; '.join(taken)}")
        self.notes = tuple(dict.fromkeys((*self.notes, *taken)))
        self._claimed = frozenset(gpu.uuid for gpu in free)
        nodes = []
        for k, gpu_type in enumerate(dict.fromkeys(gpu.gpu_type for gpu in free)):
            name = _name(k)
            uuids = [gpu.uuid for gpu in free if gpu.gpu_type == gpu_type]
            devices = tuple(Device(name, index, uuid) for index, uuid in enumerate(uuids))
            nodes.append(self._node(name, gpu_type, devices, len(uuids) / len(free)))
        return tuple(nodes)

    def _node(
        self, name: str, gpu_type: str, devices: tuple[Device, ...], share: float
    ) -> DiscoveredNode:
        """A node with its share of the machine's cores and memory."""
        return DiscoveredNode(name, gpu_type, devices, self._cpus * share, self._memory_gb * share)

    def _taken(self, gpu: DiscoveredGpu) -> str:
        """Reason that a GPU cannot be used, empty if it can."""
        if gpu.uuid in self._claimed:
            return ""
        if self._claims.claim(gpu.uuid) is None:
            holder = self._claims.holder(gpu.uuid)
            if self._claims.is_own(holder):
                return ""  # a supervisor of an earlier driver of this run
            who = f"run {holder.run_id or 'unknown'!r} of {_user(holder.user)}"
            return f"{gpu.gpu_type} {gpu.uuid} is claimed by {who}"
        # Ours belong to a lease of this run, whose supervisor may be dead.
        ours = f"{self._state}/"
        strangers = [pid for pid in sorted(gpu.processes) if not lease_of(pid).startswith(ours)]
        if strangers:
            self._claims.release(gpu.uuid)
            pids = ", ".join(str(pid) for pid in strangers)
            return f"{gpu.gpu_type} {gpu.uuid} is used by processes of others: {pids}"
        return ""

    def _poll_s(self, order: LaunchSpec) -> float:
        """Seldom: who wants something of a supervisor wakes it, and renewals are for its TTL."""
        return min(IDLE_POLL_S, order.ttl_s / 8.0)

    def _launch(self, leases: Sequence[LocalLease]) -> None:
        for lease in leases:
            try:
                if self._launcher is None or self._launcher.is_over():
                    self._launcher = LauncherProcess(self._state)
                lease.launcher = self._launcher
                with suppress(BrokenPipeError):  # it has just ended: how is seen at the next look
                    self._launcher.launch(lease.directory, self._inherited(lease.order))
            except (OSError, HostError) as error:
                lease.refuse(str(error))

    def _inherited(self, order: LaunchSpec) -> list[int]:
        """Claims on the devices of a lease, for its supervisor to hold."""
        claims = [
            self._claims.claim(device.uuid, wait_s=0.2)
            for device in order.devices
            if device.uuid in self._claimed
        ]
        return [descriptor for held in claims for descriptor in held or ()]

    def _look(self, lease: LocalLease) -> RankStatus:
        launcher = lease.launcher
        died = launcher is not None and launcher.is_over()
        status = lease.reader.status(doubt=died)
        if status.phase is Phase.STARTING and died and launcher is not None:
            why = (
                f"the launcher of supervisors ended: {launcher.last_output() or 'it said nothing'}"
            )
            # A supervisor that it had forked has the lock, and begins.
            if lease_files.void(lease.directory, why):
                if not launcher.killed:
                    lease.refused = Exit(127, "unstartable", detail=why, host_failed=True)
                return self._status(lease)
        killed = status.exit is not None and status.exit.code == -9
        if killed and lease.orphaned():
            return RankStatus(Phase.RUNNING, status.report)
        return status

    def close(self) -> None:
        """Let go of GPUs; those of leases that run stay claimed by their supervisors."""
        self._claims.release_all()
        if self._launcher is not None:
            self._launcher.close(wait=all(lease.is_over for lease in self._leases.values()))


def _user(number: int) -> str:
    """Name of a user by number."""
    try:
        return f"user {pwd.getpwuid(number).pw_name}"
    except (KeyError, OverflowError):
        return "an unknown user" if number < 0 else f"user {number}"


def _name(k: int) -> str:
    return f"localhost-{k + 1}" if k else "localhost"


HOST = HostKind(name="local", open_host=open_host)
