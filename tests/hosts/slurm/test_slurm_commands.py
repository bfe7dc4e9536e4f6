"""Slurm's answers as records, and what is refused: without a Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from shadowprice.errors import HostError
from shadowprice.hosts.registry import open_host
from shadowprice.hosts.slurm.commands import gpus_of, nodes_of_lines, outside_jobs

PROGRAMS = ("sbatch", "squeue", "sinfo", "scontrol", "srun")


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("gpu:v100:2", {"v100": 2}),
        ("gpu:v100:2(S:0-1),shard:8", {"v100": 2}),
        ("gpu:4", {"gpu": 4}),
        ("gpu:a100:1,gpu:v100:3", {"a100": 1, "v100": 3}),
        ("gpu:v100:0(IDX:N/A)", {"v100": 0}),
        ("gres/gpu:k80=2", {"k80": 2}),
        ("shard:8,mps:100", {}),
        ("(null)", {}),
        ("", {}),
    ],
)
def test_gpus_of_gres(gres: str, gpus: dict[str, int]) -> None:
    assert gpus_of(gres) == gpus


@pytest.mark.parametrize(
    ("state", "answers"),
    [
        *(("idle", True), ("mixed", True), ("allocated+drain", True), ("draining", True)),
        *(("allocated*", False), ("down*", False), ("down", False), ("unknown", False)),
    ],
)
def test_nodes_in_the_fixed_format(state: str, answers: bool) -> None:
    line = f"n0 |{state} |4000 |10.0.0.1 |gpu:v100:2(S:0-1) |\n"
    node = nodes_of_lines(line + "\nno such line\n")["n0"]
    assert (node.memory_mb, node.address, node.gpus) == (4000, "10.0.0.1", {"v100": 2})
    assert node.answers == answers


def test_slurm_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match=rf"{', '.join(PROGRAMS)} not found on PATH.*slurm-client"):
        open_host("slurm", tmp_path / "state", "run")


def faked(folder: Path, patch: pytest.MonkeyPatch, **programs: str) -> None:
    """Slurm's commands as shell scripts; those that are not told do nothing."""
    for name in PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\n{programs.get(name, 'exit 0')}\n")
        (folder / name).chmod(0o755)
    patch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    patch.delenv("SLURM_JOB_ID", raising=False)


@pytest.mark.parametrize("address", ["slurm", "slurm:gpu", "slurm:gpu,time=1:00", "slurm:-1"])
def test_a_run_needs_an_allocation(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faked(tmp_path, monkeypatch)
    with pytest.raises(HostError, match=r"no number of a job.*slurm\.pilot.*salloc"):
        open_host(address, tmp_path / "state", "run")


def test_slurm_without_a_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    faked(tmp_path, monkeypatch, squeue="echo 'error: Unable to contact' >&2; exit 1")
    host = open_host("slurm:7", tmp_path / "state", "run")
    with pytest.raises(HostError, match="squeue exited with 1: error: Unable to contact"):
        host.discover()


@pytest.mark.parametrize(
    ("states", "gres", "told"),
    [
        ("DOWN", "gpu:v100:1", "no node of job 7 answers: n0"),
        ("IDLE", "gpu:a100:1,gpu:v100:1", "GPUs of types a100, v100, expected one type a node"),
    ],
)
def test_nodes_that_cannot_be_used(
    states: str, gres: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faked(
        tmp_path,
        monkeypatch,
        squeue="echo '7|RUNNING|n0|'",
        scontrol="echo n0",
        sinfo=f"echo 'n0|{states}|4000|n0|{gres}|'",
        srun="""echo '["n0", "0,1", 8, true]'""",
    )
    with pytest.raises(HostError, match=told):
        open_host("slurm:7", tmp_path / "state", "run").discover()


def test_a_job_of_slurm_makes_no_options_of_the_steps_that_are_started_in_it() -> None:
    told = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "3", "SLURM_CONF": "/c", "PATH": "/bin"}
    assert outside_jobs(told) == {"SLURM_CONF": "/c", "PATH": "/bin"}
