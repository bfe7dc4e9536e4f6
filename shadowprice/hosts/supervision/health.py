"""Health check of a node: a command that has to end with 0 before the command of a lease begins."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from shadowprice.hosts.supervision.processes import TAG, descendants, processes, send

TYPE_CHECKING = False  # importing typing would cost a third of the start-up
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LIMIT_S = 60.0
POLL_S = 0.02
SAID_BYTES = 400


class HealthCheck:
    """A check that runs; all of its processes are children of the caller, a child subreaper.

    Parameters
    ----------
    argv : sequence of str
        Program and arguments.
    env : mapping of str to str
        Added to the environment.
    directory : str
        Of the lease.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], directory: str) -> None:
        self.argv = list(argv)
        self.output_tail = b""
        self.code: int | None = None
        self.until = time.monotonic() + LIMIT_S
        self.late = False
        self.output, write_end = os.pipe()
        os.set_blocking(self.output, False)
        environment = {**os.environ, **env, TAG: directory}
        actions = [
            (os.POSIX_SPAWN_DUP2, write_end, 1),
            (os.POSIX_SPAWN_DUP2, write_end, 2),
        ]
        self.problem = ""
        self.pid = 0
        try:
            self.pid = os.posix_spawnp(
                self.argv[0],
                self.argv,
                environment,
                file_actions=actions,
                setsid=True,
                setsigdef=[signal.SIGHUP, signal.SIGINT, signal.SIGPIPE],
            )
        except (OSError, ValueError) as error:
            self.problem = getattr(error, "strerror", None) or str(error)
        finally:
            os.close(write_end)

    def goes_on(self) -> bool:
        """True while it runs; waits for a moment. What takes too long is killed."""
        with contextlib.suppress(BlockingIOError):
            self.output_tail = (self.output_tail + os.read(self.output, 1 << 16))[-SAID_BYTES:]
        if not self.pid or self._reaped():
            return False
        if time.monotonic() > self.until:
            self.late = True
            self.end()
            return False
        time.sleep(POLL_S)
        return True

    def end(self) -> None:
        """Kill all of its processes, and wait until they are gone."""
        while not self._reaped():
            for pid in descendants({os.getpid()}, processes()):
                send(pid, signal.SIGKILL)
            time.sleep(POLL_S)

    def why(self) -> str:
        """Reason that the node is not fit, empty if it is; called once it is over."""
        with contextlib.suppress(BlockingIOError):
            self.output_tail = (self.output_tail + os.read(self.output, 1 << 16))[-SAID_BYTES:]
        os.close(self.output)
        name = os.path.basename(self.argv[0])
        if self.problem:
            return f"health check {name} cannot be run: {self.problem}"
        if self.late:
            return f"health check {name} did not end within {LIMIT_S:g} s"
        if self.code == 0:
            return ""
        said = " ".join(self.output_tail.decode(errors="replace").split())
        return f"health check {name} ended with {self.code}" + (f": {said}" if said else "")

    def _reaped(self) -> bool:
        """Collect who died; whether none is left, children that it left behind included."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self.pid:
                    self.code = os.waitstatus_to_exitcode(status)
                if pid == 0:
                    break
        except ChildProcessError:
            return True
        if self.code is not None:  # what it left behind
            for pid in descendants({os.getpid()}, processes()):
                send(pid, signal.SIGKILL)
        return False
