"""Faults thrown at real runs; the campaign of 200 is ``benchmarks/fault_campaign.py``."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from shadowprice.execution.job import commit, last_checkpoint
from support.fault_campaign import Campaign, load_module, run_campaign, same_as_undisturbed
from support.fault_kinds import KINDS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")

SLOW_KINDS = {"driver away longer than the TTL", "stale worker goes on", "full disk"}
"""They have to wait for time-outs, or for root."""


@pytest.mark.timeout(180)
def test_a_short_campaign(tmp_path: Path) -> None:
    kinds = tuple(kind for kind in KINDS if kind not in SLOW_KINDS)
    campaign = Campaign(
        jobs=4,
        faults=12,
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
    assert sum(outcome.faults.values()) == 12
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
    outcome = run_campaign(campaign, tmp_path, within_s=110.0)
    assert outcome.stale == outcome.fenced == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_longer_campaign(tmp_path: Path) -> None:
    outcome = run_campaign(Campaign(8, 60, seed=2, iterations=1100), tmp_path, within_s=850.0)
    assert sum(outcome.faults.values()) == 60
    assert outcome.fenced == outcome.stale


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
