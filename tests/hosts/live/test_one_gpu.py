"""A real GPU: trainings that take turns on it, are killed and go on; what the driver's tools print of it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shadowprice.errors import HostError
from shadowprice.hosts.job import last_checkpoint
from shadowprice.hosts.lease_files import read_exit, read_report, read_supervisor
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.local.claims import DeviceClaims
from shadowprice.hosts.local.discovery import find_gpus
from shadowprice.hosts.local.host import LocalHost
from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.reports.report import report
from shadowprice.hosts.reports.run import RunReader
from support.driver_process import Driver, wait_until, with_number, write_jobs
from support.paths import ROOT

pytestmark = pytest.mark.gpu

SCRIPT = ROOT / "examples" / "jobs" / "resnet.py"
# This process never touches CUDA: to a driver it would be somebody else on the GPU.
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
ITERATIONS = int(os.environ.get("GPU_TEST_ITERATIONS", "4000"))
"""Of each of two jobs; a minute on a GPU of 2023."""
JOBS = {"narrow": ("16", "1"), "wide": ("24", "2")}
"""Width and seed of two trainings of a ResNet-18."""
ROUND_S = 20.0
"""Several times as long as a training takes until its first step: PyTorch and CUDA need some 6 s."""
THRESHOLDS = "/".join(f"{ROUND_S * turns:g}" for turns in range(1, 9))
"""One for each turn, so that each training gives way to the other again and again."""
HEALTH = ("nvidia-smi", "--query-gpu=uuid,name,temperature.gpu", "--format=csv,noheader")


def options(name: str) -> list[str]:
    width, seed = JOBS[name]
    chosen = ["--width", width, "--seed", seed, "--device", "cuda", "--deterministic"]
    return [str(SCRIPT), *chosen, "--batch", "32", "--checkpoint-s", "4"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """Last checkpoints of the same trainings by themselves, without a scheduler."""
    folder = tmp_path_factory.mktemp("undisturbed")
    for name in JOBS:
        (folder / name).mkdir()
        subprocess.run(
            [sys.executable, *options(name), "--iterations", str(ITERATIONS)],
            cwd=folder / name,
            env=os.environ | ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=240,
        )
    return {name: checkpoint(folder / name / "checkpoints") for name in JOBS}


def checkpoint(folder: Path) -> dict[str, object]:
    """Step, losses as they were printed, parameters, momentum and generators of the last checkpoint."""
    import torch

    last, manifest, troubles = last_checkpoint(folder)
    assert last is not None
    assert troubles == []
    parameters, state = (
        torch.load(last / f"{name}.pt", weights_only=True, map_location="cpu")
        for name in ("parameters", "state")
    )
    return {
        "step": manifest["step"],
        "losses": (last / "losses.csv").read_text(),
        "parameters": parameters,
        "state": state,
    }


def same_bits(one: object, two: object) -> bool:
    """Whether two states are equal, to the bit."""
    import torch

    if isinstance(one, torch.Tensor):
        assert isinstance(two, torch.Tensor)
        return one.dtype == two.dtype and torch.equal(one, two)
    if isinstance(one, dict):
        assert isinstance(two, dict)
        return one.keys() == two.keys() and all(same_bits(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple):
        assert isinstance(two, list | tuple)
        return len(one) == len(two) and all(map(same_bits, one, two))
    return bool(one == two)


def run_driver(folder: Path) -> Driver:
    """Two trainings on the one GPU under las2d, which lets them take turns."""
    jobs = [
        {
            "name": name,
            "command": ["{python}", *options(name)],
            "env": ENVIRONMENT,
            "gpus": 1,
            "iterations": ITERATIONS,
            "throughput": 200,
            "model": name,
        }
        for name in JOBS
    ]
    driver = Driver(
        folder,
        write_jobs(folder / "jobs.yaml", jobs),
        f"las2d:thresholds_gpu_s={THRESHOLDS}",
        hosts="local",
        round_s=ROUND_S,
        limits={"grace_s": 30.0, "ttl_s": 30.0, "back_off_s": 0.5, "poll_s": 0.1},
        health_check=HEALTH,
    )
    return driver


def running_rank(state: Path) -> tuple[str, int] | None:
    """Job and process of a training that has made a few hundred steps in its lease and goes on."""
    for place in (state / "jobs").glob("*/leases/*-r0"):
        told, recorded = read_report(place), read_supervisor(place)
        goes_on = recorded is not None and read_exit(place) is None
        if goes_on and told.get("state") == "training" and told.get("steps", 0) > 100:
            assert recorded is not None
            return place.parents[1].name, int(recorded["command_pid"])
    return None


def test_two_trainings_take_turns_on_a_gpu_are_killed_and_are_the_same_to_the_bit(
    undisturbed: dict[str, dict[str, object]], tmp_path: Path
) -> None:
    driver = run_driver(tmp_path)
    state = driver.state
    try:
        driver.start()
        name, pid = wait_until(lambda: running_rank(state), 120.0)
        seen = {gpu.uuid: gpu.processes for gpu in find_gpus(None)}
        print(f"{name} runs as {pid}; nvidia-smi sees {seen}")
        with_number(pid, signal.SIGKILL)
        wait_until(lambda: len(leases(state)) >= 2, 120.0)
        wait_until(lambda: running_rank(state), 120.0)
        driver.kill()
        driver.start()
        assert driver.wait(400.0) == 0, driver.said()
    finally:
        driver.clean_up()
    counts = verify_ledger(state / "run.db")
    assert counts["leases"] >= 4
    preempted = Counter(
        event["job"]
        for event in events(state)
        if event["kind"] == "released" and event["data"]["reason"] == "stopped"
    )
    assert set(preempted) == set(JOBS), "each gave way to the other"
    for name, alone in undisturbed.items():
        turns = checkpoint(state / "jobs" / name / "checkpoints")
        assert turns["step"] == alone["step"] == ITERATIONS
        assert turns["losses"] == alone["losses"]
        assert same_bits(turns["parameters"], alone["parameters"])
        assert same_bits(turns["state"], alone["state"])
    with RunReader(state) as run:
        page = report(run)
    assert all(f">{name}<" in page for name in JOBS)
    (tmp_path / "report.html").write_text(page)


def events(state: Path) -> list[dict[str, Any]]:
    ledger = RunLedger.open(state / "run.db", readonly=True)
    try:
        return list(ledger.events())
    finally:
        ledger.close()


def leases(state: Path) -> set[tuple[str, int]]:
    return {(str(e["job"]), int(e["epoch"])) for e in events(state) if e["kind"] == "granted"}


def test_gpus_as_they_are_listed() -> None:
    gpus = find_gpus()
    assert gpus
    for gpu in gpus:
        assert re.fullmatch(r"(GPU|MIG)-[\w/-]+", gpu.uuid)
        assert gpu.gpu_type not in ("", "gpu")


@pytest.fixture
def stranger() -> Iterator[int]:
    """Process of nobody's run that computes on the first GPU."""
    code = "import torch, time; x = torch.ones(9, device='cuda'); print(x.sum().item(), flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"9.0\n"
        yield process.pid
        process.kill()


def test_a_gpu_that_others_compute_on_is_left_alone(stranger: int, tmp_path: Path) -> None:
    gpus = find_gpus()
    print(f"with process {stranger} on it: {gpus}")
    assert any(stranger in gpu.processes for gpu in gpus)
    if len(gpus) > 1:
        pytest.skip("with several GPUs the others are used")
    host = LocalHost(tmp_path, None, claims=DeviceClaims("test", scope="gpu-test"))
    try:
        with pytest.raises(HostError, match=f"is used by processes of others: .*{stranger}"):
            host.discover()
    finally:
        host.close()


def test_the_health_check_of_the_example_ends_with_0() -> None:
    assert shutil.which(HEALTH[0])
    done = subprocess.run(HEALTH, capture_output=True, text=True, check=True)
    print(done.stdout)
    assert len(done.stdout.splitlines()) == len(find_gpus())
