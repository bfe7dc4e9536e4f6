"""Good plans for Hadar's offline optimum: jobs put in one after another, taken out, put in again.

Every job takes the schedule that pays best under the prices of the relaxation among those that fit
beside the jobs already there, which the pricing's shortest paths find exactly. A few jobs that
complete at about the same time are then taken out and put in again in another order, as long as
time is given (ruin and recreate, Schrimpf et al. 2000; derived for this problem).

Complexity: a move of k jobs costs k shortest paths of one job.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.demand import Demand
from shadowprice.solvers.hadar.offline.pricing import IDLE, Levels, Paths, States

_MOST_OUT = 5
"""Jobs taken out at a time."""

_PATIENCE = 50
"""Moves without a better plan after which to stop, per job."""

_COOLING = 0.02
"""First temperature, relative to the mean utility of a job."""


class Plans:
    """The best plan so far and a way to look for a better one.

    Parameters
    ----------
    jobs : RoundJobs
    demand : Demand
    states : sequence of States
        By job.
    seed : int
    """

    def __init__(
        self, jobs: RoundJobs, demand: Demand, states: Sequence[States], seed: int = 0
    ) -> None:
        self.jobs, self.demand = jobs, demand
        self.value = 0.0
        self.chosen: dict[int, Levels] = {}
        self._paths = [Paths([one], jobs.rounds) for one in states]
        self._idle = np.zeros((jobs.rounds, 1))
        self._random = np.random.default_rng(seed)
        self._fixed = [
            np.where(np.arange(jobs.rounds) < jobs.first[job], np.inf, 0.0)[:, None]
            for job in range(jobs.jobs)
        ]

    def offer(self, chosen: dict[int, Levels]) -> None:
        """Keep a plan if it is better."""
        value = self.worth(chosen)
        if value > self.value:
            self.value, self.chosen = value, dict(chosen)

    def filled(self, chosen: dict[int, Levels]) -> dict[int, Levels]:
        """A plan with the jobs that are not in it, each as early as there is room."""
        used = np.zeros((self.jobs.rounds, len(self.demand.capacity)))
        for job, levels in chosen.items():
            self._take(job, levels, used, 1.0)
        for job in range(self.jobs.jobs):
            if job not in chosen:
                self._put(job, np.zeros(used.shape), chosen, used)
        return chosen

    def worth(self, chosen: dict[int, Levels]) -> float:
        """Utility of a plan."""
        utility = self.jobs.utility.values
        return float(sum(utility[job, len(levels) - 1] for job, levels in chosen.items()))

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
        if self.chosen:
            current = dict(self.chosen)
        value = self.worth(current)
        warm = _COOLING * self.value / max(1, self.jobs.jobs)
        patience = tries = _PATIENCE * self.jobs.jobs
        while (now := time.process_time()) < until_s and patience:
            patience -= 1
            left = (until_s - now) / (until_s - began)
            other = self._moved(price, current)
            worth = self.worth(other)
            if worth >= value + warm * left * np.log(self._random.random()):
                current, value = other, worth
                if worth > self.value:
                    patience = tries
                self.offer(current)

    def _fresh(self, price: NDArray[np.float64], order: list[int]) -> dict[int, Levels]:
        chosen: dict[int, Levels] = {}
        used = np.zeros((self.jobs.rounds, len(self.demand.capacity)))
        for job in order:
            self._put(job, price, chosen, used)
        return chosen

    def _moved(self, price: NDArray[np.float64], current: dict[int, Levels]) -> dict[int, Levels]:
        """A plan in which some jobs that complete at about the same time are put in afresh."""
        random, n = self._random, self.jobs.jobs
        ends = np.array([len(current.get(job, range(self.jobs.rounds + 1))) for job in range(n)])
        near = np.abs(ends - ends[random.integers(n)]) + random.random(n) * random.choice([2, 8])
        out = np.argsort(near)[: random.integers(1, min(_MOST_OUT, n) + 1)].tolist()
        missing = [job for job in range(n) if job not in current and job not in out]
        chosen = {job: levels for job, levels in current.items() if job not in out}
        used = np.zeros((self.jobs.rounds, len(self.demand.capacity)))
        for job, levels in chosen.items():
            self._take(job, levels, used, 1.0)
        if random.random() < 0.5:
            out, missing = [*out, *missing], []
        random.shuffle(out)
        scaled = price * random.choice([0.02, 0.1, 0.3, 1.0])
        for job in [*out, *missing]:
            self._put(job, scaled, chosen, used)
        return chosen

    def _put(
        self,
        job: int,
        price: NDArray[np.float64],
        chosen: dict[int, Levels],
        used: NDArray[np.float64],
    ) -> None:
        """Give a job its best schedule beside the others, if there is one that pays."""
        asked = self.demand.gpus[job]
        if not len(asked):
            return
        room = self.demand.capacity - used
        fits = np.all(asked[None, :, :] <= room[:, None, :], axis=2)
        cost = np.where(fits, price @ asked.T, np.inf) + self._fixed[job]
        paths = self._paths[job]
        before, complete = paths.forward(cost[:, :, None], self._idle)
        payoff = self.jobs.utility.values[job, :-1] - complete[0]
        end = int(np.argmax(payoff))
        if payoff[end] == -np.inf or self.jobs.utility.values[job, end] <= 0:
            return
        levels = paths.schedules(cost[:, :, None], self._idle, before, [(0, end)])[0]
        chosen[job] = levels
        self._take(job, levels, used, 1.0)

    def _take(self, job: int, levels: Levels, used: NDArray[np.float64], sign: float) -> None:
        table = np.array(levels)
        busy = np.flatnonzero(table != IDLE)
        used[busy] += sign * self.demand.gpus[job][table[busy]]
