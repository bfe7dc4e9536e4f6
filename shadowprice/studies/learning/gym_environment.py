"""A Gymnasium environment over the engine: a step is one choice of a decision.

The agent sees what :class:`~shadowprice.solvers.learned.job_choices.JobChoices` shows of the state that every
policy gets, and nothing of the future. A decision of the engine is made of choices; the one to wait hands
it over, and the engine goes on to the next decision in which there is something to choose. An episode is a
run: at its end its schedule is verified like any other, and compared with a certified bound.

Needs Gymnasium, which the extra ``rl`` installs; nothing else in the package imports this.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import PreparedRun, prepare_run, require_bounded
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import verified_outcome
from shadowprice.errors import InputError
from shadowprice.execution.stepwise import StepwiseRun
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective, rounded_up
from shadowprice.instances.workload import Workload
from shadowprice.solvers.learned.job_choices import LARGEST_FEATURE, ChoiceView, JobChoices
from shadowprice.solvers.learned.learned_policy import LearnedPolicy
from shadowprice.solvers.offline.bounds import Bound
from shadowprice.solvers.policy import Decision

ID = "shadowprice/Scheduling-v0"
"""Name of the environment for ``gymnasium.make`` and ``make_vec``, once this module is imported."""

Observation = NDArray[np.float32]
Information = dict[str, Any]
WorkloadOfSeed = Callable[[int], Workload]


class SchedulingEnvironment(gymnasium.Env[Observation, np.int64]):
    """Jobs over a cluster; the return of an episode is minus the weighted sum of job completion times.

    Parameters
    ----------
    workload : Workload or callable
        The jobs of every episode, or a function from a seed to those of one.
    cluster : Cluster or str or Path
        As of :func:`shadowprice.simulate`.
    choices : JobChoices, optional
        What is shown and may be chosen.
    run_options : RunOptions, optional
        Placement, rounds, charges, failures ... of :func:`shadowprice.simulate`. Failures that are drawn
        are drawn anew for every episode.
    reward_unit_s : float
        Time with a job in the cluster that costs 1 [s].
    bound_columns : int
        Size of the interval LP whose dual prices bound the optimum at an episode's end; 0 for the
        combinatorial bounds alone.

    Attributes
    ----------
    outcome : Outcome or None
        The last episode that ended, verified.

    Raises
    ------
    InputError
        If an option is not one of the engine, a job can never fit, or a number is not as expected.

    Notes
    -----
    Rewards are minus the cost between two decisions, so that they add up to minus the cost of the schedule
    in the objective ``flow``, in units. A choice that the mask does not allow is replaced by the first one
    that it does, waiting before all others, and ``info["replaced"]`` is true.

    ``info`` has ``action_mask`` and ``now_s``, and at the end of an episode ``cost_s`` and ``bound_s`` of the
    objective ``flow``, ``regret_s`` (cost less bound: no less than cost less optimum), ``ratio`` (cost
    over bound, rounded up) and ``bound_kind``. The bound is certified; it is of preemptive schedules, with
    all jobs known, on nodes that never fail.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        workload: Workload | WorkloadOfSeed,
        cluster: Cluster | str | Path,
        choices: JobChoices | None = None,
        run_options: RunOptions | None = None,
        *,
        reward_unit_s: float = 3600.0,
        bound_columns: int = 0,
    ) -> None:
        if not (np.isfinite(reward_unit_s) and reward_unit_s > 0):
            raise InputError(
                f"environment: reward_unit_s is {reward_unit_s!r}, expected seconds > 0"
            )
        if bound_columns < 0:
            raise InputError(f"environment: bound_columns is {bound_columns}, expected at least 0")
        self._workload, self._run_options = workload, run_options or RunOptions()
        self._cluster = cluster if isinstance(cluster, Cluster) else Cluster.load(cluster)
        self.choices = choices or JobChoices()
        self._unit_s, self._bound_columns = reward_unit_s, bound_columns
        self.observation_space = gymnasium.spaces.Box(
            0.0, LARGEST_FEATURE, (self.choices.features,), np.float32
        )
        self.action_space = gymnasium.spaces.Discrete(self.choices.actions)
        self.outcome: Outcome | None = None
        self._episode: _Episode | None = None
        self._bound: tuple[Workload, Bound] | None = None
        if isinstance(workload, Workload):
            self._prepared(workload, 0)  # Mistakes are told before training begins.

    def reset(
        self, *, seed: int | None = None, options: Information | None = None
    ) -> tuple[Observation, Information]:
        """Begin an episode; jobs and faults that are drawn follow from the seed."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**31))
        jobs = self._workload if isinstance(self._workload, Workload) else self._workload(drawn)
        if not len(jobs):
            raise InputError(f"{jobs.source}: has no jobs, expected some to schedule")
        self._episode = _Episode(self._prepared(jobs, drawn), self.choices)
        return self._episode.view.observation(), self._information(self._episode)

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, Information]:
        """Make a choice; after one to wait, time goes on to the next decision with something to choose.

        Raises
        ------
        InputError
            If no episode is under way.
        """
        episode = self._episode
        if episode is None or episode.run.over:
            raise InputError(
                "environment: step without an episode under way, expected reset before"
            )
        mask = episode.view.mask
        chosen, fine = int(action), 0 <= action < len(mask) and bool(mask[action])
        if not fine:
            chosen = self.choices.wait if mask[self.choices.wait] else int(mask.argmax())
        cost_s = episode.choose(chosen)
        information = self._information(episode)
        if not fine:
            information["replaced"] = True
        if episode.run.over:
            information |= self._ended(episode)
        observation = episode.view.observation()
        return observation, -cost_s / self._unit_s, episode.run.over, False, information

    def action_masks(self) -> NDArray[np.bool_]:
        """Choices that can be made now, as masked learners ask for them.

        Raises
        ------
        InputError
            If no episode has begun.
        """
        if self._episode is None:
            raise InputError("environment: no episode has begun, expected reset before")
        return self._episode.view.mask

    def _prepared(self, jobs: Workload, seed: int) -> PreparedRun:
        run_options = self._run_options
        if run_options.failures is not None and run_options.failures.drawn:
            run_options = replace(run_options, failures=run_options.failures.seeded(seed))
        policy = LearnedPolicy(_nobody, self.choices, "agent")
        run = prepare_run(jobs, self._cluster, policy, run_options)
        require_bounded(run)
        return run

    def _information(self, episode: _Episode) -> Information:
        return {"action_mask": episode.view.mask.copy(), "now_s": episode.run.state.now_s}

    def _ended(self, episode: _Episode) -> Information:
        """Verify the run, and compare its cost with a certified bound."""
        goal = Objective.FLOW
        self.outcome = verified_outcome(episode.prepared, episode.run.result())
        instance = self.outcome.instance
        bound = self._bound_of(instance, goal)
        cost = exact_cost(instance, goal, self.outcome.end_s)
        return {
            "cost_s": float(cost / TICKS_PER_S),
            "bound_s": bound.value_s,
            "regret_s": float((cost - bound.ticks) / TICKS_PER_S),
            "ratio": rounded_up(cost / bound.ticks if bound.ticks else None),
            "bound_kind": bound.kind,
        }

    def _bound_of(self, instance: Instance, goal: Objective) -> Bound:
        """The bound of an instance, which is that of the last one if that had the same jobs."""
        if self._bound is None or self._bound[0] is not instance.workload:
            found = certified_bounds(instance, [goal], BoundEffort.of_size(self._bound_columns))[
                goal
            ]
            self._bound = instance.workload, found
        return self._bound[1]


class _Episode:
    """A run, the decision that is being made, and what its jobs have cost so far."""

    view: ChoiceView

    def __init__(self, prepared: PreparedRun, choices: JobChoices) -> None:
        assert prepared.policy is not None
        self.prepared, self._choices = prepared, choices
        self.run = StepwiseRun(
            prepared.instance, prepared.policy, prepared.placement, prepared.rounds
        )
        self._weight = prepared.instance.workload.weight.tolist()
        self._arrival_s = prepared.instance.workload.arrival_s.tolist()
        self._present, self._counted_s = 0.0, 0.0
        # Jobs may have waited before there is anything to choose: the first choice bears that cost.
        self._borne_s = self._count() + self._begin()

    def choose(self, action: int) -> float:
        """Make a choice; returns the cost of the time that passed [s]."""
        if not self.view.choose(action):
            self.view = self._choices.view(self.run.state, self._decision)
            if not self.view.forced:
                return 0.0
        self.run.decide(self._decision)
        cost_s, self._borne_s = self._borne_s, 0.0
        return cost_s + self._count() + self._begin()

    def _begin(self) -> float:
        """Go on to a decision in which there is something to choose; returns the cost until then [s]."""
        cost_s = 0.0
        while True:
            self._decision = Decision(self.run.state)
            self.view = self._choices.view(self.run.state, self._decision)
            if self.run.over or not self.view.forced:
                return cost_s
            self.run.decide(self._decision)
            cost_s += self._count()

    def _count(self) -> float:
        """Weighted time with jobs in the cluster since the last count [s]."""
        state, weight = self.run.state, self._weight
        now_s, before_s = state.now_s, self._counted_s
        cost_s = self._present * (now_s - before_s)
        for job in state.arrived:
            if job not in state.failed:
                cost_s += weight[job] * (now_s - self._arrival_s[job])
                self._present += weight[job]
        for job, end_s in self.run.ends:
            cost_s -= weight[job] * (now_s - end_s)
            self._present -= weight[job]
        self._counted_s = now_s
        return cost_s


def _nobody(observation: Observation, mask: NDArray[np.bool_]) -> int:
    """Stands for the agent, who is asked by the environment."""
    raise AssertionError("the environment asks the agent")


gymnasium.register(id=ID, entry_point=f"{__name__}:{SchedulingEnvironment.__name__}")
