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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.acceptance import Acceptance
from shadowprice.solvers.hadar.offline.feasibility import CLOCK_FACTOR, Deadlines
from shadowprice.solvers.hadar.offline.linking import Allowed
from shadowprice.solvers.hadar.offline.master import CapacityRows
from shadowprice.solvers.hadar.offline.pricing import IDLE, Paths, Speeds, States
from shadowprice.solvers.programs.gate import ask_whole
from shadowprice.solvers.programs.whole import SearchEffort, SearchStatus, WholeProgram

_MOST_OUT = 5
"""Jobs taken out at a time."""

_PATIENCE = 50
"""Moves without a better plan after which to stop, per job."""

_COOLING = 0.02
"""First temperature, relative to the mean utility of a job."""

_LEAST_JOBS, _FIRST_JOBS, _MOST_JOBS = 3.0, 6.0, 12.0
"""Jobs planned afresh: at least, at first, at most."""

_GROW, _SHRINK = 0.1, 0.3
"""Change of that number after a try that was decided, and after one that was not."""

_TRY_S = 0.3
"""Deterministic time of a try."""

_NEAR = 0.7
"""Share of tries with jobs that complete at about the same time; else any jobs."""

_LARGEST_UTILITY = 1e6
"""The largest utility in the programme's whole numbers."""


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


@dataclass(frozen=True, eq=False)
class _Programme:
    """Constraint programme for the jobs that are planned afresh: variables, and terms of the value.

    Parameters
    ----------
    whole : WholeProgram
    runs : dict
        By job and round: variables by speed, only of speeds for which there is room.
    completes : dict
        By job: variables by round.
    value : dict
        Terms of the value.
    """

    whole: WholeProgram
    runs: dict[tuple[int, int], dict[int, int]]
    completes: dict[int, dict[int, int]]
    value: dict[int, int]


class Neighbours:
    """Looks for better plans near the best one by planning a few jobs afresh, exactly.

    Most jobs of the best plan stay as they are; CP-SAT plans the others in what is left of capacity so
    that their utility is larger than it was. Jobs that complete at about the same time are chosen most
    often, as they are in each other's way. The number of jobs grows while CP-SAT decides within its time
    and shrinks where it does not. Only completions with which a plan may still be better than the best
    are tried, so the bound helps the search.

    Parameters
    ----------
    deadlines : Deadlines
    plans : Plans
        Gets every better plan.
    seed : int
    """

    def __init__(self, deadlines: Deadlines, plans: Plans, seed: int = 0) -> None:
        self.deadlines = deadlines
        self.plans = plans
        self.jobs = plans.jobs
        self.size = _FIRST_JOBS
        self.cpu_s = 0.0
        self._random = np.random.default_rng(seed)
        most = float(self.jobs.utility.values.max(initial=0.0))
        whole = np.rint(self.jobs.utility.values * (_LARGEST_UTILITY / max(most, 1e-300)))
        self._utility = whole.astype(np.int64)

    def search(self, ends: NDArray[np.bool_], until_s: float, patience: int) -> None:
        """Try until the time is up or some tries in a row have found nothing.

        Parameters
        ----------
        ends : ndarray of bool, shape (jobs, rounds + 1)
            Completions to consider.
        until_s : float
            Process time at which to stop [s].
        patience : int
            Tries in a row without a better plan.
        """
        left = patience
        while left and time.process_time() < until_s:
            left = patience if self.improve(ends) else left - 1

    def improve(self, ends: NDArray[np.bool_]) -> bool:
        """Try once; True if that gave a better plan."""
        if not self.deadlines.usable or not self.jobs.jobs:
            return False
        began, before = time.process_time(), self.plans.value
        free = self._free_jobs()
        room = self._room(free)
        programme = _Programme(WholeProgram(), {}, {}, {})
        for job in free:
            self._add_job(programme, job, ends[job], room)
        self._add_capacity(programme, free, room)
        self._add_value(programme, free)
        effort = SearchEffort(CLOCK_FACTOR * _TRY_S, _TRY_S, relaxations=False)
        answer = ask_whole(programme.whole, effort)
        decided = answer.status in (SearchStatus.OPTIMAL, SearchStatus.INFEASIBLE)
        step = _GROW if decided else -_SHRINK
        self.size = float(np.clip(self.size + step, _LEAST_JOBS, _MOST_JOBS))
        if answer.values is not None:
            self._offer(programme, free, answer.values)
        self.cpu_s += time.process_time() - began
        return self.plans.value > before

    def _free_jobs(self) -> list[int]:
        """Jobs to plan afresh."""
        random, n = self._random, self.jobs.jobs
        distance = random.random(n)
        if random.random() < _NEAR:
            ends = self._ends()
            distance = np.abs(ends - ends[random.integers(n)]) + distance * random.choice([2, 6])
        nearest: list[int] = np.argsort(distance)[: round(self.size)].tolist()
        return nearest

    def _ends(self) -> NDArray[np.int64]:
        """Rounds in which jobs complete; the number of rounds for those left out."""
        best, rounds = self.plans.schedules, self.jobs.rounds
        return np.array(
            [len(best[job]) - 1 if job in best else rounds for job in range(self.jobs.jobs)]
        )

    def _room(self, free: list[int]) -> NDArray[np.float64]:
        """Capacity that the jobs which stay leave, shape (rounds, rows)."""
        rows = self.plans.capacity_rows
        room = np.tile(rows.capacity, (self.jobs.rounds, 1))
        for job in self.plans.schedules.keys() - set(free):
            speeds = np.array(self.plans.schedules[job])
            busy = np.flatnonzero(speeds != IDLE)
            room[busy] -= rows.gpus[job][speeds[busy]]
        return room

    def _add_job(
        self, programme: _Programme, job: int, ends: NDArray[np.bool_], room: NDArray[np.float64]
    ) -> None:
        """Add the runs and the completion of a job; it does not run after that."""
        whole, demand = programme.whole, self.plans.capacity_rows.gpus[job]
        completes = {t: whole.binary() for t in np.flatnonzero(ends[:-1]).tolist()}
        left_out = whole.binary()
        whole.row(dict.fromkeys([*completes.values(), left_out], 1), low=1, high=1)
        programme.completes[job] = completes
        programme.value.update({done: int(self._utility[job, t]) for t, done in completes.items()})
        weights, enough = self.deadlines.weights(job)
        work: list[tuple[int, int, int]] = []
        for t in range(int(self.jobs.first[job]), max(completes, default=-1) + 1):
            own = {
                speed: whole.binary()
                for speed, gpus in enumerate(demand)
                if np.all(gpus <= room[t])
            }
            programme.runs[job, t] = own
            complete_before = [done for u, done in completes.items() if u < t]
            whole.single.append([*own.values(), *complete_before, left_out])
            work += [(t, run, weights[speed]) for speed, run in own.items()]
        for end, done in completes.items():
            terms = {run: weight for t, run, weight in work if t <= end}
            whole.row(terms, low=enough, only_if=done)

    def _add_capacity(
        self, programme: _Programme, free: list[int], room: NDArray[np.float64]
    ) -> None:
        """Add the rows of capacity, of what the jobs that stay leave."""
        gpus = self.plans.capacity_rows.gpus
        for t, left in enumerate(room.tolist()):
            here = [
                (gpus[job][speed], run)
                for job in free
                for speed, run in programme.runs.get((job, t), {}).items()
            ]
            for row, most in enumerate(left):
                terms = {run: int(demand[row]) for demand, run in here if demand[row]}
                if terms:
                    programme.whole.row(terms, high=int(most))

    def _add_value(self, programme: _Programme, free: list[int]) -> None:
        """Ask for more utility than the jobs have in the best plan, and for as much as there is."""
        ends = self._ends()
        least = 1 + sum(int(self._utility[j, ends[j]]) for j in free)
        programme.whole.row(programme.value, low=least)
        programme.whole.cost = {variable: -utility for variable, utility in programme.value.items()}

    def _offer(self, programme: _Programme, free: list[int], values: Sequence[int]) -> None:
        """Offer the plan of an answer, with jobs that still find room."""
        schedules: dict[int, Speeds] = {
            job: speeds for job, speeds in self.plans.schedules.items() if job not in free
        }
        for job in free:
            for end in (t for t, done in programme.completes[job].items() if values[done]):
                speeds = [IDLE] * (end + 1)
                for t in range(end + 1):
                    for speed, run in programme.runs.get((job, t), {}).items():
                        if values[run]:
                            speeds[t] = speed
                schedules[job] = self.deadlines.until_complete(job, speeds)
        self.plans.offer(self.plans.filled(schedules))
