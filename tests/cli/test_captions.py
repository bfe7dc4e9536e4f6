"""What tables say beside their numbers: units, assumptions, durations, rows left out."""

from __future__ import annotations

import io
import re
from dataclasses import fields
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from shadowprice.analysis.availability import FailureMetrics
from shadowprice.analysis.compare import compare
from shadowprice.analysis.run_metrics import METRICS, REPEATS
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import simulate
from shadowprice.cli import show
from shadowprice.cli.app import DEMO_POLICIES, DEMO_TRACE
from shadowprice.cli.captions import assumptions, duration, screenful
from shadowprice.cli.results import ResultForm
from shadowprice.instances.generators import generate
from shadowprice.instances.workload import Workload

ROOT = Path(__file__).resolve().parents[2]

_SECONDS = {"d": 86_400, "h": 3_600, "min": 60, "s": 1}


@given(st.floats(120, 1e9))
def test_a_duration_is_within_half_of_its_smaller_unit(seconds: float) -> None:
    large, of_large, small, of_small = duration(seconds).replace(",", "").split()
    told = int(large) * _SECONDS[of_large] + int(small) * _SECONDS[of_small]
    assert abs(told - seconds) <= _SECONDS[of_small] / 2
    assert int(small) * _SECONDS[of_small] < _SECONDS[of_large]
    assert int(large) > 0


def test_a_duration_that_seconds_say_well_has_no_other_words() -> None:
    assert [duration(each) for each in (0.0, 119.9, float("nan"), float("inf"))] == [""] * 4


def test_a_placement_of_a_preset_is_not_taken_for_ours() -> None:
    assert "any free GPUs" in assumptions({"placement": "count", "preset": None})
    assert "any free GPUs" not in assumptions({"placement": "count", "preset": "tiresias"})


@given(st.integers(0, 500), st.integers(1, 80))
def test_a_table_on_a_screen_leaves_out_what_it_says(rows: int, height: int) -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True, height=height, width=80)
    few, more = screenful(range(rows), terminal)
    left = rows - len(few)
    assert (more is None) == (left == 0)
    assert more is None or more.startswith(f"{left} more of {rows} rows")
    piped = Console(file=io.StringIO(), force_terminal=False, height=height, width=80)
    assert screenful(range(rows), piped) == (range(rows), None)


def test_a_table_that_is_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, height=30, width=80)
    monkeypatch.setattr(show, "console", screen)
    show.print_table(Table("row"), range(480), lambda row: [f"row {row}"])
    told = screen.file.getvalue()
    assert "row 0 " in told
    assert "row 400" not in told
    assert "more of 480 rows: --csv prints all" in told


def test_the_demo_compares_policies_that_differ() -> None:
    jobs = generate(**DEMO_TRACE)
    flow_s = [simulate(jobs, "8x8", name).jct_s.sum() for name in DEMO_POLICIES]
    assert len(flow_s) == 4
    assert all(more > less * 1.05 for more, less in pairwise(flow_s))


def printed(monkeypatch: pytest.MonkeyPatch, action: object, *given: object) -> str:
    text = io.StringIO()
    monkeypatch.setattr(show, "console", Console(file=text, width=100))
    action(*given)  # type: ignore[operator]
    return text.getvalue()


def test_tables_have_units_and_say_what_they_assume(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = generate("lognormal", jobs=20, seed=1, gpus_total=8)
    table = printed(
        monkeypatch,
        show.print_comparison,
        compare(jobs, "2x4", ["fifo", "srtf"], budget_s=0.1),
        ResultForm(),
    )
    assert "cost [s]" in table
    assert " is at least " in table
    assert table.count("placement count") == 1
    outcome = simulate(jobs, "2x4", "fifo")
    summary = printed(monkeypatch, show.print_summary, outcome, ResultForm())
    assert duration(outcome.summary()["makespan_s"]) in summary
    assert "placement count" in summary


def test_a_metric_that_repeats_another_is_printed_where_it_differs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = Workload.from_columns(arrival_s=[0.0, 10.0], gpus=[1, 1], work=[30.0, 30.0])
    for length_s, differs in ((0.0, False), (60.0, True)):
        # With rounds the first start is after the first arrival, unless that is at a boundary.
        late = Workload.from_columns(arrival_s=[5.0, 10.0], gpus=[1, 1], work=[30.0, 30.0])
        outcome = simulate(
            late if differs else jobs, "1x2", "fifo", RunOptions(round_s=length_s or None)
        )
        table = printed(monkeypatch, show.print_summary, outcome, ResultForm())
        for name in ("cru", "ttd_s"):
            assert (f" {name} " in table) is differs
            assert name in outcome.summary()


def test_every_printed_metric_has_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = simulate(generate("lognormal", jobs=5, seed=1, gpus_total=8), "2x4", "fifo")
    names = {*outcome.summary(), *outcome._partial_summary(1.0)}
    names |= {each.name for each in fields(FailureMetrics)}
    names |= {"window", "core_utilization", "mean_copies"}
    assert names == set(METRICS)
    glossary = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    for name, line in METRICS.items():
        assert f"\n`{name}`\n: {line}\n" in glossary
    text = printed(monkeypatch, show.print_summary, outcome, ResultForm(), True)
    told = [line.split(": ")[0] for line in text.splitlines() if ": " in line]
    assert told[: len(outcome.summary()) - 2] == [
        name for name in outcome.summary() if name not in REPEATS
    ]


@pytest.mark.parametrize("seed", range(6))
def test_ratios_of_a_printed_table_follow_from_its_costs_and_bounds(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Few and short jobs: costs and bounds of few digits."""
    rng = np.random.default_rng(seed)
    jobs = Workload.from_columns(
        arrival_s=np.sort(rng.uniform(0, 3, 4)),
        gpus=rng.integers(1, 4, 4),
        work=rng.uniform(0, 3, 4),
    )
    result = compare(jobs, "1x3", ["fifo", "srtf"], budget_s=0)
    table = printed(monkeypatch, show.print_comparison, result, ResultForm())
    rows = [line.split("│")[1:-1] for line in table.splitlines() if line.startswith("│")]
    assert len(rows) == 2
    bound = table.split(" is at least ")[1].split(" s")[0]
    for _, cost, ratio, _ in rows:
        quotient = float(cost) / float(bound)
        assert quotient == pytest.approx(float(ratio.strip().removesuffix("x")), abs=1.001e-3)


def test_no_heading_in_brackets_is_lost_as_markup() -> None:
    """Rich takes ``[s]`` for a style; headings with a unit are escaped."""
    folder = Path(show.__file__).parent
    lost = re.compile(r"Table\((?:(?!\n    \w|escape).)*?\[[a-z]+\]\"", re.DOTALL)
    for path in folder.rglob("*.py"):
        assert not lost.search(path.read_text(encoding="utf-8")), path
