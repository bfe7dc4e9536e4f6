"""Max-min fairness to the last job: water filling and hierarchies. Gavel (OSDI'20), sec. 4.3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.models import gavel
from shadowprice.solvers.gavel.allocation import Allocation, Prices, nothing
from shadowprice.solvers.gavel.crossing import crossing
from shadowprice.solvers.gavel.max_min_level import (
    KNOWN_ROWS,
    PricedLevel,
    highest_level,
    require_levels,
)
from shadowprice.solvers.gavel.priced_rows import priced_rows
from shadowprice.solvers.gavel.programme import Programme
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.gavel.reached import CLOSE, SAME, off
from shadowprice.solvers.gavel.spread import spread
from shadowprice.solvers.gavel.workspace import Build, Workspace
from shadowprice.solvers.threads import one_blas_thread

# Hierarchies: entities share the cluster, jobs share their entity.
#
# The levels of an entity's jobs add up to its weight times tau. Inside, *fairness* raises jobs in
# proportion to their weights among those not yet held back; *fifo* gives everything to the first
# job, in order of arrival, that is not.


INSIDE = ("fairness", "fifo")

FULL = 1e-9
"""Share of the levels of earlier jobs that is rounding: no more than that goes to the next of a queue."""


@dataclass(frozen=True, eq=False)
class Entity:
    """Jobs of one organisation.

    Parameters
    ----------
    jobs : ndarray of int
        Rows, in order of arrival.
    weight : float
        Weight of the entity.
    job_weight : ndarray
        Weights of its jobs among each other.
    inside : str
        ``fairness`` or ``fifo``.
    """

    jobs: NDArray[np.int64]
    weight: float
    job_weight: FloatArray
    inside: str

    def __post_init__(self) -> None:
        if self.inside not in INSIDE:
            raise InputError(f"inside an entity: {self.inside!r}, expected fairness or fifo")
        if not (np.isfinite(self.weight) and self.weight > 0):
            raise InputError(f"weight of an entity: {self.weight!r}, expected a number > 0")

    def levels(self, total: float, cap: FloatArray) -> FloatArray:
        """Levels of its jobs that add up to a total, or to all their caps."""
        if self.inside == "fifo":
            if total >= cap.sum():
                return cap.copy()
            before = np.cumsum(cap) - cap
            left = np.where(total - before > FULL * before, total - before, 0.0)
            return np.asarray(np.minimum(left, cap))
        return _common(total, cap, self.job_weight)


@dataclass(frozen=True, eq=False)
class Entities:
    """A path for water filling along which entities rise in proportion to their weights.

    Parameters
    ----------
    members : tuple of Entity
        Every job in exactly one.
    """

    members: tuple[Entity, ...]

    def levels(self, tau: float, cap: FloatArray) -> FloatArray:
        """Levels at tau, none above its cap; O(n log n)."""
        levels = np.zeros_like(cap)
        for entity in self.members:
            levels[entity.jobs] = entity.levels(entity.weight * tau, cap[entity.jobs])
        return levels

    def end(self, cap: FloatArray) -> float:
        """The tau at which the last entity has all its jobs at their caps."""
        return max(float(cap[entity.jobs].sum()) / entity.weight for entity in self.members)


def _common(total: float, cap: FloatArray, weight: FloatArray) -> FloatArray:
    """min(cap, weight h) with the height h at which these add up to the total."""
    if total >= cap.sum():
        return cap.copy()
    height = cap / weight
    order = np.argsort(height, kind="stable")
    rising = np.cumsum(weight[order][::-1])[::-1]
    full = np.concatenate(([0.0], np.cumsum(cap[order])[:-1]))
    # Sum of levels when the k-th job reaches its cap; the first above the total ends the search.
    reached = full + rising * height[order]
    k = int(np.searchsorted(reached, total))
    k = min(k, len(cap) - 1)
    return np.asarray(np.minimum(cap, weight * ((total - full[k]) / rising[k])))


# Water filling: levels rise together until jobs are held back, which are settled; the others go on.
#
# Gavel (OSDI'20), sec. 4.3 raises all levels by a linear programme and finds the jobs that are held
# back by a mixed-integer one, as often as there are levels. Two observations, derived here, leave a
# few linear programmes.
#
# *A path.* Between two moments at which GPUs run out, levels follow a path l(tau) that is known in
# advance: :class:`Flat` l_m = min(cap_m, w_m tau), where cap_m is the level of a job that always
# runs at its best rate, or a settled level; :class:`Entities` in two storeys. The last tau at which
# the path can be followed is found as in finish-time fairness: prices y of the highest level at a tau
# that is too far prove sum_m y_m throughput(m, X) <= V, which the path leaves at some earlier tau;
# going back there is Newton's method on a piecewise linear function.
#
# *Few stages.* Where the path ends, jobs with y_m > 0 cannot rise in any allocation that reaches it;
# they are settled. Without space sharing, complementary slackness says that a job with y_m = 0
# never runs on an accelerator with a price; so every stage closes another accelerator to the jobs
# that remain, and there are at most as many stages as accelerators. (A job with y_m > 0 that is at
# its cap is settled anyway.) With space sharing every stage settles at least one job.
#
# Lexicographic optimality of the flat path: let v be the lexicographically largest vector of
# levels over weights and suppose min(tau, cap_m) is feasible for all m; if v_k < min(tau, cap_k) for
# some k, with v_k smallest, a mixture with the feasible vector raises v_k and lowers none that is
# as small: a contradiction. So v >= min(tau, cap), and what is held back at the last tau is final.


REACHED = 1e-8
"""Relative distance of a level from 1 that is rounding of a solver."""

ALONG = 1e-10
"""A path may run along what prices allow, when jobs with a price wait for others; rounding must not end it."""

_MAX_STEPS = 100


class Path(Protocol):
    """Levels as non-decreasing functions of a parameter tau."""

    def levels(self, tau: float, cap: FloatArray) -> FloatArray:
        """Levels at tau, none above its cap; non-decreasing in tau."""

    def end(self, cap: FloatArray) -> float:
        """A tau from which on all jobs are at their caps."""


@dataclass(frozen=True, eq=False)
class Flat:
    """Every job rises in proportion to its weight.

    Parameters
    ----------
    weight : ndarray, shape (jobs,)
    """

    weight: FloatArray

    def levels(self, tau: float, cap: FloatArray) -> FloatArray:
        """Levels at tau, none above its cap."""
        return np.minimum(cap, self.weight * tau)

    def end(self, cap: FloatArray) -> float:
        """The tau at which the last job reaches its cap."""
        return float((cap / self.weight).max())


@dataclass(frozen=True, eq=False)
class Filled:
    """Final levels with an allocation that reaches them.

    Parameters
    ----------
    levels : ndarray, shape (jobs,)
    last : PricedLevel
        Allocation and prices of the last stage.
    stage : ndarray of int, shape (jobs,)
        Stage that settled each job.
    prices : list of PricedLevel
        The level whose prices ended each stage; a job settled by its own cap has no price.
    """

    levels: FloatArray
    last: PricedLevel
    stage: NDArray[np.int64]
    prices: list[PricedLevel]


def fill(programme: Programme, norm: FloatArray, path: Path, policy: str) -> Filled:
    """Follow a path to its end.

    Parameters
    ----------
    programme : Programme
        A model of levels: see :func:`~shadowprice.solvers.gavel.max_min_level.require_levels`.
    policy : str
        For messages.
    norm : ndarray, shape (jobs,)
        Throughput at level 1 [steps/s].
    """
    rates = programme.rates
    cap = rates.best / norm
    settled = np.zeros(len(cap), dtype=bool)
    stage = np.zeros(len(cap), dtype=np.int64)
    ended: list[PricedLevel] = []
    tau = 0.0
    while True:
        tau, last, cut = _furthest(programme, norm, path, cap, tau, policy)
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
    programme: Programme,
    norm: FloatArray,
    path: Path,
    cap: FloatArray,
    start: float,
    policy: str,
) -> tuple[float, PricedLevel, PricedLevel | None]:
    """Last tau whose levels can be reached, the level there, and the one whose prices forbid more."""
    tau, cut = path.end(cap), None
    for step in range(_MAX_STEPS):
        need = norm * path.levels(tau, cap)
        level = highest_level(programme, need)
        if not step:
            require_levels(level.solved, policy)
        if level.value >= 1.0 - REACHED or level.bound >= 1.0:
            return tau, level, cut
        before = _leaves(path, cap, level, norm, start, tau)
        if before is None:
            return tau, level, cut
        cut = level
        if before >= tau * (1.0 - 1e-14):
            return tau, level, cut
        tau = before
    raise SolverError(f"water filling: no end of a stage after {_MAX_STEPS} steps")


@one_blas_thread
def _leaves(
    path: Path, cap: FloatArray, level: PricedLevel, norm: FloatArray, start: float, tau: float
) -> float | None:
    """Value of tau from which the path exceeds the bound by the prices of a level; None if it never does."""
    price = level.job_price * norm
    # The stage before may have ended above what is allowed, by rounding; that is no reason to stop.
    allowed = max(level.bound, float(price @ path.levels(start, cap))) * (1.0 + ALONG)

    def excess(candidate: float) -> float:
        return float(price @ path.levels(candidate, cap)) - allowed

    if excess(start) >= 0:
        return start
    if excess(tau) <= 0:
        # The bound is 1 but for rounding.
        return None
    return crossing(excess, start, tau)


def _held_back(
    cut: PricedLevel,
    norm: FloatArray,
    levels: FloatArray,
    cap: FloatArray,
    settled: NDArray[np.bool_],
    rates: Rates,
    last: PricedLevel,
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


@dataclass(frozen=True)
class WaterFilling:
    """Lexicographic max-min: after the smallest level the second smallest, and so on.

    Parameters
    ----------
    aware, packed : bool
        As in :class:`~shadowprice.solvers.gavel.policies.max_min_fairness.MaxMinFairness`.
    entity_weights : mapping of str to float
        Weights of entities; if given, jobs are grouped by the ``entity`` column.
    inside : mapping of str to str
        ``fairness`` (default) or ``fifo`` inside each entity.
    model : callable
        The programme of a level; edit it, or give one of your own.
    """

    name: str
    aware: bool = True
    packed: bool = False
    entity_weights: Mapping[str, float] = field(default_factory=dict)
    inside: Mapping[str, str] = field(default_factory=dict)
    model: Build = gavel.max_min

    needs_steps: ClassVar[bool] = False

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """A few linear programmes a stage; the objective is the smallest level over weight."""
        if not len(problem):
            return nothing(self.name, problem)
        rates = Rates.for_levels(problem, aware=self.aware, packed=self.packed)
        norm = rates.proportional / problem.gpus
        path = Entities(self._entities(problem)) if self.entity_weights else Flat(problem.weight)
        programme = Programme.of(self.model, problem, rates, workspace, steps=self.needs_steps)
        filled = fill(programme, norm, path, self.name)
        got = rates.throughput(filled.last.x, filled.last.y)
        reached = bool((got >= norm * filled.levels * (1.0 - CLOSE)).all())
        return Allocation(
            self.name,
            problem,
            *spread(problem, rates, filled.last.x, filled.last.y),
            self._smallest(filled.levels / problem.weight, got / norm / problem.weight),
            None if self.entity_weights else _bound(filled, norm, problem.weight, rates),
            _prices(filled),
            reached=reached,
        )

    def _smallest(self, path: FloatArray, got: FloatArray) -> float:
        """Smallest level over weight, evaluated from the fractions; the path's where it is the same but for rounding.

        What a model of one's own counts as a level is its own. Jobs of an entity that wait may get more than they
        are to have.
        """
        smallest, attained = float(path.min()), float(got.min())
        same = off(smallest, attained) <= SAME or self.model is not gavel.max_min
        return smallest if same or (self.entity_weights and attained > smallest) else attained

    def _entities(self, problem: AllocationProblem) -> tuple[Entity, ...]:
        found = []
        for name in dict.fromkeys(problem.entity.tolist()):
            if name not in self.entity_weights:
                raise InputError(
                    f"{problem.source}: entity {name!r} has no weight, expected one of "
                    f"{', '.join(self.entity_weights)}"
                )
            jobs = np.flatnonzero(problem.entity == name)
            inside = self.inside.get(name, "fairness")
            found.append(Entity(jobs, self.entity_weights[name], problem.weight[jobs], inside))
        return tuple(found)


def _bound(filled: Filled, norm: FloatArray, weight: FloatArray, rates: Rates) -> float:
    """Level over weight that the job worst off cannot exceed: by its own best rate, or by the first prices.

    These say that the sum of prices times throughputs is at most the bound of their level.
    """
    least = float((rates.best / (norm * weight)).min())
    if filled.prices:
        cut = filled.prices[0]
        paid = float(cut.job_price @ (norm * weight))
        least = min(least, cut.bound / paid) if paid > 0 else least
    return least


def _prices(filled: Filled) -> Prices:
    """Prices of the stage that settled each job."""
    jobs, stages = len(filled.levels), len(filled.prices)
    job, time = np.zeros(jobs), np.zeros(jobs)
    accelerators = len(filled.last.worker_price)
    worker = np.zeros((max(stages, 1), accelerators))
    for k, level in enumerate(filled.prices):
        mine = filled.stage == k
        job[mine], time[mine] = level.job_price[mine], level.time_price[mine]
        worker[k] = level.worker_price
    further = tuple(
        row.at(k)
        for k, level in enumerate(filled.prices)
        for row in priced_rows(level.solved, jobs, KNOWN_ROWS)
    )
    spare = filled.last.spare
    return Prices(worker, job, time, filled.levels, filled.stage, spare, further)


ALLOCATIONS = (WaterFilling("water_filling", aware=False),)
