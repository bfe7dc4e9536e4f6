"""Jobs with graphs on real hosts: every process is the replica that the policy placed where it runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import yaml

from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.reports.results import results
from support.mapped_runs import NETWORK, graph
from support.paths import ROOT
from support.ray_cluster import running_cluster
from support.slurm_cluster import needs_slurm, slurm_cluster

has_ray = importlib.util.find_spec("ray") is not None
has_torch = importlib.util.find_spec("torch") is not None
needs_ray = pytest.mark.skipif(not has_ray, reason="Ray is not installed")
needs_torch = pytest.mark.skipif(not has_torch, reason="PyTorch is not installed")

SCRIPT = str(ROOT / "examples/jobs/stages.py")
TORCHRUN = ["-m", "torch.distributed.run"]


def ran(path: Path, hosts: str, launcher: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Grants of a job of three replicas on two nodes, and the lines that its processes printed."""
    job = {
        "name": "translation",
        "command": ["{python}", *launcher, SCRIPT, "--step-ms", "2"],
        "env": {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        "iterations": 40,
        "graph": graph(2, 1),
    }
    (path / "jobs.yaml").write_text(yaml.safe_dump({"network": NETWORK, "jobs": [job]}))
    limits = Limits(poll_s=0.05)
    settings = Settings(
        path / "jobs.yaml", "asrpt", hosts, path / "state", round_s=0.0, limits=limits
    )
    assert execute(settings).all_finished
    verify_ledger(path / "state/run.db")
    ledger = RunLedger.open(path / "state/run.db", readonly=True)
    granted = [event["data"] for event in ledger.events() if event["kind"] == "granted"]
    ledger.close()
    logs = sorted((path / "state/jobs/translation/leases").glob("*/output.log"))
    lines = [line for log in logs for line in log.read_text().splitlines() if " runs " in line]
    return granted, lines


def check_one_process_a_node(path: Path, hosts: str) -> None:
    """A command that is no launcher runs all replicas of its node; nodes are ranks in their order."""
    (granted,), lines = ran(path, hosts, [])
    here: dict[str, list[str]] = {}
    for device, stage, number in granted["replicas"]:
        here.setdefault(granted["node_of"][device], []).append(f"{stage} {number}")
    assert len(here) == 2
    assert sorted(lines) == [
        f"rank {rank} runs {', '.join(replicas)}" for rank, replicas in enumerate(here.values())
    ]


def check_torchrun(path: Path, hosts: str) -> None:
    """Ranks of torchrun are those of the replicas, over all nodes."""
    (granted,), lines = ran(path, hosts, TORCHRUN)
    assert granted["ranks"] == 2
    assert sorted(lines) == [
        f"rank {rank} runs {stage} {number}"
        for rank, (_, stage, number) in enumerate(granted["replicas"])
    ]


def test_on_this_machine(tmp_path: Path) -> None:
    check_one_process_a_node(tmp_path, "local:2x2")
    assert results(tmp_path / "state").drift is not None


@needs_torch
@pytest.mark.slow
def test_torchrun_on_this_machine(tmp_path: Path) -> None:
    check_torchrun(tmp_path, "local:2x2")


@needs_ray
@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(300)
def test_on_ray(tmp_path: Path) -> None:
    with running_cluster({"n0": "A100", "n1": "A100"}, gpus=2) as cluster:
        for check, name in ((check_one_process_a_node, "plain"), (check_torchrun, "torchrun")):
            if check is check_one_process_a_node or has_torch:
                (tmp_path / name).mkdir()
                check(tmp_path / name, f"ray:{cluster.address}")


@pytest.mark.slurm
@pytest.mark.slow
@needs_slurm[1]
@pytest.mark.timeout(300)
def test_on_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "cluster"
    root.mkdir()
    with slurm_cluster(root) as cluster, monkeypatch.context() as patch:
        for name, value in cluster.environment.items():
            patch.setenv(name, value)
        for check, name in ((check_one_process_a_node, "plain"), (check_torchrun, "torchrun")):
            if check is check_one_process_a_node or has_torch:
                (tmp_path / name).mkdir()
                check(tmp_path / name, "slurm:first")
