"""Decisions as a sequence of choices among a few jobs, and what is seen before each.

A decision of the engine is made of choices: start the k-th job that waits, stop the k-th that runs, or wait,
which hands the decision over; time stands still until then, as in DeepRM (Mao et al., HotNets 2016;
recalled). What is seen is computed from the state that every policy gets, so that whoever chooses sees
nothing of the future, and of durations only what is declared.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State

JOB_FEATURES = ("present", "gang", "fits", "waited", "attained", "remaining", "weight")
"""Features of a job, in order: 1 if there is one; gang over GPUs; 1 if it runs or could start now; logarithms
(1 + x) of the seconds it waited, it ran, and, if that is declared to be known, it has left, and of its weight."""
CLUSTER_FEATURES = ("free", "up", "waiting", "running", "demand")
"""Features of the cluster: free GPUs and those of nodes that are up, over all; logarithms (1 + jobs) of who
waits, of who runs, and of the GPUs that those who wait need, over all."""
LARGEST_FEATURE = 1000.0
"""No feature is larger: logarithms of floats are not."""


@dataclass(frozen=True)
class JobChoices:
    """Choices among the jobs that waited longest and those that run longest.

    Parameters
    ----------
    waiting : int
        Jobs that wait among which one may be started, in the order in which they began to wait.
    running : int
        Jobs that run among which one may be stopped, in the order of their starts; 0 for a policy that does
        not preempt.
    knows : frozenset of Knowledge
        ``duration`` to see the time that jobs have left; else that is 0.

    Raises
    ------
    InputError
        If no job can be chosen, or something else is to be known.
    """

    waiting: int = 16
    running: int = 0
    knows: frozenset[Knowledge] = field(default=frozenset())

    def __post_init__(self) -> None:
        if self.waiting < 1 or self.running < 0:
            raise InputError(
                f"choices: waiting is {self.waiting} and running is {self.running}, expected at least 1 and 0"
            )
        if not self.knows <= {Knowledge.DURATION}:
            raise InputError(
                f"choices: knows is {sorted(self.knows)}, expected nothing or 'duration'"
            )

    @property
    def actions(self) -> int:
        """Number of choices: a start for each of the first, a stop for each of the second, and to wait."""
        return self.waiting + self.running + 1

    @property
    def wait(self) -> int:
        """Number of the choice to wait, the last."""
        return self.actions - 1

    @property
    def features(self) -> int:
        """Number of features."""
        return (self.waiting + self.running) * len(JOB_FEATURES) + len(CLUSTER_FEATURES)

    @property
    def preemptive(self) -> bool:
        """True if jobs may be stopped."""
        return self.running > 0

    def view(self, state: State, decision: Decision) -> ChoiceView:
        """Everything about the next choice of a decision; O(jobs shown), and O(nodes) beside pools of GPUs."""
        starts, stops = decision.starts, set(decision.stops)
        # As many more as have been chosen, which are no longer shown.
        waiting = [
            job for job in islice(state.waiting, self.waiting + len(starts)) if job not in starts
        ][: self.waiting]
        running = [
            job for job in islice(state.running, self.running + len(stops)) if job not in stops
        ][: self.running]
        return ChoiceView(self, state, decision, waiting, running)


class ChoiceView:
    """View of a state before a choice: the jobs that are shown, and what may be chosen.

    Attributes
    ----------
    waiting, running : list of int
        Jobs that are shown, at most as many as there are places for them.
    mask : ndarray of bool, shape (actions,)
        True for each choice that can be made. To wait cannot while nothing runs or is started and a job that
        is shown could start, since nothing might ever happen again.
    """

    def __init__(
        self,
        choices: JobChoices,
        state: State,
        decision: Decision,
        waiting: list[int],
        running: list[int],
    ) -> None:
        self._choices, self._state, self._decision = choices, state, decision
        self.waiting, self.running = waiting, running
        self._fits = _fits(state, waiting)
        self.mask = np.zeros(choices.actions, dtype=np.bool_)
        self.mask[: len(waiting)] = self._fits
        # Who stops makes room for somebody who is shown and waits.
        if waiting:
            self.mask[choices.waiting : choices.waiting + len(running)] = True
        busy = len(decision.starts) + len(state.running) - len(decision.stops)
        self.mask[choices.wait] = busy > 0 or not any(self._fits)

    @property
    def forced(self) -> bool:
        """True if there is nothing to do but wait."""
        return not self.mask[: self._choices.wait].any()

    def choose(self, action: int) -> bool:
        """Make a choice that the mask allows; True if it was to wait, and the decision is made."""
        if action < self._choices.waiting:
            started = self._decision.start(self.waiting[action])
            assert started, "a start that the mask allows fits"
        elif action < self._choices.wait:
            self._decision.stop(self.running[action - self._choices.waiting])
        return action == self._choices.wait

    def observation(self) -> NDArray[np.float32]:
        """All features, shape (features,): jobs that wait, jobs that run, the cluster."""
        choices = self._choices
        rows = np.zeros((choices.waiting + choices.running, len(JOB_FEATURES)), dtype=np.float32)
        for first, jobs, fits in (
            (0, self.waiting, self._fits),
            (choices.waiting, self.running, [True] * len(self.running)),
        ):
            if jobs:
                rows[first : first + len(jobs)] = self._of_jobs(self._state.columns(jobs), fits)
        return np.concatenate((rows.ravel(), self._of_cluster()))

    def _of_jobs(self, jobs: JobColumns, fits: list[bool]) -> NDArray[np.float64]:
        told = Knowledge.DURATION in self._choices.knows
        columns = (
            np.ones(len(jobs)),
            jobs.gpus / self._state.total_gpus,
            np.array(fits, dtype=np.float64),
            np.log1p(jobs.waited_s),
            np.log1p(jobs.attained_s),
            np.log1p(np.maximum(jobs.remaining_s, 0.0)) if told else np.zeros(len(jobs)),
            np.log1p(jobs.weight),
        )
        return np.stack(columns, axis=1)

    def _of_cluster(self) -> NDArray[np.float32]:
        state, total = self._state, self._state.total_gpus
        left = len(state.waiting) - len(self._decision.starts)
        return np.array(
            (
                self._decision.free_gpus / total,
                state.up_gpus / total,
                np.log1p(max(left, 0)),
                np.log1p(len(state.running)),
                np.log1p(state.waiting_gpus / total),
            ),
            dtype=np.float32,
        )


def _fits(state: State, jobs: list[int]) -> list[bool]:
    """True for each job that could start now, beside what the decision so far reserves."""
    allocator, gang = state.allocator, state.gang
    if allocator.anywhere:
        free = allocator.free_gpus
        return [gang[job] <= free and allocator.admits(job, gang[job]) for job in jobs]
    # Whether a gang has a place only its placement knows, and taking it may change the next.
    return [
        copy.deepcopy(allocator).take(job, gang[job], state.pools[job]) is not None for job in jobs
    ]
