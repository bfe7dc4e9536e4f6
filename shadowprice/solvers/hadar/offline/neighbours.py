r"""Better plans for Hadar's offline optimum: a few jobs planned afresh at a time, exactly.

Most jobs of the best plan stay as they are; CP-SAT plans the others in what is left of capacity so
that their utility is larger than it was (large neighbourhood search, Shaw, CP 1998). Jobs that
complete at about the same time are chosen most often, as they are in each other's way. The number
of jobs grows while CP-SAT decides within its time and shrinks where it does not. Only completions
with which a plan may still be better than the best are tried, so the bound helps the search.

Complexity: a try is a constraint programme with k jobs, exponential in k, cut off by time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.offline.feasibility import Deadlines
from shadowprice.solvers.hadar.offline.heuristics import Plans
from shadowprice.solvers.hadar.offline.pricing import IDLE, Levels
from shadowprice.solvers.programs.gate import ask_whole
from shadowprice.solvers.programs.whole import Effort, Said, WholeProgram

_LEAST, _FIRST, _MOST = 3.0, 6.0, 12.0
"""Jobs planned afresh: at least, at first, at most."""

_GROW, _SHRINK = 0.1, 0.3
"""Change of that number after a try that was decided, and after one that was not."""

_TRY_S = 0.3
"""Deterministic time of a try."""

_NEAR = 0.7
"""Share of tries with jobs that complete at about the same time; else any jobs."""

_SCALE = 1e6
"""The largest utility in the programme's whole numbers."""

_PATIENCE = 20.0
"""Most time by the clock, relative to the deterministic time."""


@dataclass(frozen=True, eq=False)
class _Programme:
    """What is decided about the jobs that are planned afresh.

    Parameters
    ----------
    whole : WholeProgram
    runs : dict
        By job and round: variables by level, only of levels for which there is room.
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
    """Looks for better plans near the best one.

    Parameters
    ----------
    deadlines : Deadlines
    plans : Plans
        Gets every better plan.
    seed : int
    """

    def __init__(self, deadlines: Deadlines, plans: Plans, seed: int = 0) -> None:
        self.deadlines, self.plans, self.jobs = deadlines, plans, plans.jobs
        self.size = _FIRST
        self.cpu_s = 0.0
        self._random = np.random.default_rng(seed)
        most = float(self.jobs.utility.values.max(initial=0.0))
        whole = np.rint(self.jobs.utility.values * (_SCALE / max(most, 1e-300)))
        self._worth = whole.astype(np.int64)

    def search(self, ends: NDArray[np.bool_], until_s: float, patience: int) -> None:
        """Tries until the time is up or some in a row have found nothing.

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
        """One try; whether it found a better plan."""
        if not self.deadlines.usable or not self.jobs.jobs:
            return False
        began, before = time.process_time(), self.plans.value
        free = self._choose()
        room = self._room(free)
        programme = _Programme(WholeProgram(), {}, {}, {})
        for job in free:
            self._job(programme, job, ends[job], room)
        self._capacity(programme, free, room)
        effort = Effort(_PATIENCE * _TRY_S, _TRY_S, relaxations=False)
        answer = ask_whole(programme.whole, effort)
        decided = answer.said in (Said.OPTIMAL, Said.INFEASIBLE)
        step = _GROW if decided else -_SHRINK
        self.size = float(np.clip(self.size + step, _LEAST, _MOST))
        if answer.values is not None:
            self._take(programme, free, answer.values)
        self.cpu_s += time.process_time() - began
        return self.plans.value > before

    def _choose(self) -> list[int]:
        """Jobs to plan afresh."""
        random, n = self._random, self.jobs.jobs
        near = random.random(n)
        if random.random() < _NEAR:
            ends = self._ends()
            near = np.abs(ends - ends[random.integers(n)]) + near * random.choice([2, 6])
        chosen: list[int] = np.argsort(near)[: round(self.size)].tolist()
        return chosen

    def _ends(self) -> NDArray[np.int64]:
        """Rounds in which jobs complete; the number of rounds for those left out."""
        chosen, rounds = self.plans.chosen, self.jobs.rounds
        return np.array(
            [len(chosen[job]) - 1 if job in chosen else rounds for job in range(self.jobs.jobs)]
        )

    def _room(self, free: list[int]) -> NDArray[np.float64]:
        """Capacity that the jobs which stay leave, shape (rounds, rows)."""
        demand = self.plans.demand
        room = np.tile(demand.capacity, (self.jobs.rounds, 1))
        for job in self.plans.chosen.keys() - set(free):
            levels = np.array(self.plans.chosen[job])
            busy = np.flatnonzero(levels != IDLE)
            room[busy] -= demand.gpus[job][levels[busy]]
        return room

    def _job(
        self, programme: _Programme, job: int, ends: NDArray[np.bool_], room: NDArray[np.float64]
    ) -> None:
        """Where a job runs and when it completes; nothing after that."""
        whole, asked = programme.whole, self.plans.demand.gpus[job]
        completes = {t: whole.binary() for t in np.flatnonzero(ends[:-1]).tolist()}
        left_out = whole.binary()
        whole.row(dict.fromkeys([*completes.values(), left_out], 1), low=1, high=1)
        programme.completes[job] = completes
        programme.value.update({done: int(self._worth[job, t]) for t, done in completes.items()})
        weights, enough = self.deadlines.weights(job)
        work: list[tuple[int, int, int]] = []
        for t in range(int(self.jobs.first[job]), max(completes, default=-1) + 1):
            own = {
                level: whole.binary() for level, gpus in enumerate(asked) if np.all(gpus <= room[t])
            }
            programme.runs[job, t] = own
            over = [done for u, done in completes.items() if u < t]
            whole.single.append([*own.values(), *over, left_out])
            work += [(t, run, weights[level]) for level, run in own.items()]
        for end, done in completes.items():
            terms = {run: weight for t, run, weight in work if t <= end}
            whole.row(terms, low=enough, only_if=done)

    def _capacity(self, programme: _Programme, free: list[int], room: NDArray[np.float64]) -> None:
        whole, gpus = programme.whole, self.plans.demand.gpus
        for t, left in enumerate(room.tolist()):
            here = [
                (gpus[job][level], run)
                for job in free
                for level, run in programme.runs.get((job, t), {}).items()
            ]
            for row, most in enumerate(left):
                terms = {run: int(asked[row]) for asked, run in here if asked[row]}
                if terms:
                    whole.row(terms, high=int(most))
        ends = self._ends()
        least = 1 + sum(int(self._worth[j, ends[j]]) for j in free)
        whole.row(programme.value, low=least)
        whole.cost = {variable: -worth for variable, worth in programme.value.items()}

    def _take(self, programme: _Programme, free: list[int], values: Sequence[int]) -> None:
        """Offer the plan that was found, with jobs that still find room."""
        chosen: dict[int, Levels] = {
            job: levels for job, levels in self.plans.chosen.items() if job not in free
        }
        for job in free:
            for end in (t for t, done in programme.completes[job].items() if values[done]):
                levels = [IDLE] * (end + 1)
                for t in range(end + 1):
                    for level, run in programme.runs.get((job, t), {}).items():
                        if values[run]:
                            levels[t] = level
                chosen[job] = self.deadlines.until_complete(job, levels)
        self.plans.offer(self.plans.filled(chosen))
