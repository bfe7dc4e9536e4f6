"""Faults thrown at real runs; the campaign of 200 is ``benchmarks/fault_campaign.py``."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shadowprice.hosts.job import commit, last_checkpoint
from shadowprice.hosts.live.checkpoints import raise_fence
from support.driver_process import wait_until
from support.fault_campaign import Campaign, load_module, run_campaign, same_as_undisturbed
from support.fault_kinds import KINDS, stale_worker
from support.fault_scene import Scene, Target
from support.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")

SLOW_KINDS = {"driver away longer than the TTL", "stale worker goes on", "full disk"}
"""They have to wait for time-outs, or for root."""


@pytest.mark.timeout(180)
def test_a_short_campaign(tmp_path: Path) -> None:
    kinds = tuple(kind for kind in KINDS if kind not in SLOW_KINDS)
    campaign = Campaign(
        jobs=4,
        faults=13,
        seed=1,
        iterations=600,
        step_ms=10.0,
        slots=3,
        round_s=1.0,
        every_s=0.7,
        kinds=kinds,
        hang_s=2.0,
        grace_s=2.0,
    )
    outcome = run_campaign(campaign, tmp_path, within_s=170.0)
    assert sum(outcome.faults.values()) == 13
    assert set(outcome.faults) == set(kinds)
    assert outcome.counts["drivers"] >= 2
    assert outcome.counts["leases"] >= 10


@pytest.mark.timeout(120)
def test_a_stale_worker_is_refused(tmp_path: Path) -> None:
    campaign = Campaign(
        jobs=2,
        faults=1,
        seed=1,
        iterations=250,
        slots=3,
        round_s=1.0,
        every_s=1.0,
        kinds=("stale worker goes on",),
        hang_s=2.0,
        grace_s=0.5,
    )
    outcome = run_campaign(campaign, tmp_path, within_s=110.0)  # asserts that no commit was late
    assert outcome.stale == 1


WORKER = """
import sys
from shadowprice.hosts.job import Lease
with Lease() as lease:
    print("trains", flush=True)
    sys.stdin.readline()
    lease.step = 1
    lease.checkpoint(lambda folder: (folder / "state").write_text("of step 1"))
"""
"""Tries to commit when it is told to, and not before: as slow as a test wants it."""


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Target]]:
    """A worker of epoch 1 that trains, with a process in place of its supervisor."""
    job = tmp_path / "job"
    directory = job / "leases" / "e1-r0"
    directory.mkdir(parents=True)
    raise_fence(job, 1)
    lease = {"LEASE": directory, "JOB_DIRECTORY": job, "EPOCH": 1, "ITERATIONS": 2}
    given = {f"SHADOWPRICE_{name}": str(value) for name, value in lease.items()}
    run = subprocess.Popen(
        [sys.executable, "-c", WORKER],
        env=os.environ | given | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    supervisor = subprocess.Popen(["sleep", "600"])
    assert run.stdout is not None
    assert run.stdout.readline() == "trains\n"
    with run, supervisor:
        yield run, Target(job, 1, directory, supervisor.pid, run.pid)
        run.kill()
        supervisor.kill()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The scene's clock, which stands still unless ``now_s`` is set."""
    clock = SimpleNamespace(now_s=0.0)
    clock.monotonic = lambda: clock.now_s
    monkeypatch.setattr("support.fault_scene.time", clock)
    return clock


def scene_of(target: Target, monkeypatch: pytest.MonkeyPatch) -> Scene:
    driver: Any = SimpleNamespace(state=target.job)
    monkeypatch.setattr(Scene, "targets", lambda self: [target])
    return Scene(driver, random.Random(0), away_s=0.0)


def test_a_stale_worker_is_refused_however_late_it_commits(
    worker: tuple[subprocess.Popen[str], Target],
    clock: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, target = worker
    scene = scene_of(target, monkeypatch)
    assert stale_worker(scene)
    clock.now_s = 1e3
    scene.tend()  # nobody else has the job yet
    assert (scene.stale, len(scene.later)) == (0, 1)
    raise_fence(target.job, 2)
    for clock.now_s in (2e3, 1e4, 1e5):  # it goes on, and makes no progress for a day
        scene.tend()
        assert target.lives()
        assert (scene.stale, len(scene.later)) == (0, 1)
    assert run.communicate("\n")[0] == ""
    clock.now_s = 2e5
    scene.tend()
    assert (scene.stale, scene.fenced, scene.later) == (1, 1, [])
    assert last_checkpoint(target.job / "checkpoints") == (None, {}, [])


def test_a_stale_worker_that_dies_with_its_node_is_not_counted(
    worker: tuple[subprocess.Popen[str], Target],
    clock: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, target = worker
    scene = scene_of(target, monkeypatch)
    assert stale_worker(scene)
    raise_fence(target.job, 2)
    clock.now_s = 1e3
    scene.tend()
    scene.killed |= scene.stopped
    run.kill()
    run.wait()
    clock.now_s = 2e3
    scene.tend()
    assert (scene.stale, scene.fenced, scene.later) == (0, 0, [])


COMMITS = "import fcntl, time; lock = open('fence.lock', 'a'); fcntl.flock(lock, 2); print(); time.sleep(60)"


def test_a_worker_that_sleeps_while_it_commits_is_woken(
    tmp_path: Path, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "leases" / "e1-r0"
    directory.mkdir(parents=True)
    (directory / "report.json").write_text('{"step": 1}')
    raise_fence(tmp_path, 1)
    command = [sys.executable, "-c", COMMITS]
    with (
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as run,
        subprocess.Popen(["sleep", "60"]) as supervisor,
    ):
        assert run.stdout is not None
        run.stdout.readline()
        target = Target(tmp_path, 1, directory, supervisor.pid, run.pid)
        scene = scene_of(target, monkeypatch)
        try:
            assert not stale_worker(scene)
            assert (scene.later, scene.stopped, scene.stale) == ([], set(), 0)
            wait_until(target.runs)
        finally:
            run.kill()
            supervisor.kill()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_longer_campaign(tmp_path: Path) -> None:
    outcome = run_campaign(Campaign(8, 60, seed=2, iterations=1100), tmp_path, within_s=850.0)
    assert sum(outcome.faults.values()) == 60


def test_a_difference_in_one_bit_is_found(tmp_path: Path) -> None:
    campaign = Campaign(jobs=1, faults=0, seed=1, iterations=40, step_ms=1.0, round_s=1.0)
    run_campaign(campaign, tmp_path, within_s=60.0)
    job, training = tmp_path / "state" / "jobs" / "job-0", load_module(tmp_path / "mlp.py")
    last, manifest, _ = last_checkpoint(job / "checkpoints")
    assert last is not None
    changed = training.Training(0, 8)
    changed.load(last)
    about = {key: manifest[key] for key in ("step", "seconds")}
    commit(job / "checkpoints", changed.save, about | {"epoch": 98})
    same_as_undisturbed(campaign, job, training, 0)
    one = changed.parameters["second"][0, 0]
    changed.parameters["second"][0, 0] = np.nextafter(one, 1.0)
    commit(job / "checkpoints", changed.save, about | {"epoch": 99})
    with pytest.raises(AssertionError, match="second"):
        same_as_undisturbed(campaign, job, training, 0)
