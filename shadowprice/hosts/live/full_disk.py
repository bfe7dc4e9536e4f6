"""Waiting of a driver for space on the disk of its state directory: jobs run on meanwhile."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from shadowprice.hosts.live.run import RealRun
from shadowprice.hosts.live.state_directory import write_notice

AGAIN_S = 0.5
"""Between two tries to write [s]."""


class FullDisk:
    """Behaviour of a driver while its ledger cannot be written since the disk is full.

    It renews its leases, whose files have their space, and says in the file of its lock, which has
    its space too, that it waits: ``status`` reads it there.

    Parameters
    ----------
    run : RealRun
        The run, whose leases go on.
    lock : Path
        File of the driver's lock.
    """

    def __init__(self, run: RealRun, lock: Path) -> None:
        self._run, self._lock = run, lock
        self._since_s: float | None = None

    def full(self, why: str) -> None:
        """Let some time pass; looks after what runs."""
        run = self._run
        if self._since_s is None:
            self._since_s = run.clock.now_s()
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            self._say(f"the driver waits since {since}: {why}; free space on its disk")
        run.clock.sleep(AGAIN_S)
        run.monitor.renew(run.leases())
        run.monitor.on_tick()

    def free(self) -> None:
        """Note for how long it waited, if it did: it could write again."""
        if self._since_s is None:
            return
        waited_s = self._run.clock.now_s() - self._since_s
        self._since_s = None
        self._say("")
        text = f"the disk was full, and the driver waited for {waited_s:.1f} s"
        self._run.events.note("note", text=text, disk_full_s=waited_s)

    def _say(self, text: str) -> None:
        with suppress(OSError):
            write_notice(self._lock, text)
