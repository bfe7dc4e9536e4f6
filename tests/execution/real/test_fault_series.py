"""Short campaigns of faults: drawn from a seed alone, and a broken promise is told, not raised."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import fault_series
from support.cluster_faults import RAY_KINDS, SLURM_KINDS
from support.fault_campaign import Campaign, Outcome
from support.fault_kinds import KINDS
from support.fault_series import Series, drawn, run_one
from support.run_clusters import HOSTS


@given(st.integers(0, 10**6), st.integers(0, 10**4), st.sampled_from(HOSTS), st.booleans())
def test_a_run_follows_from_its_seed(seed: int, number: int, host: str, mounted: bool) -> None:
    campaign = drawn(seed, number, host, mounted=mounted)
    assert campaign == drawn(seed, number, host, mounted=mounted)
    assert 1 <= campaign.faults == len(set(campaign.kinds)) <= 3
    assert mounted or "full disk" not in campaign.kinds
    others = (RAY_KINDS if host != "ray" else {}) | (SLURM_KINDS if host != "slurm" else {})
    assert not others.keys() & set(campaign.kinds)
    # A round of steps, and what a full disk refuses to keep.
    steps = campaign.allowed_loss["job-0"] - campaign.round_s * 1e3 / campaign.step_ms
    assert (steps > 0) == any(kind.startswith("full") for kind in campaign.kinds)


@pytest.mark.parametrize("host", HOSTS)
def test_every_kind_of_fault_is_drawn(host: str) -> None:
    found = {kind for k in range(400) for kind in drawn(1, k, host, mounted=True).kinds}
    own = {"local": {}, "ray": RAY_KINDS, "slurm": SLURM_KINDS}[host]
    assert found == set(KINDS) | set(own)


@pytest.mark.parametrize("error", [AssertionError("two held a device"), OSError("no space")])
def test_a_broken_promise_is_told_and_the_series_goes_on(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(campaign: Campaign, *_: object, **more: object) -> Outcome:
        raise error

    monkeypatch.setattr(fault_series, "run_campaign", broken)
    result = run_one(1, 2, "local", tmp_path, mounted=False)
    assert result.broken.startswith(f"{type(error).__name__}: {error}")
    assert f"BROKEN by {result.campaign.kinds[0]}" in result.line()
    assert Series([result]).broken == [result]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
def test_a_run_of_a_series(tmp_path: Path) -> None:
    result = run_one(21, 17, "local", tmp_path, mounted=False)
    assert result.broken == ""
    assert result.outcome.faults.total() + len(result.outcome.unthrown) == result.campaign.faults
    assert Series([result]).most_lost() <= 1.0
    assert list(tmp_path.iterdir()) == []
