"""The child of a supervisor that reads the order of a lease and becomes its command.

All that takes memory before a command runs is done in this child, which gives it back when it
executes the command. A supervisor that waits has little more than the pages it shares with the
launcher, some 0.3 MB of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal

from shadowprice.hosts.supervision.control_groups import enter, make
from shadowprice.hosts.supervision.files import (
    PRIVATE,
    ending,
    read_json,
    reserve_space,
    write_json,
)
from shadowprice.hosts.supervision.health import why_unfit
from shadowprice.hosts.supervision.processes import TAG, machine, process, settled

TYPE_CHECKING = False  # importing typing would cost a third of the start-up
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType
    from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
POLL_S = 0.05
"""Time between two looks at a lease whose order names none [s]."""
PIPE_BYTES = 1 << 18
F_SETPIPE_SZ = 1031
SECRET_LENGTH = 6
"""Shorter values of variables say nothing, and may be parts of any word."""
# Made once: the launcher's children share them, and need no memory of their own for it.
_PRCTL = ctypes.CDLL(None, use_errno=True).prctl
_ZERO, _ONE, _SIGKILL = map(ctypes.c_ulong, (0, 1, signal.SIGKILL))
_SUBREAPER, _PDEATHSIG = ctypes.c_int(PR_SET_CHILD_SUBREAPER), ctypes.c_int(PR_SET_PDEATHSIG)


class CannotRunError(Exception):
    """The command of an order cannot be executed: it is not there, for instance."""


class Command:
    """The child of a supervisor, until it is the command of a lease.

    It tells its supervisor, in lines, what there is to do: ``watch`` with what that has to know of
    the order, ``ending`` of a lease that cannot begin, or ``exit`` where another has it. The last line
    counts, and the end of the stream is the beginning of a command that is to be watched.

    Parameters
    ----------
    directory : str
        Of the lease.
    supervisor : int
        Number of the process that forked this one, a child subreaper.
    files : tuple of int
        Descriptors of the lease's lock, which this process takes for its supervisor, and of its log;
        ends of pipes for what the command writes, and for the lines, closed when it is executed.
    """

    def __init__(self, directory: str, supervisor: int, files: tuple[int, int, int, int]) -> None:
        self.directory, self.supervisor = directory, supervisor
        self.lock, self.log, self.output, self.tell = files
        self.is_asked_to_stop = False

    def become(self) -> None:
        """Check the node, write ``supervisor.json``, execute the command; never returns."""
        try:
            _prctl(_PDEATHSIG, _SIGKILL)
            if os.getppid() != self.supervisor:
                os._exit(127)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._note_signal)
            signal.set_wakeup_fd(-1)  # from here on signals are this process's own
            os.setsid()
            nothing = settled(self.directory, self.lock)
            said = (
                f"exit {nothing}" if nothing is not None else f"ending {json.dumps(self._begin())}"
            )
        except BaseException as error:
            detail = f"the command did not begin: {error!r}"
            end = ending(127, "unstartable", detail=detail, host_failed=True)
            said = f"ending {json.dumps(end)}"
        try:
            self._say(said)
        finally:  # a child must not go on as a second supervisor
            os._exit(127)

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        self.is_asked_to_stop = True

    def _begin(self) -> dict[str, Any]:
        """Ending of a lease that cannot begin; where it can, this does not return."""
        reserve_space(self.directory)
        order = read_json(f"{self.directory}/order.json") or {}
        private = self._take_private()
        secrets = secret_names(private)
        if self._is_to_stop():
            return ending(0, "void", detail="stopped before it began")
        try:
            os.ftruncate(self.log, 0)
            with contextlib.suppress(PermissionError):  # the user has large pipes enough
                fcntl.fcntl(self.output, F_SETPIPE_SZ, PIPE_BYTES)
            times = (float(order["ttl_s"]), float(order["grace_s"]))
            poll_s, log_bytes = float(order.get("poll_s", POLL_S)), int(order["log_bytes"])
            told = " ".join(map(repr, (*times, poll_s, log_bytes)))
            self._say(f"watch {told} {json.dumps(secrets)}")
            unfit = self._check_health(order, secrets)
            if unfit is not None:
                return unfit
            if len(private) != order.get("private", 0):
                raise OSError(f"{PRIVATE}: cannot be read, expected {order['private']} variables")
            order["env"].update(private)
            group = make(self.directory, order.get("cpu_milli"), order.get("memory_mib"))
            self._write_record(group)
            if group:
                with contextlib.suppress(OSError):  # then it stays where it is
                    enter(group)
            self._execute(order)
        except CannotRunError as error:
            return ending(127, "unstartable", detail=str(error))
        except (OSError, LookupError, TypeError, ValueError) as error:
            detail = str(error) if isinstance(error, OSError) else f"order.json: {error!r}"
            return ending(127, "unstartable", detail=detail, host_failed=True)
        raise AssertionError("a command was executed, and this process goes on")

    def _say(self, line: str) -> None:
        data = line.encode() + b"\n"
        while data:
            data = data[os.write(self.tell, data) :]

    def _is_to_stop(self) -> bool:
        lease = read_json(f"{self.directory}/lease.json") or {}
        return lease.get("stop") is True or self.is_asked_to_stop

    def _take_private(self) -> dict[str, Any]:
        """Read the variables of the job's own, and leave them nowhere."""
        private = read_json(f"{self.directory}/{PRIVATE}") or {}
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.directory}/{PRIVATE}")
        return private

    def _check_health(
        self, order: dict[str, Any], secrets: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """Ending of the lease if its node is not fit for it, or it is asked to stop meanwhile."""
        if not order.get("health_check"):
            return None
        become_subreaper()
        why = why_unfit(order["health_check"], order["env"], self.directory, self._is_to_stop)
        if why is None:
            return ending(0, "void", detail="stopped before it began")
        _prctl(_SUBREAPER, _ZERO)  # what a command leaves is its supervisor's
        return ending(127, "unhealthy", detail=without_secrets(why, secrets)) if why else None

    def _write_record(self, group: str) -> None:
        """Write ``supervisor.json``: who watches, and who is about to be the command."""
        mine, watching = process(os.getpid()), process(self.supervisor)
        above = process(watching[0]) if watching else None
        record = {
            "pid": self.supervisor,
            "start_ticks": watching[3] if watching else 0,
            "node": os.uname().nodename,
            "machine": machine(),
            "parent_pid": watching[0] if watching else 0,
            "parent_start_ticks": above[3] if above else 0,
            "group": group,
            "command_pid": os.getpid(),
            "command_start_ticks": mine[3] if mine else 0,
        }
        write_json(f"{self.directory}/supervisor.json", record, durable=True)

    def _execute(self, order: dict[str, Any]) -> None:
        what = f"{order['argv'][0]!r} in {order['working_directory']!r}"
        try:
            # Ignored by us, by Python, or by the shell of a script that started the driver with `&`.
            ignored = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)
            for number in ignored:
                signal.signal(number, signal.SIG_DFL)
            os.dup2(self.output, 1)
            os.dup2(self.output, 2)
            for name in os.listdir("/proc/self/fd"):  # the lock, claims on devices
                if int(name) > 2 and int(name) != self.tell:
                    with contextlib.suppress(OSError):  # the listing's own
                        os.close(int(name))
            environment = {**os.environ, **order["env"], TAG: self.directory}
            os.chdir(order["working_directory"])
            os.execvpe(order["argv"][0], order["argv"], environment)
        except (OSError, TypeError, ValueError) as error:
            why = getattr(error, "strerror", None) or repr(error)
            raise CannotRunError(f"cannot run {what}: {why}") from None


def secret_names(private: Mapping[str, Any]) -> dict[str, str]:
    """Names of variables by their values, of those that are long enough to be secrets."""
    return {str(value): name for name, value in private.items() if len(str(value)) >= SECRET_LENGTH}


def without_secrets(text: str, names: Mapping[str, str]) -> str:
    """A text for people, with names of variables in place of their values."""
    for value in sorted(names, key=len, reverse=True):
        text = text.replace(value, f"[{names[value]}]")
    return text


def become_subreaper() -> None:
    """Become the parent of all descendants that lose theirs; OSError if the kernel refuses."""
    _prctl(_SUBREAPER, _ONE)


def _prctl(option: ctypes.c_int, value: ctypes.c_ulong) -> None:
    if _PRCTL(option, value, _ZERO, _ZERO, _ZERO):
        raise OSError(ctypes.get_errno(), f"prctl: {os.strerror(ctypes.get_errno())}")
