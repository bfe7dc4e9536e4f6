"""The table of scores: what is stored is what a run gives, and what the page shows is what is stored."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import build_scores
from shadowprice.library.score.evaluation import run_instance
from shadowprice.library.score.ratios import decimal_text
from shadowprice.library.score.scoring import suite_instances
from shadowprice.library.score.suites import suite_named
from shadowprice.solvers.registry import policy
from support.paths import ROOT

STORED: dict[str, Any] = json.loads(build_scores.STORED.read_text(encoding="utf-8"))
SMALL = replace(
    suite_named("v1-online"),
    fixed=tuple(name for name in suite_named("v1-online").fixed if "-1000-" not in name),
    drawn=(),
)


def test_the_page_has_the_table_of_the_stored_scores() -> None:
    text = (ROOT / "docs" / "score.md").read_text(encoding="utf-8")
    assert build_scores.BEGIN + build_scores.table(STORED) + build_scores.END in text


def test_the_table_has_ten_policies_and_an_agent_on_all_instances_of_the_suite() -> None:
    assert tuple(STORED) == build_scores.POLICIES
    assert len(STORED) == 11
    suite = suite_named("v1-online")
    names = [*suite.fixed, *(f"{law.name}-{build_scores.SEED}" for law in suite.drawn)]
    for name, row in STORED.items():
        assert list(row["ratios"]) == names, name
        assert build_scores.scores_agree(row), name


@pytest.mark.parametrize("name", ["fifo", "srtf", "las2d", build_scores.AGENT])
def test_stored_ratios_are_those_of_a_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the smaller instances, trusted: sealed is the same."""
    monkeypatch.chdir(ROOT)
    for scored in suite_instances(SMALL, 0):
        result, _ = run_instance(policy(name), scored)
        assert result.ratio is not None, result.feedback
        assert decimal_text(result.ratio) == STORED[name]["ratios"][scored.name]


@pytest.mark.slow
@pytest.mark.parametrize("name", build_scores.POLICIES)
def test_stored_scores_are_those_of_the_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert build_scores.row(build_scores.runs_of(name)) == STORED[name]
