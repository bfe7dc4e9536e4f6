r"""Cuts of Hadar's offline optimum: completions that cannot all be kept, and what fits into a round.

Source: logic-based Benders cuts (Hooker and Ottosson, Mathematical Programming 96, 2003; recalled)
from completions, :class:`Conflicts`; Fenchel cuts (Boyd, Operations Research 42, 1994; recalled) from what
fits into one round, :class:`PackingCuts`; both derived for this problem. Their coefficients depend on
completions only, or on round, job and speed only, so the pricing stays what it is.

Complexity: a conflict costs a few checks of :mod:`.feasibility`; a packing cut as many sets of gangs as
the programme asks for, each O(J R P C) for P ways to place a gang and C = prod_r (c_r + 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.feasibility import Deadlines
from shadowprice.solvers.hadar.offline.heuristics import Plans
from shadowprice.solvers.programs.highs import HighsEnding, WarmProgram

_SHARE = 1e-6
"""Shares up to this count as none."""

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
    r"""Finds completions that cannot all be kept, and remembers what was decided.

    If jobs Q cannot all be complete by the ends of rounds C_j, then every plan has

    .. math:: \sum_{j \in Q} z_{j C_j} \le |Q| - 1

    with z_jC = 1 if j is complete by the end of round C. Candidates are the completions of the relaxed
    solution, each as late as it goes or earlier as far as the cut would still be violated;
    :mod:`.feasibility` decides. A conflict is then made as small and as late as it stays one.

    Parameters
    ----------
    deadlines : Deadlines
    plans : Plans
        Gets every plan that a check finds.
    seed : int
    """

    def __init__(self, deadlines: Deadlines, plans: Plans, seed: int = 0) -> None:
        self.deadlines = deadlines
        self.plans = plans
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
        last_rounds = {int(j): int(ends[j]) for j in np.flatnonzero(ends < self._none)}
        verdict = self.deadlines.check(last_rounds, check_s)
        if not verdict.known:
            return None
        if verdict.schedules is not None:
            self.plans.offer(self.plans.filled(dict(verdict.schedules)))
            self._feasible = np.concatenate((self._feasible, ends[None, :]))
            return True
        core = np.full(len(ends), self._none)
        jobs = list(verdict.core)
        core[jobs] = ends[jobs]
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
        conflicts: list[NDArray[np.int64]] = []
        for k in range(effort.candidates):
            ends = self._candidate(until, earlier=k > 0)
            if self.decide(ends, effort.check_s) is False:
                conflicts.append(self._strengthened(ends, until, latest, effort.strengthen_s))
                if len(conflicts) >= effort.cuts:
                    break
        return conflicts

    def _candidate(self, until: NDArray[np.float64], *, earlier: bool) -> NDArray[np.int64]:
        """Completions whose cut would be violated: the latest, or some at random earlier."""
        none = self._none
        ends = np.where(
            until[:, -2] > 1.0 - _SHARE, np.argmax(until > 1.0 - _SHARE, axis=1), none
        ).astype(np.int64)
        if not earlier:
            return ends
        slack = 0.0
        for job in self._random.permutation(len(ends)).tolist():
            options = np.flatnonzero(np.diff(until[job, :-1], prepend=0.0) > _SHARE)
            options = options[options < ends[job]]
            # What a job that may be left out lacks already counts in full.
            complete = 1.0 if ends[job] == none else float(until[job, ends[job]])
            while len(options):
                lack = complete - float(until[job, options[-1]])
                if slack + lack > _SLACK:
                    break
                slack += lack
                ends[job] = options[-1]
                complete = float(until[job, options[-1]])
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
        # Of k jobs in conflict at most k - 1 complete in time.
        return weights, inside.sum(axis=(1, 2)) - 1.0


# Cuts from what fits into one round

MAX_LEFT = 3000
"""Vectors of GPUs left, prod (c_r + 1), beyond which there are no such cuts."""

_UNIT = 840.0
"""Weight of the limit before rounding: a multiple of 1 to 8, as the weights are often 1/k."""

_VIOLATION = 0.01
"""Least violation of a cut, relative to its limit."""

_MOST_SETS = 100
"""Most sets for one cut."""

Box = tuple[slice, ...]
"""Vectors of GPUs by type, as an index into a table of them."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """A cut that holds in every round: the weights of what runs add up to no more than the limit.

    Parameters
    ----------
    weights : ndarray, shape (jobs, speeds)
    limit : float
    """

    weights: NDArray[np.float64]
    limit: float


class PackingCuts:
    r"""Finds cuts from what fits into one round, and remembers them.

    In a round every job runs at most once, at one speed, and the gangs that run have places (Hall's
    condition). The rows of :class:`.CapacityRows` treat gangs of a size alike, as if a job could
    run several times: a gang of 3 next to three gangs of 1 may take 2/3 of 3 GPUs and the others all
    of what is left of theirs. The convex hull of what fits is smaller. For shares y_jl of a round

    .. math:: \max_w \sum w_{jl} y_{jl} \quad \text{s.t.} \quad \sum_{(j,l) \in P} w_{jl} \le 1
              \text{ for every set P that fits}, \; w \ge 0

    is more than 1 iff they are outside it, and w is then a cut. Sets P are found one after another by a
    dynamic programme over the GPUs left of each type; it also lifts the cut to the jobs and speeds that
    have no share. Weights are whole numbers, so the limit is exact. A cut that was found in one round
    holds in every other.

    Parameters
    ----------
    jobs : RoundJobs

    Attributes
    ----------
    usable : bool
        Whether the cluster is small enough for such cuts.
    """

    def __init__(self, jobs: RoundJobs) -> None:
        self.jobs = jobs
        self._size = tuple((jobs.capacity + 1).tolist())
        self.usable = bool(np.prod(self._size, dtype=np.float64) <= MAX_LEFT)
        self._patterns: list[Pattern] = []
        # By job and speed: ways to place the gang.
        self._ways: list[list[list[tuple[Box, Box]]]] = []
        if self.usable:
            self._ways = [
                [self._placements(speed.types, int(jobs.gang[job])) for speed in speeds]
                for job, speeds in enumerate(jobs.speeds)
            ]

    def separate(self, share: NDArray[np.float64], *, fresh: bool) -> list[tuple[int, Pattern]]:
        """Violated cuts and their rounds.

        Parameters
        ----------
        share : ndarray, shape (rounds, jobs, speeds)
            How much of each job runs at a speed in a round.
        fresh : bool
            Look for new cuts where none of the known ones is violated.
        """
        if not self.usable:
            return []
        violated: list[tuple[int, Pattern]] = []
        for t, own in enumerate(share):
            known = [p for p in self._patterns if _violation(p, own) > _VIOLATION]
            known.sort(key=lambda p: -_violation(p, own))
            if not known and fresh:
                pattern = self._find(own)
                known = [] if pattern is None else [pattern]
                self._patterns += known
            violated += [(t, p) for p in known[:2]]
        return violated

    def _find(self, share: NDArray[np.float64]) -> Pattern | None:
        """A cut that shares of a round violate."""
        support = [(int(job), int(speed)) for job, speed in np.argwhere(share > _SHARE)]
        if len(support) < 2:
            return None
        # The programme proposes weights; what a cut is worth is evaluated by `_lifted`.
        n = len(support)
        series = WarmProgram(maximise=True)
        column = {pair: k for k, pair in enumerate(support)}
        values = np.array([share[pair] for pair in support])
        no_rows = [np.zeros(0, dtype=np.int64)] * n
        series.columns(values, np.ones(n), no_rows, [np.zeros(0)] * n)
        weights = np.zeros(share.shape)
        for _ in range(_MOST_SETS):
            vertex = series.solve()
            if vertex.outcome is not HighsEnding.OPTIMAL or vertex.value <= 1.0 + _VIOLATION:
                return None
            weights[tuple(np.array(support).T)] = np.maximum(vertex.primal, 0.0)
            heaviest = self._heaviest(weights)
            if sum(weights[pair] for pair in heaviest) <= 1.0 + 1e-6:
                break
            index = np.array([column[pair] for pair in heaviest], dtype=np.int32)
            series.row(-np.inf, 1.0, index, np.ones(len(index)))
        pattern = self._lifted(np.rint(weights * _UNIT), share)
        return pattern if _violation(pattern, share) > _VIOLATION else None

    def _lifted(self, weights: NDArray[np.float64], share: NDArray[np.float64]) -> Pattern:
        """The least limit for whole weights, which are then made as large as it allows."""
        limit = float(self._largest_weights(weights, range(self.jobs.jobs))[-1].flat[-1])
        for job in np.argsort(-share.sum(axis=1), kind="stable").tolist():
            other_jobs = [j for j in range(self.jobs.jobs) if j != job]
            others = self._largest_weights(weights, other_jobs)[-1]
            for speed, ways in enumerate(self._ways[job]):
                # What the others weigh at most beside this gang; the rest of the limit is free.
                least_other = max((float(others[rest].flat[-1]) for _, rest in ways), default=limit)
                weights[job, speed] = max(weights[job, speed], limit - least_other)
        return Pattern(weights / _UNIT, limit / _UNIT)

    def _largest_weights(
        self, weights: NDArray[np.float64], jobs: Sequence[int]
    ) -> list[NDArray[np.float64]]:
        """Largest weight that fits into each vector of GPUs, with none, one, two ... of some jobs."""
        tables = [np.zeros(self._size)]
        for job in jobs:
            before = tables[-1]
            after = before
            if weights[job].any():
                after = before.copy()
                for speed, ways in enumerate(self._ways[job]):
                    weight = weights[job, speed]
                    if weight > 0:
                        for held, rest in ways:
                            np.maximum(after[held], before[rest] + weight, out=after[held])
            tables.append(after)
        return tables

    def _heaviest(self, weights: NDArray[np.float64]) -> list[tuple[int, int]]:
        """Jobs and speeds of largest weight that fit together."""
        jobs = np.flatnonzero(weights.any(axis=1)).tolist()
        tables = self._largest_weights(weights, jobs)
        left = tuple(k - 1 for k in self._size)
        heaviest = []
        for job, before, after in reversed(list(zip(jobs, tables[:-1], tables[1:], strict=True))):
            if before[left] != after[left]:
                speed, left = self._last_step(job, weights[job], before, float(after[left]), left)
                heaviest.append((job, speed))
        return heaviest

    def _last_step(
        self,
        job: int,
        weights: NDArray[np.float64],
        before: NDArray[np.float64],
        weight: float,
        left: tuple[int, ...],
    ) -> tuple[int, tuple[int, ...]]:
        """Speed at which a job adds to a largest weight, and the GPUs left for the jobs before it."""
        for speed, ways in enumerate(self._ways[job]):
            if weights[speed] <= 0:
                continue
            for held, _ in ways:
                rest = _minus(left, held)
                # The same sums as on the way forward, so equality is exact.
                if rest is not None and before[rest] + weights[speed] == weight:
                    return speed, rest
        raise AssertionError("no placement of the gang gives the weight of the table")

    def _placements(self, types: tuple[int, ...], gang: int) -> list[tuple[Box, Box]]:
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


def _minus(left: tuple[int, ...], held: Box) -> tuple[int, ...] | None:
    """GPUs left beside a gang, if it has room."""
    rest = tuple(have - int(need.start) for have, need in zip(left, held, strict=True))
    return rest if min(rest) >= 0 else None
