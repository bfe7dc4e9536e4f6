"""Running a command on a few CPUs of this host, and reading how fast it was.

Limits are affinities: the command and all it starts run on the first k CPUs that this process may
use. Libraries that count CPUs by affinity start as many threads; for others the environment variable
``SHADOWPRICE_CPUS`` says k. How fast a run was is either printed by the command, on a line

    throughput=12.5

of its standard output, in units of work a second, of which the last counts; or the command does a
known amount of work and its wall time is taken, start-up included. The unit is the user's choice.
"""

from __future__ import annotations

import math
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import IO

from shadowprice.errors import InputError

CPUS_VARIABLE = "SHADOWPRICE_CPUS"
_LINE = re.compile(r"^[ \t]*throughput[ \t]*=[ \t]*(?P<value>\S+)[ \t]*$", re.MULTILINE)
_TAIL_BYTES = 2**20
# In the child's own process: what subprocess offers to run there is unsafe with threads.
_LAUNCHER = (
    "import os, sys; os.sched_setaffinity(0, map(int, sys.argv[1].split(','))); "
    "os.execvp(sys.argv[2], sys.argv[2:])"
)


@dataclass(frozen=True)
class LimitedCommand:
    """A command that can be run with any number of CPUs.

    Parameters
    ----------
    argv : tuple of str
        Program and arguments; no shell is involved.
    timeout_s : float
        A run that takes longer is an error; it and all it started are killed.
    work_per_run : float, optional
        Units of work that each run does; if not given it prints how fast it was.

    Raises
    ------
    InputError
        If there is no such program, a number is out of range, or this system cannot limit CPUs.
    """

    argv: tuple[str, ...]
    timeout_s: float = 3600.0
    work_per_run: float | None = None

    def __post_init__(self) -> None:
        if not self.argv:
            raise InputError("profile: no command is given, expected a program and its arguments")
        if shutil.which(self.argv[0]) is None:
            raise InputError(f"profile: no program {self.argv[0]!r} was found")
        if not 0 < self.timeout_s <= 1e6:
            raise InputError(f"timeout_s is {self.timeout_s!r}, expected seconds > 0, at most 1e6")
        if self.work_per_run is not None and not 0 < self.work_per_run < math.inf:
            raise InputError(f"work of a run is {self.work_per_run!r}, expected units > 0")
        available_cpus()

    def throughput(self, cpus: int) -> float:
        """Units of work a second of a run on so many CPUs.

        Raises
        ------
        InputError
            As of :meth:`run`, or if it is to print a number above 0 and does not.
        """
        wall_s, output = self.run(cpus)
        if self.work_per_run is not None:
            return self.work_per_run / wall_s
        lines = _LINE.findall(output)
        if not lines:
            raise InputError(
                f"{self._named(cpus)}: printed no line throughput=NUMBER, expected one, in units of work "
                "a second; or say how much work a run does"
            )
        try:
            value = float(lines[-1])
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise InputError(
                f"{self._named(cpus)}: printed throughput={lines[-1]:.80}, expected a number > 0"
            )
        return value

    def run(self, cpus: int) -> tuple[float, str]:
        """Wall time [s] of a run on so many CPUs, and the last MiB of its standard output.

        Raises
        ------
        InputError
            If there are not so many CPUs, or the command fails or takes too long.
        """
        mine = available_cpus()
        if not 1 <= cpus <= len(mine):
            raise InputError(f"cpus is {cpus!r}, expected 1 to {len(mine)}, those of this process")
        limited = [sys.executable, "-I", "-S", "-c", _LAUNCHER, ",".join(map(str, mine[:cpus]))]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            began_s = time.perf_counter()
            process = subprocess.Popen(
                [*limited, *self.argv],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, CPUS_VARIABLE: str(cpus)},
                start_new_session=True,
            )
            try:
                # Precise, where polling would add to short runs, and without reaping it.
                with open(os.pidfd_open(process.pid), "rb") as ended:
                    in_time, _, _ = select.select([ended], [], [], self.timeout_s)
                wall_s = time.perf_counter() - began_s
            finally:
                # Before the process is reaped, while its id cannot be another's.
                os.killpg(process.pid, signal.SIGKILL)
                code = process.wait()
            if not in_time:
                raise InputError(f"{self._named(cpus)}: did not end within {self.timeout_s:g} s")
            if code != 0:
                how = (
                    f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
                )
                raise InputError(f"{self._named(cpus)}: {how}, expected 0{_last_lines(err)}")
            return wall_s, _tail(out)

    def _named(self, cpus: int) -> str:
        return f"command {' '.join(self.argv)!r:.200} with {cpus} CPUs"


def available_cpus() -> list[int]:
    """CPUs this process may use, in order.

    Raises
    ------
    InputError
        If the system cannot limit a process to some of them.
    """
    if not hasattr(os, "sched_setaffinity") or not hasattr(os, "pidfd_open"):
        raise InputError(f"profile: {sys.platform} cannot limit the CPUs of a process, Linux can")
    return sorted(os.sched_getaffinity(0))


def _tail(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _TAIL_BYTES))
    return stream.read().decode("utf-8", errors="replace")


def _last_lines(stream: IO[bytes]) -> str:
    lines = [line for line in _tail(stream).splitlines() if line.strip()]
    return "; it said: " + " | ".join(lines[-3:])[-400:] if lines else ""
