"""Runs of copies on the host in memory: copies with folders, fences and checkpoints that are real."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shadowprice.hosts.job import Fenced, commit, last_checkpoint
from shadowprice.hosts.live.copies.engine import CopyEngine
from shadowprice.hosts.live.copies.policy import copies_policy
from shadowprice.hosts.live.driver import ReachedHost, assemble
from shadowprice.hosts.live.job_file import load_job_file
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.live.state_directory import open_ledger
from shadowprice.hosts.protocol import Exit, LaunchSpec, LeaseKey
from support.fake_host import FakeHost, Process
from support.fake_run import LIMITS, FakeRun, KilledDriver


class AtOnce(Executor):
    """Does what is submitted before it returns."""

    def submit(self, call: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(call(*arguments, **named))
        return future


def place_of(order: LaunchSpec) -> Path:
    return Path(order.env["SHADOWPRICE_JOB_DIRECTORY"])


@dataclass
class CopyHost(FakeHost):
    """A copy adds one to ``count`` in each step; node n1 is ``faster`` times as fast."""

    faster: float = 2.0

    def start(self, orders: Any) -> None:
        before = set(self.processes)
        super().start(orders)
        for key in set(self.processes) - before:
            process = self.processes[key]
            _, manifest, _ = last_checkpoint(place_of(process.order) / "checkpoints")
            process.from_step = process.step = manifest.get("step", 0)

    def _rate(self, process: Process) -> float:
        rate = super()._rate(process)
        return rate * (self.faster if process.order.node == "n1" else 1.0)

    def _advance(self, process: Process) -> None:
        if process.exit is not None or process.order.node in self.down:
            return
        now_s, env = self.clock.now_s(), process.order.env
        goal, iterations = int(env["SHADOWPRICE_STOP_AT"]), int(env["SHADOWPRICE_ITERATIONS"])
        until_s = min(now_s, process.stop_at_s)
        more_s = max(until_s - process.began_s - self.start_s - process.ran_s, 0.0)
        if not process.hangs:
            process.ran_s += more_s
            process.done += more_s * self._rate(process)
            process.step = min(process.from_step + int(process.done), goal)
        if process.step >= goal:
            self._end(process, 0 if goal == iterations else 75, "exited")
        elif now_s >= process.stop_at_s:
            if process.deaf:
                process.exit = Exit(-9, "stopped", forced=True)
            else:
                self._end(process, 75, "stopped")

    def _end(self, process: Process, code: int, reason: str) -> None:
        place, key = place_of(process.order), process.order.key
        _, before, _ = last_checkpoint(place / "checkpoints")
        steps = process.step - process.from_step
        try:
            if steps:
                self._save(place, key, process, before)
        except Fenced:
            code = 75
        process.exit = Exit(code, reason)

    def _save(self, place: Path, key: LeaseKey, process: Process, before: Any) -> None:
        def save(folder: Path) -> None:
            count = np.full(2, float(process.step + 1000 * key.copy))
            np.savez(folder / "parameters.npz", count=count)

        about = {
            "step": process.step,
            "epoch": key.epoch,
            "seconds": before.get("seconds", 0.0) + process.ran_s,
        }
        commit(place / "checkpoints", save, about, place / "fence")


@dataclass
class CopyRun(FakeRun):
    """As a FakeRun, of HadarE."""

    policy: str = "hadare"

    def __post_init__(self) -> None:
        super().__post_init__()
        host = CopyHost(self.clock, self.nodes, self.host.jobs, self.state)
        host.on_poll = self._tick
        self.host: CopyHost = host

    def drive(self) -> RunLedger:
        self.drivers += 1
        settings = Settings(
            self.path / "jobs.yaml",
            self.policy,
            "fake",
            self.state,
            round_s=self.round_s,
            limits=LIMITS,
        )
        self.state.mkdir(exist_ok=True)
        job_file = load_job_file(settings.jobs)
        ledger, resumed = open_ledger(self.state, settings.identity(job_file.sha256))
        ledger._db.execute("PRAGMA synchronous = OFF")  # it is the driver that dies here
        self._watch_writes(ledger)
        policy = copies_policy(settings)
        assert policy is not None
        try:
            hosts = ReachedHost(self.host, self.host.discover())
            run = assemble(settings, job_file, ledger, hosts, self.clock, resumed, lambda: None)
            run.record.note("driver-started", pid=1, resumed=resumed)
            self.engine = CopyEngine(run, policy, self.round_s, AtOnce())
            self.engine.loop()
        except KilledDriver:
            # What a killed process leaves: its open transaction is undone.
            ledger._db.close()
            raise
        with ledger.transaction():
            run.record.note("driver-ended")
            ledger.set("ended", True)
        return ledger

    def checkpoint(self, name: str) -> tuple[int, int]:
        """Step and epoch of a job's checkpoint."""
        folder, manifest, _ = last_checkpoint(self.state / "jobs" / name / "checkpoints")
        assert folder is not None
        return manifest["step"], manifest["epoch"]
