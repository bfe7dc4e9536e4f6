"""A queue with real processes on this machine: jobs that come, a driver that is killed, a stop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from shadowprice.errors import InputError
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.queue.job_queue import JobQueue
from shadowprice.hosts.log.execution_log import verify_ledger
from support.driver_process import kill_left_over, wait_until
from support.paths import ROOT

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux"),
    pytest.mark.timeout(120),
]

MAIN = "from shadowprice.cli.app import main; main()"


def start(state: Path) -> subprocess.Popen[str]:
    options = ("--hosts", "local:2", "--round", "0", "--limits", "ttl_s=30,grace_s=3", "--no-view")
    command = ("execute", "--queue", "--state", str(state), "--policy", "fifo", *options)
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, *command],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def opened(state: Path) -> JobQueue | None:
    try:
        return JobQueue(state)
    except InputError:
        return None


def add(state: Path, name: str, seconds: float, **more: object) -> None:
    queue = wait_until(lambda: opened(state), 60.0)
    job = {"name": name, "command": ["sleep", str(seconds)], "iterations": 1, "gpus": 1, **more}
    assert queue.add({"jobs": [job]}, "jobs", state.parent) == [name]
    queue.close()


def states(state: Path) -> dict[str, str]:
    ledger = RunLedger.open(state / "run.db", readonly=True)
    found = {row["name"]: row["state"] for row in ledger.jobs()}
    ledger.close()
    return found


def test_jobs_are_added_while_others_run_and_while_no_driver_does(tmp_path: Path) -> None:
    state = tmp_path / "pool"
    driver = start(state)
    try:
        add(state, "long", 4.0, env={"SECRET": "swordfish-9"})
        add(state, "quick", 0.0)
        wait_until(lambda: states(state)["quick"] == "finished", 60.0)
        assert states(state)["long"] == "running"
        driver.kill()
        driver.communicate()
        add(state, "late", 0.0)
        driver = start(state)
        wait_until(lambda: set(states(state).values()) == {"finished"}, 60.0)
        driver.terminate()
        output, _ = driver.communicate(timeout=60.0)
        assert driver.returncode == 0, output
        assert "the same command goes on" in output
    finally:
        driver.kill()
        driver.communicate()
        kill_left_over(state)
    checked = verify_ledger(state / "run.db")
    assert (checked["jobs"], checked["drivers"]) == (3, 2)
    ledger = RunLedger.open(state / "run.db", readonly=True)
    grants = [row["job"] for row in ledger.events() if row["kind"] == "granted"]
    assert grants.count("long") == 1, "the job that ran on was started again"
    assert "swordfish" not in json.dumps(ledger.submissions()) + json.dumps(ledger.events())
    ledger.close()
