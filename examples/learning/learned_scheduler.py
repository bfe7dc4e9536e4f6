"""A policy that MaskablePPO learned, and how it is trained: needs sb3-contrib and the extra ``rl``.

``python learned_scheduler.py`` trains, and writes ``learned_scheduler.zip`` beside this file. Then it is a
policy like any other: ``shadowprice simulate jobs.csv --cluster 2x4 --policy learned_scheduler.py:Learned``.
"""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import shadowprice as sp
from shadowprice.solvers.learned.job_choices import JobChoices
from shadowprice.solvers.learned.learned_policy import Chooser, LearnedPolicy
from shadowprice.solvers.policy import Knowledge

CLUSTER = "2x4"
CHOICES = JobChoices(waiting=8, knows=frozenset({Knowledge.DURATION}))
MODEL = Path(__file__).with_suffix(".zip")


def jobs(seed: int) -> sp.Workload:
    """The jobs of an episode: many short ones, and a few long and wide."""
    rng = np.random.default_rng(seed)
    return sp.Workload.from_columns(
        arrival_s=np.sort(rng.integers(0, 600, 24)),
        gpus=rng.choice([1, 2, 4, 8], 24),
        work=rng.choice([20, 60, 400], 24, p=[0.5, 0.3, 0.2]),
        source=f"episode {seed}",
    )


def train(steps: int, path: Path = MODEL, seed: int = 0) -> None:
    """Train for a number of choices, and write the model."""
    from sb3_contrib import MaskablePPO

    from shadowprice.studies.learning.gym_environment import SchedulingEnvironment

    environment = SchedulingEnvironment(jobs, CLUSTER, CHOICES, reward_unit_s=1000.0)
    model = MaskablePPO("MlpPolicy", environment, n_steps=512, gamma=1.0, seed=seed, device="cpu")
    model.learn(steps)
    model.save(path)


@cache
def chooser(path: Path) -> Chooser:
    """The choices of a model. Loading one runs code that may be in the file: load your own only."""
    from sb3_contrib import MaskablePPO

    model: Any = MaskablePPO.load(path, device="cpu")

    def choose(observation: Any, mask: Any) -> int:
        return int(model.predict(observation, action_masks=mask, deterministic=True)[0])

    return choose


@dataclass(frozen=True)
class Learned(LearnedPolicy):
    """The policy of the model beside this file."""

    choose: Chooser = field(default_factory=lambda: chooser(MODEL))
    choices: JobChoices = CHOICES


if __name__ == "__main__":
    train(20_000)
    test = jobs(10**6)
    found = sp.compare(test, CLUSTER, ["fifo", "easy", "sjf", Learned()], "flow", budget_s=1.0)
    print(found.frame[["policy", "cost", "ratio"]].to_string(index=False))
