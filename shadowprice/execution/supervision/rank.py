"""One rank of a lease on its node, from its order to its end."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import signal
import time

from shadowprice.execution.supervision.command import PR_SET_CHILD_SUBREAPER, prctl, spawn
from shadowprice.execution.supervision.files import (
    PRIVATE,
    ending,
    read_json,
    reserve_space,
    take_lock,
    write_ending,
)
from shadowprice.execution.supervision.health import HealthCheck
from shadowprice.execution.supervision.output import Log
from shadowprice.execution.supervision.processes import descendants, kill_orphans, processes, send

TYPE_CHECKING = False  # importing typing would cost a third of the start-up
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

POLL_S = 0.05
REREAD_S = 0.5
LEFTOVER_GRACE_S = 2.0
"""For processes that a command leaves behind when it ends by itself."""
READ_BYTES = 1 << 18
SECRET_LENGTH = 6
"""Shorter values of variables say nothing, and may be parts of any word."""
F_SETPIPE_SZ = 1031


class Supervisor:
    """One rank, from its order to its end; ``lock`` is held by the caller."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.reason = ""  # why the command was asked to end
        self.code: int | None = None
        self.forced = self.leftovers_asked = self.signalled = False
        self.spread_at = self.kill_at = math.inf
        self.look_at = 0.0
        self.serial: object = None
        self.attributes: object = None
        self.reread_at = 0.0
        self.command = 0
        self.wake, self.waker = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self.waker, False)
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note_signal)

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        self.signalled = True
        self.look_at = 0.0

    def run(self) -> None:
        """Start the command, watch it, write how it ended."""
        reserve = reserve_space(self.directory)
        try:
            record = self._start() or self._watch()
        except Exception as error:
            while self._reap():
                self._kill()
                time.sleep(POLL_S)
            record = ending(-9, "exited", forced=True, detail=f"the supervisor failed: {error!r}")
        write_ending(self.directory, record, reserve)

    def _start(self) -> dict[str, Any] | None:
        order = read_json(f"{self.directory}/order.json") or {}
        private = self._take_private()
        lease = read_json(f"{self.directory}/lease.json") or {}
        if lease.get("stop") is True or self.signalled:
            return ending(0, "void", detail="stopped before it began")
        try:
            self.ttl_s, self.grace_s = float(order["ttl_s"]), float(order["grace_s"])
            self.poll_s = float(order.get("poll_s", POLL_S))
            self.log = Log(f"{self.directory}/output.log", int(order["log_bytes"]))
            self.output, write_end = os.pipe()
            os.set_blocking(self.output, False)
            with contextlib.suppress(PermissionError):  # the user has large pipes enough
                fcntl.fcntl(write_end, F_SETPIPE_SZ, READ_BYTES)
            prctl(PR_SET_CHILD_SUBREAPER, 1)
            unhealthy = self._check_health(order)
            if unhealthy is not None:
                return unhealthy
            if len(private) != order.get("private", 0):
                raise OSError(f"{PRIVATE}: cannot be read, expected {order['private']} variables")
            order["env"].update(private)
            self.command = spawn(order, self.directory, write_end)
        except (OSError, LookupError, TypeError, ValueError) as error:
            detail = str(error) if isinstance(error, OSError) else f"order.json: {error!r}"
            return ending(127, "unstartable", detail=detail)
        os.close(write_end)
        self.deadline = time.monotonic() + self.ttl_s
        self.poll = select.poll()
        self.poll.register(self.output, select.POLLIN)
        self.poll.register(self.wake, select.POLLIN)
        return None

    def _check_health(self, order: dict[str, Any]) -> dict[str, Any] | None:
        """Ending of the lease if its node is not fit for it, or it is asked to stop meanwhile."""
        if not order.get("health_check"):
            return None
        check = HealthCheck(order["health_check"], {**order["env"]}, self.directory)
        while check.goes_on():
            lease = read_json(f"{self.directory}/lease.json") or {}
            if lease.get("stop") is True or self.signalled:
                check.end()
                return ending(0, "void", detail="stopped before it began")
        why = check.why()
        return ending(127, "unhealthy", detail=self._without_secrets(why)) if why else None

    def _take_private(self) -> dict[str, Any]:
        """Read the variables of the job's own, and leave them nowhere."""
        private = read_json(f"{self.directory}/{PRIVATE}") or {}
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.directory}/{PRIVATE}")
        self.secrets = {
            str(value): name for name, value in private.items() if len(str(value)) >= SECRET_LENGTH
        }
        return private

    def _without_secrets(self, text: str) -> str:
        """A text for people, with names of variables in place of their values."""
        for value in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(value, f"[{self.secrets[value]}]")
        return text

    def _watch(self) -> dict[str, Any]:
        while self._reap():
            now = time.monotonic()
            if now >= self.look_at:
                self._look(now)
                busy = self.reason or self.code is not None
                self.look_at = now + (POLL_S if busy else self.poll_s)
            self._send_due(now)
            if now >= self.log.flush_at:
                self.log.flush()
            self._read(self.look_at - now)
        for _ in range(16):  # what is still in the pipe
            self._read(0.0)
        self.log.flush()
        code = -9 if self.code is None else self.code
        detail = "" if code in (0, 75, 143, -15) else self._without_secrets(self.log.tail())
        # A batch system tells the supervisor and its command at once, and either may be the faster.
        reason = self.reason or ("stopped" if self.signalled else "exited")
        return ending(code, reason, forced=self.forced, detail=detail)

    def _reap(self) -> bool:
        """Collect who died; whether anything of the command is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self.command:
                    self.code = os.waitstatus_to_exitcode(status)
                if pid == 0:
                    return True
        except ChildProcessError:
            return False

    def _read(self, wait_s: float) -> None:
        """Wait for output, a signal or the time, and take what there is."""
        for descriptor, _ in self.poll.poll(max(0, math.ceil(wait_s * 1e3))):
            try:
                data = os.read(descriptor, READ_BYTES)
            except BlockingIOError:
                continue
            if descriptor == self.output:
                if data:
                    self.log.add(data)
                else:
                    self.poll.unregister(descriptor)

    def _look(self, now: float) -> None:
        """See whether the lease was renewed, is to stop, or has expired."""
        lease = self._read_lease(now)
        if lease and lease.get("serial") != self.serial:
            self.serial = lease.get("serial")
            self.deadline = now + self.ttl_s
        if lease.get("stop") is True:
            asked = lease.get("grace_s")
            sane = isinstance(asked, (int, float)) and 0 <= asked < 1e9
            self._ask(now, "stopped", float(asked) if sane else self.grace_s)  # type: ignore[arg-type]
        elif self.signalled:
            self.signalled = False
            self._ask(now, "stopped", self.grace_s)
        elif now > self.deadline and not self.reason:
            self._ask(now, "expired", self.grace_s)

    def _read_lease(self, now: float) -> dict[str, Any]:
        """``lease.json`` if it may have changed, else nothing.

        Most often its attributes tell. They may be old on a network's file system, where only an
        ``open`` asks again, and do not tell two changes within a tick of the clock.
        """
        path = f"{self.directory}/lease.json"
        try:
            about = os.lstat(path)
        except OSError:
            return {}
        attributes = (about.st_ino, about.st_mtime_ns, about.st_size)
        if attributes == self.attributes and now < self.reread_at:
            return {}
        self.attributes, self.reread_at = attributes, now + REREAD_S
        return read_json(path) or {}

    def _ask(self, now: float, reason: str, grace_s: float) -> None:
        if self.reason:
            self.kill_at = min(self.kill_at, now + grace_s)
            return
        self.reason = reason
        self.kill_at, self.spread_at = now + grace_s, now + grace_s / 2
        if self.code is None:
            send(self.command, signal.SIGTERM)
        for pid in descendants({os.getpid()}, processes()):
            send(pid, signal.SIGCONT)

    def _send_due(self, now: float) -> None:
        """Send the signals that are due."""
        if self.code is not None and not self.leftovers_asked:
            self.leftovers_asked = True
            self.spread_at = now
            if not self.reason or self.code in (0, 75):  # it has saved
                self.kill_at = min(self.kill_at, now + min(self.grace_s, LEFTOVER_GRACE_S))
        if now >= self.spread_at:
            self.spread_at = math.inf
            for pid in descendants({os.getpid()}, processes()) - {self.command}:
                send(pid, signal.SIGTERM)
                send(pid, signal.SIGCONT)
        if now >= self.kill_at:
            self.forced = True
            self._kill()

    def _kill(self) -> None:
        """SIGKILL to every process of the command, by group: a group cannot fork away from it."""
        table = processes()
        for pid in descendants({os.getpid()}, table):
            if table[pid][2] != os.getsid(0):
                send(-table[pid][1], signal.SIGKILL)
            send(pid, signal.SIGKILL)


def main(directory: str) -> int:
    """Run, or clean up after, the lease of a directory; 1 if another supervisor has it."""
    os.umask(0o077)
    null = os.open(os.devnull, os.O_RDWR)
    lock = take_lock(directory, wait_s=2.0)
    if lock is None:
        return 1
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    if read_json(f"{directory}/exit.json") is not None:
        return 0
    if os.path.lexists(f"{directory}/supervisor.json"):
        recorded = read_json(f"{directory}/supervisor.json") or {}
        return 0 if kill_orphans(directory, recorded, wait_s=10.0, here=True) else 1
    Supervisor(directory).run()
    return 0
