"""Turns an order into a running command."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

from shadowprice.execution.supervision.files import write_json
from shadowprice.execution.supervision.processes import TAG, machine, process

TYPE_CHECKING = False  # importing typing would cost a third of the start-up
if TYPE_CHECKING:
    from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# Made once: the launcher's children share them, and need no memory of their own for it.
_PRCTL, _ZERO = ctypes.CDLL(None, use_errno=True).prctl, ctypes.c_ulong(0)


def spawn(order: dict[str, Any], directory: str, output: int) -> int:
    """Start the command once ``supervisor.json`` names it.

    Raises
    ------
    OSError
        If it cannot be executed, or its number cannot be written down.
    LookupError
        If the order names no program.
    """
    what = f"{order['argv'][0]!r} in {order['working_directory']!r}"
    go_read, go_write = os.pipe()
    problem_read, problem_write = os.pipe()
    mine, me = os.getpid(), process(os.getpid())
    pid = os.fork()
    if pid == 0:
        os.close(go_write)
        _become(order, directory, mine, (go_read, output, problem_write))
    os.close(go_read)
    os.close(problem_write)
    about, parent = process(pid), process(os.getppid())
    record = {
        "pid": mine,
        "start_ticks": me[3] if me else 0,
        "node": os.uname().nodename,
        "machine": machine(),
        "parent_pid": os.getppid(),
        "parent_start_ticks": parent[3] if parent else 0,
        "command_pid": pid,
        "command_start_ticks": about[3] if about else 0,
    }
    try:
        write_json(f"{directory}/supervisor.json", record, durable=True)
        with contextlib.suppress(BrokenPipeError):  # killed before it began: it ended so
            os.write(go_write, b"g")
        problem = os.read(problem_read, 4096).decode(errors="replace")
    except OSError as error:
        os.kill(pid, signal.SIGKILL)
        problem = f"supervisor.json: {error.strerror}"
    finally:
        os.close(go_write)
        os.close(problem_read)
    if problem:
        os.waitpid(pid, 0)
        raise OSError(f"cannot run {what}: {problem}")
    return pid


def _become(order: dict[str, Any], directory: str, parent: int, ends: tuple[int, int, int]) -> None:
    """Turn this child into the command; never returns."""
    go, output, problem = ends
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        # Ignored by us, by Python, or by the shell of a script that started the driver with `&`.
        ignored = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)
        for number in ignored:
            signal.signal(number, signal.SIG_DFL)
        if os.getppid() != parent or os.read(go, 1) != b"g":
            os._exit(127)
        os.setsid()
        os.dup2(output, 1)
        os.dup2(output, 2)
        for name in os.listdir("/proc/self/fd"):  # the lock, claims on devices
            if int(name) > 2 and int(name) != problem:
                with contextlib.suppress(OSError):  # the listing's own
                    os.close(int(name))
        environment = {**os.environ, **order["env"], TAG: directory}
        os.chdir(order["working_directory"])
        os.execvpe(order["argv"][0], order["argv"], environment)
    except BaseException as error:
        why = getattr(error, "strerror", None) or repr(error)
        os.write(problem, why.encode(errors="replace"))
    finally:  # a child must not go on as a second supervisor
        os._exit(127)


def prctl(option: int, value: int) -> None:
    """The system call; OSError if it fails."""
    if _PRCTL(option, ctypes.c_ulong(value), _ZERO, _ZERO, _ZERO):
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")
