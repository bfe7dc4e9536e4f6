"""One Slurm job on its node: holds devices, and starts the supervisors of the leases on them.

Slurm hands out devices to jobs, and lets nobody choose who shares one. Two leases share a device
when they are in one job, so the job's script becomes this program: it starts the supervisor of the
lease that the job was submitted for, and of each *guest* lease whose note appears in the job's
folder of guests, and ends with the last of them. ::

    python -I -S -B STATE/supervisor.py hold LEASE_DIRECTORY GUESTS_DIRECTORY
    python -I -S -B STATE/supervisor.py sweep LEASE_DIRECTORY

``sweep`` is for a lease whose supervisor was lost with its node, or killed: it ends what is left.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time

from shadowprice.hosts.supervision.files import read_json
from shadowprice.hosts.supervision.processes import process, send

LOOK_S = 0.25
VERIFY_S = 10.0


class Holder:
    """One job: its supervisors, its guests, and the signals that it got.

    Parameters
    ----------
    supervisor : str
        Program that supervises a lease.
    lease, guests : str
        Directory of the lease that the job was submitted for, folder of guests.
    """

    def __init__(self, supervisor: str, lease: str, guests: str) -> None:
        self.supervisor, self.lease = supervisor, lease
        self.guests, self.closed = guests, f"{guests}.closed"
        self.children: dict[str, subprocess.Popen[bytes]] = {}
        self.known: set[str] = set()
        self.signals: set[int] = set()
        self.wake, self._write = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._write, False)

    def run(self) -> None:
        """Hold the job until the last supervisor ended."""
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, lambda number, _: self.signals.add(number))
        self._start(self.lease, None)
        while True:
            self._take_guests()
            self._forward()
            for lease, child in list(self.children.items()):
                if child.poll() is not None:
                    del self.children[lease]
            if not self.children and self._close():
                return
            if select.select([self.wake], [], [], LOOK_S)[0]:
                os.read(self.wake, 4096)

    def _start(self, lease: str, positions: list[int] | None) -> None:
        env = dict(os.environ)
        visible = env.get("CUDA_VISIBLE_DEVICES", "").split(",")
        if positions is not None and visible != [""]:
            env["CUDA_VISIBLE_DEVICES"] = ",".join(visible[at] for at in positions)
        self.children[lease] = subprocess.Popen(
            _supervise(self.supervisor, lease),
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
                note = read_json(f"{folder}/{name}")
                if name.endswith(".json") and name not in self.known and note:
                    self.known.add(name)
                    self._start(note["lease"], list(note["positions"]))

    def _close(self) -> bool:
        """Let no guest in any more; whether none slipped in before.

        Renaming the folder is atomic: a note is either in it and seen by the look that follows, or
        its writer finds no folder and submits a job instead.
        """
        if os.path.exists(self.guests):
            os.rename(self.guests, self.closed)
        self._take_guests()
        return not self.children

    def _forward(self) -> None:
        """Pass on that it is time to stop: SIGUSR1 to leases that were asked to, SIGTERM to all."""
        signals, self.signals = self.signals, set()
        if not signals:
            return
        for lease, child in self.children.items():
            asked = (read_json(f"{lease}/lease.json") or {}).get("stop") is True
            if (asked or signals != {signal.SIGUSR1}) and child.poll() is None:
                child.send_signal(signal.SIGTERM)


def sweep(supervisor: str, lease: str) -> int:
    """End what is left of a lease on this node; 0 once ``exit.json`` says that nothing is.

    A supervisor that still lives is told to stop, and killed if it does not; one that is started
    where another died kills what that one left.
    """
    order = read_json(f"{lease}/order.json") or {}
    kill_at = time.monotonic() + float(order.get("grace_s", 10.0)) + VERIFY_S
    _signal_supervisor(lease, signal.SIGTERM)
    while read_json(f"{lease}/exit.json") is None:
        if time.monotonic() > kill_at + VERIFY_S:
            return 1
        if time.monotonic() > kill_at:
            _signal_supervisor(lease, signal.SIGKILL)
        again = _supervise(supervisor, lease)
        subprocess.run(again, stdin=subprocess.DEVNULL, timeout=60, check=False)
        time.sleep(0.05)
    return 0


def _signal_supervisor(lease: str, number: int) -> None:
    """Send a signal to the supervisor of a lease, if it is the process that was written down."""
    recorded = read_json(f"{lease}/supervisor.json") or {}
    pid = recorded.get("pid")
    if type(pid) is not int:
        return
    about = process(pid)
    if about is not None and about[3] == recorded.get("start_ticks"):
        send(pid, number)


def _supervise(supervisor: str, lease: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-B", supervisor, lease]


def main(supervisor: str, arguments: list[str]) -> int:
    """Hold devices for a lease and its guests, or sweep up after it."""
    if len(arguments) == 3 and arguments[0] == "hold":
        Holder(supervisor, *arguments[1:]).run()
        return 0
    if len(arguments) == 2 and arguments[0] == "sweep":
        return sweep(supervisor, arguments[1])
    print("usage: supervisor.py [hold] LEASE [GUESTS] | sweep LEASE", file=sys.stderr)
    return 2
