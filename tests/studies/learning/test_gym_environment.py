"""The environment: Gymnasium's own checker, the engine behind it, honesty, masks, rewards and regret."""

from __future__ import annotations

import importlib.util
import runpy
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import shadowprice as sp
from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.engine import Rounds, run
from shadowprice.instances.objective import Objective
from shadowprice.proofs.testing import laws
from shadowprice.solvers.learned.job_choices import JobChoices
from shadowprice.solvers.learned.learned_policy import LearnedPolicy
from shadowprice.solvers.policy import Knowledge
from shadowprice.solvers.registry import placement
from support.paths import ROOT

gymnasium = pytest.importorskip("gymnasium", reason="needs Gymnasium: the extra rl")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from shadowprice.studies.learning.gym_environment import ID, SchedulingEnvironment  # noqa: E402
from support.written_failures import failures_of  # noqa: E402

TOLD = frozenset({Knowledge.DURATION})
LAW = "mtbf_s=2000,repair_s=100,seed=1"
EXAMPLE = ROOT / "examples" / "learning" / "learned_scheduler.py"


def jobs(seed: int, n: int = 12) -> sp.Workload:
    rng = np.random.default_rng(seed)
    return sp.Workload.from_columns(
        arrival_s=np.sort(rng.integers(0, 300, n)),
        gpus=rng.choice([1, 2, 4, 8], n),
        work=rng.integers(1, 200, n),
        weight=rng.choice([1.0, 3.0], n),
        source="jobs",
    )


SEMANTICS = {
    "plain": sp.RunOptions(),
    "rounds": sp.RunOptions(round_s=50.0),
    "charges": sp.RunOptions(overheads=sp.Overheads(2.0, 3.0), placement="consolidate"),
    "failures": sp.RunOptions(failures=failures_of(LAW, 30.0, 1.0), round_s=20.0),
}
CHOICES = st.sampled_from([JobChoices(3), JobChoices(8, 4), JobChoices(4, 2, TOLD)])


class Chance:
    """Any of the choices that the mask allows."""

    def __init__(self, seed: int) -> None:
        self.rng, self.made = np.random.default_rng(seed), list[int]()

    def __call__(self, observation: NDArray[np.float32], mask: NDArray[np.bool_]) -> int:
        self.made.append(int(self.rng.choice(np.flatnonzero(mask))))
        return self.made[-1]


def episode(environment: SchedulingEnvironment, choose: Chance, seed: int) -> tuple[float, dict]:
    observation, info = environment.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        assert np.array_equal(info["action_mask"], environment.action_masks())
        assert environment.observation_space.contains(observation)
        action = choose(observation, info["action_mask"])
        observation, reward, over, cut, info = environment.step(np.int64(action))
        assert not cut
        assert "replaced" not in info
        assert reward <= 0.0
        total += reward
    return total, info


def test_gymnasium_accepts_it() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(
            gymnasium.make(ID, workload=jobs, cluster="2x4").unwrapped, skip_render_check=True
        )


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(sorted(SEMANTICS)),
    choices=CHOICES,
)
def test_an_episode_is_a_run_of_the_same_policy(seed: int, name: str, choices: JobChoices) -> None:
    """The environment, and a policy in the engine that makes the same choices, leave the same schedule."""
    chance = Chance(seed)
    environment = SchedulingEnvironment(jobs, "4x4", choices, SEMANTICS[name], reward_unit_s=10.0)
    total, info = episode(environment, chance, seed)
    outcome = environment.outcome
    assert outcome is not None
    left = iter(chance.made)
    policy = LearnedPolicy(lambda observation, mask: next(left), choices)
    again = run(
        outcome.instance,
        policy,
        placement=placement(SEMANTICS[name].placement or "count"),
        rounds=Rounds(SEMANTICS[name].round_s or 0.0),
    )
    assert again.schedule.to_frame().equals(outcome.schedule.to_frame())
    assert next(left, None) is None
    cost_s = Objective.FLOW.cost_s(outcome.instance.workload, outcome.end_s)
    assert -10.0 * total == pytest.approx(cost_s)
    assert info["cost_s"] == pytest.approx(cost_s)
    assert 0 < info["bound_s"] <= info["cost_s"]
    assert info["regret_s"] == pytest.approx(info["cost_s"] - info["bound_s"])
    assert info["ratio"] == pytest.approx(info["cost_s"] / info["bound_s"])


def test_equal_seeds_give_equal_episodes() -> None:
    environment = SchedulingEnvironment(jobs, "4x4", JobChoices(8, 4), SEMANTICS["failures"])
    found = []
    for seed in (1, 1, 2):
        episode(environment, Chance(0), seed)
        assert environment.outcome is not None
        found.append(environment.outcome)
    one, again, other = (each.schedule.to_frame() for each in found)
    assert one.equals(again)
    assert not one.equals(other)
    failures = [each.instance.failures for each in found]
    assert failures[0].down_s[:3].tolist() != failures[2].down_s[:3].tolist()  # type: ignore[union-attr]


def test_observations_tell_nothing_that_is_not_declared() -> None:
    """Other durations of jobs that run or wait, and other jobs to come: the same first observations."""
    one = jobs(3)
    later = sp.Workload.from_columns(
        arrival_s=one.arrival_s, gpus=one.gpus, work=one.work + 1000.0, weight=one.weight
    )
    seen = {}
    for knows in (frozenset[Knowledge](), TOLD):
        for name, workload in (("one", one), ("later", later)):
            environment = SchedulingEnvironment(workload, "4x4", JobChoices(4, 2, knows))
            observation, _ = environment.reset(seed=0)
            seen[bool(knows), name] = observation
    assert np.array_equal(seen[False, "one"], seen[False, "later"])
    assert not np.array_equal(seen[True, "one"], seen[True, "later"])


def test_choices_against_the_mask_are_replaced() -> None:
    work = sp.Workload.from_columns(arrival_s=[0, 5], gpus=[4, 4], work=[10, 10])
    environment = SchedulingEnvironment(work, "1x4", JobChoices(2))
    environment.reset(seed=0)
    assert environment.action_masks().tolist() == [True, False, False]  # nothing runs: no waiting
    _, reward, over, _, info = environment.step(np.int64(2))
    assert info["replaced"]
    # On to 10 s, when the second can start; the decision at 5 s leaves nothing to choose.
    assert (info["now_s"], over) == (10.0, False)
    assert reward == pytest.approx(-15.0 / 3600.0)
    assert info["action_mask"].tolist() == [True, False, False]
    _, reward, over, _, info = environment.step(np.int64(7))
    assert info["replaced"]
    assert over
    assert reward == pytest.approx(-10.0 / 3600.0)
    with pytest.raises(InputError, match="reset before"):
        environment.step(np.int64(0))


def test_wrong_uses_are_refused() -> None:
    with pytest.raises(InputError, match="reset before"):
        SchedulingEnvironment(jobs, "4x4").step(np.int64(0))
    with pytest.raises(InputError, match="expected reset before"):
        SchedulingEnvironment(jobs, "4x4").action_masks()
    with pytest.raises(InputError, match="reward_unit_s"):
        SchedulingEnvironment(jobs, "4x4", reward_unit_s=0.0)
    with pytest.raises(InputError, match="needs 8 GPUs"):
        SchedulingEnvironment(jobs(1), "1x4")
    with pytest.raises(InputError, match=r"has jobs outside a window, .* not known to bounds"):
        SchedulingEnvironment(
            jobs(1), "4x4", run_options=sp.RunOptions(until_complete=sp.JobWindow(1, 2))
        )
    with pytest.raises(InputError, match="choices"):
        JobChoices(0)
    with pytest.raises(PolicyError, match=r"chooses 99, expected one of \[0"):
        sp.simulate(jobs(1), "4x4", LearnedPolicy(lambda observation, mask: 99))


def test_many_at_once() -> None:
    many = gymnasium.make_vec(
        ID,
        num_envs=3,
        vectorization_mode="sync",
        workload=jobs,
        cluster="4x4",
        choices=JobChoices(4),
    )
    observations, infos = many.reset(seed=5)
    assert observations.shape == (3, JobChoices(4).features)
    ended = 0
    for _ in range(200):
        masks = infos["action_mask"]
        actions = np.array([np.flatnonzero(mask)[0] for mask in masks])
        observations, _, over, _, infos = many.step(actions)
        ended += int(over.sum())
        if ended:
            assert (infos["ratio"][over] >= 1.0).all()
            break
    assert ended
    many.close()


def longest_waiting(observation: NDArray[np.float32], mask: NDArray[np.bool_]) -> int:
    return int(np.flatnonzero(mask)[0])


class TestLawsOfALearnedPolicy(
    laws(LearnedPolicy(longest_waiting, JobChoices(2)), waits=True, examples=3)  # type: ignore[misc]
):
    """A policy that chooses by what it is shown obeys the laws of all policies."""


# The page and the example.


def test_the_page_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "rl.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    assert code.startswith("# episode.py")
    path = tmp_path / "episode.py"
    path.write_text(code, encoding="utf-8")
    runpy.run_path(str(path))
    first, second = capsys.readouterr().out.splitlines()
    assert float(first.split()[-4]) >= 1.0
    assert second == "4 4"


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("learned_scheduler", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["learned_scheduler"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_policy_is_learned_and_runs_like_any_other(tmp_path: Path) -> None:
    """MaskablePPO does better after training than at its beginning, on jobs that it has not seen."""
    pytest.importorskip("sb3_contrib", reason="needs sb3-contrib")
    copy = tmp_path / EXAMPLE.name
    copy.write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    module = example()
    costs = []
    for steps in (512, 40_000):
        path = tmp_path / f"{steps}.zip"
        module.train(steps, path)
        policy = LearnedPolicy(module.chooser(path), module.CHOICES)
        found = [sp.simulate(module.jobs(seed), module.CLUSTER, policy) for seed in range(900, 912)]
        costs.append(float(np.mean([each.jct_s.mean() for each in found])))
    assert costs[1] < 0.95 * costs[0]
    (tmp_path / "40000.zip").rename(copy.with_suffix(".zip"))
    trace = tmp_path / "jobs.csv"
    module.jobs(900).to_frame().to_csv(trace, index=False)
    words = [
        "simulate",
        str(trace),
        "--cluster",
        module.CLUSTER,
        "--policy",
        f"{copy}:Learned",
        "--json",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "shadowprice", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert '"verified": true' in done.stdout
