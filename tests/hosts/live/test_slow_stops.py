"""Stops that take long: each device goes on as soon as its own predecessor is gone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.protocol import LeaseKey
from support.fake_host import two_nodes
from support.fake_run import LIMITS, FakeRun, events, log
from support.in_memory_runs import job

SLOW_S = 25.0


class Idle:
    """Makes job ``slow`` save for long when asked to end; counts devices that nobody has."""

    def __init__(self, run: FakeRun) -> None:
        self.run, self.counts = run, dict[float, int]()
        self._stop, self._poll = run.host.stop, run.host.poll
        run.host.stop, run.host.poll = self.stop, self.poll  # type: ignore[method-assign,assignment]

    def stop(self, keys: Collection[LeaseKey], grace_s: float, reason: str) -> None:
        before = {key: self.run.host.processes[key].stop_at_s for key in keys}
        self._stop(keys, grace_s, reason)
        now_s = self.run.clock.now_s()
        for key, asked_s in before.items():
            if key.job == "slow":
                self.run.host.processes[key].stop_at_s = min(asked_s, now_s + SLOW_S)

    def poll(self, keys: Collection[LeaseKey]) -> Any:
        host, now_s = self.run.host, self.run.clock.now_s()
        held = {device for key in host.running() for device in host.processes[key].order.devices}
        self.counts[now_s] = sum(len(node.devices) for node in host.nodes) - len(held)
        return self._poll(keys)


def slow_run(path: Path, round_s: float, **more: Any) -> tuple[FakeRun, Idle]:
    jobs = [job("slow", 400, throughput=2.0, true_rate=2.0)]
    jobs += [job(f"w{k:02d}", 600) for k in range(15)]
    run = FakeRun(path, jobs, "las:quantum_s=5", round_s=round_s, nodes=two_nodes(4), **more)
    return run, Idle(run)


@pytest.mark.parametrize("round_s", [0.0, 10.0])
def test_a_slow_stop_leaves_no_other_device_idle(
    round_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.fake_run.LIMITS", replace(LIMITS, grace_s=60.0, hang_s=200.0))
    run, idle = slow_run(tmp_path / "run", round_s)
    ledger = run.execute()
    assert set(run.states(ledger).values()) == {"finished"}, log(ledger)
    slow = [each for each in events(ledger, "released") if each["job"] == "slow"]
    assert any(each["data"]["reason"] == "stopped" for each in slow)
    # While all 8 devices are wanted: one waits for its predecessor, and each change takes a moment.
    wanted = {time_s: count for time_s, count in idle.counts.items() if 5.0 < time_s < 80.0}
    assert sum(wanted.values()) / len(wanted) < 1.0
    verify_ledger(run.state / "run.db")


@pytest.mark.parametrize("round_s", [0.0, 10.0])
def test_a_driver_may_die_while_a_stop_takes_long(
    round_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.fake_run.LIMITS", replace(LIMITS, grace_s=60.0, hang_s=200.0))
    killed = [float(at_s) for at_s in range(8, 120, 3)]
    run, _ = slow_run(tmp_path / "run", round_s, kill_at_s=killed)
    ledger = run.execute()
    assert run.drivers > 20
    assert set(run.states(ledger).values()) == {"finished"}, log(ledger)
    verify_ledger(run.state / "run.db")
