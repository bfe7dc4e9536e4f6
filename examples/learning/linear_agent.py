"""A policy that the cross-entropy method learned, and how it is trained: needs the extra ``rl`` and nothing else.

``python linear_agent.py`` trains in the Gymnasium environment and prints the weights, which are those below: the same
on every run. Then it is a policy like any other: ``shadowprice score examples/learning/linear_agent.py:Agent``.

A job that waits is worth a linear function of a few features, and the best that fits is started until it is better to
wait. The weights are searched as Szita and Lorincz did for Tetris (Neural Computation 18, 2006; recalled): draw some
around a mean, keep the best tenth of them, go on from their mean and spread.
"""

from dataclasses import dataclass, field

import numpy as np

import shadowprice as sp
from shadowprice.solvers.learned.job_choices import JOB_FEATURES, JobChoices
from shadowprice.solvers.learned.learned_policy import Chooser, LearnedPolicy
from shadowprice.solvers.policy import Knowledge

CLUSTER = "4x4"
CHOICES = JobChoices(waiting=32, knows=frozenset({Knowledge.DURATION}))
FEATURES = ("gang", "waited", "remaining")
"""Features of a job whose weights are learned; that of waiting is a constant."""
WEIGHTS = (2.514, -0.048, -0.903, -10.532)
"""What :func:`train` prints."""


def chooser(weights) -> Chooser:
    """The job of the largest worth among those that fit; waiting if that is worth more."""
    places = [JOB_FEATURES.index(name) for name in FEATURES]
    *of_job, of_waiting = weights

    def choose(observation, mask) -> int:
        jobs = observation[: CHOICES.waiting * len(JOB_FEATURES)].reshape(CHOICES.waiting, -1)
        # Sums of products in this order: those of BLAS differ between processors.
        worth = sum(weight * jobs[:, place] for weight, place in zip(of_job, places, strict=True))
        worth = np.append(worth, of_waiting)
        return int(np.argmax(np.where(mask, worth, -np.inf)))

    return choose


@dataclass(frozen=True)
class Agent(LearnedPolicy):
    """The policy of the weights above."""

    choose: Chooser = field(default_factory=lambda: chooser(WEIGHTS))
    choices: JobChoices = CHOICES
    name: str = "linear-agent"


def jobs(seed: int) -> sp.Workload:
    """The jobs of an episode."""
    load = (0.7, 0.9, 1.1)[seed % 3]
    return sp.generate("lognormal", jobs=60, seed=seed, gpus_total=16, load=load)


def reward(weights, seed: int) -> float:
    """Reward of an episode, over the bound of its cost: at most -1."""
    from shadowprice.studies.learning.gym_environment import SchedulingEnvironment

    environment = SchedulingEnvironment(jobs, CLUSTER, CHOICES)
    observation, info = environment.reset(seed=seed)
    choose, total, done = chooser(weights), 0.0, False
    while not done:
        action = choose(observation, info["action_mask"])
        observation, gain, done, _, info = environment.step(action)
        total += gain
    return total * 3600.0 / info["bound_s"]


def train(generations: int = 12, draws: int = 30, episodes: int = 6, seed: int = 0):
    """Weights after so many generations; the same for the same seed."""
    rng = np.random.default_rng(seed)
    mean, spread = np.zeros(len(WEIGHTS)), np.array([5.0, 1.0, 1.0, 10.0])
    for generation in range(generations):
        drawn = mean + spread * rng.standard_normal((draws, len(mean)))
        seeds = range(generation * episodes, (generation + 1) * episodes)
        rewards = [np.mean([reward(each, s) for s in seeds]) for each in drawn]
        best = drawn[np.argsort(rewards)[-draws // 10 :]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.3 / (generation + 1)
        print(f"generation {generation}: {max(rewards):.4f}, weights {np.round(mean, 3).tolist()}")
    return tuple(np.round(mean, 3).tolist())


if __name__ == "__main__":
    print(train())
