"""Starts the supervisors of one machine by forking, and ends what dead ones leave.

::

    python -I -S STATE/supervisor.py serve DESCRIPTOR

Each message on the socket is the directory of a lease, with descriptors that its supervisor is to
keep open (claims on devices). The launcher is a child subreaper: what a supervisor that was killed
leaves, in whatever session and with whatever environment, becomes its child, and it has no other
children than its supervisors. So it kills all others. It outlives the driver, and ends when the
socket is closed and no supervisor is left.
"""

from __future__ import annotations

import contextlib
import ctypes  # noqa: F401  (used by all supervisors: loaded once)
import gc
import os
import select
import signal
import socket
import time

from shadowprice.execution.supervision.command import PR_SET_CHILD_SUBREAPER, prctl
from shadowprice.execution.supervision.files import ending, read_json, take_lock, write_json
from shadowprice.execution.supervision.processes import (
    descendants,
    kill_orphans,
    processes,
    send,
)
from shadowprice.execution.supervision.rank import main as supervise

MESSAGE_BYTES, MOST_DESCRIPTORS = 1 << 16, 250
LOG_BYTES = 2000
SWEEP_S = 0.02


class Launcher:
    """The supervisors of a machine.

    Parameters
    ----------
    channel : socket
        Of sequenced packets, from the driver.
    """

    def __init__(self, channel: socket.socket) -> None:
        self.channel: socket.socket | None = channel
        self.supervisors: dict[int, str] = {}
        self.wake, waker = os.pipe()
        for descriptor in (self.wake, waker):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        gc.collect()
        gc.freeze()  # pages of what is shared stay shared

    def run(self) -> None:
        """Start supervisors until nobody wants more, and none is left."""
        swept = True
        while self.channel is not None or self.supervisors or not swept:
            waited = [self.wake]
            if self.channel is not None:
                waited.append(self.channel.fileno())
            ready = select.select(waited, [], [], None if swept else SWEEP_S)[0]
            if self.wake in ready:
                os.read(self.wake, 4096)
            # Strangers come when a supervisor dies, and only then is it worth a look at all processes.
            if self._reap() or not swept:
                swept = self._kill_strangers()
            if len(ready) > (self.wake in ready):
                self._receive()

    def _receive(self) -> None:
        assert self.channel is not None
        try:
            message, kept, _, _ = socket.recv_fds(self.channel, MESSAGE_BYTES, MOST_DESCRIPTORS)
        except OSError:
            message, kept = b"", []
        if not message:
            self.channel.close()
            self.channel = None
            return
        directory = os.fsdecode(message)
        pid = os.fork()
        if pid == 0:
            self._become(directory)
        self.supervisors[pid] = directory
        for descriptor in kept:
            os.close(descriptor)

    def _become(self, directory: str) -> None:
        """Turn this child into a supervisor; never returns."""
        try:
            signal.set_wakeup_fd(-1)
            os.setsid()
            assert self.channel is not None
            self.channel.close()
            with contextlib.suppress(OSError):
                log = os.open(f"{directory}/supervisor.log", os.O_WRONLY | os.O_CREAT, 0o600)
                os.dup2(log, 2)
            os._exit(supervise(directory))
        except BaseException as error:
            os.write(2, repr(error).encode(errors="replace"))
        finally:
            os._exit(1)

    def _reap(self) -> bool:
        """Collect who died; of supervisors that wrote no end, write one. Whether any died."""
        died = []
        with contextlib.suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                if pid in self.supervisors:
                    died.append(self.supervisors.pop(pid))
        if not died:
            return False
        while not self._kill_strangers():
            time.sleep(SWEEP_S / 4)
            with contextlib.suppress(ChildProcessError):
                while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
                    if pid in self.supervisors:
                        died.append(self.supervisors.pop(pid))
        for directory in died:
            with contextlib.suppress(OSError):
                _write_end(directory)
        return True

    def _kill_strangers(self) -> bool:
        """Kill children that are no supervisors, and theirs; whether there are none."""
        table, me = processes(), os.getpid()
        strangers = {pid for pid, about in table.items() if about[0] == me} - set(self.supervisors)
        for pid in strangers | descendants(strangers, table):
            send(pid, signal.SIGKILL)
        return not strangers


def _write_end(directory: str) -> None:
    """Write the end of a lease whose supervisor died without doing so."""
    lock = take_lock(directory)
    if lock is None:
        return
    try:
        if read_json(f"{directory}/exit.json") is not None:
            return
        if os.path.lexists(f"{directory}/supervisor.json"):
            kill_orphans(directory, read_json(f"{directory}/supervisor.json") or {}, here=True)
            return
        said = ""
        with contextlib.suppress(OSError), open(f"{directory}/supervisor.log", "rb") as file:
            said = file.read(LOG_BYTES).decode(errors="replace").strip()
        detail = f"the supervisor ended before it began: {said or 'it said nothing'}"
        write_json(f"{directory}/exit.json", ending(127, "unstartable", detail=detail))
    finally:
        os.close(lock)


def main(descriptor: int) -> int:
    """Serve a socket."""
    Launcher(socket.socket(fileno=descriptor)).run()
    return 0
