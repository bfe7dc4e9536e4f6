"""One rank of a lease on its node, from its order to its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from math import ceil, inf
from os import (
    WNOHANG,
    close,
    fork,
    getpid,
    pipe,
    pipe2,
    read,
    set_blocking,
    waitpid,
    waitstatus_to_exitcode,
)
from select import POLLIN, poll
from signal import set_wakeup_fd
from time import monotonic

from shadowprice.hosts.supervision.command import (
    POLL_S,
    Command,
    become_subreaper,
    without_secrets,
)
from shadowprice.hosts.supervision.control_groups import remove
from shadowprice.hosts.supervision.files import (
    PRIVATE,
    ending,
    open_lock,
    parsed_object,
    read_json,
    read_small,
    write_ending,
)
from shadowprice.hosts.supervision.output import Log, open_log
from shadowprice.hosts.supervision.processes import descendants, processes, send, settled

TYPE_CHECKING = False  # importing typing would cost a third of the start-up
if TYPE_CHECKING:
    from typing import Any

END_S = 0.005
TERM, INT = int(signal.SIGTERM), int(signal.SIGINT)
WAKE_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
WARM_UPS = 16
REREAD_S = 0.5
CONTINUE_S = 0.25
"""After which the descendants of a command that was asked to end are continued, should any be stopped."""
LEFTOVER_GRACE_S = 2.0
"""For processes that a command leaves behind when it ends by itself."""
READ_BYTES, MESSAGE_BYTES = 1 << 18, 1 << 12


class Supervisor:
    """One rank, from its order to its end.

    A launcher makes one, and each of its children runs it. To use an object is to count references
    to it, which makes the page where it lies the child's own. So until its lease ends it uses few:
    what takes more is done by the child that becomes the command, functions are imported by name
    rather than looked up in modules, and a signal is a number in a pipe.
    """

    __slots__ = (
        *("attributes", "code", "command", "continue_at", "deadline", "directory", "forced"),
        *("grace_s", "kill_at"),
        *("leftovers_asked", "lock", "log", "look_at", "output", "owned", "poll", "poll_s"),
        *("reason", "reread_at", "renewal", "secrets", "signalled", "spread_at", "ttl_s", "wake"),
        "waker",
    )

    def __init__(self) -> None:
        self.reason = ""  # why the command was asked to end
        self.code: int | None = None
        self.forced = self.leftovers_asked = self.signalled = self.owned = False
        self.continue_at = self.spread_at = self.kill_at = inf
        self.look_at = 0.0
        self.renewal = b""
        self.attributes: object = None
        self.reread_at = 0.0
        self.command = 0
        self.secrets = b"{}"
        self.poll = poll()

    def run(self, directory: str, lock: int) -> int:
        """Run the command of a lease, or clean up after it.

        Parameters
        ----------
        directory : str
            Of the lease.
        lock : int
            Descriptor of its lock, open, which the child takes for both.

        Returns
        -------
        int
            Exit code, 1 if another supervisor has the lease.
        """
        self._take_lease(directory, lock)
        try:
            end = self._start()
            if isinstance(end, int):
                return end
            record = end or self._watch()
        except Exception as error:
            self._end_all()
            detail = f"the supervisor failed: {error!r}"
            record = ending(-9, "exited", forced=True, detail=detail, host_failed=True)
        if not self.owned:
            nothing = settled(self.directory, self.lock)
            if nothing is not None:
                return nothing
            with contextlib.suppress(OSError):
                os.unlink(f"{directory}/{PRIVATE}")
        else:
            self._remove_group()
        write_ending(self.directory, record)
        return 0

    def _remove_group(self) -> None:
        """Remove the control group of the command, of which nothing is left, if it had one."""
        recorded = read_json(f"{self.directory}/supervisor.json") or {}
        remove(recorded.get("group"), self.directory)

    def _take_lease(self, directory: str, lock: int) -> None:
        self.directory, self.lock = directory, lock
        self.wake, self.waker = pipe2(WAKE_FLAGS)
        set_wakeup_fd(self.waker)
        self.poll.register(self.wake, POLLIN)

    def _start(self) -> dict[str, Any] | int | None:
        """Ending of a lease whose command cannot begin, or exit code where it is another's."""
        try:
            log = open_log(f"{self.directory}/output.log")
            self.output, write_end = pipe()
            told, tell = pipe()
            set_blocking(self.output, False)
            become_subreaper()
            supervisor = getpid()
            self.command = fork()
        except OSError as error:
            return ending(127, "unstartable", detail=str(error), host_failed=True)
        if self.command == 0:
            Command(self.directory, supervisor, (self.lock, log, write_end, tell)).become()
        close(write_end)
        close(tell)
        what, _, about = self._hear(told).partition(b" ")
        close(told)
        if what != b"watch":
            self._end_all()
            if what == b"exit":
                return int(about)
            self.owned = what == b"ending"
            detail = "it was killed before its command began"
            killed = ending(-9, "exited", detail=detail, host_failed=True)
            return json.loads(about) if self.owned else killed
        self.owned = True
        self._take_order(about, log)
        return None

    def _take_order(self, about: bytes, log: int) -> None:
        """Take what is to be known of an order: three times, a number of bytes, secrets."""
        ttl_s, grace_s, poll_s, log_bytes, self.secrets = about.split(b" ", 4)
        self.ttl_s, self.grace_s, self.poll_s = float(ttl_s), float(grace_s), float(poll_s)
        self.log = Log(log, int(log_bytes))
        self.deadline = monotonic() + self.ttl_s
        self.poll.register(self.output, POLLIN)

    def _hear(self, pipe: int) -> bytes:
        """Last line that the child says until it is the command, or ends; empty if there is none.

        Signals to end are passed on: a health check, say, may run.
        """
        said = b""
        self.poll.register(pipe, POLLIN)
        while True:
            for descriptor, _ in self.poll.poll():
                data = read(descriptor, MESSAGE_BYTES)
                if descriptor == self.wake:
                    self._take_signals(data)
                    if self.signalled:
                        send(self.command, signal.SIGTERM)
                elif data:
                    said += data
                else:
                    self.poll.unregister(pipe)
                    return said[:-1].rpartition(b"\n")[2] if said.endswith(b"\n") else b""

    def _take_signals(self, numbers: bytes) -> None:
        """See whether signals, as the interpreter writes them down, ask for an end."""
        if TERM in numbers or INT in numbers:
            self.signalled = True
            self.look_at = self.reread_at = 0.0

    def _end_all(self) -> None:
        """Kill what is left, and wait until it is gone."""
        while self._reap():
            self._kill()
            time.sleep(END_S)

    def _watch(self) -> dict[str, Any]:
        while self._reap():
            self._go_on()
        for _ in range(16):  # what is still in the pipe
            self._read(0.0)
        self.log.flush()
        code = -9 if self.code is None else self.code
        said = "" if code in (0, 75, 143, -15) else self.log.tail()
        detail = without_secrets(said, json.loads(self.secrets))
        # A batch system tells the supervisor and its command at once, and either may be the faster.
        reason = self.reason or ("stopped" if self.signalled else "exited")
        return ending(code, reason, forced=self.forced, detail=detail)

    def _go_on(self) -> None:
        """Do what is due, and wait for what comes next."""
        now = monotonic()
        if now >= self.look_at:
            self._look(now)
            busy = self.reason or self.code is not None
            self.look_at = now + (POLL_S if busy else self.poll_s)
        self._send_due(now)
        if now >= self.log.flush_at:
            self.log.flush()
        self._read(self.look_at - now)

    def _reap(self) -> bool:
        """Collect who died; whether anything of the command is left."""
        try:
            while True:
                pid, status = waitpid(-1, WNOHANG)
                if pid == self.command:
                    self.code = waitstatus_to_exitcode(status)
                if pid == 0:
                    return True
        except ChildProcessError:
            return False

    def _read(self, wait_s: float) -> None:
        """Wait for output, a signal or the time, and take what there is."""
        for descriptor, _ in self.poll.poll(max(0, ceil(wait_s * 1e3))):
            try:
                data = read(descriptor, READ_BYTES)
            except BlockingIOError:
                continue
            if descriptor == self.wake:
                self._take_signals(data)
            elif data:
                self.log.add(data)
            else:
                self.poll.unregister(descriptor)

    def _look(self, now: float) -> None:
        """See whether the lease was renewed, is to stop, or has expired."""
        text = self._read_lease(now)
        if text and text != self.renewal:
            self.renewal = text
            self.deadline = now + self.ttl_s
        # Parsed only if it can say so.
        lease = b"true" in text and parsed_object(text)
        if lease and lease.get("stop") is True:
            asked = lease.get("grace_s")
            sane = isinstance(asked, (int, float)) and 0 <= asked < 1e9
            self._ask(now, "stopped", float(asked) if sane else self.grace_s)  # type: ignore[arg-type]
        elif self.signalled:
            self.signalled = False
            self._ask(now, "stopped", self.grace_s)
        elif now > self.deadline and not self.reason:
            self._ask(now, "expired", self.grace_s)

    def _read_lease(self, now: float) -> bytes:
        """Text of ``lease.json`` if it may have changed, else nothing.

        Most often its attributes tell. They may be old on a network's file system, where only an
        ``open`` asks again, and do not tell two changes within a tick of the clock.
        """
        path = f"{self.directory}/lease.json"
        if now < self.reread_at:
            try:
                about = os.lstat(path)
            except OSError:
                return b""
            attributes = (about.st_ino, about.st_mtime_ns, about.st_size)
            if attributes == self.attributes:
                return b""
            self.attributes = attributes
        self.reread_at = now + REREAD_S
        return read_small(path)

    def _ask(self, now: float, reason: str, grace_s: float) -> None:
        if self.reason:
            self.kill_at = min(self.kill_at, now + grace_s)
            return
        self.reason = reason
        self.kill_at, self.spread_at = now + grace_s, now + grace_s / 2
        # To find its descendants takes longer than most commands take to end.
        self.continue_at = now + min(CONTINUE_S, grace_s / 4)
        if self.code is None:
            send(self.command, signal.SIGTERM)
            send(self.command, signal.SIGCONT)

    def _send_due(self, now: float) -> None:
        """Send the signals that are due."""
        if self.code is not None and not self.leftovers_asked:
            self.leftovers_asked = True
            self.spread_at = now
            if not self.reason or self.code in (0, 75):  # it has saved
                self.kill_at = min(self.kill_at, now + min(self.grace_s, LEFTOVER_GRACE_S))
        if now >= self.continue_at:
            self.continue_at = inf
            for pid in descendants({getpid()}, processes()):
                send(pid, signal.SIGCONT)
        if now >= self.spread_at:
            self.spread_at = inf
            for pid in descendants({getpid()}, processes()) - {self.command}:
                send(pid, signal.SIGTERM)
                send(pid, signal.SIGCONT)
        if now >= self.kill_at:
            self.forced = True
            self._kill()

    def _kill(self) -> None:
        """SIGKILL to every process of the command, by group: a group cannot fork away from it."""
        table = processes()
        for pid in descendants({getpid()}, table):
            if table[pid][2] != os.getsid(0):
                send(-table[pid][1], signal.SIGKILL)
            send(pid, signal.SIGKILL)


def handle_signals() -> None:
    """Have signals wake a supervisor; what they ask for is in what the interpreter writes down.

    A launcher does this once for all that it forks.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: None)


def warm_up() -> None:
    """Do what all supervisors do, on no lease, until the interpreter has adapted its code to it.

    It writes into that code when it does so. A launcher calls this before it forks: all of its
    supervisors share what was written.
    """
    for _ in range(WARM_UPS):
        idle = Supervisor()
        idle._take_lease("/nonexistent", -1)
        idle.output = idle.waker
        told, tell = pipe()
        os.write(tell, b"watch 1e9 1e9 0.0 1 {}\n")
        close(tell)
        _, _, about = idle._hear(told).partition(b" ")
        close(told)
        idle._take_order(about, -1)
        for _ in range(2):
            idle._reap()
            idle._go_on()
        for descriptor in (idle.wake, idle.waker):
            close(descriptor)
    set_wakeup_fd(-1)
    os.get_exec_path()  # imports a module when it is called


def main(directory: str) -> int:
    """Be a process that does nothing but supervise."""
    os.umask(0o077)
    handle_signals()
    lock = open_lock(directory)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    return Supervisor().run(directory, lock)
