"""Health check of a node: a command that has to end with 0 before the command of a lease begins."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from shadowprice.hosts.supervision.processes import TAG, descendants, processes, send

TYPE_CHECKING = False  # importing typing would cost a third of the start-up
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LIMIT_S = 60.0
POLL_S = 0.02
OUTPUT_BYTES = 400


def why_unfit(
    argv: Sequence[str],
    env: Mapping[str, str],
    directory: str,
    is_asked_to_stop: Callable[[], bool],
) -> str | None:
    """Reason that the node is not fit, empty if it is; None if the lease was asked to stop meanwhile.

    All processes of the check are children of the caller, a child subreaper. What takes too long is
    killed, and so is what the check leaves behind.

    Parameters
    ----------
    argv : sequence of str
        Program and arguments.
    env : mapping of str to str
        Added to the environment.
    directory : str
        Of the lease.
    is_asked_to_stop : callable
        Asked again and again.
    """
    name = os.path.basename(argv[0])
    output, write_end = os.pipe()
    os.set_blocking(output, False)
    try:
        check = os.posix_spawnp(
            argv[0],
            list(argv),
            {**os.environ, **env, TAG: directory},
            file_actions=[(os.POSIX_SPAWN_DUP2, write_end, fd) for fd in (1, 2)],
            setsid=True,
            setsigdef=[signal.SIGHUP, signal.SIGINT, signal.SIGPIPE],
        )
    except (OSError, ValueError) as error:
        os.close(output)
        return f"health check {name} cannot be run: {getattr(error, 'strerror', None) or error}"
    finally:
        os.close(write_end)
    until, tail = time.monotonic() + LIMIT_S, b""
    code: int | None = None
    is_late = is_stopped = False
    while True:
        with contextlib.suppress(BlockingIOError):
            tail = (tail + os.read(output, 1 << 16))[-OUTPUT_BYTES:]
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:  # none is left
            break
        if pid == check:
            code = os.waitstatus_to_exitcode(status)
        if code is None:
            is_late = is_late or time.monotonic() > until
            is_stopped = is_stopped or is_asked_to_stop()
        if is_late or is_stopped or code is not None:
            for other in descendants({os.getpid()}, processes()):
                send(other, signal.SIGKILL)
        if pid == 0:
            time.sleep(POLL_S)
    os.close(output)
    if is_stopped:
        return None
    if is_late:
        return f"health check {name} did not end within {LIMIT_S:g} s"
    words = " ".join(tail.decode(errors="replace").split())
    return (
        "" if code == 0 else f"health check {name} ended with {code}" + f": {words}" * bool(words)
    )
