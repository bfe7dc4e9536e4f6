"""Output of a command, kept within a limit."""

from __future__ import annotations

import contextlib
import math
import os
import stat
import time
from os import open as open_

from shadowprice.hosts.supervision.files import READ_FLAGS

FLUSH_S = 2.0
TEXT_LIMIT = 2000
LOG_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK


def open_log(path: str) -> int:
    """Descriptor of the file for the output of a command."""
    return open_(path, LOG_FLAGS, 0o600)


def plain_text(data: bytes | bytearray) -> str:
    """A text without what could steer a terminal."""
    text = data.decode(errors="replace")
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text).strip()


def read_tail(path: str, characters: int = TEXT_LIMIT) -> str:
    """The end of a text, without what could steer a terminal; empty if there is no such file."""
    try:
        descriptor = open_(path, READ_FLAGS)
    except OSError:
        return ""
    try:
        about = os.fstat(descriptor)
        most = 4 * characters
        if not stat.S_ISREG(about.st_mode):
            return ""
        return plain_text(os.pread(descriptor, most, max(0, about.st_size - most)))[-characters:]
    except OSError:
        return ""
    finally:
        os.close(descriptor)


class Log:
    """Output of a command: the first half of ``limit`` bytes and the most recent half, on disk.

    A disk that is full loses output, never the command.

    Parameters
    ----------
    file : int
        Descriptor of an empty file.
    limit : int
        Bytes to keep.
    """

    __slots__ = ("file", "flush_at", "half", "late", "recent", "total")

    def __init__(self, file: int, limit: int) -> None:
        self.file = file
        self.half = max(1, limit // 2)
        self.total = 0
        self.recent = bytearray()
        self.late = bytearray()  # at least the last half, once the first half is full
        self.flush_at = math.inf

    def add(self, data: bytes) -> None:
        """Take what the command wrote."""
        self.recent = (self.recent + data[-4096:])[-4096:]
        room = max(0, self.half - self.total)
        self.late += data[room:]
        before, self.total = self.total, self.total + len(data)
        if self.total <= 2 * self.half:
            self._write(before, data)
        else:
            self._write(before, data[:room])
            self.flush_at = min(self.flush_at, time.monotonic() + FLUSH_S)
        if len(self.late) > 2 * self.half + (1 << 18):
            del self.late[: -self.half]

    def flush(self) -> None:
        """Write the most recent half, if more came than fits."""
        self.flush_at = math.inf
        left_out = self.total - 2 * self.half
        if left_out > 0:
            note = f"\n[{left_out} bytes left out]\n".encode()
            self._write(self.half, note + self.late[-self.half :])

    def tail(self, lines: int = 20, characters: int = TEXT_LIMIT) -> str:
        """The last lines, without what could steer a terminal."""
        return "\n".join(plain_text(self.recent).splitlines()[-lines:])[-characters:]

    def _write(self, position: int, data: bytes) -> None:
        with contextlib.suppress(OSError):
            os.pwrite(self.file, data, position)
