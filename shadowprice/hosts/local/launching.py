"""The driver's side of the launcher of supervisors: one process that forks them all."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shadowprice.hosts.lease_files import supervisor_argv
from shadowprice.hosts.shared_storage import LoggedProcess
from shadowprice.hosts.supervision.output import read_tail
from shadowprice.hosts.supervision.processes import process, processes

CLOSE_S = 5.0
LOG = "launcher.log"


class LauncherProcess(LoggedProcess):
    """A launcher that runs; see :mod:`shadowprice.hosts.supervision.launcher`.

    Raises
    ------
    OSError
        If it cannot be started.
    """

    def __init__(self, state: Path) -> None:
        self._log = str(state / LOG)
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        descriptor = theirs.fileno()
        argv = supervisor_argv(state, "serve", str(descriptor))
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        try:
            # What another launcher said before is not why this one ends.
            os.close(os.open(self._log, flags, 0o600))
            super().__init__(argv, self._log, os.environ, [descriptor])
        except OSError:
            self._channel.close()
            raise
        finally:
            theirs.close()

    def __del__(self) -> None:
        """Let it end with its last supervisor, as the end of the driver does."""
        self._channel.close()

    def launch(self, directory: Path, descriptors: Sequence[int]) -> None:
        """Have a supervisor started that keeps these descriptors open.

        Raises
        ------
        OSError
            If the launcher is gone.
        """
        socket.send_fds(self._channel, [os.fsencode(directory)], descriptors)

    def last_output(self) -> str:
        """Text that it said before it ended."""
        return read_tail(self._log)

    def close(self, *, wait: bool) -> None:
        """Start no more; it ends with its last supervisor.

        Parameters
        ----------
        wait : bool
            Whether none is left, so that it ends at once.
        """
        self._channel.close()
        until = time.monotonic() + CLOSE_S
        while wait and not self.is_over() and time.monotonic() < until:
            time.sleep(0.005)


def has_orphans(recorded: Mapping[str, Any]) -> bool:
    """True if the launcher of a supervisor has children that are none.

    Parameters
    ----------
    recorded : mapping
        The ``supervisor.json`` of a supervisor.
    """
    parent = recorded.get("parent_pid")
    if type(parent) is not int:
        return False
    about = process(parent)
    if about is None or about[3] != recorded.get("parent_start_ticks"):
        return False
    launcher = _command_line(parent)
    if b"serve" not in launcher.split(b"\0"):
        return False  # started by hand, say
    children = [pid for pid, found in processes().items() if found[0] == parent]
    return any(_command_line(pid) not in (launcher, b"") for pid in children)


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
