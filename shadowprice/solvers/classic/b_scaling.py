"""The b-scaling strategy (``b-scaling``): jobs are tried for a time; who needs more is tried again, b times as long.

Source: Jäger, Sagnol, Schmidt genannt Waldschmidt, Warode: Competitive kill-and-restart and preemptive strategies
for non-clairvoyant scheduling, IPCO 2023 (recalled); for one machine where a job that is stopped loses its work
(``--with restart``). Ours: with gangs whatever fits starts, in the same order; a job is stopped only where
another waits for GPUs, and goes on where nobody takes its own.

Guarantee: on one machine, jobs released together, total flow time at most 1 + 3 sqrt(3) times the optimum for b = 3,
without knowing a run time (KR-scale). Knows: nothing. Preempts. Cost per decision: O(L log L) for L live jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICK_S, check_seconds
from shadowprice.solvers.policy import Decision, Knowledge, State

_MOST_B = 1_000_000


@dataclass
class _Tries:
    """Number of each job's try, from 0, and the time it had run before this one [s]."""

    number: dict[int, int] = field(default_factory=dict)
    before_s: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BScaling:
    """Try jobs by number of tries, ties by arrival; the q-th try, from 0, is for ``first_s * b**q`` seconds.

    Parameters
    ----------
    b : int
        Each try is so many times as long as the one before, at least 2.
    first_s : float
        Length of the first try [s].
    """

    name: str = "b-scaling"
    b: int = 3
    first_s: float = 1.0
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (isinstance(self.b, int) and 2 <= self.b <= _MOST_B):
            raise InputError(
                f"{self.name}: b is {self.b!r}, expected a whole number from 2 to {_MOST_B}"
            )
        check_seconds(f"{self.name}: first_s", self.first_s)

    def decide(self, state: State) -> Decision:
        """Stop whose try is over, if anybody waits, and start what fits, the fewest tries first."""
        decision = Decision(state)
        tries = state.notes(_Tries)
        for job in state.completed:
            tries.number.pop(job, None)
            tries.before_s.pop(job, None)
        if not state.waiting:
            return decision
        ran_s = self._ran_s(state, tries)
        over = [job for job, seconds in ran_s.items() if seconds >= self._limit_s(tries, job)]
        for job in over:
            decision.stop(job)
            while self._limit_s(tries, job) <= ran_s[job]:
                tries.number[job] = tries.number.get(job, 0) + 1
        self._start(state, decision, tries, over)
        self._wake(state, decision, tries, ran_s)
        return decision

    def _start(self, state: State, decision: Decision, tries: _Tries, over: list[int]) -> None:
        waiting = list(state.waiting)
        attained_s = dict(zip(waiting, state.columns(waiting).attained_s.tolist(), strict=True))
        for job in sorted((*waiting, *over), key=lambda each: (tries.number.get(each, 0), each)):
            if job not in attained_s:
                decision.resume_in_place(job)
            elif decision.start(job):
                tries.before_s[job] = attained_s[job]
        if any(state.gang[job] <= decision.free_gpus for job in decision.stops):
            # Elsewhere a job that was stopped can start only once it waits.
            decision.wake_at(state.now_s + TICK_S)

    def _wake(
        self, state: State, decision: Decision, tries: _Tries, ran_s: dict[int, float]
    ) -> None:
        """Ask again when the first try is over."""
        there = [*decision.starts, *(job for job in ran_s if job not in decision.stops)]
        left_s = [self._limit_s(tries, job) - ran_s.get(job, 0.0) for job in there]
        takes_s = state.columns(there).takes_s(np.array(left_s))
        start_s = state.environment.overheads.start_s
        for job, seconds in zip(there, takes_s.tolist(), strict=True):
            begun = job in decision.starts
            decision.wake_at(state.now_s + seconds + (start_s if begun else 0.0))

    def _ran_s(self, state: State, tries: _Tries) -> dict[int, float]:
        """Time that each running job has run in its present try [s]."""
        running = list(state.running)
        attained_s = state.columns(running).attained_s.tolist()
        return {
            job: seconds - tries.before_s[job]
            for job, seconds in zip(running, attained_s, strict=True)
        }

    def _limit_s(self, tries: _Tries, job: int) -> float:
        """Length of a job's try [s]."""
        return self.first_s * float(self.b) ** tries.number.get(job, 0)


POLICIES = (BScaling(),)
