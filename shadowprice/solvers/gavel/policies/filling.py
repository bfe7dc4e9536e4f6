r"""Water filling: levels rise together until jobs are held back, which are settled; the others go on.

Gavel (OSDI'20), sec. 4.3 raises all levels by a linear programme and finds the jobs that are held
back by a mixed-integer one, as often as there are levels. Two observations, derived here, leave a
few linear programmes.

*A path.* Between two moments at which GPUs run out, levels follow a path l(tau) that is known in
advance: :class:`Flat` l_m = min(cap_m, w_m tau), where cap_m is the level of a job that always
runs at its best rate, or a settled level; :class:`Entities` in two storeys. The last tau at which
the path can be followed is found as in finish-time fairness: prices y of the highest level at a tau
that is too far prove sum_m y_m throughput(m, X) <= V, which the path leaves at some earlier tau;
going back there is Newton's method on a piecewise linear function.

*Few stages.* Where the path ends, jobs with y_m > 0 cannot rise in any allocation that reaches it;
they are settled. Without space sharing, complementary slackness says that a job with y_m = 0
never runs on an accelerator with a price; so every stage closes another accelerator to the jobs
that remain, and there are at most as many stages as accelerators. (A job with y_m > 0 that is at
its cap is settled anyway.) With space sharing every stage settles at least one job.

Lexicographic optimality of the flat path: let v be the lexicographically largest vector of
levels over weights and suppose min(tau, cap_m) is feasible for all m; if v_k < min(tau, cap_k) for
some k, with v_k smallest, a mixture with the feasible vector raises v_k and lowers none that is
as small: a contradiction. So v >= min(tau, cap), and what is held back at the last tau is final.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from shadowprice.errors import SolverError
from shadowprice.solvers.gavel.max_min_level import highest_level
from shadowprice.solvers.gavel.prices import Level
from shadowprice.solvers.gavel.rates import Numbers, Rates
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.threads import one_blas_thread

REACHED = 1e-8
"""Relative distance of a level from 1 that is rounding of a solver."""

ALONG = 1e-10
"""A path may run along what prices allow, when jobs with a price wait for others; rounding must not end it."""

_MAX_STEPS = 100


class Path(Protocol):
    """How levels rise."""

    def levels(self, tau: float, cap: Numbers) -> Numbers:
        """Levels at tau, none above its cap; non-decreasing in tau."""

    def end(self, cap: Numbers) -> float:
        """A tau from which on all jobs are at their caps."""


@dataclass(frozen=True, eq=False)
class Flat:
    """Every job rises in proportion to its weight.

    Parameters
    ----------
    weight : ndarray, shape (jobs,)
    """

    weight: Numbers

    def levels(self, tau: float, cap: Numbers) -> Numbers:
        """Levels at tau, none above its cap."""
        return np.minimum(cap, self.weight * tau)

    def end(self, cap: Numbers) -> float:
        """The tau at which the last job reaches its cap."""
        return float((cap / self.weight).max())


@dataclass(frozen=True, eq=False)
class Filled:
    """Final levels with an allocation that reaches them.

    Parameters
    ----------
    levels : ndarray, shape (jobs,)
    last : Level
        Allocation and prices of the last stage.
    stage : ndarray of int, shape (jobs,)
        Stage that settled each job.
    prices : list of Level
        The level whose prices ended each stage; a job settled by its own cap has no price.
    """

    levels: Numbers
    last: Level
    stage: NDArray[np.int64]
    prices: list[Level]


def fill(rates: Rates, norm: Numbers, path: Path, workspace: Workspace) -> Filled:
    """Follow a path to its end.

    Parameters
    ----------
    norm : ndarray, shape (jobs,)
        Throughput at level 1 [steps/s].
    """
    cap = rates.best / norm
    settled = np.zeros(len(cap), dtype=bool)
    stage = np.zeros(len(cap), dtype=np.int64)
    ended: list[Level] = []
    tau = 0.0
    while True:
        tau, last, cut = _furthest(rates, norm, path, cap, tau, workspace)
        levels = path.levels(tau, cap)
        if cut is None:
            stage[~settled] = len(ended)
            return Filled(levels, last, stage, ended)
        held = _held_back(cut, norm, levels, cap, settled, rates, last)
        cap = np.where(held, levels, cap)
        stage[held] = len(ended)
        settled |= held
        ended.append(cut)


def _furthest(
    rates: Rates, norm: Numbers, path: Path, cap: Numbers, start: float, workspace: Workspace
) -> tuple[float, Level, Level | None]:
    """Last tau whose levels can be reached, the level there, and the one whose prices forbid more."""
    tau, cut = path.end(cap), None
    for _ in range(_MAX_STEPS):
        need = norm * path.levels(tau, cap)
        level = highest_level(rates, need, workspace)
        if level.value >= 1.0 - REACHED or level.bound >= 1.0:
            return tau, level, cut
        cut = level
        before = _leaves(path, cap, level, norm, start, tau)
        if before >= tau * (1.0 - 1e-14):
            return tau, level, cut
        tau = before
    raise SolverError(f"water filling: no end of a stage after {_MAX_STEPS} steps")


@one_blas_thread
def _leaves(
    path: Path, cap: Numbers, level: Level, norm: Numbers, start: float, tau: float
) -> float:
    """Where the path leaves what the prices of a level allow."""
    price = level.job_price * norm
    # The stage before may have ended above what is allowed, by rounding; that is no reason to stop.
    allowed = max(level.bound, float(price @ path.levels(start, cap))) * (1.0 + ALONG)

    def excess(candidate: float) -> float:
        return float(price @ path.levels(candidate, cap)) - allowed

    if excess(start) >= 0:
        return start
    return float(brentq(excess, start, tau, xtol=1e-300, rtol=4 * np.finfo(float).eps))


def _held_back(
    cut: Level,
    norm: Numbers,
    levels: Numbers,
    cap: Numbers,
    settled: NDArray[np.bool_],
    rates: Rates,
    last: Level,
) -> NDArray[np.bool_]:
    """Jobs below their caps with a price; by which of price and slack is nearer to zero.

    Of a strictly complementary pair of solutions one is zero and the other not; rounding leaves
    both above zero, but on different scales.
    """
    rising = ~settled & (levels < cap * (1.0 - 1e-9))
    share = cut.job_price * norm * levels
    got = rates.throughput(last.x, last.y) / (norm * np.maximum(levels, 1e-300))
    held = rising & (share > 1e-9) & (share * len(share) > 1e3 * np.maximum(got - 1.0, 0.0) * 1e-9)
    if not held.any():
        held = rising & (share == share[rising].max(initial=0.0))
    if not held.any():
        raise SolverError("water filling: nothing holds the levels back, yet they cannot rise")
    return held
