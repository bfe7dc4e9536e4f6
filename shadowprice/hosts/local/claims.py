"""Claims on the GPUs of one machine: a name in the kernel for each, so that two runs never share one.

A claim is a socket that is bound to a name of Linux's abstract namespace (unix(7)): no file bears
the name, so neither users, environments nor permissions make two of one, nobody can remove it, and
the kernel frees it with the last process that has the socket open. It is as wide as a network
namespace; what others use beyond that, in a container for instance, only the driver of the GPU tells.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from shadowprice.errors import HostError

SCOPE = "shadowprice"
"""First part of the names of all claims of a machine."""
_NAMES = Path("/proc/net/unix")


@dataclass(frozen=True)
class Claimant:
    """Claimant of a device: the run by its name, the user by number; -1 if that is not known."""

    run_id: str
    user: int


class DeviceClaims:
    """Claims on devices, held while a driver or one of its supervisors lives.

    A claim belongs to open sockets, which supervisors inherit. A second name says whose it is, so
    that a driver that is started again knows the devices of its run from those of others.

    Parameters
    ----------
    run_id : str
        Name of the run.
    scope : str
        Claims of one scope exclude each other: that of the machine, but in tests.
    """

    def __init__(self, run_id: str, scope: str = SCOPE) -> None:
        self.run_id = run_id
        self._scope = scope
        self._held: dict[str, tuple[socket.socket, ...]] = {}

    def claim(self, uuid: str, wait_s: float = 0.0) -> tuple[int, ...] | None:
        """Descriptors that hold a device while any of them is open, None while another holds it.

        Raises
        ------
        HostError
            If the kernel has no such names.
        """
        until = time.monotonic() + wait_s
        while uuid not in self._held:
            device = self._bound(self._device(uuid))
            if device is not None:
                mine = f"{self._device(uuid)}/{_plain(self.run_id)}/{os.getuid()}"
                label = self._bound(mine)
                self._held[uuid] = (device,) if label is None else (device, label)
            elif time.monotonic() >= until:
                return None
            else:
                time.sleep(0.005)
        return tuple(each.fileno() for each in self._held[uuid])

    def is_own(self, holder: Claimant) -> bool:
        """True if a claimant is this run."""
        return holder == Claimant(_plain(self.run_id), os.getuid())

    def holder(self, uuid: str) -> Claimant:
        """Run that holds a device, or just let go of it."""
        time.sleep(0.01)  # who just claimed it is about to say its name
        try:
            lines = _NAMES.read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        label = re.compile(rf"@{re.escape(self._device(uuid))}/([^/]*)/(\d+)")
        for line in lines:
            if found := label.fullmatch(line.rpartition(" ")[2]):
                return Claimant(found[1], int(found[2]))
        return Claimant("", -1)

    def release(self, uuid: str) -> None:
        """Let go of a device; what supervisors inherited stays claimed until they end."""
        for each in self._held.pop(uuid, ()):
            each.close()

    def release_all(self) -> None:
        """Let go of all."""
        for uuid in list(self._held):
            self.release(uuid)

    def _device(self, uuid: str) -> str:
        return f"{self._scope}/device/{hashlib.sha256(uuid.encode()).hexdigest()[:32]}"

    def _bound(self, name: str) -> socket.socket | None:
        """Socket of an abstract name; None while another has it."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            made.bind(f"\0{name}")
        except OSError as error:
            made.close()
            if error.errno == errno.EADDRINUSE:
                return None
            raise HostError(
                f"claim on a device: the name @{name} cannot be bound: {error.strerror}; expected "
                "Linux with abstract Unix sockets, or run on CPU slots with local:SLOTS"
            ) from None
        return made


def _plain(run_id: str) -> str:
    """Name of a run as a part of a socket's name, which has at most 107 bytes."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", run_id)[:32]
