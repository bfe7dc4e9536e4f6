"""The same few jobs, executed through the driver on any host."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.reports.results import results
from support.paths import ROOT

TRAINING = """
import json, sys, time
from shadowprice.hosts.job import Lease

total = 0

def save(folder):
    (folder / "total.json").write_text(json.dumps(total))

def load(folder):
    global total
    total = json.loads((folder / "total.json").read_text())

with Lease() as lease:
    lease.restore(load)
    lease.checkpoints(save)
    for step in lease.steps():
        total += step
        time.sleep(0.02)
"""


def execute_example(folder: Path, hosts: str) -> None:
    """Two gangs that take turns on the same GPUs, and a pair that may share some."""
    (folder / "train.py").write_text(TRAINING)
    command = [sys.executable, "train.py"]
    env = {"PYTHONPATH": str(ROOT)}
    jobs = [
        {"name": "first", "gpus": 2, "iterations": 260, "throughput": 45, "model": "wide"},
        {"name": "second", "gpus": 2, "iterations": 260, "throughput": 45, "model": "wide"},
        {"name": "third", "gpus": 2, "iterations": 120, "throughput": 45, "arrival_s": 1},
    ]
    path = folder / "jobs.yaml"
    common = {"command": command, "env": env}
    path.write_text(yaml.safe_dump({"defaults": common, "jobs": jobs}))
    settings = Settings(
        path,
        "las2d:thresholds_gpu_s=6",
        hosts,
        folder / "state",
        round_s=2.0,
        limits=Limits(grace_s=10.0, ttl_s=20.0),
    )
    summary = execute(settings)
    assert summary.all_finished, summary
    found = results(settings.state)
    assert found.checked["steps_lost"] == 0
    assert found.drift is not None
    for job in jobs:
        latest = settings.state / "jobs" / str(job["name"]) / "checkpoints"
        saved = latest / (latest / "LATEST").read_text().strip() / "total.json"
        steps = int(str(job["iterations"]))
        # Every step was done once, whoever did it and where.
        assert saved.read_text() == str(steps * (steps - 1) // 2)
    ledger = RunLedger.open(settings.state / "run.db", readonly=True)
    rates = [row["steps"] / row["seconds"] for row in ledger.observations()]
    assert rates
    assert max(rates) <= 50.0
    ledger.close()
