"""The benchmark of policies that decide by an optimisation in every round: what it counts, and as whose."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return runpy.run_path(str(ROOT / "benchmarks" / "rounds.py"))


def test_parts_are_charged_without_those_they_call(
    benchmark: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr("time.process_time", lambda: now_s[0])
    times = benchmark["PartTimes"]()

    def spend(seconds: float, *calls: Any) -> None:
        now_s[0] += seconds
        for call in calls:
            call()

    inner = times.measured("inner", lambda: spend(3.0))
    times.measured("outer", lambda: spend(1.0, inner, inner))()
    inner()
    assert times.cpu_s == {"inner": 9.0, "outer": 1.0}


@pytest.mark.parametrize("name", ["hadar", "gavel:max_min_fairness:aware=true"])
def test_every_part_of_a_decision_has_its_time(benchmark: dict[str, Any], name: str) -> None:
    instance = benchmark["steady"](20, 3, benchmark["made_up"](), benchmark["TYPED"], 0.0)
    before = [getattr(owner, name) for _, owner, name in benchmark["FUNCTIONS"]]
    found = benchmark["measure"](instance, name, 3)
    assert found.decisions == 3
    assert 15 <= found.alive <= 30
    without = {"folding", "gate"} if name == "hadar" else set()
    assert {part for part in benchmark["PARTS"] if not found.cpu_s[part]} == without
    assert found.share(*benchmark["PARTS"]) == pytest.approx(1.0)
    assert before == [getattr(owner, name) for _, owner, name in benchmark["FUNCTIONS"]]


def test_the_table_has_a_line_for_each_policy_and_kind(
    benchmark: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark["print_rounds"](14, 1, benchmark["made_up"]())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(benchmark["POLICIES"]) * len(benchmark["KINDS"])
