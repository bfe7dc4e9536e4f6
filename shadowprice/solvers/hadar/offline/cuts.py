r"""Cuts from completions that cannot all be kept, for Hadar's offline optimum.

If jobs Q cannot all be complete by the ends of rounds C_j, then every plan has

.. math:: \sum_{j \in Q} z_{j C_j} \le |Q| - 1

with z_jC = 1 if j is complete by the end of round C (logic-based Benders cuts, Hooker and Ottosson,
Mathematical Programming 96, 2003). Candidates are the completions of the relaxed solution, each
as late as it goes or earlier as far as the cut would still be violated;
:mod:`hadar_offline_deadlines` decides. A conflict is then made as small and as late as it stays
one. Terms depend on completions only, so the pricing stays what it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.offline.feasibility import Deadlines
from shadowprice.solvers.hadar.offline.heuristics import Plans

_SHARE = 1e-6

_SLACK = 0.9
"""Most that completions of a candidate may lack; a cut is violated by 1 less this."""


@dataclass(frozen=True)
class Effort:
    """How much is spent on cuts.

    Parameters
    ----------
    times : int
        Rounds of separation.
    candidates : int
        Sets of completions looked at.
    check_s : float
        Time for one set [s].
    strengthen_s : float
        Time for one set while a conflict is made smaller and later [s].
    cuts : int
        Cuts after which to stop.
    whole : bool
        Look only where completions are whole.
    """

    times: int
    candidates: int
    check_s: float
    strengthen_s: float
    cuts: int
    whole: bool


class Conflicts:
    """Finds conflicts and remembers what was decided.

    Parameters
    ----------
    deadlines : Deadlines
    plans : Plans
        Gets every plan that a check finds.
    seed : int
    """

    def __init__(self, deadlines: Deadlines, plans: Plans, seed: int = 0) -> None:
        self.deadlines, self.plans = deadlines, plans
        self.jobs = plans.jobs
        self.checks = 0
        self._random = np.random.default_rng(seed)
        self._none = self.jobs.rounds
        self._feasible = np.zeros((0, self.jobs.jobs), dtype=np.int64)
        self._conflicts = np.zeros((0, self.jobs.jobs), dtype=np.int64)

    def decide(self, ends: NDArray[np.int64], check_s: float) -> bool | None:
        """Whether jobs can keep their completions; None if it was not found out.

        Parameters
        ----------
        ends : ndarray of int, shape (jobs,)
            Rounds; the number of rounds for a job that need not complete.
        """
        if np.any(np.all(self._feasible <= ends, axis=1)):
            return True
        if np.any(np.all(ends <= self._conflicts, axis=1)):
            return False
        self.checks += 1
        wanted = {int(j): int(ends[j]) for j in np.flatnonzero(ends < self._none)}
        found = self.deadlines.check(wanted, check_s)
        if not found.known:
            return None
        if found.chosen is not None:
            self.plans.offer(self.plans.filled(dict(found.chosen)))
            self._feasible = np.concatenate((self._feasible, ends[None, :]))
            return True
        core = np.full(len(ends), self._none)
        core[list(found.core)] = ends[list(found.core)]
        self._conflicts = np.concatenate((self._conflicts, core[None, :]))
        return False

    def separate(
        self, completes: NDArray[np.float64], latest: NDArray[np.int64], effort: Effort
    ) -> list[NDArray[np.int64]]:
        """Conflicts that a relaxed solution violates, as completions like those of :meth:`decide`.

        Parameters
        ----------
        completes : ndarray, shape (jobs, rounds + 1)
            How much of each job completes in each round; last what is left out.
        latest : ndarray of int, shape (jobs,)
            Completions no plan of interest exceeds; the number of rounds if it may be left out.
        """
        until = np.cumsum(completes, axis=1)
        found: list[NDArray[np.int64]] = []
        for k in range(effort.candidates):
            ends = self._candidate(until, hurry=k > 0)
            if self.decide(ends, effort.check_s) is False:
                found.append(self._strengthened(ends, until, latest, effort.strengthen_s))
                if len(found) >= effort.cuts:
                    break
        return found

    def _candidate(self, until: NDArray[np.float64], *, hurry: bool) -> NDArray[np.int64]:
        """Completions whose cut would be violated."""
        none = self._none
        ends = np.where(
            until[:, -2] > 1.0 - _SHARE, np.argmax(until > 1.0 - _SHARE, axis=1), none
        ).astype(np.int64)
        if not hurry:
            return ends
        slack = 0.0
        for job in self._random.permutation(len(ends)).tolist():
            options = np.flatnonzero(np.diff(until[job, :-1], prepend=0.0) > _SHARE)
            options = options[options < ends[job]]
            have = 1.0 if ends[job] == none else float(until[job, ends[job]])
            while len(options):
                # What is left out already costs all that it lacks.
                lack = (1.0 if ends[job] == none else have) - float(until[job, options[-1]])
                if slack + lack > _SLACK:
                    break
                slack += lack
                ends[job], have = options[-1], float(until[job, options[-1]])
                options = options[:-1]
                if self._random.random() < 0.5:
                    break
        return ends

    def _strengthened(
        self,
        ends: NDArray[np.int64],
        until: NDArray[np.float64],
        latest: NDArray[np.int64],
        check_s: float,
    ) -> NDArray[np.int64]:
        """A known conflict that implies a given one, made smaller and later if there is time."""
        ends = self._shrunk(ends)
        if not check_s:
            return ends
        # Jobs that lack most first: without them the cut is violated by more.
        order = np.argsort(until[np.arange(len(ends)), np.minimum(ends, self._none - 1)])
        for job in order.tolist():
            if ends[job] == self._none:
                continue
            other = ends.copy()
            other[job] = self._none
            if self.decide(other, check_s) is False:
                ends = self._shrunk(other)
        for job in order.tolist():
            while ends[job] < min(latest[job], self._none - 1):
                other = ends.copy()
                other[job] += 1
                if self.decide(other, check_s) is not False:
                    break
                ends = other
        return ends

    def _shrunk(self, ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """The last known conflict that implies a given one."""
        known = np.flatnonzero(np.all(ends <= self._conflicts, axis=1))
        conflict: NDArray[np.int64] = self._conflicts[known[-1]].copy()
        return conflict

    def cuts(
        self, conflicts: list[NDArray[np.int64]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights of completions, shape (cuts, jobs, rounds + 1), and what they add up to at most."""
        rounds = np.arange(self._none + 1)
        table = np.array(conflicts)[:, :, None]
        inside = table < self._none
        weights = ((rounds <= table) & inside).astype(np.float64)
        return weights, inside.sum(axis=(1, 2)) - 1.0
