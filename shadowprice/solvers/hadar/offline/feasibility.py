r"""Whether jobs can all be complete by given rounds: the hard part that relaxations do not see.

Given completions, Hadar's offline programme asks only whether they can be kept: a bin packing of
gangs into rounds. Relaxed schedules often can where whole ones cannot, and branching on rounds is
slow there because rounds are alike. CP-SAT decides it, in integers throughout. Schedules that it finds
are checked; that there are none is its word, which nothing else confirms. A job is complete
by weights of its levels that are whole numbers and were checked to rank every combination of
levels as exact fractions do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.demand import Demand
from shadowprice.solvers.hadar.offline.pricing import IDLE, Levels, States
from shadowprice.solvers.programs.gate import ask_whole
from shadowprice.solvers.programs.whole import Effort, Said, WholeProgram

_PATIENCE = 20.0
"""Most time by the clock, relative to the deterministic time."""

_SCALE = 2.0**40
"""Work of a whole job in weights."""


@dataclass(frozen=True)
class Verdict:
    """Whether deadlines can be kept.

    Parameters
    ----------
    known : bool
        Whether the time sufficed.
    chosen : mapping of int to Levels, optional
        Schedules that keep them, if they can be kept.
    core : tuple of int
        Jobs that cannot keep them together, if not.
    """

    known: bool
    chosen: Mapping[int, Levels] | None = field(default=None, repr=False)
    core: tuple[int, ...] = ()


class Deadlines:
    """Decides deadlines of jobs.

    Parameters
    ----------
    jobs : RoundJobs
    demand : Demand
    states : sequence of States
        By job.
    """

    def __init__(self, jobs: RoundJobs, demand: Demand, states: Sequence[States]) -> None:
        self.jobs, self.demand = jobs, demand
        self._weights = [_weights(jobs, job, one) for job, one in enumerate(states)]

    @property
    def usable(self) -> bool:
        """Whether whole-number weights stand for the work of every job."""
        return all(weights is not None for weights in self._weights)

    def check(self, ends: Mapping[int, int], time_limit_s: float) -> Verdict:
        """Whether jobs can all be complete by the ends of given rounds.

        Parameters
        ----------
        ends : mapping of int to int
            By job.
        time_limit_s : float
            CP-SAT's deterministic time, on one thread: seconds of a machine at rest, roughly.
        """
        if not self.usable:
            return Verdict(False)
        program = WholeProgram()
        runs: dict[tuple[int, int], list[int]] = {}
        kept = {job: self._work(program, runs, job, end) for job, end in ends.items()}
        self._capacity(program, runs)
        program.assumed = list(kept.values())
        # Counted work, not the clock: the same on a busy machine. Bounds by linear programmes were
        # measured to cost four times what they save here.
        patience_s = _PATIENCE * max(time_limit_s, 0.01)
        answer = ask_whole(program, Effort(patience_s, time_limit_s, relaxations=False))
        if answer.said is Said.INFEASIBLE:
            names = {literal: job for job, literal in kept.items()}
            return Verdict(True, core=tuple(names[k] for k in answer.core) or tuple(ends))
        if answer.values is None:
            return Verdict(False)
        levels = {job: [IDLE] * (end + 1) for job, end in ends.items()}
        for (job, t), own in runs.items():
            for level, run in enumerate(own):
                if answer.values[run]:
                    levels[job][t] = level
        return Verdict(True, {job: self.until_complete(job, one) for job, one in levels.items()})

    def _work(
        self, program: WholeProgram, runs: dict[tuple[int, int], list[int]], job: int, end: int
    ) -> int:
        """The rounds of a job up to a deadline; a literal that it is then complete."""
        weights, whole = self.weights(job)
        work: dict[int, int] = {}
        for t in range(int(self.jobs.first[job]), end + 1):
            own = runs[job, t] = [program.binary() for _ in self.jobs.levels[job]]
            program.single.append(own)
            work |= dict(zip(own, weights, strict=True))
        kept = program.binary()
        program.row(work, low=whole, only_if=kept)
        return kept

    def _capacity(self, program: WholeProgram, runs: Mapping[tuple[int, int], list[int]]) -> None:
        for t in range(self.jobs.rounds):
            here = [(job, runs[job, t]) for job in range(self.jobs.jobs) if (job, t) in runs]
            for row, room in enumerate(self.demand.capacity.tolist()):
                terms = {
                    run: int(self.demand.gpus[job][level, row])
                    for job, own in here
                    for level, run in enumerate(own)
                    if self.demand.gpus[job][level, row]
                }
                if terms:
                    program.row(terms, high=int(room))

    def weights(self, job: int) -> tuple[list[int], int]:
        """Work of a round at each level of a job and of the whole job; only where usable."""
        weights = self._weights[job]
        assert weights is not None
        return weights

    def until_complete(self, job: int, levels: list[int]) -> Levels:
        """A schedule, given as levels by round, up to the round in which it completes the job."""
        weights, whole = self.weights(job)
        done = 0
        for t, level in enumerate(levels):
            done += 0 if level == IDLE else weights[level]
            if done >= whole:
                return tuple(levels[: t + 1])
        return tuple(levels)


def _weights(jobs: RoundJobs, job: int, states: States) -> tuple[list[int], int] | None:
    """Weights of levels and of the whole job, such that levels complete it iff theirs reach it."""
    levels = jobs.levels[job]
    weights = [int(_SCALE * min(1.0, jobs.utility.round_s / level.seconds)) for level in levels]
    if min(weights, default=1) <= 0:
        return None
    done = _work(states, weights)
    most = int(done.max(initial=0))
    least = [int(done[last].min()) + w for last, w in zip(states.last, weights, strict=True)
             if len(last)]  # fmt: skip
    whole = min(least, default=most + 1)
    return (weights, whole) if most < whole else None


def _work(states: States, weights: list[int]) -> NDArray[np.int64]:
    """Weight of what is done in every state; a state comes after those that lead to it."""
    done = np.zeros(len(states.before), dtype=np.int64)
    for state, sources in enumerate(states.before.tolist()):
        for level, source in enumerate(sources):
            if source >= 0:
                done[state] = done[source] + weights[level]
                break
    return done
