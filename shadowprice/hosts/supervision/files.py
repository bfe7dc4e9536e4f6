"""Files of a lease's directory, read and written so that nothing in them can hurt.

A job may write what it likes there. What is half-written, huge, a link, a pipe or no object is
taken as absent; what is written replaces a file at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time
from _thread import get_ident  # threading takes longer to import
from os import close, read
from os import open as open_

TYPE_CHECKING = False  # importing typing would cost a third of the start-up
if TYPE_CHECKING:
    from typing import Any

FILE_LIMIT, SMALL_BYTES = 1 << 20, 1 << 12
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
PRIVATE = "private.json"
"""Variables of a job's own environment; removed before the command begins, since they may be secrets."""
RESERVED_BYTES = 1 << 14
"""Kept for exit.json from the start, so that a full disk does not hide how a command ended."""


def make_folder(path: str) -> None:
    """Make a folder, and those above that are missing, all for their owner only (mode 0700)."""
    above = os.path.dirname(path)
    if above and not os.path.isdir(above):
        make_folder(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def read_json(path: str, limit: int = FILE_LIMIT) -> dict[str, Any] | None:
    """Object in a file; None if it is missing, no plain file, too large, or anything but an object."""
    data = read_whole(path, limit + 1)
    return None if data is None or len(data) > limit else parsed_object(data)


def read_whole(path: str, limit: int) -> bytes | None:
    """The first bytes of a plain file, at most so many; None if there is none, whatever is there."""
    try:
        descriptor = os.open(path, READ_FLAGS)
    except OSError:
        return None
    data = b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        while len(data) < limit and (more := os.read(descriptor, limit - len(data))):
            data += more
        return data
    except OSError:
        return None
    finally:
        os.close(descriptor)


def read_small(path: str) -> bytes:
    """The first 4 KiB of a file; empty if there is none, whatever is there."""
    try:
        descriptor = open_(path, READ_FLAGS)
    except OSError:
        return b""
    try:
        return read(descriptor, SMALL_BYTES)
    except OSError:
        return b""
    finally:
        close(descriptor)


def parsed_object(data: bytes) -> dict[str, Any] | None:
    """Object of a text of JSON; None if it is anything else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def write_json(path: str, value: object, *, durable: bool = False) -> None:
    """Replace a file atomically; whatever bears its name, a link for instance, is not followed."""
    write_text(path, json.dumps(value, ensure_ascii=False), durable=durable)


def write_text(path: str, text: str, *, durable: bool = False) -> None:
    """Replace a file atomically, as :func:`write_bytes` does."""
    write_bytes(path, text.encode(errors="replace"), durable=durable)


def write_bytes(path: str, data: bytes, *, durable: bool = False) -> None:
    """Replace a file atomically; ``durable`` waits until it, and its name, would survive a power cut."""
    temporary = f"{path}.{os.getpid()}.{get_ident()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, 0o600)
    try:
        _write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)
    except OSError:
        os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    try:
        os.replace(temporary, path)
    except IsADirectoryError:  # planted
        os.rename(path, f"{path}.{time.monotonic_ns()}.moved")
        os.replace(temporary, path)
    if durable:
        sync_folder(os.path.dirname(path))


def sync_folder(path: str) -> None:
    """Wait until the names in a folder would survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def open_lock(directory: str) -> int:
    """Descriptor of a lease's lock, which may be another's."""
    return open_(f"{directory}/lock", LOCK_FLAGS, 0o600)


def take_lock(directory: str) -> int | None:
    """Descriptor of the lease's lock, or None while another holds it."""
    descriptor = open_lock(directory)
    if lock_within(descriptor, 0.0):
        return descriptor
    os.close(descriptor)
    return None


def lock_within(descriptor: int, wait_s: float) -> bool:
    """Lock an open file for oneself within some time; true if that was possible."""
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() >= until:
                return False
        time.sleep(0.005)


def ending(
    code: int, reason: str, *, forced: bool = False, detail: str = "", host_failed: bool = False
) -> dict[str, Any]:
    """Content of ``exit.json``; ``host_failed`` where supervision or the disk did, and not the command."""
    record = {"code": code, "reason": reason, "forced": forced, "detail": detail}
    return {**record, "host_failed": True} if host_failed else record


def reserve_space(directory: str) -> None:
    """Make a file as large as ``exit.json`` may become, if there is room."""
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with contextlib.suppress(OSError):
        descriptor = os.open(f"{directory}/.exit", flags, 0o600)
        try:
            _write_all(descriptor, b" " * RESERVED_BYTES)
        finally:
            os.close(descriptor)


def write_ending(directory: str, record: dict[str, Any]) -> None:
    """Write ``exit.json``, into the space kept for it, or anew if a command has touched that."""
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            if _write_reserved(directory, record):
                return
        try:
            os.makedirs(directory, 0o700, exist_ok=True)  # a command may have removed it
            write_json(f"{directory}/exit.json", record)
        except OSError:
            time.sleep(0.2)
        else:
            with contextlib.suppress(OSError):
                os.unlink(f"{directory}/.exit")
            return


def _write_reserved(directory: str, record: dict[str, Any]) -> bool:
    """Turn the file that keeps space into ``exit.json``; whether it is that file, and large enough."""
    path = f"{directory}/.exit"
    data = json.dumps(record, ensure_ascii=False).encode(errors="replace")
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        about = os.fstat(descriptor)
        plain = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
        if not plain or about.st_size < len(data):
            return False
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)
    os.replace(path, f"{directory}/exit.json")
    return True
