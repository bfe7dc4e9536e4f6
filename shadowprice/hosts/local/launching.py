"""The driver's side of the launcher of supervisors: one process that forks them all."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shadowprice.hosts import lease_files
from shadowprice.hosts.supervision.output import read_tail
from shadowprice.hosts.supervision.processes import process, processes

CLOSE_S = 5.0
LOG = "launcher.log"


class LauncherProcess:
    """A launcher that runs; see :mod:`shadowprice.hosts.supervision.launcher`.

    Attributes
    ----------
    killed : bool
        Whether a signal ended it, which is no fault of its program.

    Raises
    ------
    OSError
        If it cannot be started.
    """

    def __init__(self, state: Path) -> None:
        self.killed = False
        self._log = state / LOG
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        log = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1)]
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                lease_files.supervisor_argv(state, "serve", str(theirs.fileno())),
                os.environ,
                file_actions=[
                    *silent,
                    (os.POSIX_SPAWN_DUP2, log, 2),
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), theirs.fileno()),
                ],
                setsid=True,
            )
        except OSError:
            self._channel.close()
            raise
        finally:
            os.close(log)
            theirs.close()

    def __del__(self) -> None:
        """Let it end with its last supervisor, as the end of the driver does."""
        self._channel.close()

    def lives(self) -> bool:
        """True if it does."""
        if self._pid:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
                if pid == 0:
                    return True
                self.killed = os.WIFSIGNALED(status)
            except ChildProcessError:
                pass  # somebody else's handler was faster
            self._pid = 0
        return False

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
        return read_tail(str(self._log))

    def close(self, *, wait: bool) -> None:
        """Start no more; it ends with its last supervisor.

        Parameters
        ----------
        wait : bool
            Whether none is left, so that it ends at once.
        """
        self._channel.close()
        until = time.monotonic() + CLOSE_S
        while wait and self.lives() and time.monotonic() < until:
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
