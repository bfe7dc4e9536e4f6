"""Queues on a host in memory: jobs are added while drivers run, and drivers are killed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shadowprice.hosts.live.job_file import JobFile
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.queue.job_queue import QUEUE, JobQueue, QueuedArrivals
from shadowprice.hosts.live.settings import Settings
from support.fake_host import Job
from support.fake_run import FakeRun


class EndingArrivals(QueuedArrivals):
    """Jobs of a queue of which somebody knows when it is over."""

    run: FakeQueue

    @property
    def open(self) -> bool:  # type: ignore[override]
        return bool(self.run.plan) or bool(self.fresh())


@dataclass
class FakeQueue(FakeRun):
    """A fake run without a job file.

    ``plan`` has times and entries of jobs still to be added.
    """

    plan: Sequence[tuple[float, dict[str, Any]]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plan = sorted(self.plan, key=lambda each: each[0])
        self.added: list[str] = []

    def job_file(self, settings: Settings) -> JobFile:
        return JobFile(Path(QUEUE), (), QUEUE)

    def arrivals(self, ledger: RunLedger, settings: Settings) -> QueuedArrivals:
        found = EndingArrivals(ledger, settings)
        found.run = self
        return found

    def queue(self, now_s: float = 100.0) -> JobQueue:
        """As its owner opens it at a time of the run."""
        return JobQueue(self.state, lambda ledger: now_s)

    def ticked(self, ledger: RunLedger) -> None:
        while self.plan and self.plan[0][0] <= self.clock.time_s:
            entry = dict(self.plan[0][1])
            rate = float(entry.pop("true_rate", 10.0))
            queue = self.queue(self.clock.time_s)
            (name,) = queue.add({"jobs": [entry]}, "jobs", self.path)
            queue.close()
            self.host.jobs.setdefault(name, Job(entry["iterations"], rate))
            self.added.append(name)
            self.plan = self.plan[1:]
