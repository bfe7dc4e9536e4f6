"""Whole runs on hosts of this machine: a node whose check fails is drained, CPUs of the other are shared."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import yaml

from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.log.execution_log import verify_ledger
from support.ray_cluster import running_cluster
from support.slurm_cluster import needs_slurm, slurm_cluster

has_ray = importlib.util.find_spec("ray") is not None
ASKED = "${SLURM_CPUS_PER_TASK-none} ${SLURM_MEM_PER_NODE-none}"


def printed(path: Path, hosts: str, lame: str, *, cpus: float, most_s: float) -> list[str]:
    """Output of two jobs that ask for so many CPUs each, where the check of a node fails."""
    command = f'echo "$SHADOWPRICE_CPUS {ASKED}"; sleep 0.3'
    jobs = [
        {"name": name, "shell": command, "iterations": 1, "cpus": cpus, "memory_gb": 0.4}
        for name in "ab"
    ]
    (path / "jobs.yaml").write_text(yaml.safe_dump({"jobs": jobs}))
    check = f'case "$SHADOWPRICE_DEVICES" in {lame}/*) echo ECC; exit 3;; esac'
    settings = Settings(
        path / "jobs.yaml",
        "fifo",
        hosts,
        path / "state",
        round_s=0.25,
        health_check=("/bin/sh", "-c", check),
    )
    assert execute(settings).all_finished
    verify_ledger(path / "state/run.db")
    ledger = RunLedger.open(path / "state/run.db", readonly=True)
    told = list(ledger.events())
    ledger.close()
    drained = [event["data"]["why"] for event in told if event["kind"] == "quarantined"]
    assert drained
    assert set(drained) == {"drained: health check sh ended with 3: ECC"}
    began = {(event["job"], event["epoch"]) for event in told if event["kind"] == "running"}
    grants = [e for e in told if e["kind"] == "granted"]
    ran = [
        e for e in grants if (e["job"], e["epoch"]) in began and lame not in e["data"]["amounts"]
    ]
    assert {event["job"] for event in ran} == {"a", "b"}
    # There is room for the CPUs of one of them.
    first = ran[0]["job"], ran[0]["epoch"]
    ended_s = [
        e["time_s"] for e in told if e["kind"] == "released" and (e["job"], e["epoch"]) == first
    ]
    assert ended_s[0] <= ran[1]["time_s"] < most_s
    output = {
        event["job"]: path / f"state/jobs/{event['job']}/leases/e{event['epoch']}-r0/output.log"
        for event in ran
    }
    return [output[name].read_text().strip() for name in "ab"]


def test_on_this_machine(tmp_path: Path) -> None:
    hosts = "local:2x2,cpus=6,memory_gb=2"
    assert printed(tmp_path, hosts, "localhost", cpus=2, most_s=60) == ["2 none none"] * 2


@pytest.mark.skipif(not has_ray, reason="Ray is not installed")
@pytest.mark.ray
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(240)
def test_on_ray(tmp_path: Path) -> None:
    with running_cluster({"n0": "A100", "n1": "A100"}, gpus=2) as cluster:
        found = printed(tmp_path, f"ray:{cluster.address}", "n0", cpus=2, most_s=120)
        assert found == ["2 none none"] * 2


@pytest.mark.slurm
@needs_slurm[1]
@pytest.mark.timeout(240)
def test_on_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """8 CPUs a node."""
    root = tmp_path / "cluster"
    root.mkdir()
    with slurm_cluster(root) as cluster, monkeypatch.context() as patch:
        for name, value in cluster.environment.items():
            patch.setenv(name, value)
        found = printed(tmp_path, f"slurm:{cluster.allocate()}", "node-0", cpus=4.5, most_s=120)
        assert found == ["4.5 none none"] * 2
