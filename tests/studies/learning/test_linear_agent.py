"""The agent that the cross-entropy method learned: trained the same on every run, and better than before."""

from __future__ import annotations

import runpy
from typing import Any

import numpy as np
import pytest

import shadowprice as sp
from shadowprice.solvers.learned.learned_policy import LearnedPolicy
from support.paths import ROOT

EXAMPLE = ROOT / "examples" / "learning" / "linear_agent.py"


@pytest.fixture(scope="module")
def agent() -> dict[str, Any]:
    pytest.importorskip("gymnasium")
    return runpy.run_path(str(EXAMPLE), run_name="linear_agent")


def mean_jct_s(agent: dict[str, Any], weights: object) -> float:
    """Of jobs that no episode had."""
    policy = LearnedPolicy(agent["chooser"](weights), agent["CHOICES"])
    runs = [sp.simulate(agent["jobs"](seed), agent["CLUSTER"], policy) for seed in (9001, 9002)]
    return float(np.mean([each.jct_s.mean() for each in runs]))


def test_training_is_the_same_on_every_run_and_learns(agent: dict[str, Any]) -> None:
    few = {"generations": 2, "draws": 10, "episodes": 1, "seed": 3}
    weights = agent["train"](**few)
    assert weights == agent["train"](**few)
    assert weights != agent["train"](**{**few, "seed": 4})
    learned = mean_jct_s(agent, agent["WEIGHTS"])
    longest_first = (0.0, 0.0, 1.0, -20.0)
    assert learned < 0.8 * mean_jct_s(agent, longest_first)


def test_rewards_are_costs_over_bounds(agent: dict[str, Any]) -> None:
    assert agent["reward"](agent["WEIGHTS"], 5) <= -1.0


@pytest.mark.slow
def test_the_weights_are_those_that_training_prints(agent: dict[str, Any]) -> None:
    assert agent["train"]() == agent["WEIGHTS"]
