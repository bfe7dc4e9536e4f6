"""Jobs that come while a driver runs: as if they had been known, and through the same ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.log.execution_log import verify_ledger
from support.fake_queue import FakeQueue
from support.fake_run import FakeRun, events

POLICIES = (
    "fifo",
    "srtf",
    "las2d",
    "gavel:max_min_fairness",
    "gavel:max_min_fairness:aware=true,packed=true",
)


def entry(iterations: int, gpus: int, model: str, weight: float) -> dict[str, Any]:
    about = {"command": ["true"], "iterations": iterations, "gpus": gpus, "throughput": 10}
    return about | {"model": model, "weight": weight}


def named(plan: list[Any]) -> list[Any]:
    return [(time_s, {"name": f"j{k}", **job}) for k, (time_s, job) in enumerate(plan)]


PLANS = st.lists(
    st.tuples(
        # Quarters of a second, at which the virtual driver looks.
        st.integers(0, 120).map(lambda quarters: quarters / 4.0),
        st.builds(
            entry,
            st.integers(5, 200),
            st.integers(1, 2),
            st.sampled_from(["", "m"]),
            st.sampled_from([1.0, 2.0]),
        ),
    ),
    min_size=1,
    max_size=4,
).map(named)


def grants(ledger: RunLedger) -> list[tuple[float, str, int, list[str]]]:
    return [
        (each["time_s"], each["job"], each["epoch"], each["data"]["devices"])
        for each in events(ledger, "granted")
    ]


@settings(max_examples=4)
@given(
    PLANS,
    st.sampled_from(POLICIES),
    st.sampled_from([0.0, 4.0]),
    st.sampled_from([None, 0.8]),
    st.data(),
)
def test_a_queue_whose_driver_is_killed_anywhere_loses_no_job_and_decides_as_it_did(
    tmp_path_factory: pytest.TempPathFactory,
    plan: list[Any],
    policy: str,
    round_s: float,
    share: float | None,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("queue")
    kills = data.draw(st.lists(st.integers(-60, 60).filter(bool), max_size=3))
    run = FakeQueue(folder / "k", (), policy, round_s, share, plan=plan)
    run.kill_at_write = sorted(kills, key=abs)
    ledger = run.execute()
    assert set(run.states(ledger)) == set(run.added)
    assert set(run.states(ledger).values()) == {"finished"}
    assert len(run.added) == len(plan)
    verify_ledger(ledger.path)
    ledger.close()


@settings(max_examples=4)
@given(PLANS, st.sampled_from(POLICIES))
def test_jobs_of_a_queue_run_as_those_of_a_file_with_the_same_arrivals(
    tmp_path_factory: pytest.TempPathFactory, plan: list[Any], policy: str
) -> None:
    folder = tmp_path_factory.mktemp("both")
    plan = [(time_s + 0.25, job) for time_s, job in plan]  # between the rounds
    queued = FakeQueue(folder / "q", (), policy, 4.0, plan=plan)
    ledger = queued.execute()
    arrival_s = {row["name"]: row["arrival_s"] for row in ledger.jobs()}
    entries = {job["name"]: job for _, job in plan}
    file = [{**entries[name], "arrival_s": time_s} for name, time_s in arrival_s.items()]
    known = FakeRun(folder / "f", file, policy, 4.0)
    other = known.execute()
    assert grants(ledger) == grants(other)
    ledger.close(), other.close()


def test_a_run_of_a_file_has_no_queue(tmp_path: Path) -> None:
    run = FakeRun(tmp_path / "r", [{"name": "a", "iterations": 5}])
    ledger = run.execute()
    assert ledger.submissions() == []
    ledger.close()
