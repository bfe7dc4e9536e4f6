r"""Cuts from completions that cannot all be kept, for Hadar's offline optimum.

If jobs Q cannot all be complete by the ends of rounds C_j, then every plan has

.. math:: \sum_{j \in Q} z_{j C_j} \le |Q| - 1

with z_jC = 1 if j is complete by the end of round C (logic-based Benders cuts, Hooker and Ottosson,
Mathematical Programming 96, 2003). Candidates are the completions of the relaxed solution, each
as late as it goes or earlier as far as the cut would still be violated;
:mod:`.feasibility` decides. A conflict is then made as small and as late as it stays
one. Terms depend on completions only, so the pricing stays what it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.feasibility import Deadlines
from shadowprice.solvers.hadar.offline.heuristics import Plans
from shadowprice.solvers.programs.highs import HighsEnding, Series

_SHARE = 1e-6

_SLACK = 0.9
"""Most that completions of a candidate may lack; a cut is violated by 1 less this."""


@dataclass(frozen=True)
class CutEffort:
    """Limits of the effort spent on cuts.

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
        """True if jobs can keep their completions; None if it was not found out.

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
        self, completes: NDArray[np.float64], latest: NDArray[np.int64], effort: CutEffort
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


# Cuts from what fits into one round, for Hadar's offline optimum.
#
# In a round every job runs at most once, at one level, and the gangs that run have places (Hall's
# condition). The rows of :mod:`.feasibility` treat gangs of a size alike, as if a job could
# run several times: a gang of 3 next to three gangs of 1 may take 2/3 of 3 GPUs and the others all
# of what is left of theirs. The convex hull of what fits is smaller. For shares y_jl of a round
#
# .. math:: \max_w \sum w_{jl} y_{jl} \quad \text{s.t.} \quad \sum_{(j,l) \in P} w_{jl} \le 1
#           \text{ for every set P that fits}, \; w \ge 0
#
# is more than 1 iff they are outside it, and w is then a cut (Fenchel cuts, Boyd, Operations Research
# 42, 1994). Sets P are found one after another by a dynamic programme over the GPUs left of each
# type; it also lifts the cut to the jobs and levels that have no share. Weights are whole numbers, so
# the limit is exact. A cut has coefficients by round, job and level, so pricing stays what it is, and
# one found in a round holds in every other.
#
# Complexity: a set costs O(J R P C) for P ways to place a gang and C = prod_r (c_r + 1).


MAX_LEFT = 3000
"""Vectors of GPUs left, prod (c_r + 1), beyond which there are no such cuts."""

_UNIT = 840.0
"""Weight of the limit before rounding: a multiple of 1 to 8, as the weights are often 1/k."""

_VIOLATION = 0.01
"""Least violation of a cut, relative to its limit."""

_TIMES = 100
"""Most sets for one cut."""

Place = tuple[slice, ...]
Option = tuple[float, list[tuple[Place, Place]]]
"""A weight, and for each way to place the gang: GPUs left with it, and what they are without."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """A cut for any one round.

    Parameters
    ----------
    weights : ndarray, shape (jobs, levels)
    limit : float
    """

    weights: NDArray[np.float64]
    limit: float


class PackingCuts:
    """Finds cuts and remembers them.

    Parameters
    ----------
    jobs : RoundJobs
    """

    def __init__(self, jobs: RoundJobs) -> None:
        self.jobs = jobs
        self._size = tuple((jobs.capacity + 1).tolist())
        self.usable = bool(np.prod(self._size, dtype=np.float64) <= MAX_LEFT)
        self.width = max((len(levels) for levels in jobs.levels), default=0)
        self._patterns: list[Pattern] = []
        self._ways = (
            [
                [self._placements(level.types, int(jobs.gang[job])) for level in levels]
                for job, levels in enumerate(jobs.levels)
            ]
            if self.usable
            else []
        )

    def separate(self, share: NDArray[np.float64], *, fresh: bool) -> list[tuple[int, Pattern]]:
        """Violated cuts and their rounds.

        Parameters
        ----------
        share : ndarray, shape (rounds, jobs, levels)
            How much of each job runs at a level in a round.
        fresh : bool
            Look for new cuts where none of the known ones is violated.
        """
        if not self.usable:
            return []
        found: list[tuple[int, Pattern]] = []
        for t, own in enumerate(share):
            known = [p for p in self._patterns if _violation(p, own) > _VIOLATION]
            known.sort(key=lambda p: -_violation(p, own))
            if not known and fresh:
                pattern = self._find(own)
                known = [] if pattern is None else [pattern]
                self._patterns += known
            found += [(t, p) for p in known[:2]]
        return found

    def _find(self, share: NDArray[np.float64]) -> Pattern | None:
        """A cut that shares of a round violate."""
        support = [(int(job), int(level)) for job, level in np.argwhere(share > _SHARE)]
        if len(support) < 2:
            return None
        # The programme proposes weights; what a cut is worth is evaluated by `_lifted`.
        series, n = Series(maximise=True), len(support)
        place = {pair: k for k, pair in enumerate(support)}
        values = np.array([share[pair] for pair in support])
        none = [np.zeros(0, dtype=np.int64)] * n
        series.columns(values, np.ones(n), none, [np.zeros(0)] * n)
        weights = np.zeros(share.shape)
        for _ in range(_TIMES):
            found = series.solve()
            if found.outcome is not HighsEnding.OPTIMAL or found.value <= 1.0 + _VIOLATION:
                return None
            weights[tuple(np.array(support).T)] = np.maximum(found.primal, 0.0)
            fits = self._heaviest(weights)
            if sum(weights[pair] for pair in fits) <= 1.0 + 1e-6:
                break
            index = np.array([place[pair] for pair in fits], dtype=np.int32)
            series.row(-np.inf, 1.0, index, np.ones(len(index)))
        pattern = self._lifted(np.rint(weights * _UNIT), share)
        return pattern if _violation(pattern, share) > _VIOLATION else None

    def _lifted(self, weights: NDArray[np.float64], share: NDArray[np.float64]) -> Pattern:
        """The least limit for whole weights, which are then made as large as it allows."""
        limit = float(self._most(weights, range(self.jobs.jobs))[-1].flat[-1])
        for job in np.argsort(-share.sum(axis=1), kind="stable").tolist():
            others = self._most(weights, [j for j in range(self.jobs.jobs) if j != job])[-1]
            for level, ways in enumerate(self._ways[job]):
                beside = max((float(others[rest].flat[-1]) for _, rest in ways), default=limit)
                weights[job, level] = max(weights[job, level], limit - beside)
        return Pattern(weights / _UNIT, limit / _UNIT)

    def _most(self, weights: NDArray[np.float64], among: Any) -> list[NDArray[np.float64]]:
        """Largest weight that fits into each vector of GPUs, with ever more jobs of some."""
        tables = [np.zeros(self._size)]
        for job in among:
            now = tables[-1]
            then = now
            if weights[job].any():
                then = now.copy()
                for level, ways in enumerate(self._ways[job]):
                    if weights[job, level] > 0:
                        for held, rest in ways:
                            np.maximum(then[held], now[rest] + weights[job, level], out=then[held])
            tables.append(then)
        return tables

    def _heaviest(self, weights: NDArray[np.float64]) -> list[tuple[int, int]]:
        """Jobs and levels of largest weight that fit together."""
        among = np.flatnonzero(weights.any(axis=1)).tolist()
        tables = self._most(weights, among)
        left, chosen = tuple(k - 1 for k in self._size), []
        for job, before, after in reversed(list(zip(among, tables[:-1], tables[1:], strict=True))):
            if before[left] == after[left]:
                continue
            # The same sums as on the way forward, so equality is exact.
            level, left = next(
                (level, rest)
                for level, ways in enumerate(self._ways[job])
                for held, _ in ways
                if (rest := _minus(left, held)) is not None
                and before[rest] + weights[job, level] == after[left]
                and weights[job, level] > 0
            )
            chosen.append((job, level))
        return chosen

    def _placements(self, types: tuple[int, ...], gang: int) -> list[tuple[Place, Place]]:
        """Ways to place a gang: vectors of GPUs that hold it, and the same without it."""
        options = [
            range(min(gang, int(self.jobs.capacity[r])) + 1) if r in types else range(1)
            for r in range(self.jobs.types)
        ]
        return [
            (
                tuple(slice(k, None) for k in gpus),
                tuple(slice(0, size - k) for k, size in zip(gpus, self._size, strict=True)),
            )
            for gpus in product(*options)
            if sum(gpus) == gang
        ]


def _violation(pattern: Pattern, share: NDArray[np.float64]) -> float:
    """Violation of a cut, relative to its limit."""
    return float((pattern.weights * share).sum()) / pattern.limit - 1.0


def _minus(left: tuple[int, ...], held: Place) -> tuple[int, ...] | None:
    """GPUs left beside a gang, if it has room."""
    rest = tuple(have - int(need.start) for have, need in zip(left, held, strict=True))
    return rest if min(rest) >= 0 else None
