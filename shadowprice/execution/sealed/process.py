"""Process of a sealed policy, seen from the engine's side: lines to it and back, each within a time."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from types import MappingProxyType
from typing import IO

from shadowprice.errors import PolicyError
from shadowprice.instances.entries import printable

_ENVIRONMENT = MappingProxyType(
    {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
)
"""All of the environment that it gets: that of the caller may name what it must not see."""

_LONGEST_ANSWER = 64 * 2**20
_LAST_WORDS = 2000
_LAST_PARTS = 64
_AT_A_TIME = 2**16


class SealedProcess:
    """A child process that is asked in lines and answers in lines.

    Parameters
    ----------
    command : sequence of str
        Program and arguments.

    Raises
    ------
    PolicyError
        If it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env=dict(_ENVIRONMENT),
                close_fds=True,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise PolicyError(f"{command[0]}: {error.strerror or error}") from error
        self._in, self._out, self._err = (
            _descriptor(each)
            for each in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        for each in (self._in, self._out, self._err):
            os.set_blocking(each, False)
        self._unread, self._words = b"", b""
        self._over = False

    @property
    def id(self) -> int:
        """Number of the process."""
        return self._process.pid

    def send(self, line: bytes, within_s: float) -> None:
        """Send a line that is not answered.

        Raises
        ------
        PolicyError
            If the process ended, or does not read for so long.
        """
        self._write(line + b"\n", time.monotonic() + within_s, within_s)

    def ask(self, line: bytes, within_s: float) -> bytes:
        """Answer to a line.

        Raises
        ------
        PolicyError
            If the process ended, or does not answer in time, or in one line of reasonable length.
        """
        until = time.monotonic() + within_s
        self._write(line + b"\n", until, within_s)
        return self._line(until, within_s)

    def close(self) -> None:
        """End the process, and all that it started; once, for its number may be another's later."""
        if self._over:
            return
        self._over = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for each in (self._process.stdin, self._process.stdout, self._process.stderr):
            if each is not None:
                each.close()

    def _write(self, data: bytes, until: float, within_s: float) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._in, left[:_AT_A_TIME]) :]
            except BlockingIOError:
                self._wait(self._in, select.POLLOUT, until, within_s)
            except BrokenPipeError:
                raise self._ended() from None

    def _line(self, until: float, within_s: float) -> bytes:
        parts = [self._unread]
        size = len(self._unread)
        while b"\n" not in parts[-1]:
            self._wait(self._out, select.POLLIN, until, within_s)
            try:
                part = os.read(self._out, _AT_A_TIME)
            except BlockingIOError:
                continue
            if not part:
                raise self._ended()
            parts.append(part)
            size += len(part)
            if size > _LONGEST_ANSWER:
                self.close()
                raise PolicyError(
                    f"its process answers more than {_LONGEST_ANSWER // 2**20} MiB, expected one line"
                )
        line, _, self._unread = b"".join(parts).partition(b"\n")
        return line

    def _wait(self, descriptor: int, event: int, until: float, within_s: float) -> None:
        """Wait until something can be read or written; what the process complains of is read meanwhile."""
        poll = select.poll()
        poll.register(descriptor, event)
        poll.register(self._err, select.POLLIN)
        while True:
            left_s = until - time.monotonic()
            ready = poll.poll(left_s * 1000) if left_s > 0 else []
            if not ready:
                self.close()
                raise PolicyError(
                    f"its process gives no answer within {within_s:g} s, and was ended"
                )
            places = {place for place, _ in ready}
            if self._err in places and self._listen() == b"":
                poll.unregister(self._err)
            if descriptor in places:
                return

    def _listen(self) -> bytes | None:
        """Read a part of what it complains of; None if there is none now, empty if that is over."""
        try:
            part = os.read(self._err, _AT_A_TIME)
        except BlockingIOError:
            return None
        except OSError:
            return b""
        self._words = (self._words + part)[-_LAST_WORDS:]
        return part

    def _ended(self) -> PolicyError:
        """Error that says how the process ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        for _ in range(_LAST_PARTS):
            if not self._listen():
                break
        code = self._process.poll()
        self.close()
        if code is None:
            return PolicyError("its process closed its output, and was ended")
        how = f"with code {code}" if code >= 0 else f"by signal {_signal_name(-code)}"
        words = self._words.decode("utf-8", "replace").split("\n")
        last = next((each for each in map(in_one_line, reversed(words)) if each), "")
        return PolicyError(f"its process ended {how}{f': {last:.300}' if last else ''}")


def in_one_line(text: str) -> str:
    """Text from a process in one line, without what a terminal takes as a command."""
    return printable(text, "?")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _descriptor(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    return pipe.fileno()
