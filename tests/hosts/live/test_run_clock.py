"""The time of a run: monotonic, whatever the machine's date does, within and between drivers."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.hosts.live import state_directory
from shadowprice.hosts.live.clock import WallClock
from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.live.state_directory import passed_s
from shadowprice.hosts.local.host import LocalHost
from shadowprice.hosts.protocol import DiscoveredNode
from support.driver_process import write_jobs

DAY_S = 86_400.0


class Machine:
    """A machine whose clocks are set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.date_s, self.since_boot_s, self.boot = 1.8e9, 5_000.0, "first"
        monkeypatch.setattr(state_directory, "machine", lambda: f"{self.boot}/1")
        monkeypatch.setattr(time, "time", lambda: self.date_s)
        monkeypatch.setattr(time, "monotonic", lambda: self.since_boot_s)

    def pass_s(self, seconds: float, jump_s: float = 0.0) -> None:
        self.since_boot_s += seconds
        self.date_s += seconds + jump_s


jumps = st.lists(
    st.tuples(st.floats(0.0, 1e4), st.sampled_from([0.0, DAY_S, -DAY_S, 7_200.0])), max_size=6
)


@given(jumps, st.lists(st.booleans(), min_size=6, max_size=6))
def test_no_jump_of_the_date_is_seen_by_a_driver_or_by_the_next_one(
    steps: list[tuple[float, float]], new_driver: list[bool]
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        machine = Machine(monkeypatch)
        facts: dict[str, object] = {"began_unix": machine.date_s, "clock": None}
        run, true_s = WallClock(facts), 0.0
        facts["clock"] = run.record()
        for (seconds, jump_s), again in zip(steps, new_driver, strict=False):
            machine.pass_s(seconds, jump_s)
            true_s += seconds
            if again:
                run = WallClock(facts, 0.0)
                facts["clock"] = run.record()
            assert run.now_s() == pytest.approx(true_s, abs=1e-5)
            assert passed_s(facts, 0.0) == pytest.approx(true_s, abs=1e-5)


def test_after_a_reboot_the_date_counts_and_time_never_goes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine(monkeypatch)
    facts: dict[str, object] = {"began_unix": machine.date_s, "clock": None}
    facts["clock"] = WallClock(facts).record()
    machine.pass_s(100.0)
    machine.boot, machine.since_boot_s = "second", 3.0
    machine.pass_s(50.0)
    assert WallClock(facts, 90.0).now_s() == pytest.approx(150.0, abs=1e-5)
    machine.pass_s(0.0, -DAY_S)
    assert WallClock(facts, 90.0).now_s() == pytest.approx(90.0, abs=1e-5)


def test_a_run_begins_when_its_hosts_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a Ray cluster that has to be started; the next driver's time goes on all the same."""
    found = LocalHost.discover

    def slowly(host: LocalHost) -> tuple[DiscoveredNode, ...]:
        time.sleep(0.6)
        return found(host)

    monkeypatch.setattr(LocalHost, "discover", slowly)
    jobs = [{"name": "a", "command": ["true"], "iterations": 1}]
    jobs.append({"name": "b", "command": ["true"], "iterations": 1, "arrival_s": 0.2})
    path = write_jobs(tmp_path / "jobs.yaml", jobs)
    settings = Settings(path, "fifo", "local:1", tmp_path / "state", round_s=0.0)
    assert execute(settings).all_finished
    ledger = RunLedger.open(tmp_path / "state" / "run.db", readonly=True)
    first = next(event for event in ledger.events() if event["kind"] == "driver-started")
    begun = {row["name"]: row["first_start_s"] for row in ledger.jobs()}
    ledger.close()
    assert first["time_s"] < 0.5
    assert first["data"]["ready_s"] >= 0.6
    assert begun["a"] < 0.5
    assert begun["b"] >= 0.2
