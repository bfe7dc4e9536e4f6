"""The driver's side of a lease's directory: orders, renewals, stops, and what became of them.

Files are the only channel between driver and supervisors, so that either may die. A job may write
what it likes into its directory: garbage is taken as absent, nothing here raises because of it.
"""

from __future__ import annotations

import importlib.resources
import json
import math
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from shadowprice.errors import HostError
from shadowprice.hosts.protocol import Exit, LaunchSpec, Phase, RankStatus
from shadowprice.hosts.supervision.files import (
    PRIVATE,
    ending,
    lock_within,
    make_folder,
    read_json,
    read_whole,
    take_lock,
    write_bytes,
    write_json,
    write_text,
)
from shadowprice.hosts.supervision.output import TEXT_LIMIT
from shadowprice.hosts.supervision.processes import kill_orphans, machine, process

# The copy of the supervisor, with what it imports, for nodes to run.


LIBRARY = "library/shadowprice"
_FOLDER = f"{LIBRARY}/hosts/supervision"


def copy_supervisor(state: Path) -> tuple[str, ...]:
    """Put the supervisor into a state directory, whatever is there in its place.

    Returns
    -------
    tuple of str
        Names of files that were something else.

    Raises
    ------
    HostError
        If it cannot be written.
    """
    differed = []
    try:
        make_folder(str(state / _FOLDER))
        for folder in (LIBRARY, f"{LIBRARY}/hosts", _FOLDER):
            # Compiled files of an earlier release would be read in place of these.
            shutil.rmtree(state / folder / "__pycache__", ignore_errors=True)
        for name, data in _supervisor_sources().items():  # the file to run last
            found = read_whole(f"{state}/{name}", len(data) + 1)
            if found != data:
                write_bytes(f"{state}/{name}", data)
                differed += [name] if found is not None else []
    except OSError as error:
        raise HostError(f"state directory {state}: cannot write the supervisor: {error}") from None
    return tuple(differed)


@cache
def _supervisor_sources() -> dict[str, bytes]:
    """Bytes of the files to copy, by their names in a state directory."""
    package = importlib.resources.files("shadowprice.hosts")
    # Nothing else of this package goes with it, so the packages around it are empty.
    sources = {f"{LIBRARY}/__init__.py": b"", f"{LIBRARY}/hosts/__init__.py": b""}
    for part in package.joinpath("supervision").iterdir():
        if part.name.endswith(".py"):
            sources[f"{_FOLDER}/{part.name}"] = part.read_bytes()
    sources["supervisor.py"] = package.joinpath("supervisor.py").read_bytes()
    return sources


def supervisor_argv(state: Path, *arguments: str) -> list[str]:
    """Command of the supervisor's program: the directory of a lease, or ``serve`` and a descriptor."""
    # -B: what is compiled is left nowhere, to be torn and then read in place of its source.
    return [sys.executable, "-I", "-S", "-B", str(state / "supervisor.py"), *arguments]


# Files that a job and its supervisor wrote, reduced to what makes sense.


REPORT_LIMIT_BYTES = 1 << 16
REASONS = ("exited", "stopped", "expired", "void", "unstartable", "unhealthy")


def read_exit(directory: Path) -> Exit | None:
    """``exit.json``; None if there is none that makes sense."""
    found = read_json(f"{directory}/exit.json", REPORT_LIMIT_BYTES)
    if found is None or type(found.get("code")) is not int or found.get("reason") not in REASONS:
        return None
    detail = str(found.get("detail", ""))[:TEXT_LIMIT]
    forced, host_failed = (found.get(key) is True for key in ("forced", "host_failed"))
    return Exit(found["code"], found["reason"], forced, detail, host_failed)


def read_report(directory: Path) -> dict[str, Any]:
    """``report.json`` without what is no plain number, text or truth value; empty if there is none.

    Numbers are finite, not negative and at most 2^53; texts are cut.
    """
    found = read_json(f"{directory}/report.json", REPORT_LIMIT_BYTES) or {}
    report: dict[str, Any] = {}
    for key, value in found.items():
        if isinstance(value, str):
            report[key] = value[:TEXT_LIMIT]
        elif isinstance(value, bool) or (_is_number(value) and 0 <= value <= 2**53):
            report[key] = value
    return report


def _is_number(value: object) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


LEASE_BYTES = 256
_LEASE_FOLDER = re.compile(r"e[0-9]{1,15}-r[0-9]+(-c[0-9]+)?")
LIVENESS_S = 0.5
"""A supervisor that dies changes no file; so often its lock is tried."""
BEGIN_S = 2.0
"""After which a supervisor that holds its lock has begun its command."""


def write_order(order: LaunchSpec) -> bool:
    """Make a lease's directory, with its order and its first renewal; False if it has one already.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    directory = order.directory
    make_folder(str(directory))
    if directory.is_symlink():
        raise OSError(f"lease directory {directory} is a link")
    if os.path.lexists(directory / "order.json"):
        return False
    write_text(f"{directory}/lease.json", _padded(_lease(1, False, order.grace_s, "")))
    private = {name: value for name, value in order.env.items() if name in order.private}
    if private:
        write_json(f"{directory}/{PRIVATE}", private)
    key = order.key
    text = {
        **{"job": key.job, "epoch": key.epoch, "rank": key.rank},
        "argv": list(order.argv),
        "env": {name: value for name, value in order.env.items() if name not in private},
        "private": len(private),
        "working_directory": str(order.working_directory),
        "ttl_s": order.ttl_s,
        "grace_s": order.grace_s,
        "log_bytes": order.log_bytes,
        "health_check": list(order.health_check),
        "poll_s": order.poll_s,
        "cpu_milli": order.cpu_milli,
        "memory_mib": order.memory_mib,
    }
    write_json(f"{directory}/order.json", text)
    return True


def renew(directory: Path) -> None:
    """Let a lease go on for another time to live; does nothing if it was asked to stop."""
    lease = read_json(f"{directory}/lease.json", REPORT_LIMIT_BYTES) or {}
    if lease.get("stop") is not True:
        renewed = _lease(_next_serial(lease), False, lease.get("grace_s", 10.0), "")
        _write_lease(directory, renewed)


def ask_stop(directory: Path, grace_s: float, reason: str) -> None:
    """Ask a command to end, and its supervisor to kill it after ``grace_s``; void it if it has not begun."""
    lease = read_json(f"{directory}/lease.json", REPORT_LIMIT_BYTES) or {}
    _write_lease(directory, _lease(_next_serial(lease), True, grace_s, reason))
    if not os.path.lexists(directory / "supervisor.json"):
        void(directory, reason)


def void(directory: Path, detail: str = "") -> bool:
    """Make sure that a lease that has not begun never begins; whether it has not.

    Nothing happens while its supervisor lives, or if it has lived.
    """
    try:
        make_folder(str(directory))
        with lease_lock(directory) as free:
            if not free or os.path.lexists(directory / "supervisor.json"):
                return False
            if read_exit(directory) is None:
                write_json(f"{directory}/exit.json", ending(0, "void", detail=detail))
            with suppress(FileNotFoundError):
                os.unlink(directory / PRIVATE)
            return True
    except OSError:
        return False


def prune(folder: Path, keep: int) -> None:
    """Remove the directories of a job's leases that ended, but for the last ones; never raises.

    Parameters
    ----------
    folder : Path
        Of the job's leases.
    keep : int
        Directories to keep, of the latest epochs.
    """
    try:
        names = [name for name in os.listdir(folder) if _LEASE_FOLDER.fullmatch(name)]
    except OSError:
        return
    names.sort(key=lambda name: int(name[1 : name.index("-")]))
    for name in names[: max(len(names) - keep, 0)]:
        directory = folder / name
        with suppress(OSError):
            if directory.is_symlink() or read_exit(directory) is None:
                continue
            with lease_lock(directory) as free:
                if free:
                    shutil.rmtree(directory)


def write_off(directory: Path, record: Mapping[str, Any]) -> None:
    """Write the end of a lease whose supervisor is dead with its node, unless it wrote one, or has its lock."""
    with suppress(OSError), lease_lock(directory) as free:
        if free and read_exit(directory) is None:
            write_json(f"{directory}/exit.json", record)


@contextmanager
def lease_lock(directory: Path) -> Iterator[bool]:
    """Hold the lock of a lease; false if its supervisor does.

    Raises
    ------
    OSError
        If its file cannot be opened.
    """
    lock = take_lock(str(directory))
    try:
        yield lock is not None
    finally:
        if lock is not None:
            os.close(lock)


def read_supervisor(directory: Path) -> dict[str, Any] | None:
    """``supervisor.json``, written just before the command begins."""
    found = read_json(f"{directory}/supervisor.json", REPORT_LIMIT_BYTES) or {}
    numbers = ("pid", "start_ticks", "command_pid", "command_start_ticks")
    return found if all(type(found.get(key)) is int for key in numbers) else None


def read_status(
    directory: Path, recorded: Mapping[str, Any] | None = None, *, here: bool = False
) -> RankStatus:
    """Status of a rank by the files of its lease. Never raises.

    If its supervisor died, what it left is killed first; that takes at most about a second, and
    the phase stays ``RUNNING`` until nothing is left, or is ``LOST`` if that is on another machine.

    Parameters
    ----------
    recorded
        What :func:`read_supervisor` gave before; the job may have damaged it since.
    here
        Whether the lease's node is this machine.
    """
    # In this order: a supervisor writes its end before it lets go of its lock.
    recorded = recorded or read_supervisor(directory)
    lives = supervisor_lives(directory, recorded)
    report, ended = read_report(directory), read_exit(directory)
    if not lives and ended is not None:
        return RankStatus(Phase.ENDED, report, ended)
    # A record that is there but makes no sense was damaged by the command, which thus has begun, or by
    # a power cut.
    if recorded is None and not os.path.lexists(directory / "supervisor.json"):
        return RankStatus(Phase.STARTING, report)
    if lives:
        return RankStatus(Phase.RUNNING, report)
    return _after_death(directory, recorded or {}, report, here=here)


def _after_death(
    directory: Path, recorded: Mapping[str, Any], report: Mapping[str, Any], *, here: bool
) -> RankStatus:
    """The supervisor died and wrote no end."""
    with ExitStack() as stack:
        # Where the lock's file was damaged the supervisor is dead by its number.
        with suppress(OSError):
            if not stack.enter_context(lease_lock(directory)):
                return RankStatus(Phase.RUNNING, report)
        if kill_orphans(str(directory), recorded, here=here):
            ended = Exit(-9, "exited", detail="the supervisor was killed", host_failed=True)
            return RankStatus(Phase.ENDED, report, read_exit(directory) or ended)
        known = recorded.get("machine") == machine() or (here and not recorded)
        return RankStatus(Phase.RUNNING if known else Phase.LOST, report)


def supervisor_lives(directory: Path, recorded: Mapping[str, Any] | None) -> bool:
    """True if a lease's supervisor lives: by its lock and, on its own machine, by its PID."""
    try:
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(directory / "lock", flags)
    except OSError:
        locked = False
    else:
        locked = not lock_within(descriptor, 0.0)
        os.close(descriptor)
    if locked or recorded is None or recorded.get("machine") != machine():
        return locked
    pid = recorded.get("pid")
    about = process(pid) if type(pid) is int else None
    return about is not None and about[3] == recorded.get("start_ticks")


class LeaseReader:
    """Reads a lease's directory again and again; only its attributes where nothing changed.

    Everything there is written by replacing files, which changes the directory's time. That has
    the grain of the clock's ticks, so that a change is trusted to be the last only after a while.
    On a network's file system attributes may be old, and only an ``open`` asks the server again.

    Parameters
    ----------
    here : bool
        Whether the lease's node is this machine.
    """

    def __init__(self, directory: Path, *, here: bool = False) -> None:
        self.directory, self._here = directory, here
        self._path = str(directory)
        self._last = RankStatus(Phase.STARTING)
        self._recorded: dict[str, Any] | None = None
        self._changed_ns = -1
        self._alive_until = 0.0
        self._held_s = math.inf

    def status(self, *, doubt: bool = False) -> RankStatus:
        """Status of the rank by its files; ``doubt`` reads them in any case."""
        if self._last.phase is Phase.ENDED:
            return self._last
        changed_ns = self._read_time_ns()
        now = time.monotonic()
        if doubt or changed_ns != self._changed_ns or now >= self._alive_until:
            self.supervisor()
            read = read_status(self.directory, self._recorded, here=self._here)
            self._last = self._begun(read, now)
            settled = abs(time.time_ns() - changed_ns) > 50_000_000
            self._changed_ns = changed_ns if settled else -1
            self._alive_until = now + LIVENESS_S
        return self._last

    def supervisor(self) -> Mapping[str, Any] | None:
        """Record that its supervisor wrote when it began, None before."""
        self._recorded = self._recorded or read_supervisor(self.directory)
        return self._recorded

    def _read_time_ns(self) -> int:
        """Time of the directory's last change, -1 if there is none."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            return -1
        changed_ns = os.fstat(descriptor).st_mtime_ns
        os.close(descriptor)
        return changed_ns

    def _begun(self, status: RankStatus, now: float) -> RankStatus:
        """The status, but of a command that has removed what its supervisor wrote of it."""
        if status.phase is not Phase.STARTING or not supervisor_lives(self.directory, None):
            self._held_s = math.inf
            return status
        self._held_s = min(self._held_s, now)
        return replace(status, phase=Phase.RUNNING) if now - self._held_s >= BEGIN_S else status


def _lease(serial: int, stop: bool, grace_s: object, reason: str) -> dict[str, Any]:
    return {"serial": serial, "stop": stop, "grace_s": grace_s, "reason": reason}


def _padded(lease: Mapping[str, Any]) -> str:
    return json.dumps(lease).ljust(LEASE_BYTES)


def _next_serial(lease: Mapping[str, Any]) -> int:
    """A serial that differs from all before; the supervisor asks for no more."""
    serial = lease.get("serial")
    return serial + 1 if type(serial) is int and 0 < serial < 2**62 else time.time_ns()


def _write_lease(directory: Path, lease: Mapping[str, Any]) -> None:
    """Write over ``lease.json``, or replace what is none."""
    if not _overwrite(f"{directory}/lease.json", lease):
        # Without a directory there is no way: its supervisor ends the command in time.
        with suppress(OSError):
            write_text(f"{directory}/lease.json", _padded(lease))


def _overwrite(path: str, lease: Mapping[str, Any]) -> bool:
    """Write a lease over one of the same size, some ten times faster than replacing it.

    Who reads at this moment may see a mixture of both, and looks again soon. Nothing is written
    to what is no plain file, or a file with another name too.
    """
    data = _padded(lease).encode()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        about = os.fstat(descriptor)
        plain = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
        if not plain or not len(data) == LEASE_BYTES <= about.st_size:
            return False
        return os.pwrite(descriptor, data.ljust(about.st_size), 0) == about.st_size
    except OSError:
        return False
    finally:
        os.close(descriptor)
