"""A real run that faults are thrown at: which of its leases live, and what is due when."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shadowprice.hosts.lease_files import read_exit, read_supervisor
from shadowprice.hosts.supervision.processes import process
from support.driver_process import Driver, with_number


@dataclass(frozen=True)
class Target:
    """A lease whose command lives."""

    job: Path
    epoch: int
    directory: Path
    supervisor: int
    command: int

    @property
    def name(self) -> str:
        """Its job and which of its leases it is."""
        return f"{self.job.name} lease {self.epoch}"

    def signal(self, number: int, *, supervisor: bool = False, command: bool = False) -> None:
        for wanted, pid in ((supervisor, self.supervisor), (command, self.command)):
            if wanted:
                with_number(pid, number)

    def lives(self) -> bool:
        return process(self.command) is not None

    def runs(self) -> bool:
        """Whether its command lives and is not stopped."""
        try:
            stat = Path(f"/proc/{self.command}/stat").read_text()
        except OSError:
            return False
        return stat.rpartition(")")[2].split()[0] not in "TZX"

    def holds(self, path: Path) -> bool:
        """Whether its command has a file open."""
        try:
            return any(
                os.path.samefile(opened, path)
                for opened in Path(f"/proc/{self.command}/fd").iterdir()
            )
        except OSError:
            return False


@dataclass
class Scene:
    """A run and what is being done to it.

    Parameters
    ----------
    mounted
        Whether the state directory is a small file system of its own, which can be filled.
    away_s
        Longer than leases live without a driver [s].
    cluster
        The Ray or Slurm cluster that it runs on, None on this machine alone.

    Attributes
    ----------
    later
        What is due at which time of the monotonic clock.
    stopped
        Directories of leases that are stopped: nothing else is done to them.
    killed
        Those of them that were killed with their node meanwhile.
    full_until
        Until when the state directory is full.
    away_until
        Until when no driver can begin, since Slurm's controller is away or has just come back.
    stale, fenced
        Workers that went on after another lease had their job, and those of them that ended since
        their commit was refused; others were at their end when they fell asleep.
    """

    driver: Driver
    draw: random.Random
    away_s: float
    mounted: bool = False
    cluster: Any = None
    later: list[tuple[float, Callable[[], bool]]] = field(default_factory=list)
    stopped: set[Path] = field(default_factory=set)
    killed: set[Path] = field(default_factory=set)
    full_until: float = 0.0
    away_until: float = 0.0
    stale: int = 0
    fenced: int = 0

    @property
    def state(self) -> Path:
        return self.driver.state

    def targets(self) -> list[Target]:
        """Leases whose command and supervisor live, and that nothing was done to."""
        found = []
        for directory in sorted(self.state.glob("jobs/*/leases/*")):
            recorded = None if read_exit(directory) else read_supervisor(directory)
            if recorded is None or directory in self.stopped:
                continue
            pids = recorded["pid"], recorded["command_pid"]
            if all(process(pid) is not None for pid in pids):
                epoch = int(directory.name[1:].partition("-")[0])
                found.append(Target(directory.parents[1], epoch, directory, *pids))
        return found

    def may_refuse(self, why: str) -> bool:
        """Whether the driver had a reason to leave with these last words, at some time since its start.

        Its disk was full, or Slurm away, or all nodes closed; on a busy machine it leaves late.
        """
        if "full" in why or "no space" in why.lower():
            return self.driver.started_s < self.full_until
        # The driver may see that nodes are closed before the administrator does.
        return self.driver.started_s < self.away_until or "no free device in partition" in why

    def driving(self) -> bool:
        """Whether the driver has taken the run over, and is not still being started."""
        ledger = self.state / "run.db"
        if not self.driver.runs() or not ledger.exists():
            return False
        assert self.driver.process is not None
        last = "SELECT data FROM events WHERE kind = 'driver-started' ORDER BY seq DESC LIMIT 1"
        try:
            with closing(sqlite3.connect(f"{ledger.resolve().as_uri()}?mode=ro", uri=True)) as db:
                row = db.execute(last).fetchone()
        except sqlite3.OperationalError:  # its disk is full
            return False
        return row is not None and json.loads(row[0])["pid"] == self.driver.process.pid

    def target(self) -> Target | None:
        found = self.targets()
        return self.draw.choice(found) if found else None

    def after(self, wait_s: float, what: Callable[[], bool]) -> None:
        """Do something later; again and again until it says that it is done."""
        self.later.append((time.monotonic() + wait_s, what))

    def tend(self) -> None:
        """Do what is due."""
        if self.cluster is not None:
            self.cluster.tend()
        due = [each for each in self.later if each[0] <= time.monotonic()]
        for each in due:
            self.later.remove(each)
            if not each[1]():
                self.after(0.1, each[1])
