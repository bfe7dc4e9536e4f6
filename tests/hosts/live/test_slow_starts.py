"""Starts that take long: the driver and everybody else go on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Collection
from pathlib import Path

import pytest

from shadowprice.hosts.live import checkpoints
from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.protocol import LaunchSpec, LeaseKey
from support.fake_run import LIMITS, FakeRun, events, log
from support.in_memory_runs import job


class Leases:
    """Watches how long each running lease was without a renewal, as its supervisor would."""

    def __init__(self, run: FakeRun, start_s: float) -> None:
        self.run, self.start_s = run, start_s
        self.renewed_s: dict[LeaseKey, float] = {}
        self.longest_s = 0.0
        self._start, self._renew = run.host.start, run.host.renew
        run.host.start, run.host.renew = self.start, self.renew  # type: ignore[method-assign]

    def start(self, orders: Collection[LaunchSpec]) -> None:
        self.run.clock.time_s += self.start_s
        self._start(tuple(orders))
        self.note({order.key for order in orders})

    def renew(self, keys: Collection[LeaseKey]) -> None:
        self._renew(keys)  # raises for leases that were not started
        self.note(set(keys))

    def note(self, keys: set[LeaseKey]) -> None:
        now_s, alive = self.run.clock.now_s(), set(self.run.host.running())
        for key in keys & alive:
            self.longest_s = max(self.longest_s, now_s - self.renewed_s.get(key, now_s))
            self.renewed_s[key] = now_s


@pytest.mark.parametrize("start_s", [1.0, 3.0])
def test_many_slow_starts_neither_end_the_driver_nor_let_leases_expire(
    tmp_path: Path, start_s: float
) -> None:
    jobs = [job(f"j{k}", 150) for k in range(8)]
    run = FakeRun(tmp_path / "run", jobs, "las:quantum_s=2", round_s=2.0)
    leases = Leases(run, start_s)
    ledger = run.execute()
    assert set(run.states(ledger).values()) == {"finished"}, log(ledger)
    assert run.drivers == 1
    assert leases.longest_s < LIMITS.ttl_s
    verify_ledger(run.state / "run.db")


def test_a_slow_copy_of_checkpoints_holds_nobody_else_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, prepare = threading.Event(), checkpoints.prepare
    slow: list[int] = []

    def hold(directory: Path, epoch: int) -> None:
        if epoch == 2:
            slow.append(epoch)
            assert goes_on.wait(60.0)
        prepare(directory, epoch)

    monkeypatch.setattr(checkpoints, "prepare", hold)
    jobs = [job("copied", 300, 2, command=["x", "{checkpoint_dir}"]), job("other", 900, 2)]
    run = FakeRun(tmp_path / "run", jobs, "fifo")
    run.faults = [
        (4.0, lambda run: run.host.crash(LeaseKey("copied", 1))),
        (14.0, lambda run: goes_on.set()),
    ]
    leases = Leases(run, 0.0)
    ledger = run.execute()
    assert slow == [2]
    assert set(run.states(ledger).values()) == {"finished"}, log(ledger)
    assert leases.longest_s < LIMITS.ttl_s
    (copied_s,) = (s for s, order in run.host.starts if order.key == LeaseKey("copied", 2))
    assert copied_s >= 14.0
    assert not [each for each in events(ledger, "failed") if "start" in each["data"]["why"]]
    verify_ledger(run.state / "run.db")


def test_a_copy_that_never_ends_is_given_up_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never, prepare = threading.Event(), checkpoints.prepare

    def hold(directory: Path, epoch: int) -> None:
        if epoch == 2:
            never.wait(60.0)
        prepare(directory, epoch)

    monkeypatch.setattr(checkpoints, "prepare", hold)
    jobs = [job("copied", 300, 2, command=["x", "{checkpoint_dir}"]), job("other", 900, 2)]
    run = FakeRun(tmp_path / "run", jobs, "fifo")
    run.faults = [(4.0, lambda run: run.host.crash(LeaseKey("copied", 1)))]
    ledger = run.execute()
    never.set()
    assert set(run.states(ledger).values()) == {"finished"}, log(ledger)
    whys = [each["data"]["why"] for each in events(ledger, "failed")]
    assert f"its start was not prepared within {LIMITS.hang_s:g} s" in whys
    verify_ledger(run.state / "run.db")
