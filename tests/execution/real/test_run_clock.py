"""The time of a run: monotonic, whatever the machine's date does, within and between drivers."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.execution.real import state_directory
from shadowprice.execution.real.clock import WallClock
from shadowprice.execution.real.state_directory import passed_s

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
