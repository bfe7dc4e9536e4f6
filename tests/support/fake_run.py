"""Runs of the real engine on a host in memory, with faults and drivers that are killed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from shadowprice.execution.engine import Rounds
from shadowprice.hosts.live.driver import assemble
from shadowprice.hosts.live.engine import RealEngine
from shadowprice.hosts.live.job_file import JobFile, load_job_file
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.queue.job_queue import Arrivals
from shadowprice.hosts.live.run import RealRun
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.live.state_directory import open_ledger
from shadowprice.hosts.protocol import DiscoveredNode
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.registry import placement, policy
from support.fake_host import FakeHost, Job, VirtualClock, two_nodes

LIMITS = Limits(
    poll_s=0.25, ttl_s=8.0, grace_s=2.0, confirm_s=2.0, start_s=6.0, hang_s=12.0, back_off_s=1.0
)


class KilledDriver(BaseException):
    """The driver is gone: nothing of it runs any more, not even its handlers."""


@dataclass
class FakeRun:
    """A job file, a fake host, and drivers that come and go.

    ``faults`` are (virtual time, what to do with the host), done when their time has come.
    """

    path: Path
    jobs: Sequence[dict[str, Any]]
    policy: str | Policy = "fifo"
    round_s: float = 4.0
    share: float | None = None
    nodes: tuple[DiscoveredNode, ...] = field(default_factory=two_nodes)
    faults: list[tuple[float, Callable[[FakeRun], None]]] = field(default_factory=list)
    kill_at_s: list[float] = field(default_factory=list)
    kill_at_write: list[int] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    """Of the job file, beside its jobs."""

    def __post_init__(self) -> None:
        self.path.mkdir(exist_ok=True)
        entries = [{"command": ["true"], **job} for job in self.jobs]
        self.state = self.path / "state"
        self.clock = VirtualClock()
        known = {
            job["name"]: Job(job["iterations"], float(job.get("true_rate", 10.0)))
            for job in self.jobs
        }
        for entry in entries:
            entry.pop("true_rate", None)
        (self.path / "jobs.yaml").write_text(yaml.safe_dump({**self.more, "jobs": entries}))
        self.host = FakeHost(self.clock, self.nodes, known, self.state)
        self.host.on_poll = self._tick
        self.faults.sort(key=lambda fault: fault[0])
        self.drivers = 0
        self.writes = 0
        self.real_run: RealRun | None = None

    def _tick(self) -> None:
        assert self.clock.time_s < 20_000, "the run hangs"
        while self.faults and self.faults[0][0] <= self.clock.time_s:
            self.faults.pop(0)[1](self)
        if self.kill_at_s and self.kill_at_s[0] <= self.clock.time_s:
            self.kill_at_s.pop(0)
            raise KilledDriver

    def execute(self) -> RunLedger:
        """Drivers one after another, until one comes to the end."""
        while True:
            try:
                return self.drive()
            except KilledDriver:
                continue

    def job_file(self, settings: Settings) -> JobFile:
        return load_job_file(settings.jobs)

    def arrivals(self, ledger: RunLedger, settings: Settings) -> Arrivals:
        return Arrivals()

    def ticked(self, ledger: RunLedger) -> None:
        """The driver has looked at its leases."""

    def drive(self) -> RunLedger:
        self.drivers += 1
        assert self.drivers < 10_000
        name = self.policy if isinstance(self.policy, str) else self.policy.name
        settings = Settings(
            self.path / "jobs.yaml",
            name,
            "fake",
            self.state,
            round_s=self.round_s,
            share=self.share,
            limits=LIMITS,
        )
        self.state.mkdir(exist_ok=True)
        job_file = self.job_file(settings)
        ledger, resumed = open_ledger(self.state, settings.identity(job_file.sha256))
        self._watch_writes(ledger)
        try:
            arrivals = self.arrivals(ledger, settings)
            tick = partial(self.ticked, ledger)
            nodes = self.host.discover()
            run = assemble(settings, job_file, ledger, self.host, nodes, self.clock, tick, arrivals)
            self.real_run = run
            run.events.note("driver-started", pid=1, resumed=resumed)
            chosen = policy(self.policy) if isinstance(self.policy, str) else self.policy
            RealEngine(run, chosen, placement("count"), Rounds(self.round_s)).loop()
        except KilledDriver:
            # What a killed process leaves: its open transaction is undone.
            ledger._db.close()
            raise
        with ledger.transaction():
            run.events.note("driver-ended")
            ledger.set("ended", True)
        return ledger

    def _watch_writes(self, ledger: RunLedger) -> None:
        """Kill the driver right after a write that becomes durable, or right before."""
        answer = ledger.answer

        def counted(call: str, data: object) -> None:
            self.writes += 1
            if self.kill_at_write and self.writes == self.kill_at_write[0]:
                self.kill_at_write.pop(0)
                raise KilledDriver
            answer(call, data)
            if self.kill_at_write and -self.writes == self.kill_at_write[0]:
                self.kill_at_write.pop(0)
                if not ledger._db.in_transaction:
                    raise KilledDriver
                ledger._db.execute("COMMIT")
                raise KilledDriver

        ledger.answer = counted  # type: ignore[method-assign]

    def states(self, ledger: RunLedger) -> dict[str, str]:
        return {row["name"]: row["state"] for row in ledger.jobs()}


def events(ledger: RunLedger, kind: str) -> list[dict[str, Any]]:
    return [row for row in ledger.events() if row["kind"] == kind]


def log(ledger: RunLedger) -> str:
    """The events as text, for messages."""
    return "\n".join(
        f"{row['seq']} {row['time_s']} {row['kind']} {row['job']} {row['epoch']} {json.dumps(row['data'])}"
        for row in ledger.events()
    )
