"""Calls of Linux that Python has no function for: Landlock, seccomp, namespaces, capabilities.

No maintained package offers them together without a compiler; the calls and numbers are those of the kernel's headers
(landlock(7), seccomp(2), unshare(2), capset(2)), and do not change.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

PRESENT = sys.platform == "linux"
"""True on Linux."""

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_SIGKILL = 9
_NEW_USER, _NEW_IPC, _NEW_NET = 0x10000000, 0x08000000, 0x40000000


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    """Result of a system call.

    Raises
    ------
    OSError
        If the kernel refuses it.
    """
    result = int(_libc().syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def prctl(option: int, value: int) -> bool:
    """Set an attribute of this process; False if the kernel has none."""
    zero = ctypes.c_ulong(0)
    return bool(_libc().prctl(option, ctypes.c_ulong(value), zero, zero, zero) == 0)


def die_with_parent() -> bool:
    """Have this process killed when its parent ends."""
    return prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def gain_no_privileges() -> bool:
    """Let no program that is run from here gain privileges."""
    return prctl(_PR_SET_NO_NEW_PRIVS, 1)


def leave_network() -> bool:
    """Move this process to a network without interfaces, as root or as its own user."""
    unshare = _libc().unshare
    alone = _NEW_NET | _NEW_IPC
    return any(unshare(ctypes.c_int(which)) == 0 for which in (alone, alone | _NEW_USER))


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapData(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def drop_capabilities() -> bool:
    """Give up all privileges of root but the ownership of files."""
    header, nothing = _CapHeader(0x20080522, 0), (_CapData * 2)()
    return bool(_libc().capset(ctypes.byref(header), ctypes.byref(nothing)) == 0)


# Landlock: which files may be read, everything else of files may not.

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _BENEATH = 1, 1
_O_PATH = 0o10000000
EXECUTE, READ_FILE, READ_DIR, WRITE_FILE = 1 << 0, 1 << 2, 1 << 3, 1 << 1
READ = READ_FILE | READ_DIR
_OF_FILES = EXECUTE | READ_FILE | WRITE_FILE
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Rights on files by the version of Landlock: bits from the lowest."""


def landlock_version() -> int:
    """Version of Landlock; 0 where there is none."""
    if not PRESENT:
        return 0
    try:
        return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def landlock(rules: Iterable[tuple[Path, int]]) -> bool:
    """Let this process do nothing with files but this, connect to nothing, and signal nobody outside.

    Parameters
    ----------
    rules : iterable of (Path, int)
        Folders and files, and what may be done there and below. Those that are not there are left out.

    Returns
    -------
    bool
        False where there is no Landlock.
    """
    version = landlock_version()
    if not version:
        return False
    files = (1 << _FILE_RIGHTS[min(version, 5)]) - 1
    network, scopes = 3 if version >= 4 else 0, 3 if version >= 6 else 0
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    attributes = struct.pack("=QQQ", files, network, scopes)[:size]
    rule_set = _call(
        _CREATE_RULESET,
        ctypes.c_char_p(attributes),
        ctypes.c_size_t(size),
        ctypes.c_uint32(0),
    )
    try:
        for path, rights in rules:
            _allow(rule_set, path, rights & files)
        _call(_RESTRICT_SELF, ctypes.c_int(rule_set), ctypes.c_uint32(0))
    finally:
        os.close(rule_set)
    return True


def _allow(rule_set: int, path: Path, rights: int) -> None:
    try:
        place = os.open(path, _O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not path.is_dir():
            rights &= _OF_FILES
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, place))
        _call(
            _ADD_RULE,
            ctypes.c_int(rule_set),
            ctypes.c_int(_BENEATH),
            rule,
            ctypes.c_uint32(0),
        )
    finally:
        os.close(place)


# seccomp: which system calls are refused.

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_THREAD = 0x00010000
_OTHER_ABI = 0x40000000
_FILTER_MODE = 2

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""Name of an architecture to its number, and the column of its system calls."""

_CALLS: dict[str, tuple[int | None, int]] = {
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "kill": (62, 129),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "prlimit64": (302, 261),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "open_by_handle_at": (304, 265),
    # What is noted at a file without writing into it.
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "fchown": (93, 55),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "flock": (73, 32),
    # What slows other processes of the same user, or leaves the group that is ended.
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "setsid": (112, 157),
    "setpgid": (109, 154),
}
_OF_PROCESSES: dict[str, tuple[int | None, int]] = {
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, -1),
    "vfork": (58, -1),
}
_CLONE, _CLONE3 = (56, 220), (435, 435)
_TGKILL, _FCNTL, _CLOCK_GETTIME = (234, 131), (72, 25), (228, 113)
_LOCKS_AND_SIGNALS = (5, 6, 7, 36, 37, 38, 8, 10, 15)
"""Commands of ``fcntl`` that lock files for others to see, or have the system signal another process."""
_NEGATIVE = 0x80000000


def seccomp(*, processes: bool) -> bool:
    """Have the kernel refuse system calls that reach other processes, or what Landlock has no rule for.

    Parameters
    ----------
    processes : bool
        Whether programs may be run from here; threads may always.

    Returns
    -------
    bool
        False where there is no seccomp, or its numbers are not known here.
    """
    known = _ARCHITECTURES.get(platform.machine())
    if not PRESENT or known is None:
        return False
    architecture, column = known
    refused = {**_CALLS, **({} if processes else _OF_PROCESSES)}
    numbers = [each[column] for each in refused.values()]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE | _EPERM),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _OTHER_ABI),
        (_RETURN, 0, 0, _REFUSE | _EPERM),
    ]
    for number in numbers:
        if number is not None and number >= 0:
            program += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | _EPERM)]
    # Threads may signal each other; clocks of other processes have negative numbers.
    program += [
        *_where(_TGKILL[column], _FIRST_ARGUMENT, allowed=(os.getpid(),)),
        *_where(_FCNTL[column], _SECOND_ARGUMENT, refused=_LOCKS_AND_SIGNALS),
        (_EQUAL, 0, 4, _CLOCK_GETTIME[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 1, 0, _NEGATIVE),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE | _EPERM),
    ]
    if not processes:
        # A newer call for the same is said to be missing, so that threads are made by the older one.
        program += [
            (_EQUAL, 0, 1, _CLONE3[column]),
            (_RETURN, 0, 0, _REFUSE | _ENOSYS),
            (_EQUAL, 0, 3, _CLONE[column]),
            (_LOAD, 0, 0, _FIRST_ARGUMENT),
            (_ANY_BIT, 1, 0, _THREAD),
            (_RETURN, 0, 0, _REFUSE | _EPERM),
        ]
    program.append((_RETURN, 0, 0, _ALLOW))
    code = b"".join(struct.pack("=HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(
        struct.pack("@HxxxxxxP", len(program), ctypes.addressof(buffer))
    )
    mode = ctypes.c_ulong(_FILTER_MODE)
    zero = ctypes.c_ulong(0)
    return bool(_libc().prctl(_PR_SET_SECCOMP, mode, header, zero, zero) == 0)


_Step = tuple[int, int, int, int]


def _where(
    number: int, argument: int, *, allowed: tuple[int, ...] = (), refused: tuple[int, ...] = ()
) -> list[_Step]:
    """Steps for a call that is allowed, or refused, where its argument has one of these values, and else not."""
    values = allowed or refused
    last = [(_RETURN, 0, 0, _REFUSE | _EPERM), (_RETURN, 0, 0, _ALLOW)]
    return [
        (_EQUAL, 0, len(values) + 3, number),
        (_LOAD, 0, 0, argument),
        *((_EQUAL, len(values) - k, 0, value) for k, value in enumerate(values)),
        *(last if allowed else reversed(last)),
    ]
