"""Good plans for Hadar's offline optimum: ruin and recreate, and exact replanning of a few jobs.

Source: ruin and recreate (Schrimpf et al., Journal of Computational Physics 159, 2000) in
:class:`Plans`, which finds a first plan; large neighbourhood search (Shaw, CP 1998) with CP-SAT in
:class:`Neighbours`, which improves the best one. Both recalled, and derived for this problem.

Complexity: a move of k jobs costs k shortest paths of one job; a try is a constraint programme with k
jobs, exponential in k, cut off by time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.acceptance import Acceptance
from shadowprice.solvers.hadar.offline.linking import Allowed
from shadowprice.solvers.hadar.offline.master import CapacityRows
from shadowprice.solvers.hadar.offline.pricing import IDLE, Paths, Speeds, States

_MOST_OUT = 5
"""Jobs taken out at a time."""

_PATIENCE = 50
"""Moves without a better plan after which to stop, per job."""

_COOLING = 0.02
"""First temperature, relative to the mean utility of a job."""


class Plans:
    """The best plan so far, and ruin and recreate to look for a better one.

    Every job takes the schedule that pays best under the prices of the relaxation among those that fit
    beside the jobs already there, which the pricing's shortest paths find exactly. A few jobs that
    complete at about the same time are then taken out and put in again in another order, as long as
    time is given. A worse plan is accepted with a probability that falls with time.

    Parameters
    ----------
    jobs : RoundJobs
    capacity_rows : CapacityRows
    states : sequence of States
        By job.
    seed : int
    acceptance : Acceptance, optional
        What a plan has to hold beside capacity; nothing if None.

    Attributes
    ----------
    value : float
        Utility of the best plan; -inf if there is none, which not even the empty one may be.
    schedules : dict of int to Speeds
        The best plan; jobs that are not in it never run.
    """

    def __init__(
        self,
        jobs: RoundJobs,
        capacity_rows: CapacityRows,
        states: Sequence[States],
        seed: int = 0,
        acceptance: Acceptance | None = None,
    ) -> None:
        self.jobs = jobs
        self.capacity_rows = capacity_rows
        self.schedules: dict[int, Speeds] = {}
        self._acceptance = acceptance
        self._allowed = Allowed.everything(jobs)
        self.value = 0.0
        if acceptance is not None:
            self._allowed = acceptance.linking.allowed
            self.value = 0.0 if acceptance.accepts({}) else -math.inf
        self._missed = 1.0 + float(jobs.utility.values.max(initial=0.0))
        self._paths = [Paths([one], jobs.rounds) for one in states]
        self._idle = np.zeros((jobs.rounds, 1))
        self._random = np.random.default_rng(seed)
        # Infinite cost of the rounds before a job's arrival, and of speeds that it may not have.
        self._forbidden = np.where(self._allowed.speeds[:, :, :-1], 0.0, np.inf)

    def offer(self, schedules: dict[int, Speeds]) -> bool:
        """Keep a plan if it is better and accepted; True if it was kept."""
        value = self.worth(schedules)
        if value <= self.value:
            return False
        if self._acceptance is not None and not self._acceptance.accepts(schedules):
            return False
        self.value, self.schedules = value, dict(schedules)
        return True

    def _score(self, schedules: dict[int, Speeds]) -> float:
        """Utility of a plan, less what rows are missed by."""
        missed = 0.0 if self._acceptance is None else self._acceptance.shortfall(schedules)
        return self.worth(schedules) - self._missed * missed

    def filled(self, schedules: dict[int, Speeds]) -> dict[int, Speeds]:
        """A plan with the jobs that are not in it, each as early as there is room."""
        used = np.zeros((self.jobs.rounds, len(self.capacity_rows.capacity)))
        for job, speeds in schedules.items():
            self._add_load(job, speeds, used)
        for job in range(self.jobs.jobs):
            if job not in schedules:
                self._insert(job, np.zeros(used.shape), schedules, used)
        return schedules

    def worth(self, schedules: dict[int, Speeds]) -> float:
        """Utility of a plan."""
        utility = self.jobs.utility.values
        return float(sum(utility[job, len(speeds) - 1] for job, speeds in schedules.items()))

    def search(
        self, price: NDArray[np.float64], target: NDArray[np.float64], until_s: float
    ) -> None:
        """Look for a better plan.

        Parameters
        ----------
        price : ndarray, shape (rounds, rows of capacity)
        target : ndarray, shape (jobs,)
            Completions that the relaxation aims at [rounds].
        until_s : float
            Process time at which to stop [s]; earlier if many moves in a row find nothing.
        """
        began = time.process_time()
        current = self._fresh(price, np.argsort(target, kind="stable").tolist())
        self.offer(current)
        if self.schedules:
            current = dict(self.schedules)
        value = self._score(current)
        temperature = _COOLING * self.worth(current) / max(1, self.jobs.jobs)
        tries = _PATIENCE * self.jobs.jobs
        patience = tries
        while (now := time.process_time()) < until_s and patience:
            patience -= 1
            left = (until_s - now) / (until_s - began)
            other = self._moved(price, current)
            score = self._score(other)
            if score >= value + temperature * left * np.log(self._random.random()):
                current, value = other, score
                if self.offer(current):
                    patience = tries

    def _fresh(self, price: NDArray[np.float64], order: list[int]) -> dict[int, Speeds]:
        """A plan into which jobs are put in an order."""
        schedules: dict[int, Speeds] = {}
        used = np.zeros((self.jobs.rounds, len(self.capacity_rows.capacity)))
        for job in order:
            self._insert(job, price, schedules, used)
        return schedules

    def _moved(self, price: NDArray[np.float64], current: dict[int, Speeds]) -> dict[int, Speeds]:
        """A plan in which some jobs that complete at about the same time are put in afresh."""
        random, n = self._random, self.jobs.jobs
        ends = np.array([len(current.get(job, range(self.jobs.rounds + 1))) for job in range(n)])
        near = np.abs(ends - ends[random.integers(n)]) + random.random(n) * random.choice([2, 8])
        out = np.argsort(near)[: random.integers(1, min(_MOST_OUT, n) + 1)].tolist()
        missing = [job for job in range(n) if job not in current and job not in out]
        schedules = {job: speeds for job, speeds in current.items() if job not in out}
        used = np.zeros((self.jobs.rounds, len(self.capacity_rows.capacity)))
        for job, speeds in schedules.items():
            self._add_load(job, speeds, used)
        if random.random() < 0.5:
            out, missing = [*out, *missing], []
        random.shuffle(out)
        scaled = price * random.choice([0.02, 0.1, 0.3, 1.0])
        for job in [*out, *missing]:
            self._insert(job, scaled, schedules, used)
        return schedules

    def _insert(
        self,
        job: int,
        price: NDArray[np.float64],
        schedules: dict[int, Speeds],
        used: NDArray[np.float64],
    ) -> None:
        """Give a job its best schedule beside the others, if there is one that pays."""
        demand = self.capacity_rows.gpus[job]
        if not len(demand):
            return
        room = self.capacity_rows.capacity - used
        fits = np.all(demand[None, :, :] <= room[:, None, :], axis=2)
        cost = np.where(fits, price @ demand.T, np.inf) + self._forbidden[job, :, : len(demand)]
        paths = self._paths[job]
        before, complete = paths.forward(cost[:, :, None], self._idle)
        payoff = self.jobs.utility.values[job, :-1] - complete[0]
        payoff = np.where(self._allowed.ends[job, :-1], payoff, -np.inf)
        end = int(np.argmax(payoff))
        if payoff[end] == -np.inf or self.jobs.utility.values[job, end] <= 0:
            return
        speeds = paths.schedules(cost[:, :, None], self._idle, before, [(0, end)])[0]
        schedules[job] = speeds
        self._add_load(job, speeds, used)

    def _add_load(self, job: int, speeds: Speeds, used: NDArray[np.float64]) -> None:
        """Add what a job takes of the capacity of each round."""
        by_round = np.array(speeds)
        busy = np.flatnonzero(by_round != IDLE)
        used[busy] += self.capacity_rows.gpus[job][by_round[busy]]
