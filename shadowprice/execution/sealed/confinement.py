"""Confinement of this process: what it may still do, and trials that say what of that the system enforces.

It is done before any code of a policy is run, and cannot be undone from within, but for ending with the parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import socket
import stat
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shadowprice.execution.sealed import linux
from shadowprice.execution.sealed.limits import ProcessLimits
from shadowprice.execution.sealed.seal import Protection

_PACKAGE = Path(__file__).resolve().parents[2]
_FILES_OPEN = 64
_MB = 10**6


@dataclass(frozen=True)
class Needs:
    """Needs of a policy, of the system.

    Parameters
    ----------
    files : tuple of Path
        Its own files, which it may read.
    programs : bool
        Whether it is a command, which is run, and may run programs of the system.
    """

    files: tuple[Path, ...] = ()
    programs: bool = False


def confine(limits: ProcessLimits, needs: Needs) -> None:
    """Take from this process what a policy does not need; what the system cannot do is left out."""
    _set_limits(limits)
    if linux.PRESENT:
        linux.die_with_parent()
        linux.gain_no_privileges()
        linux.leave_network()
        linux.drop_capabilities()
        linux.landlock(_rules(needs))
        linux.seccomp(processes=needs.programs)


def trials(limits: ProcessLimits, needs: Needs) -> dict[Protection, bool]:
    """Protections, and whether each is enforced here, by trying what it forbids."""
    data = _PACKAGE / "py.typed"  # A file of ours that is no code, and that everybody may read.
    tried: dict[Protection, Callable[[], object]] = {
        Protection.FILES: data.read_bytes,
        Protection.WRITING: _write,
        Protection.NETWORK: _reach,
        Protection.MEMORY: _look_at_parent,
        Protection.SIGNALS: _affect_parent,
        Protection.SPACE: lambda: bytearray(limits.memory_mb * _MB),
    }
    if not needs.programs:
        tried[Protection.PROCESSES] = _fork
    return {protection: _refused(attempt) for protection, attempt in tried.items()}


def _set_limits(limits: ProcessLimits) -> None:
    space, cpu_s = limits.memory_mb * _MB, limits.cpu_s
    wanted = {
        "RLIMIT_AS": space,
        "RLIMIT_CPU": cpu_s,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": _FILES_OPEN,
    }
    for name, most in wanted.items():
        kind = getattr(resource, name, None)
        if kind is not None:
            _, hard = resource.getrlimit(kind)
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            try:
                resource.setrlimit(kind, (most, most))
            except (OSError, ValueError):
                continue
    # Else a write would end the process instead of failing.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def _rules(needs: Needs) -> Iterator[tuple[Path, int]]:
    """Files that may be read: code of Python and of the installed packages, the policy's own, nothing else."""
    code = linux.READ | linux.EXECUTE
    for path in _system():
        yield path, code
    for device in ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"):
        yield Path(device), linux.READ_FILE | linux.WRITE_FILE
    if needs.programs:
        for place in ("/bin", "/usr/bin", "/usr/local/bin", "/usr/share", "/usr/libexec"):
            yield Path(place), code
    yield from _installed()
    yield from _own_package()
    for path in needs.files:
        yield path, linux.READ_FILE | linux.EXECUTE
        yield path.parent, linux.READ_DIR


def _system() -> Iterator[Path]:
    """Libraries that programs are linked with."""
    for path in ("/lib", "/lib64", "/lib32", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"):
        yield Path(path)
    yield from (Path("/etc/localtime"), Path("/usr/share/zoneinfo"))


def _installed() -> Iterator[tuple[Path, int]]:
    """Python's library and installed packages but ours, whose data are what policies are measured on."""
    places = {
        Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
    places |= {Path(sys.base_prefix) / "lib" / Path(sysconfig.get_path("stdlib")).name}
    for place in places:
        yield place, linux.READ_DIR
        for entry in _entries(place):
            if entry.name not in ("site-packages", "dist-packages") and entry.resolve() != _PACKAGE:
                yield entry, linux.READ | linux.EXECUTE
    for library in Path(sys.base_prefix, "lib").glob("lib*.so*"):
        yield library, linux.READ_FILE | linux.EXECUTE
    yield Path(sys.prefix) / "pyvenv.cfg", linux.READ_FILE


def _entries(folder: Path) -> Iterable[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return ()


def _own_package() -> Iterator[tuple[Path, int]]:
    """Code of this package; of what else it has the names alone, and what solvers and models read."""
    yield _PACKAGE, linux.READ_DIR
    for folder, _, names in os.walk(_PACKAGE):
        if Path(folder).name == "__pycache__":
            yield Path(folder), linux.READ
        for name in names:
            if name.endswith((".py", ".so")):
                yield Path(folder, name), linux.READ_FILE | linux.EXECUTE
    for part in ("solvers", "models"):
        yield _PACKAGE / part, linux.READ


# Trials.


def _refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, MemoryError):
        return True
    return False


def _write() -> None:
    """Make a file, which is not left behind, or change what is noted at one, here of the input: both say something."""
    with contextlib.suppress(OSError):
        os.fchmod(0, stat.S_IMODE(os.fstat(0).st_mode))
        return
    path = Path(tempfile.gettempdir(), f"shadowprice-{os.getpid()}")
    try:
        path.touch(exist_ok=False)
    finally:
        path.unlink(missing_ok=True)


def _affect_parent() -> None:
    """Signal the parent, its thread, or change how it is scheduled, each in a way that leaves it as it is."""
    parent = os.getppid()
    tgkill: Any = getattr(ctypes.CDLL(None, use_errno=True), "tgkill", None)

    def signal_thread() -> None:
        if tgkill is None or tgkill(parent, parent, 0):
            raise PermissionError(ctypes.get_errno(), "the parent's thread")

    def reschedule() -> None:
        os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent))

    attempts: tuple[Callable[[], object], ...] = (
        lambda: os.kill(parent, 0),
        signal_thread,
        reschedule,
    )
    for attempt in attempts:
        with contextlib.suppress(OSError):
            attempt()
            return
    raise PermissionError("the parent")


def _reach() -> None:
    """Reach an address, which sends nothing, or any socket of this host."""
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.connect(("192.0.2.1", 9))


def _look_at_parent() -> None:
    """Read a byte of the parent's memory, in one of two ways."""
    parent = os.getppid()
    path = Path(f"/proc/{parent}/mem")
    try:
        with path.open("rb"):
            return
    except OSError:
        if not linux.PRESENT:
            raise
    byte = ctypes.create_string_buffer(1)
    here = (ctypes.c_void_p * 2)(ctypes.addressof(byte), 1)
    libc = ctypes.CDLL(None, use_errno=True)
    # Address 0 is nobody's: a call that is allowed says so by another error.
    there = (ctypes.c_void_p * 2)(0, 1)
    libc.process_vm_readv(parent, here, 1, there, 1, 0)
    if ctypes.get_errno() in (1, 3, 38):
        raise PermissionError(ctypes.get_errno(), "the parent's memory")


def _fork() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
