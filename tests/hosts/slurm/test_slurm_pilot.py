"""The pilot: the script's text, and one real allocation with a run inside."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from shadowprice.errors import InputError
from shadowprice.hosts.slurm.pilot import main, sbatch_options, script
from support.paths import ROOT
from support.slurm_cluster import needs_slurm, slurm_cluster


def test_script_is_a_shell_script(tmp_path: Path) -> None:
    text = script(tmp_path / "a 'b", ("jobs; touch owned.yaml", "--policy", "$(id)"))
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "'jobs; touch owned.yaml' --policy '$(id)' --state" in text
    assert '--hosts "slurm:$SLURM_JOB_ID"' in text


def test_options_ask_for_notice_and_no_requeue() -> None:
    asked = sbatch_options(
        2, "4", "8:00:00", 16, "gpu,spare,account=lab,exclude=n1,n[3-5,7],qos=low"
    )
    for wanted in (
        "--no-requeue",
        "--nodes=2",
        "--gres=gpu:4",
        "--time=8:00:00",
        "--cpus-per-task=16",
        "--signal=B:USR1@120",
    ):
        assert wanted in asked
    assert asked[-4:] == [
        "--partition=gpu,spare",
        "--account=lab",
        "--exclude=n1,n[3-5,7]",
        "--qos=low",
    ]
    assert sbatch_options(1, "", "", 0, "account=lab,")[-1] == "--account=lab"
    spaced = sbatch_options(1, "", "", 0, " gpu , spare, account=lab, exclude=n1, n2 ,")
    assert spaced[-3:] == ["--partition=gpu,spare", "--account=lab", "--exclude=n1,n2"]
    assert "--no-kill" in asked
    alone = sbatch_options(1, "", "", 0, "")
    assert "--exclusive" in alone
    assert not [each for each in alone if each.startswith(("--partition", "--gres", "--time"))]


@pytest.mark.parametrize("asked", ["export=ALL,FOO=1", "gpu,account=lab, export=NONE"])
def test_a_value_that_would_be_cut_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: str
) -> None:
    with pytest.raises(InputError, match=r"--partition: has export="):
        sbatch_options(1, "", "", 0, asked)
    assert main(["--partition", asked, "--state", str(tmp_path / "s"), "--", "jobs.yaml"]) == 2
    assert re.fullmatch(r"error: --partition: has export=.+\n", capsys.readouterr().err)
    assert not (tmp_path / "s").exists()


def test_prints_without_submitting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--print", "--state", str(tmp_path / "s"), "--", "jobs.yaml"]) == 0
    assert capsys.readouterr().out.startswith("#!/bin/bash\n")
    assert not (tmp_path / "s").exists()


@pytest.mark.slurm
@pytest.mark.timeout(240)
class TestPilot:
    pytestmark = needs_slurm

    def test_runs_jobs_and_ends_when_told(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """What Slurm refuses is one line; the notice comes while a job runs, which stays resumable."""
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
            for odd in (["--gpus", "absent:1"], ["--time", "soon"], ["--partition", "gpu,nice=x"]):
                assert main([*odd, "--state", str(state), "--", "jobs.yaml"]) == 2
                printed = capsys.readouterr().err
                assert re.fullmatch(
                    r"error: slurm: sbatch exited with \d+: sbatch: error: .+\n", printed
                )
            arguments = ["--gpus", "v100:2", "--state", str(state), "--", str(jobs)]
            assert main([*arguments, "--policy", "srtf", "--round", "2"]) == 0
            logs = state / "jobs"
            wait(lambda: "up" in text(logs, "long"), 120.0, state)
            assert "sees 0,1\n" in text(logs, "quick")
            cluster.run("scancel", "--batch", "--signal=USR1", "--user=root")
            over = "JobID:|,State:|,exit_code:|"
            wait(lambda: not cluster.run("squeue", "-h", "-o", "%i"), 60.0, state)
            found = cluster.run("squeue", "-h", "-t", "all", "-O", over)
        assert f"|FAILED|{130 << 8}|" in found
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
