"""The pilot: the script's text, and one real allocation with a run inside."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shadowprice.errors import HostError
from shadowprice.hosts.slurm.pilot import Pilot, main, placed
from support.paths import ROOT
from support.slurm_cluster import needs_slurm, slurm_cluster


def test_script_is_a_shell_script(tmp_path: Path) -> None:
    pilot = Pilot(tmp_path / "a 'b", ("jobs; touch owned.yaml", "--policy", "$(id)"), 2, "v100:4")
    done = subprocess.run(
        ["bash", "-n"], input=pilot.script(), text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "'jobs; touch owned.yaml' --policy '$(id)' --state" in pilot.script()
    assert '--hosts "slurm:$SLURM_JOB_ID"' in pilot.script()


def test_options_ask_for_notice_and_no_requeue() -> None:
    options = tuple(placed("gpu,account=lab"))
    pilot = Pilot(Path("/s"), ("j.yaml",), 2, "4", "8:00:00", 16, options=options)
    asked = pilot.sbatch_options()
    for wanted in (
        "--no-requeue",
        "--nodes=2",
        "--gres=gpu:4",
        "--time=8:00:00",
        "--signal=B:USR1@120",
    ):
        assert wanted in asked
    assert asked[-2:] == ["--partition=gpu", "--account=lab"]
    assert "--no-kill" in asked
    assert "--exclusive" in Pilot(Path("/s"), ("j.yaml",)).sbatch_options()


@pytest.mark.parametrize("gpus", ["v100:", "0", "v100:2,k80:1", "$(id)", "-1"])
def test_malformed_gpus_are_refused(
    gpus: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(HostError, match="expected COUNT or TYPE:COUNT"):
        Pilot(Path("/s"), (), gpus=gpus)
    assert main([f"--gpus={gpus}", "--state", str(tmp_path), "--", "jobs.yaml"]) == 2
    assert capsys.readouterr().err.startswith("error: slurm pilot: gpus")


@pytest.mark.parametrize("address", ["gpu,--wrap=x", "a b", "gpu,cpu", "gpu,nice=3", "-p"])
def test_malformed_places_are_refused(address: str) -> None:
    with pytest.raises(HostError, match="expected PARTITION"):
        placed(address)


def test_prints_without_submitting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--print", "--state", str(tmp_path / "s"), "--", "jobs.yaml"]) == 0
    assert capsys.readouterr().out.startswith("#!/bin/bash\n")
    assert not (tmp_path / "s").exists()


@pytest.mark.slurm
@pytest.mark.timeout(240)
class TestPilot:
    pytestmark = needs_slurm

    def test_runs_jobs_and_ends_when_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One job ends by itself; the notice comes while another runs, which stays resumable."""
        jobs, state, root = tmp_path / "jobs.yaml", tmp_path / "state", tmp_path / "cluster"
        root.mkdir()
        jobs.write_text(
            "jobs:\n"
            "- {name: quick, command: [sh, -c, 'echo sees $CUDA_VISIBLE_DEVICES'], gpus: 2, iterations: 1}\n"
            "- {name: long, command: [sh, -c, 'echo up; exec sleep 600'], gpus: 1, iterations: 100000}\n"
        )
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        with slurm_cluster(root) as cluster:
            for name, value in cluster.environment.items():
                monkeypatch.setenv(name, value)
            arguments = ["--gpus", "v100:2", "--state", str(state), "--", str(jobs)]
            assert main([*arguments, "--policy", "srtf", "--round", "2"]) == 0
            logs = state / "jobs"
            wait(lambda: "up" in text(logs, "long"), 120.0, state)
            assert "sees 0,1\n" in text(logs, "quick")
            cluster.run("scancel", "--batch", "--signal=USR1", "--user=root")
            over = "JobID:|,State:|,exit_code:|"
            wait(lambda: not cluster.run("squeue", "-h", "-o", "%i"), 60.0, state)
            found = cluster.run("squeue", "-h", "-t", "all", "-O", over).split("|")
        assert found[1:3] == ["FAILED", str(130 << 8)]
        assert "stopped: everything is kept" in (state / "pilot.log").read_text()
        assert (state / "pilot.log").stat().st_mode & 0o077 == 0


def text(jobs: Path, job: str) -> str:
    return "".join(path.read_text() for path in sorted(jobs.glob(f"{job}/leases/*/output.log")))


def wait(condition: Callable[[], object], limit_s: float, state: Path) -> None:
    limit = time.monotonic() + limit_s
    while not condition():
        log = state / "pilot.log"
        assert time.monotonic() < limit, log.read_text() if log.exists() else "no log"
        time.sleep(0.2)
