"""Data-parallel training over two nodes that is killed, stopped and resumed, on any host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from shadowprice.hosts.job import last_checkpoint
from shadowprice.hosts.lease_files import read_report, read_supervisor
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.supervision.processes import TAG
from support.driver_process import INTERRUPTED, Driver, wait_until, with_number, write_jobs
from support.paths import ROOT

ITERATIONS = 400
SCRIPT = ROOT / "examples" / "jobs" / "ddp.py"
LAUNCHER = ["-m", "torch.distributed.run"]
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
OPTIONS = ["--width", "16", "--seed", "3"]


def undisturbed(folder: Path) -> dict[str, Any]:
    """Checkpoint of the same training by torchrun alone, two processes on this machine."""
    folder.mkdir()
    launch = [sys.executable, *LAUNCHER, "--standalone", "--nproc-per-node", "2", str(SCRIPT)]
    subprocess.run(
        [*launch, *OPTIONS, "--iterations", str(ITERATIONS)],
        cwd=folder,
        env=os.environ | ENVIRONMENT | {"CUDA_VISIBLE_DEVICES": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=200,
    )
    return checkpoint(folder / "checkpoints")


def checkpoint(folder: Path) -> dict[str, Any]:
    """The last checkpoint: step, losses, parameters, momentum; Python draws its own generator's seed."""
    import torch

    found, manifest, troubles = last_checkpoint(folder)
    assert found is not None
    assert troubles == []
    parameters, state = (
        torch.load(found / f"{name}.pt", weights_only=True) for name in ("parameters", "state")
    )
    return {
        "step": manifest["step"],
        "losses": (found / "losses.csv").read_text(),
        "parameters": parameters,
        "parts": state["parts"],
        "generator": state["generators"]["torch"],
    }


class DdpRun:
    """One job over two nodes, each of whose commands is torchrun."""

    def __init__(self, folder: Path, hosts: str) -> None:
        command = ["{python}", *LAUNCHER, "--max-restarts", "3", str(SCRIPT), *OPTIONS]
        job = {
            "name": "ddp",
            "command": [*command, "--step-ms", "15", "--device", "cpu"],
            "env": ENVIRONMENT,
            "gpus": 2,
            "iterations": ITERATIONS,
            "throughput": 50,
        }
        limits = {"grace_s": 30.0, "ttl_s": 30.0, "back_off_s": 0.2, "poll_s": 0.1}
        jobs = write_jobs(folder / "jobs.yaml", [job])
        self.driver = Driver(folder, jobs, "srtf", hosts=hosts, round_s=4.0, limits=limits)
        self.job = self.driver.state / "jobs" / "ddp"

    def rank(self, epoch: int, rank: int) -> Path:
        return self.job / "leases" / f"e{epoch}-r{rank}"

    def step(self, epoch: int) -> int:
        """Step that a lease reached."""
        return int(read_report(self.rank(epoch, 0)).get("step", 0))

    def reach(self, epoch: int, step: int, within_s: float = 90.0) -> None:
        """Wait until a lease reports a step, and has a checkpoint."""

        def there() -> bool:
            assert self.driver.runs(), self.driver.last_output()
            report = read_report(self.rank(epoch, 0))
            return report.get("step", 0) >= step and report.get("checkpoint_step", 0) > 0

        wait_until(there, within_s, every_s=0.1)

    def workers(self, directory: Path) -> list[int]:
        """Processes that torchrun started in a lease on a node."""
        tag = os.fsencode(f"{TAG}={directory}")
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                variables = (path / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if tag in variables and any(each.startswith(b"LOCAL_RANK=") for each in variables):
                found.append(int(path.name))
        return found


def killed_and_resumed(folder: Path, hosts: str) -> dict[str, Any]:
    """Checkpoint at the end of a run whose worker is killed, then a launcher, then the driver stopped."""
    run = DdpRun(folder, hosts)
    try:
        run.driver.start()
        run.reach(1, 60)
        before = run.step(1)
        (worker,) = run.workers(run.rank(1, 1))
        with_number(worker, signal.SIGKILL)
        # Torchrun starts all of its processes again, on both nodes, in the same lease.
        wait_until(lambda: run.workers(run.rank(1, 1)) not in ([], [worker]), 60.0, every_s=0.1)
        run.reach(1, before + 20)
        launcher = read_supervisor(run.rank(1, 1))
        assert launcher is not None
        with_number(launcher["command_pid"], signal.SIGKILL)
        run.reach(2, before + 40)
        run.driver.send(signal.SIGINT)
        assert run.driver.wait(60.0) == INTERRUPTED
        run.driver.start()
        assert run.driver.wait(120.0) == 0, run.driver.last_output()
        for rank in (0, 1):
            order = json.loads((run.rank(3, rank) / "order.json").read_text())
            assert order["env"]["WORLD_SIZE"] == "2"
        verify_ledger(run.driver.state / "run.db")
        ledger = RunLedger.open(run.driver.state / "run.db", readonly=True)
        granted = [
            event["data"]["devices"] for event in ledger.events() if event["kind"] == "granted"
        ]
        ledger.close()
        assert len(granted) == 3
        assert all(len({uuid.partition("/")[0] for uuid in uuids}) == 2 for uuids in granted)
        return checkpoint(run.job / "checkpoints")
    finally:
        run.driver.clean_up()
