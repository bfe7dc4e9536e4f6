"""What a round costs on the local host, beside the checkpoints that jobs make.

``python benchmarks/local_rounds.py [--leases 1,8,32] [--rounds 8] [--command training|sleep]``. Jobs
are stopped in turn by ``las`` as often as it decides. Those of ``training`` are Python programs, which
sleep for most of a step and save a few bytes; where all leases change hands at once, the cores start
as many interpreters, which is in the times. ``sleep`` is a program that costs next to nothing: what
is left is the cost of a hand-over itself. The state directory is on the disk of ``--folder``. Beside
the times of a round, which depend on what else the machine does, the table has processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from shadowprice.hosts.lease_files import read_report
from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.settings import Settings

TARGET_MS = 50.0
STARTED = "a lease: granted -> its command started"
JOB = """
import sys, time
sys.path.insert(0, {folder!r})
from job import Lease
def save(folder): (folder / "state").write_text("x" * 1000)
with Lease() as lease:
    lease.restore(lambda folder: None)
    lease.checkpoints(save)
    for step in lease.steps():
        time.sleep({step_s})
"""
STEP_S = 0.005
SOURCE = Path(__file__).resolve().parents[1] / "shadowprice" / "hosts"


@dataclass
class Times:
    """Milliseconds, by what they were spent on; beside them looks at the leases."""

    ms: dict[str, list[float]] = field(default_factory=dict)
    looks: int = 0

    def add(self, what: str, seconds: float) -> None:
        self.ms.setdefault(what, []).append(1e3 * seconds)


class Stop(Exception):
    """Enough was measured."""


COMMANDS = {
    "training": ("{python}", "-I", "-S", "-c", JOB.format(folder=str(SOURCE), step_s=STEP_S)),
    "sleep": ("sleep", "1000000"),
}


@dataclass(frozen=True)
class Setting:
    """Jobs of a run and what is decided about them; times in seconds."""

    command: str
    leases: int
    jobs: int
    policy: str
    round_s: float
    last_s: float


def run(folder: Path, setting: Setting) -> Times:
    """Execute for a while; returns the driver's processor time as ``driver``."""
    leases, last_s = setting.leases, setting.last_s
    listed: list[dict[str, Any]] = [
        {
            "name": f"job-{k}",
            "command": list(COMMANDS[setting.command]),
            "iterations": 10**6,
            "throughput": 1.0 / STEP_S,
        }
        for k in range(setting.jobs)
    ]
    (folder / "jobs.yaml").write_text(json.dumps({"jobs": listed}))
    limits = Limits(poll_s=0.1)
    state = folder / "state"
    settings = Settings(
        folder / "jobs.yaml",
        setting.policy,
        f"local:{leases}",
        state,
        round_s=setting.round_s,
        limits=limits,
    )
    times, begun = Times(), [0.0, 0.0]

    def tick(ledger: RunLedger) -> None:
        times.looks += 1
        now = time.monotonic()
        if begun[0] == 0.0 and all(
            (state / "jobs" / f"job-{k}" / "leases" / "e1-r0" / "supervisor.json").exists()
            for k in range(leases)
        ):
            begun[:] = now, time.process_time()
            times.looks = 0
        elif begun[0] and now - begun[0] > last_s:
            times.add("driver", time.process_time() - begun[1])
            begun[0] = float("inf")
            os.kill(os.getpid(), 2)

    execute(settings, tick)
    return times


def hand_overs(state: Path) -> Times:
    """Times of rounds in which leases changed, from the log and the files of leases."""
    ledger = RunLedger.open(state / "run.db", readonly=True)
    began = ledger.value("began_unix")
    events = ledger.events()
    ledger.close()
    times = Times()
    bounds = [k for k, event in enumerate(events) if event["kind"] == "decided"]
    for first, last in zip(bounds, [*bounds[1:], len(events)], strict=True):
        _round(events[first:last], state, began, times)
    return times


def _round(events: list[dict[str, Any]], state: Path, began: float, times: Times) -> None:
    """One round, if it handed all of its leases over."""
    data = events[0]["data"]
    if not data["stops"] or not data["starts"]:
        return
    at = {(each["kind"], each["job"]): each["time_s"] for each in events}
    decided_s = events[0]["time_s"]
    if any(("released", job) not in at for job in data["stops"]):
        return
    saving_s = 0.0
    for job in data["stops"]:
        epoch = next(e["epoch"] for e in events if (e["kind"], e["job"]) == ("released", job))
        report = read_report(state / "jobs" / job / "leases" / f"e{epoch}-r0")
        own_s = float(report.get("saving_s", 0.0))
        times.add(
            "a lease: asked to stop -> released, less its checkpoint",
            at["released", job] - at["stop-asked", job] - own_s,
        )
        saving_s = max(saving_s, own_s)
    starts = []
    for job in data["starts"]:
        if ("granted", job) not in at:
            return
        epoch = next(e["epoch"] for e in events if (e["kind"], e["job"]) == ("granted", job))
        file = state / "jobs" / job / "leases" / f"e{epoch}-r0" / "supervisor.json"
        if not file.exists():
            return
        starts.append(file.stat().st_mtime - began)
        times.add(STARTED, starts[-1] - at["granted", job])
    released_s = max(at["released", job] for job in data["stops"])
    granted_s = max(at["granted", job] for job in data["starts"])
    times.add("a round: decided -> all released", released_s - decided_s)
    times.add("a round: all released -> all granted", granted_s - released_s)
    times.add("a round: its longest checkpoint", saving_s)
    times.add(
        "overhead of a round: decided -> all commands started, less that",
        max(starts) - decided_s - saving_s,
    )


def told(what: str, ms: list[float], target_ms: float | None = None) -> None:
    """A line of the table."""
    tail = quantiles(ms, n=20, method="inclusive")[-1] if len(ms) > 1 else ms[0]
    verdict = ""
    if target_ms is not None:
        verdict = f"  (target {target_ms:g}: {'met' if median(ms) < target_ms else 'missed'} in the median)"
    print(f"  {what:66} {median(ms):8.1f} {tail:8.1f} {len(ms):5}{verdict}", flush=True)


def changed(command: str, leases: int, rounds: int, folder: Path, look_ms: float) -> None:
    """Rounds in which every lease is handed over."""
    round_s = 1.0 if leases < 32 else 4.0
    with tempfile.TemporaryDirectory(dir=folder) as place:
        policy = f"las:quantum_s={round_s / 2}"
        setting = Setting(command, leases, 2 * leases, policy, round_s, rounds * round_s)
        times = run(Path(place), setting)
        found = hand_overs(Path(place) / "state").ms
    for what in sorted(found):
        told(what, found[what], TARGET_MS if what.startswith("overhead") else None)
    if found:
        cpu_ms = max(times.ms["driver"][0] - look_ms * times.looks, 0.0)
        over = len(found[STARTED])
        told("driver's processor time for a lease that is handed over", [cpu_ms / over])


def unchanged(command: str, leases: int, rounds: int, folder: Path) -> float:
    """Rounds in which nothing changes, though a job waits; returns the cost of a look [ms]."""
    costs, looks, again, count = [], 0, 0, max(rounds, 16)
    for round_s in (0.25, 1e4):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            policy = f"synergy-greedy:round_s={round_s:g}"
            setting = Setting(command, leases, leases + 1, policy, round_s, 0.25 * count)
            times = run(Path(place), setting)
            costs.append(times.ms["driver"][0])
            looks = times.looks
            ledger = RunLedger.open(Path(place) / "state" / "run.db", readonly=True)
            again += sum(event["kind"] == "granted" for event in ledger.events()) - leases
            ledger.close()
    # The second run looks at its leases as often, but has no rounds.
    told("driver's processor time for a look at all leases", [costs[1] / looks])
    cost_ms = max(costs[0] - costs[1], 0.0) / count
    told("overhead of a round without a change, processor time", [cost_ms], TARGET_MS)
    print(f"  leases started again in {count} such rounds: {again}")
    return costs[1] / looks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leases", default="1,8,32")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--command", choices=COMMANDS, default="training")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    load = "/".join(f"{each:.1f}" for each in os.getloadavg())
    print(
        f"{os.cpu_count()} cores, load {load}, Python {sys.version.split()[0]}; ms: median, p95, count"
    )
    for leases in map(int, given.leases.split(",")):
        print(f"{leases} leases")
        look_ms = unchanged(given.command, leases, given.rounds, given.folder)
        changed(given.command, leases, given.rounds, given.folder, look_ms)
    print("load now " + "/".join(f"{each:.1f}" for each in os.getloadavg()))


if __name__ == "__main__":
    main()
