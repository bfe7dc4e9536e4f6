"""Services on a host in memory: jobs are submitted while drivers run, and drivers are killed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shadowprice.execution.real.job_file import JobFile
from shadowprice.execution.real.ledger import RunLedger
from shadowprice.execution.real.settings import Settings
from shadowprice.execution.service.queue import JobQueue, QueuedArrivals
from shadowprice.execution.service.users import Access, User
from support.fake_host import Job
from support.fake_run import FakeRun

ALICE, BOB, OWNER = User(1001, "alice"), User(1002, "bob"), User(1000, "owner")
ACCESS = Access(owner=1000, weights={1001: 2.0, 1002: 1.0})


class EndingArrivals(QueuedArrivals):
    """Jobs of a queue of which somebody knows when it is over."""

    run: FakeService

    @property
    def open(self) -> bool:  # type: ignore[override]
        return bool(self.run.plan) or bool(self.fresh())


@dataclass
class FakeService(FakeRun):
    """A fake run without a job file.

    ``plan`` has times, users and entries of jobs still to be submitted.
    """

    plan: Sequence[tuple[float, User, dict[str, Any]]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plan = sorted(self.plan, key=lambda each: each[0])
        self.answered: list[str] = []

    def job_file(self, settings: Settings) -> JobFile:
        return JobFile(Path("service"), (), "service")

    def arrivals(self, ledger: RunLedger, settings: Settings) -> QueuedArrivals:
        found = EndingArrivals(ledger, settings)
        found.run = self
        return found

    def ticked(self, ledger: RunLedger) -> None:
        while self.plan and self.plan[0][0] <= self.clock.time_s:
            _, user, entry = self.plan[0]
            entry = dict(entry)
            rate = float(entry.pop("true_rate", 10.0))
            queue = JobQueue(self.state, ACCESS, lambda ledger: self.clock.time_s)
            request = f"r{len(self.plan)}"
            (name,) = queue.submit(user, {"jobs": [entry]}, self.path, request)
            queue.close()
            self.host.jobs.setdefault(name, Job(entry["iterations"], rate))
            self.answered.append(name)
            self.plan = self.plan[1:]
