"""Control groups, version 2: what is left of a command, in whatever session and environment.

Where the group of a supervisor may be divided (it is root's, or systemd delegated it, as ``systemd-run
--user --scope -p Delegate=yes`` does), a command runs in a group of its own below it. Who ends what a
dead supervisor left kills that group; and where the kernel hands CPUs and memory down to it, the
command is kept to those of its lease. Where there is no such group the search of processes is all.
"""

from __future__ import annotations

import contextlib
import os

TYPE_CHECKING = False  # importing typing would cost a third of the start-up
if TYPE_CHECKING:
    from collections.abc import Iterator

PERIOD_US = 100_000
_FEWEST_US = 1000


def own_group() -> str:
    """Folder of the group of this process; empty where version 2 is not mounted."""
    try:
        with open("/proc/self/mountinfo") as file:
            mounts = [line.split() for line in file]
        with open("/proc/self/cgroup") as file:
            paths = [line.rstrip("\n")[3:] for line in file if line.startswith("0::")]
    except OSError:
        return ""
    # "36 25 0:31 / /sys/fs/cgroup rw,... - cgroup2 cgroup2 rw": the root and the place are 4th and 5th.
    for words in mounts:
        if "cgroup2" in words[words.index("-") + 1 :][:1] and words[3] == "/" and paths:
            return (words[4] + paths[0]).rstrip("/")
    return ""


def name_of(lease: str) -> str:
    """Name of the group of a lease, by its directory."""
    number = 0xCBF29CE484222325  # FNV-1a: importing hashlib takes long
    for byte in os.fsencode(lease):
        number = (number ^ byte) * 0x100000001B3 % 2**64
    return f"shadowprice-{number:016x}"


def make(lease: str, cpu_milli: int | None = None, memory_mib: int | None = None) -> str:
    """Folder of a new group for the command of a lease; empty where none can be made.

    Parameters
    ----------
    cpu_milli, memory_mib : int, optional
        CPUs [thousandths] and memory [MiB] that it is kept to, where the kernel hands them down.
    """
    above = own_group()
    if not above:
        return ""
    group = f"{above}/{name_of(lease)}"
    try:
        with contextlib.suppress(
            FileExistsError
        ):  # a supervisor that died here, whose lease has not begun
            os.mkdir(group)
        if not all(os.access(f"{group}/cgroup.{part}", os.W_OK) for part in ("kill", "procs")):
            raise OSError
    except OSError:
        with contextlib.suppress(OSError):
            os.rmdir(group)
        return ""
    if cpu_milli is not None:
        quota_us = max(cpu_milli * PERIOD_US // 1000, _FEWEST_US)
        _limit(f"{group}/cpu.max", f"{quota_us} {PERIOD_US}")
    if memory_mib is not None:
        _limit(f"{group}/memory.max", str(memory_mib << 20))
    return group


def enter(group: str) -> None:
    """Move this process into a group, with all that it will start; OSError if that is not allowed."""
    _write(f"{group}/cgroup.procs", "0")


def left_in(group: object, lease: str) -> set[int]:
    """Processes in the group of a lease and in those below it; none in what is not its group."""
    found: set[int] = set()
    for folder in _folders(group, lease):
        with contextlib.suppress(OSError, ValueError), open(f"{folder}/cgroup.procs") as file:
            found |= {int(line) for line in file}
    return found - {0}


def kill(group: object, lease: str) -> None:
    """SIGKILL to all in the group of a lease at once, so that none forks away."""
    for folder in _folders(group, lease):
        with contextlib.suppress(OSError):
            _write(f"{folder}/cgroup.kill", "1")


def remove(group: object, lease: str) -> None:
    """Remove the group of a lease in which nothing is left."""
    for folder in reversed(list(_folders(group, lease))):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def _folders(group: object, lease: str) -> Iterator[str]:
    """The group, and those below it; a record that names another group was written by somebody else."""
    if isinstance(group, str) and os.path.basename(group) == name_of(lease):
        for folder, _, _ in os.walk(group):
            yield folder


def _limit(path: str, value: str) -> None:
    """Write a limit where there is one to write."""
    if os.path.exists(path):
        with contextlib.suppress(OSError):
            _write(path, value)


def _write(path: str, value: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
