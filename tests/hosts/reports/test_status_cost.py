"""The cost of looking at a run, which people do again and again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.fake_host import two_nodes
from support.fake_run import FakeRun, KilledDriver

MOST_CPU_S = 1.0
"""Twice the target of 0.5 s, for machines that are slow or busy."""


def test_looking_at_a_run_loads_no_arrays() -> None:
    code = "import sys, shadowprice.hosts.reports.status; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
def test_the_status_of_500_jobs_takes_half_a_second_of_cpu(tmp_path: Path) -> None:
    jobs = [
        {"name": f"job-{k:04d}", "iterations": 400 + (k * 37) % 600, "gpus": 1, "throughput": 10.0}
        for k in range(500)
    ]
    run = FakeRun(
        tmp_path / "run",
        jobs,
        "las:quantum_s=8",
        round_s=8.0,
        nodes=two_nodes(100),
        kill_at_s=[60.0],
    )
    with pytest.raises(KilledDriver):
        run.drive()
    argv = [sys.executable, "-m", "shadowprice", "status", str(run.state), "--json"]
    before = os.times()
    told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    after = os.times()
    used_s = after.children_user - before.children_user
    used_s += after.children_system - before.children_system
    found = json.loads(told)
    assert len(found["jobs"]) == 500
    assert sum(len(node["devices"]) for node in found["nodes"]) == 200
    assert used_s < MOST_CPU_S
