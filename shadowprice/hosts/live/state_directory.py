"""The state directory of a run: made once, used by one driver at a time, resumed by the next."""

from __future__ import annotations

import os
import stat
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shadowprice.errors import HostError, InputError
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.supervision.files import lock_within
from shadowprice.hosts.supervision.processes import machine, process

LEDGER, LOCK = "run.db", "driver.lock"
NOTICE_BYTES = 256
"""Length of the file of the lock: the driver's process, and a line of what it waits for."""


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Be the only driver of a state directory, which is made if it does not exist.

    Raises
    ------
    InputError
        If it belongs to somebody else or others may write to it.
    HostError
        If another driver has it.
    """
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = state.stat()
    except OSError as error:
        raise InputError(f"state directory {state}: {error.strerror}") from error
    if about.st_uid != os.getuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InputError(
            f"state directory {state}: others may write to it, expected one of your own with mode 0700"
        )
    state.chmod(0o700)
    lock = os.open(state / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not lock_within(lock, 0.0):
            words = os.pread(lock, 20, 0).decode("ascii", "replace").split()
            raise _other_driver(state, words[0] if words else "unknown")
        os.ftruncate(lock, 0)
        # Of this length: it has its space when a notice is to be written on a full disk.
        os.pwrite(lock, f"{os.getpid()}\n".ljust(NOTICE_BYTES).encode(), 0)
        yield
    finally:
        os.close(lock)


def write_notice(lock: Path, text: str) -> None:
    """Write a line after the first of the file of a driver's lock, over what was there.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    descriptor = os.open(lock, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        head = f"{os.getpid()}\n".encode()
        line = " ".join(text.split()).encode()[: NOTICE_BYTES - len(head) - 1]
        os.pwrite(descriptor, (head + line).ljust(NOTICE_BYTES - 1) + b"\n", 0)
    finally:
        os.close(descriptor)


def read_notice(lock: Path) -> str:
    """Reason that a driver waits, by the file of its lock; empty if it does not."""
    try:
        _, _, line = lock.read_text(errors="replace").partition("\n")
    except OSError:
        return ""
    return " ".join(line.split())


def take_over(ledger: RunLedger, state: Path) -> None:
    """Be the one driver of a run, by its ledger: a file of a lock may be removed.

    Raises
    ------
    HostError
        If another driver lives. One that cannot be seen, on another machine for instance, is
        refused at its next write.
    """
    before = ledger.value("driver", {})
    pid, mine = before.get("pid"), process(os.getpid())
    if before.get("machine") == machine() and type(pid) is int and pid != os.getpid():
        about = process(pid)
        if about is not None and about[3] == before.get("start_ticks"):
            raise _other_driver(state, pid)
    ticks = 0 if mine is None else mine[3]
    ledger.take_over({"pid": os.getpid(), "start_ticks": ticks, "machine": machine()})


def _other_driver(state: Path, pid: object) -> HostError:
    return HostError(
        f"state directory {state}: another driver (process {pid}) executes it; wait for it, or "
        "choose another with --state"
    )


def open_ledger(state: Path, identity: Mapping[str, object]) -> tuple[RunLedger, bool]:
    """The ledger of a state directory, and whether a run is resumed.

    Raises
    ------
    InputError
        If the directory is of a run with other settings.
    """
    path = state / LEDGER
    if path.exists():
        ledger = RunLedger.open(path)
        if ledger.value("ready"):
            _check_identity(ledger, identity, state)
            return ledger, True
        # A driver died before it had written down what is run: nothing has happened yet.
        ledger.close()
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    facts = {"run_id": uuid.uuid4().hex, "began_unix": time.time(), "ended": False}
    return RunLedger.create(path, {**facts, **identity}), False


def _check_identity(ledger: RunLedger, identity: Mapping[str, object], state: Path) -> None:
    files = {
        "jobs_sha256": "the job file",
        "throughputs_sha256": "the table of throughputs",
        "code_sha256": "the file of the policy or placement",
    }
    for key, value in identity.items():
        before = ledger.value(key)
        if before != value:
            what = f"{files[key]} has changed" if key in files else f"{key} is {value!r}"
            was = "" if key in files else f" with {before!r}"
            raise InputError(
                f"state directory {state}: {what}, but its run was begun{was or ' with another'}; "
                "resume it as it was begun, or choose another directory with --state"
            )


def passed_s(facts: Mapping[str, Any], last_s: float) -> float:
    """Time since a run began [s].

    By the monotonic clock while the machine is the one of the last driver and was not started again,
    whatever became of the date; else the date tells how much time passed.

    Parameters
    ----------
    facts : mapping
        ``began_unix``, the date at which the run began [s since 1970], and ``clock`` as
        :meth:`.WallClock.record` gives it, or None.
    last_s : float
        The latest time that was recorded [s]; it is no earlier.
    """
    clock = facts.get("clock")
    if isinstance(clock, Mapping) and clock.get("boot") == boot():
        return max(time.monotonic() - float(clock["zero_s"]), last_s)
    return max(time.time() - float(facts["began_unix"]), last_s)


def boot() -> str:
    """Identifier of one running system."""
    return machine().rpartition("/")[0]
