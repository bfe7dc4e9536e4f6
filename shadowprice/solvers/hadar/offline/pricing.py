r"""Pricing for Hadar's offline optimum: the most profitable schedules of jobs under prices.

Source: derived (the paper's dual subroutine, recalled, is a search over the jobs of one round). With
prices :math:`k_r(t)` a gang that runs in round t no slower than type r0 pays for its W_j
cheapest GPUs among the types at least as fast, so a schedule is a choice in every round: idle, or
one of the job's speeds. What is left to do after some rounds depends on how often each
speed was used, not when; those counts are the states (:func:`states_of`) of a shortest path through
the rounds (:class:`Paths`). That is exact: no rounding of work, whose completeness is decided in
integers. The states of all jobs lie in one array, so a round is a few array operations for all of them.

Complexity for R speeds, H rounds and N states of all jobs: O(R H N); a job has at most as many
states as count vectors that leave something to do, O(H^R), in practice tens to a few thousand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs

IDLE = -1
"""In place of a speed: the job does not run in the round."""

Speeds = tuple[int, ...]
"""A schedule: for every round a speed of the job, or IDLE; ends with its last busy round."""


@dataclass(frozen=True, eq=False)
class States:
    """States of one job.

    Parameters
    ----------
    before : ndarray of int, shape (states, speeds)
        State from which a speed leads to a state, -1 where none does; state 0 has nothing done.
    last : tuple of ndarray
        By speed: states from which it finishes the job.
    """

    before: NDArray[np.int64]
    last: tuple[NDArray[np.int64], ...]


def states_of(jobs: RoundJobs, job: int) -> States:
    """All counts of speeds that leave something to do and fit the rounds after the arrival."""
    per_round = [
        Fraction(jobs.utility.round_s) / Fraction(speed.seconds) for speed in jobs.speeds[job]
    ]
    # In units in which a round at any speed does a whole number of them.
    whole = lcm(*(share.denominator for share in per_round))
    shares = [int(share * whole) for share in per_round]
    rounds = jobs.rounds - int(jobs.first[job])
    start = (0,) * len(shares)
    number = {start: 0}
    work = [0]
    queue = [start]
    before: list[list[int]] = [[-1] * len(shares)]
    last: list[list[int]] = [[] for _ in shares]
    # The queue grows while it is read: breadth first.
    for counts in queue:
        here = number[counts]
        if sum(counts) >= rounds:
            continue
        for speed, share in enumerate(shares):
            if work[here] + share >= whole:
                last[speed].append(here)
                continue
            after = (*counts[:speed], counts[speed] + 1, *counts[speed + 1 :])
            if after not in number:
                number[after] = len(queue)
                work.append(work[here] + share)
                queue.append(after)
                before.append([-1] * len(shares))
            before[number[after]][speed] = here
    table = np.array(before, dtype=np.int64).reshape(len(before), len(shares))
    return States(table, tuple(np.array(states, dtype=np.int64) for states in last))


class Paths:
    """Shortest paths through the states of some jobs.

    Parameters
    ----------
    states : sequence of States
        Of every job; jobs are numbered as here.
    rounds : int
    """

    def __init__(self, states: Sequence[States], rounds: int) -> None:
        self.jobs = len(states)
        self.rounds = rounds
        self.speeds = max((len(one.last) for one in states), default=0)
        offsets = np.cumsum([0, *(len(one.before) for one in states)])
        self.size = int(offsets[-1])
        self._start = offsets[:-1]
        self._job_of_state = np.repeat(np.arange(len(states)), np.diff(offsets))
        # State `size` stands for none: it is never reached.
        self._before = np.full((self.speeds, self.size), self.size, dtype=np.int64)
        self._last: dict[tuple[int, int], NDArray[np.int64]] = {}
        for job, one in enumerate(states):
            here = slice(int(offsets[job]), int(offsets[job + 1]))
            for speed, last in enumerate(one.last):
                own = one.before[:, speed]
                self._before[speed, here] = np.where(own < 0, self.size, own + offsets[job])
                if len(last):
                    self._last[job, speed] = last + offsets[job]
        # The states before a last round, those of each (job, speed) together, where these groups
        # begin, and their jobs and speeds.
        groups = list(self._last.values())
        self._before_last = np.concatenate([*groups, np.zeros(0, dtype=np.int64)])
        self._groups = np.cumsum([0, *(len(group) for group in groups)])[:-1]
        self._group_job = np.array([job for job, _ in self._last], dtype=np.int64)
        self._group_speed = np.array([speed for _, speed in self._last], dtype=np.int64)

    def forward(
        self, cost: NDArray[np.float64], idle: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cheapest ways to every state and to completion.

        Parameters
        ----------
        cost : ndarray, shape (rounds, speeds, jobs)
            Price of running; infinite where it is forbidden.
        idle : ndarray, shape (rounds, jobs)
            Price of idling while unfinished: 0, or infinite where the job must run.

        Returns
        -------
        before : ndarray, shape (rounds + 1, states + 1)
            Least price of being in a state before each round; the last state is never reached.
        complete : ndarray, shape (jobs, rounds)
            Least price of completing in each round.
        """
        rounds = self.rounds
        before = np.full((rounds + 1, self.size + 1), np.inf)
        before[0, self._start] = 0.0
        complete = np.full((rounds, self.jobs), np.inf)
        for t in range(rounds):
            now, after = before[t], before[t + 1, : self.size]
            np.add(now[: self.size], idle[t][self._job_of_state], out=after)
            for speed in range(self.speeds):
                price = now[self._before[speed]]
                price += cost[t, speed][self._job_of_state]
                np.minimum(after, price, out=after)
            if len(self._groups):
                ends = np.minimum.reduceat(now[self._before_last], self._groups)
                ends += cost[t, self._group_speed, self._group_job]
                np.minimum.at(complete[t], self._group_job, ends)
        return before, complete.T

    def schedules(
        self,
        cost: NDArray[np.float64],
        idle: NDArray[np.float64],
        before: NDArray[np.float64],
        completions: list[tuple[int, int]],
    ) -> list[Speeds]:
        """The cheapest schedules of jobs that complete in given rounds, from :meth:`forward`.

        Parameters
        ----------
        completions : list of (int, int)
            Jobs and rounds of completion that can be reached.
        """
        count = len(completions)
        job_of = np.array([job for job, _ in completions], dtype=np.int64)
        end = np.array([last for _, last in completions], dtype=np.int64)
        speeds = np.full((count, self.rounds), IDLE, dtype=np.int64)
        state = np.full(count, self.size, dtype=np.int64)
        for k, (job, last) in enumerate(completions):
            speeds[k, last], state[k] = self._last_round(cost, before, job, last)
        for t in range(int(end.max(initial=0)) - 1, -1, -1):
            # The same sums as on the way forward, so equality is exact.
            goal = before[t + 1, state]
            undecided = (t < end) & (before[t, state] + idle[t, job_of] != goal)
            for speed in range(self.speeds):
                source = self._before[speed][np.minimum(state, self.size - 1)]
                here = undecided & (before[t, source] + cost[t, speed, job_of] == goal)
                speeds[here, t] = speed
                state[here] = source[here]
                undecided &= ~here
        return [
            tuple(row[: last + 1]) for row, last in zip(speeds.tolist(), end.tolist(), strict=True)
        ]

    def _last_round(
        self, cost: NDArray[np.float64], before: NDArray[np.float64], job: int, end: int
    ) -> tuple[int, int]:
        """The speed of the last round and the state before it."""
        options = []
        for speed in range(self.speeds):
            states = self._last.get((job, speed))
            if states is not None:
                place = int(before[end, states].argmin())
                price = before[end, states[place]] + cost[end, speed, job]
                options.append((price, speed, int(states[place])))
        _, speed, state = min(options)
        return speed, state
