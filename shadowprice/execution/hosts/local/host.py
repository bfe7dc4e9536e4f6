"""The machine of the driver: supervisors are processes, devices are its GPUs or slots of its CPU.

GPUs are claimed against other runs by locked files. CPU slots are shares of a machine that its
operating system shares out anyway; they are not claimed.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from shadowprice.errors import HostError, InputError
from shadowprice.execution.hosts import lease_files
from shadowprice.execution.hosts.lease_files import read_text_tail
from shadowprice.execution.hosts.local.claims import DeviceClaims, claims_folder
from shadowprice.execution.hosts.local.discovery import FoundGpu, find_gpus, load_nvml
from shadowprice.execution.hosts.protocol import (
    Device,
    Exit,
    FoundNode,
    LaunchSpec,
    LeaseKey,
    Phase,
    RankStatus,
)
from shadowprice.execution.supervision.processes import TAG, send

NAME = "local"

_ADDRESS = re.compile(r"|((?P<nodes>[1-9][0-9]{0,3})x)?(?P<slots>[1-9][0-9]{0,3})")


def open_host(address: str, state: Path, run_id: str) -> LocalHost:
    """The driver's machine; the address is a number of CPU slots to use instead of GPUs.

    ``2x1`` makes two nodes of one slot each out of the machine, for what needs several nodes.

    Raises
    ------
    InputError
        If the address is neither a number from 1 nor two of them.
    HostError
        If the state directory cannot be written.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise InputError(
            f"hosts local:{address}: expected a number of CPU slots, from 1, or NODESxSLOTS"
        )
    slots = int(found["slots"]) if address else None
    nodes = int(found["nodes"] or 1)
    return LocalHost(state, run_id, slots, nodes, nvml=load_nvml(), claims=claims_folder())


class LocalHost:
    """Host of one machine.

    Parameters
    ----------
    state : Path
        State directory of the run.
    run_id : str
        Its name, for claims on GPUs.
    slots : int or None
        CPU slots of a node to use; None for GPUs, or one slot a core where there is none.
    nodes : int
        Nodes to make of CPU slots.
    nvml
        The module ``pynvml``, or None.
    claims : Path
        Folder of locks on GPUs.
    smi : str
        Program that lists GPUs where ``nvml`` is None.

    Attributes
    ----------
    notes : tuple of str
        What the last discovery left out, and why.
    """

    name = NAME

    def __init__(
        self,
        state: Path,
        run_id: str,
        slots: int | None,
        nodes: int = 1,
        *,
        nvml: ModuleType | None,
        claims: Path,
        smi: str = "nvidia-smi",
    ) -> None:
        self.notes: tuple[str, ...] = ()
        self._state = state.resolve()
        self._slots, self._nodes = slots, nodes
        self._nvml = nvml
        self._smi = smi
        self._claims = DeviceClaims(claims, run_id)
        self._claimed: frozenset[str] = frozenset()
        self._readers: dict[LeaseKey, lease_files.LeaseReader] = {}
        self._supervisors: dict[LeaseKey, int] = {}
        self._refused: dict[LeaseKey, Exit] = {}
        lease_files.copy_supervisor(self._state)

    def discover(self) -> tuple[FoundNode, ...]:
        """GPUs that are free or this run's, a node for each type; else CPU slots.

        Raises
        ------
        HostError
            If there are GPUs but none is free, or the driver does not answer.
        """
        found = () if self._slots else find_gpus(self._nvml, self._smi)
        if not found:
            cores = len(os.sched_getaffinity(0))
            count = self._slots or cores
            return tuple(
                _node(name, "cpu", _slots(name, count), 1.0 / self._nodes)
                for name in map(_name, range(self._nodes))
            )
        notes = {gpu.uuid: self._taken(gpu) for gpu in found}
        self.notes = tuple(note for note in notes.values() if note)
        free = [gpu for gpu in found if not notes[gpu.uuid]]
        if not free:
            raise HostError(f"no GPU of this machine is free: {'; '.join(self.notes)}")
        self._claimed = frozenset(gpu.uuid for gpu in free)
        nodes = []
        for k, gpu_type in enumerate(dict.fromkeys(gpu.gpu_type for gpu in free)):
            name = _name(k)
            uuids = [gpu.uuid for gpu in free if gpu.gpu_type == gpu_type]
            devices = tuple(Device(name, index, uuid) for index, uuid in enumerate(uuids))
            nodes.append(_node(name, gpu_type, devices, len(uuids) / len(free)))
        return tuple(nodes)

    def _taken(self, gpu: FoundGpu) -> str:
        """Reason that a GPU cannot be used, empty if it can."""
        if gpu.uuid in self._claimed:
            return ""
        if self._claims.claim(gpu.uuid) is None:
            holder = self._claims.holder(gpu.uuid)
            if holder == self._claims.run_id:
                return ""  # a supervisor of an earlier driver of this run
            return f"{gpu.gpu_type} {gpu.uuid} is claimed by run {holder!r}"
        strangers = [pid for pid in sorted(gpu.processes) if not self._is_ours(pid)]
        if strangers:
            self._claims.release(gpu.uuid)
            pids = ", ".join(str(pid) for pid in strangers)
            return f"{gpu.gpu_type} {gpu.uuid} is used by processes of others: {pids}"
        return ""

    def _is_ours(self, pid: int) -> bool:
        """True if a process belongs to a lease of this run, whose supervisor may be dead."""
        tag = os.fsencode(f"{TAG}={self._state}/")
        try:
            variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return any(variable.startswith(tag) for variable in variables)

    def start(self, orders: Sequence[LaunchSpec]) -> None:
        """Start a supervisor for each order; one that cannot be started is seen as ended."""
        for order in orders:
            if order.key in self._readers:
                continue
            self._readers[order.key] = lease_files.LeaseReader(order.directory)
            try:
                if lease_files.write_order(order):
                    self._supervisors[order.key] = self._spawn(order)
            except (OSError, HostError) as error:
                self._refused[order.key] = Exit(127, "unstartable", detail=str(error))
                lease_files.void(order.directory, str(error))

    def _spawn(self, order: LaunchSpec) -> int:
        """Start a supervisor, in its own session, with the claims on its devices."""
        claims = [
            self._claims.claim(device.uuid, wait_s=0.2)
            for device in order.devices
            if device.uuid in self._claimed
        ]
        inherited = [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in claims if fd is not None]
        silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
        log = os.open(order.directory / "supervisor.log", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            return os.posix_spawn(
                sys.executable,
                lease_files.supervisor_argv(self._state, order.directory),
                os.environ,
                file_actions=[*silent, (os.POSIX_SPAWN_DUP2, log, 2), *inherited],
                setsid=True,
            )
        finally:
            os.close(log)

    def adopt(self, orders: Sequence[LaunchSpec]) -> None:
        """Go on with leases of an earlier driver; those that have not begun never begin."""
        for order in orders:
            self._readers[order.key] = lease_files.LeaseReader(order.directory)
            lease_files.adopt_or_void(order.directory)

    def renew(self, keys: Collection[LeaseKey]) -> None:
        """Write a new serial for each."""
        for key in keys:
            lease_files.renew(self._reader(key).directory)

    def stop(self, keys: Collection[LeaseKey], grace_s: float, reason: str) -> None:
        """Write the wish for each, and wake the supervisors that are children."""
        for key in keys:
            directory = self._reader(key).directory
            lease_files.ask_stop(directory, grace_s, reason)
            # Once it has written its record it takes SIGTERM for a wish, and looks for ours.
            if key in self._supervisors and os.path.lexists(directory / "supervisor.json"):
                send(self._supervisors[key], signal.SIGTERM)

    def poll(self, keys: Collection[LeaseKey]) -> Mapping[LeaseKey, RankStatus]:
        """Read the files of those that changed."""
        return {key: self._see(key) for key in keys}

    def _see(self, key: LeaseKey) -> RankStatus:
        if key in self._refused:
            return RankStatus(Phase.ENDED, exit=self._refused[key])
        reader = self._reader(key)
        died = self._reap(key)
        seen = reader.see(doubt=died)
        if died and seen.phase is Phase.STARTING:
            # Its last words, if it had any.
            words = read_text_tail(reader.directory / "supervisor.log")
            detail = f"the supervisor ended before it began: {words or 'it said nothing'}"
            lease_files.void(reader.directory, detail)
            seen = reader.see(doubt=True)
        return seen

    def _reap(self, key: LeaseKey) -> bool:
        """Reap the supervisor of a lease; true if it has died since the last time."""
        if key not in self._supervisors:
            return False
        try:
            if os.waitpid(self._supervisors[key], os.WNOHANG)[0] == 0:
                return False
        except ChildProcessError:
            pass  # somebody else's handler was faster
        del self._supervisors[key]
        return True

    def _reader(self, key: LeaseKey) -> lease_files.LeaseReader:
        if key not in self._readers:
            raise HostError(f"lease {key.folder} of job {key.job} was neither started nor adopted")
        return self._readers[key]

    def lost_nodes(self) -> frozenset[str]:
        """None: this machine answers itself."""
        return frozenset()

    def close(self) -> None:
        """Let go of GPUs; those of leases that run stay claimed by their supervisors."""
        self._claims.release_all()


def _name(k: int) -> str:
    return f"localhost-{k + 1}" if k else "localhost"


def _slots(name: str, count: int) -> tuple[Device, ...]:
    return tuple(Device(name, k, f"{name}/cpu:{k}") for k in range(count))


def _node(name: str, gpu_type: str, devices: tuple[Device, ...], share: float) -> FoundNode:
    """A node with its share of the machine's cores and memory."""
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return FoundNode(name, gpu_type, devices, cores * share, memory * share)
