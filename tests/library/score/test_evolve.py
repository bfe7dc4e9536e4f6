"""The evaluator of evolving programs, in a loop that stands for them: no network and no model."""

from __future__ import annotations

import importlib.util
import random
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from support.paths import ROOT
from support.tiny_suites import QUICK

pytestmark = pytest.mark.usefixtures("drawn_once")

EXAMPLE = ROOT / "examples" / "evolve"
BLOCK = re.compile(r"# EVOLVE-BLOCK-START\n(.*?)# EVOLVE-BLOCK-END\n", re.DOTALL)


@pytest.fixture
def evaluator(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The file as both frameworks load it: by its path, under a name of theirs."""
    spec = importlib.util.spec_from_file_location("evaluation_module", EXAMPLE / "evaluator.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "SUITE", QUICK)
    return module


@dataclass
class EvaluationResult:
    """What both frameworks have of this name: numbers, and texts for the next prompt."""

    metrics: dict[str, float]
    artifacts: dict[str, str] = field(default_factory=dict)


PRIORITIES = ("gpus * -1.0", "remaining_s", "undefined")


def mutated(text: str, priority: str) -> str:
    """A program whose block orders jobs otherwise."""
    body = (
        "def priority(jobs: JobColumns) -> list[float]:\n"
        f"    return (jobs.{priority}).tolist()\n\n\n"
    )
    return BLOCK.sub(f"# EVOLVE-BLOCK-START\n{body}# EVOLVE-BLOCK-END\n", text)


def test_a_loop_that_keeps_what_scores_better_gets_better(
    evaluator: ModuleType, tmp_path: Path
) -> None:
    first = (EXAMPLE / "initial_program.py").read_text(encoding="utf-8")
    assert len(BLOCK.findall(first)) == 1
    rng = random.Random(0)
    tried: dict[str, dict[str, object]] = {}
    best = first
    for number, priority in enumerate(["", *rng.sample(PRIORITIES, len(PRIORITIES))]):
        path = tmp_path / f"program_{number}.py"
        path.write_text(mutated(first, priority) if priority else first, encoding="utf-8")
        tried[path.read_text(encoding="utf-8")] = result = evaluator.evaluate(str(path))
        assert isinstance(result["combined_score"], float)
        if result["combined_score"] > tried.get(best, result)["combined_score"]:
            best = path.read_text(encoding="utf-8")
    assert "remaining_s" in best
    broken = next(each for text, each in tried.items() if "undefined" in text)
    assert broken["combined_score"] == 0.001
    assert any("undefined" in str(each) for each in broken.values())
    texts = {key: each for key, each in tried[best].items() if isinstance(each, str)}
    assert any("times the optimum" in each for each in texts.values())
    numbers = {key: each for key, each in tried[best].items() if not isinstance(each, str)}
    assert all(isinstance(each, float) for each in numbers.values())


def test_a_file_that_is_no_program_scores_nothing(evaluator: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("this is no Python", encoding="utf-8")
    result = evaluator.evaluate(str(path))
    assert result["combined_score"] == 0.0
    assert "program.py" in result["error"]


@pytest.mark.parametrize(
    "name", ["openevolve.evaluation_result", "skydiscover.evaluation.evaluation_result"]
)
def test_where_a_framework_runs_its_record_has_numbers_and_texts_apart(
    evaluator: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = SimpleNamespace(EvaluationResult=EvaluationResult)
    monkeypatch.setitem(sys.modules, name, theirs)
    result = evaluator.evaluate(str(EXAMPLE / "initial_program.py"))
    assert isinstance(result, EvaluationResult)
    assert 0.001 < result.metrics["combined_score"] <= 1
    assert all(isinstance(each, float) for each in result.metrics.values())
    assert all(isinstance(each, str) for each in result.artifacts.values())
