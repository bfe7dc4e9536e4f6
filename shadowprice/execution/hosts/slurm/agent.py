"""On a node, inside one Slurm job: starts supervisors of the leases that hold the job's devices.

Slurm hands out devices to jobs, and lets nobody choose who shares one. Two leases share a device
when they are in one job, so the job's script is this agent: it starts the supervisor of the lease
that the job was submitted for, and of each *guest* lease whose note appears in the job's folder
of guests, and ends with the last of them.

Standard library only, one file, copied to ``STATE/slurm_agent.py``::

    python -I STATE/slurm_agent.py hold LEASE_DIRECTORY GUESTS_DIRECTORY
    python -I STATE/slurm_agent.py sweep LEASE_DIRECTORY GUESTS_DIRECTORY

``sweep`` is for a lease whose supervisor was lost with its node, or killed: it ends what is left.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LOOK_S = 0.25
VERIFY_S = 10.0


def read(path: Path) -> dict[str, Any]:
    """A JSON object, empty if it is not there or torn."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class Holder:
    """One job: its supervisors, its guests, and what it was told by signals."""

    def __init__(self, lease: Path, guests: Path) -> None:
        self.lease = lease
        self.guests = guests
        self.closed = guests.with_name(f"{guests.name}.closed")
        self.children: dict[Path, subprocess.Popen[bytes]] = {}
        self.known: set[str] = set()
        self.told: set[int] = set()
        self.wake, self._write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._write, False)

    def run(self) -> None:
        """Hold the job until the last supervisor ended."""
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, lambda number, _: self.told.add(number))
        self._start(self.lease, None)
        while True:
            self._take_guests()
            self._forward()
            for path, child in list(self.children.items()):
                if child.poll() is not None:
                    del self.children[path]
            if not self.children and self._close():
                return
            if select.select([self.wake], [], [], LOOK_S)[0]:
                os.read(self.wake, 4096)

    def _start(self, lease: Path, positions: list[int] | None) -> None:
        env = dict(os.environ)
        visible = env.get("CUDA_VISIBLE_DEVICES", "").split(",")
        if positions is not None and visible != [""]:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(visible[at] for at in positions)
        self.children[lease] = subprocess.Popen(
            [sys.executable, "-I", "-S", str(lease_supervisor()), str(lease)],
            env=env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _take_guests(self) -> None:
        for folder in (self.guests, self.closed):
            try:
                names = sorted(os.listdir(folder))
            except OSError:
                continue
            for name in names:
                note = read(folder / name)
                if name.endswith(".json") and name not in self.known and note:
                    self.known.add(name)
                    self._start(Path(note["lease"]), list(note["positions"]))

    def _close(self) -> bool:
        """Let no guest in any more; whether none slipped in before.

        Renaming the folder is atomic: a note is either in it and seen by the look that follows, or
        its writer finds no folder and submits a job instead.
        """
        if self.guests.exists():
            os.rename(self.guests, self.closed)
        self._take_guests()
        return not self.children

    def _forward(self) -> None:
        """Pass on that it is time to stop: SIGUSR1 to leases that were told so, SIGTERM to all."""
        told, self.told = self.told, set()
        if not told:
            return
        for path, child in self.children.items():
            meant = told != {signal.SIGUSR1} or read(path / "lease.json").get("stop") is True
            if meant and child.poll() is None:
                child.send_signal(signal.SIGTERM)


def sweep(lease: Path) -> int:
    """End what is left of a lease on this node; 0 once ``exit.json`` says that nothing is.

    A supervisor that still lives is told to stop, and killed if it does not; one that is started
    where another died kills what that one left.
    """
    grace_s = float(read(lease / "order.json").get("grace_s", 10.0))
    kill_at = time.monotonic() + grace_s + VERIFY_S
    signal_left(lease, signal.SIGTERM)
    while not (lease / "exit.json").exists():
        if time.monotonic() > kill_at + VERIFY_S:
            return 1
        if time.monotonic() > kill_at:
            signal_left(lease, signal.SIGKILL)
        again = [sys.executable, "-I", "-S", str(lease_supervisor()), str(lease)]
        subprocess.run(again, stdin=subprocess.DEVNULL, timeout=60, check=False)
        time.sleep(0.05)
    return 0


def signal_left(lease: Path, number: int) -> None:
    """Send a signal to the supervisor of a lease, if it is the process that was written down."""
    recorded = read(lease / "supervisor.json")
    pid = int(recorded.get("pid", 0))
    try:
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
        if ticks == recorded.get("start_ticks"):
            os.kill(pid, number)
    except (OSError, ValueError, IndexError):
        return


def lease_supervisor() -> Path:
    """The supervisor, beside this file."""
    return Path(__file__).resolve().parent / "supervisor.py"


def main() -> int:
    """Run ``hold`` or ``sweep`` for a lease."""
    if len(sys.argv) != 4 or sys.argv[1] not in ("hold", "sweep"):
        print("usage: slurm_agent.py hold|sweep LEASE_DIRECTORY GUESTS_DIRECTORY", file=sys.stderr)
        return 2
    lease = Path(sys.argv[2])
    if sys.argv[1] == "sweep":
        return sweep(lease)
    Holder(lease, Path(sys.argv[3])).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
