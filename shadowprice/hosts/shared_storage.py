"""Common part of hosts whose nodes and driver see one state directory: leases by their files.

Files are the one channel between a driver and its leases, on every host: an order, renewals and a
wish to stop go one way, a report and an exit come back. A host that derives from
:class:`SharedStorageHost` adds what files cannot do: it finds devices, brings supervisors to
nodes, and says which nodes are lost.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from shadowprice.errors import HostError
from shadowprice.hosts import lease_files
from shadowprice.hosts.protocol import (
    DiscoveredNode,
    Exit,
    LaunchSpec,
    LeaseKey,
    Phase,
    RankStatus,
)
from shadowprice.hosts.supervision.output import read_tail


class LoggedProcess:
    """A process that this driver started, with a session of its own: it may outlive the driver.

    Parameters
    ----------
    argv : sequence of str
        Program and arguments.
    log : str
        File for what it says, after what is there.
    environment : mapping of str to str
        All of it.
    descriptors : sequence of int
        Files that it gets open, by the same numbers.

    Attributes
    ----------
    killed : bool
        Whether a signal ended it, which is no fault of its program.

    Raises
    ------
    OSError
        If it cannot be started, or its log not be written.
    """

    def __init__(
        self,
        argv: Sequence[str],
        log: str,
        environment: Mapping[str, str],
        descriptors: Sequence[int] = (),
    ) -> None:
        self.killed = False
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        words = os.open(log, flags, 0o600)
        try:
            self._pid = os.posix_spawnp(
                argv[0],
                list(argv),
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    *((os.POSIX_SPAWN_DUP2, words, number) for number in (1, 2)),
                    *((os.POSIX_SPAWN_DUP2, number, number) for number in descriptors),
                ],
                setsid=True,
            )
        finally:
            os.close(words)

    def is_over(self) -> bool:
        """True once it has ended."""
        if self._pid:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
                if pid == 0:
                    return False
                self.killed = os.WIFSIGNALED(status)
            except ChildProcessError:
                pass  # somebody else's handler was faster
            self._pid = 0
        return True


NOT_BEGUN = "it had not begun when the driver was started again"


@dataclass
class StoredLease:
    """One rank, by the files of its lease's directory.

    Parameters
    ----------
    adopted : bool
        Whether an earlier driver started it: if it has not begun, it is not to begin.
    refused : Exit or None
        Why it could not be started, if it could not.
    """

    order: LaunchSpec
    on_this_machine: ClassVar[bool] = False
    """Whether all leases of the host run on the machine of the driver."""
    reader: lease_files.LeaseReader = field(init=False)
    adopted: bool = field(default=False, init=False)
    refused: Exit | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Read the directory of its order."""
        self.reader = lease_files.LeaseReader(self.order.directory, here=self.on_this_machine)

    @property
    def directory(self) -> Path:
        """The lease's directory."""
        return self.order.directory

    @property
    def is_over(self) -> bool:
        """True if nothing of it is left."""
        return self.refused is not None or self.reader.status().phase is Phase.ENDED

    def ask_stop(self, grace_s: float, why: str) -> None:
        """Write the wish that it ends, for its supervisor to find."""
        lease_files.ask_stop(self.directory, grace_s, why)

    def void(self, why: str) -> None:
        """Let it never begin: its supervisor did not come, of which ``supervisor.log`` may tell."""
        words = read_tail(f"{self.directory}/supervisor.log")
        lease_files.void(self.directory, f"{why}: {words or 'it said nothing'}")

    def refuse(self, why: str) -> None:
        """Let it never begin, should a supervisor come after all."""
        lease_files.void(self.directory, why)
        self.refused = Exit(127, "unstartable", detail=why, host_failed=True)


L = TypeVar("L", bound=StoredLease)


class SharedStorageHost(ABC, Generic[L]):
    """A host whose leases are known by their files.

    Parameters
    ----------
    state : Path
        State directory, on storage that the driver and all nodes share, with locks that work
        between them.
    """

    name: str
    lease_type: type[L]
    notes: tuple[str, ...] = ()

    def __init__(self, state: Path) -> None:
        self._state = state.resolve()
        self._leases: dict[LeaseKey, L] = {}
        differed = lease_files.copy_supervisor(self._state)
        if differed:
            self.notes = (f"written again, of another release or damaged: {', '.join(differed)}",)

    @abstractmethod
    def discover(self) -> tuple[DiscoveredNode, ...]:
        """Nodes and devices that this run may use."""

    @abstractmethod
    def _launch(self, leases: Sequence[L]) -> None:
        """Have a supervisor started for each lease, whose order is written."""

    def _environment(self, order: LaunchSpec) -> Mapping[str, str]:
        """Environment of a command on this host."""
        return order.env

    def _poll_s(self, order: LaunchSpec) -> float:
        """Time between two looks of the supervisor of a lease at it, if nothing wakes it [s]."""
        return order.poll_s

    def _look(self, lease: L) -> RankStatus:
        """Status of a lease that was not refused."""
        return lease.reader.status()

    def start(self, orders: Sequence[LaunchSpec]) -> None:
        """Write each order and have a supervisor started; what cannot be is seen as ended.

        Raises
        ------
        HostError
            If the supervisor's program is not whole any more, and cannot be written.
        """
        lease_files.copy_supervisor(self._state)
        written = []
        for order in orders:
            if order.key in self._leases:
                continue
            lease = self._leases[order.key] = self.lease_type(order)
            try:
                made = replace(order, env=self._environment(order), poll_s=self._poll_s(order))
                if lease_files.write_order(made):
                    written.append(lease)
            except OSError as error:
                lease.refuse(str(error))
        self._launch(written)

    def adopt(self, orders: Sequence[LaunchSpec]) -> None:
        """Continue leases of an earlier driver; those that no supervisor has taken never begin."""
        for order in orders:
            if order.key not in self._leases:
                self._leases[order.key] = self.lease_type(order)
            self._leases[order.key].adopted = True
            lease_files.void(order.directory, NOT_BEGUN)

    def renew(self, keys: Collection[LeaseKey]) -> None:
        """Write a new serial for each."""
        for lease in self._known(keys):
            lease_files.renew(lease.directory)

    def stop(self, keys: Collection[LeaseKey], grace_s: float, reason: str) -> None:
        """Write the wish for each, and wake supervisors that can be reached."""
        for lease in self._known(keys):
            lease.ask_stop(grace_s, reason)

    def poll(self, keys: Collection[LeaseKey]) -> Mapping[LeaseKey, RankStatus]:
        """Read the files of those that changed."""
        return {lease.order.key: self._status(lease) for lease in self._known(keys)}

    def _status(self, lease: L) -> RankStatus:
        if lease.refused is not None:
            return RankStatus(Phase.ENDED, exit=lease.refused)
        status = self._look(lease)
        if status.phase is not Phase.STARTING or not lease.adopted:
            return status
        # Nothing but the lock of its supervisor is in the way, which may be gone by now.
        voided = lease_files.void(lease.directory, NOT_BEGUN)
        return lease.reader.status(doubt=True) if voided else status

    def _known(self, keys: Collection[LeaseKey]) -> list[L]:
        """Leases of keys.

        Raises
        ------
        HostError
            If one was neither started nor adopted.
        """
        for key in keys:
            if key not in self._leases:
                raise HostError(
                    f"lease {key.folder} of job {key.job} was neither started nor adopted"
                )
        return [self._leases[key] for key in keys]

    def lost_nodes(self) -> frozenset[str]:
        """None, unless a host knows better."""
        return frozenset()

    def close(self) -> None:
        """Let go of devices, where some are held; leases that run are left to their supervisors."""
