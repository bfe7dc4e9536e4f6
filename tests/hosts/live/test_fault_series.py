"""Short campaigns of faults: drawn from a seed alone, and a broken promise is told, not raised."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import fault_series
from support import slurm_cluster as slurm_support
from support.cluster_faults import RAY_KINDS, SLURM_KINDS
from support.driver_process import wait_until
from support.fault_campaign import Campaign, Outcome, Strike
from support.fault_kinds import KINDS
from support.fault_record import page
from support.fault_series import RunResult, Series, drawn, run_one, run_series
from support.run_clusters import HOSTS
from support.slurm_cluster import missing, slurm_cluster


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
    assert f"BROKEN by no fault: {result.broken}" in result.line()
    assert Series([result]).broken == [result]


def result_of(number: int, *strikes: Strike, lost: int = 0, broken: str = "") -> RunResult:
    """A run as the series tells of it."""
    campaign = drawn(1, number, "local", mounted=False)
    counts = {"leases": 5, "most_lost": lost, "jobs": campaign.jobs, "drivers": 1, "steps_lost": 9}
    return RunResult(number, campaign, Outcome(list(strikes), 9.0, counts), broken, 2.5)


def test_the_page_tells_what_was_done_and_what_it_cost() -> None:
    killed = Strike(1.25, "SIGKILL command", "job-1 lease 2")
    away = Strike(3.0, "driver away longer than the TTL", "driver")
    first, second = result_of(3, killed, away, lost=20), result_of(4, killed, lost=10)
    series = Series([first, second], 61.0)
    rounds = {
        each.number: each.outcome.counts["most_lost"] * 0.02 / each.campaign.round_s
        for each in series.results
    }
    assert series.most_lost("driver away longer than the TTL") == rounds[3]
    text = page(series, "local", 1, "python x.py")
    most = max(rounds.values())
    assert f"| SIGKILL command | 2 | {most:.2f} |" in text
    assert f"| driver away longer than the TTL | 1 | {rounds[3]:.2f} |" in text
    assert "SIGKILL command (job-1 lease 2, 1.2 s); driver away" in text
    assert (
        f"2 runs on local, 3 faults, seed 1: 61 s; 10 leases of {series.total('jobs')} jobs" in text
    )
    assert "0 runs broke a promise" in text
    assert "BROKEN" not in text
    assert "load 2.5 to 2.5" in text
    told = page(
        Series([result_of(5, broken="AssertionError: two | held\na device")]), "ray", 1, "x"
    )
    assert "1 runs broke a promise" in told
    assert "BROKEN: AssertionError: two / held |" in told


def _exits(*_: object) -> None:
    sys.exit(3)


def _one_result(seed: int, host: str, folder: Path, mounted: bool, waiting: Any, done: Any) -> None:
    while (number := waiting.get()) is not None:
        done.put(result_of(number))


def test_a_worker_that_dies_ends_the_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []

    def series(work: Any) -> Series:
        monkeypatch.setattr(fault_series, "_carry_out", work)
        return run_series(
            1,
            [4, 3],
            "local",
            tmp_path,
            mounted=False,
            parallel=1,
            tell=lambda result, so_far: told.append(len(so_far.results)),
        )

    assert [result.number for result in series(_one_result).results] == [3, 4]
    assert told == [1, 2]
    with pytest.raises(RuntimeError, match="a process of the campaign ended with 3"):
        series(_exits)


@pytest.mark.slurm
@pytest.mark.skipif(bool(missing()), reason=missing() or "-")
@pytest.mark.timeout(60)
def test_nodes_that_slurm_closed_are_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_support, "ADMINISTRATOR_S", 0.2)
    monkeypatch.setattr(slurm_support, "ADMINISTRATOR_LOOKS_S", 0.2)
    with slurm_cluster(tmp_path) as cluster:
        for name in ("n0", "n1"):
            reason = (f"NodeName={name}", "State=DRAIN", "Reason=maintenance")
            cluster.run("scontrol", "update", *reason)
        assert cluster.idle() == 2

        def opened() -> bool:
            cluster.tend()
            return cluster.idle() == 4

        wait_until(opened, 20.0)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
def test_a_run_of_a_series(tmp_path: Path) -> None:
    result = run_one(21, 17, "local", tmp_path, mounted=False)
    assert result.broken == ""
    assert result.outcome.faults.total() + len(result.outcome.unthrown) == result.campaign.faults
    assert Series([result]).most_lost() <= 1.0
    assert list(tmp_path.iterdir()) == []
