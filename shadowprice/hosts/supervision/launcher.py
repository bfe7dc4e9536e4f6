"""Starts the supervisors of one machine by forking, and ends what dead ones leave.

::

    python -I -S -B STATE/supervisor.py serve DESCRIPTOR

Each message on the socket is the directory of a lease, with descriptors that its supervisor is to
keep open (claims on devices). The launcher is a child subreaper: what a supervisor that was killed
leaves, in whatever session and with whatever environment, becomes its child, and it has no other
children than its supervisors. So it kills all others. It outlives the driver, and ends when the
socket is closed and no supervisor is left.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import time
from os import close, fork, read, setsid

from shadowprice.hosts.supervision.command import become_subreaper
from shadowprice.hosts.supervision.files import (
    ending,
    open_lock,
    write_json,
)
from shadowprice.hosts.supervision.output import read_tail
from shadowprice.hosts.supervision.processes import (
    descendants,
    processes,
    send,
    settled,
)
from shadowprice.hosts.supervision.rank import Supervisor, handle_signals, warm_up

MESSAGE_BYTES, MOST_DESCRIPTORS = 1 << 13, 250
_CLOSED = int(socket.MSG_CMSG_CLOEXEC)  # for what a health check executes
_DESCRIPTOR_BYTES = socket.CMSG_SPACE(4 * MOST_DESCRIPTORS)
SWEEP_S = 0.02
_ENCODING = sys.getfilesystemencoding()


class Launcher:
    """The supervisors of a machine.

    What it writes to between two forks is memory that each supervisor has for itself, so it does little.

    Parameters
    ----------
    channel : socket
        Of sequenced packets, from the driver.
    """

    def __init__(self, channel: socket.socket) -> None:
        self.channel: socket.socket | None = channel
        self.supervisors: dict[int, bytes] = {}
        self.wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.poll = select.poll()
        self.poll.register(self.wake, select.POLLIN)
        self.poll.register(channel, select.POLLIN)
        handle_signals()
        warm_up()
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        become_subreaper()
        self.supervisor = Supervisor()
        gc.collect()
        gc.freeze()  # pages of what is shared stay shared

    def run(self) -> None:
        """Start supervisors until nobody wants more, and none is left."""
        swept = True
        while self.channel is not None or self.supervisors or not swept:
            for descriptor, _ in self.poll.poll(None if swept else SWEEP_S * 1e3):
                if descriptor != self.wake:
                    self._receive()
                    continue
                read(self.wake, 4096)
                # Strangers come from a supervisor that was killed: only then is it worth a look at all
                # processes.
                swept = not self._reap() and swept
            if not swept:
                swept = self._kill_strangers()

    def _receive(self) -> None:
        assert self.channel is not None
        try:
            message, kept, _, _ = self.channel.recvmsg(MESSAGE_BYTES, _DESCRIPTOR_BYTES, _CLOSED)
        except OSError:
            message = b""
        if not message:
            self.poll.unregister(self.channel)
            self.channel.close()
            self.channel = None
            return
        pid = fork()
        if pid == 0:
            self._become(message.decode(_ENCODING, "surrogateescape"))
        self.supervisors[pid] = message
        for _, _, descriptors in kept:
            for descriptor in memoryview(descriptors).cast("i"):
                os.close(descriptor)

    def _become(self, directory: str) -> None:
        """Turn this child into a supervisor; never returns."""
        try:
            setsid()
            assert self.channel is not None
            close(self.channel.fileno())
            os._exit(self.supervisor.run(directory, open_lock(directory)))
        except BaseException as error:
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW
            log = os.open(f"{directory}/supervisor.log", flags, 0o600)
            os.write(log, repr(error).encode(errors="replace"))
        finally:
            os._exit(1)

    def _reap(self) -> bool:
        """Collect who died; of supervisors that wrote no end, write one. Whether there are any."""
        died = self._collect()
        if not died:
            return False
        while not self._kill_strangers():
            time.sleep(SWEEP_S / 4)
            died += self._collect()
        for directory in died:
            with contextlib.suppress(OSError):
                _write_end(directory)
        return True

    def _collect(self) -> list[str]:
        """Leases of supervisors that died, but for those that ended them and left nothing."""
        died = []
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                directory = os.fsdecode(self.supervisors.pop(pid, b""))
                if directory and (status or not os.path.lexists(f"{directory}/exit.json")):
                    died.append(directory)
        return died

    def _kill_strangers(self) -> bool:
        """Kill children that are no supervisors, and theirs; whether there are none."""
        table, me = processes(), os.getpid()
        strangers = {pid for pid, about in table.items() if about[0] == me} - set(self.supervisors)
        for pid in strangers | descendants(strangers, table):
            send(pid, signal.SIGKILL)
        return not strangers


def _write_end(directory: str) -> None:
    """Write the end of a lease whose supervisor died without doing so."""
    lock = open_lock(directory)
    try:
        if settled(directory, lock, lock_s=0.0, orphans_s=1.0) is None:
            words = read_tail(f"{directory}/supervisor.log") or "it said nothing"
            detail = f"the supervisor ended before it began: {words}"
            record = ending(127, "unstartable", detail=detail, host_failed=True)
            write_json(f"{directory}/exit.json", record)
    finally:
        os.close(lock)


def main(descriptor: int) -> int:
    """Serve a socket."""
    Launcher(socket.socket(fileno=descriptor)).run()
    return 0
