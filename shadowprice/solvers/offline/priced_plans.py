"""Bounds from prices of GPU time over time: a search of prices at which every job's cheapest plan costs much.

The bound is that of :mod:`shadowprice.solvers.offline.plan_prices`, for any number of jobs. Prices are first those at
which one more GPU-second would delay what waits in a run of the instance: jobs in order of weight over
GPU-time, each as early as GPUs are left. Where all are in use, the last job that was served is indifferent
between now and its end, so the price falls by its weight over its GPU-time as time goes on. Subgradient
steps follow: what plans hold of a cell beyond the GPUs there are raises its price. Where jobs have whole gangs
to themselves, prices by width come next, since gangs that do not fill the cluster leave GPUs idle. All of it is a
search; whatever it proposes is evaluated in whole numbers, rounded down.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.plan_prices import GangPrices, PlanPrices, exact_plan_bound
from shadowprice.solvers.offline.scaled_plans import (
    CELLS_PER_JOB,
    COARSE_CELLS,
    FEWEST_CELLS,
    CapacityRule,
    Configurations,
    Evaluated,
    Matrix,
    PooledCapacity,
    ScaledJobs,
    scaled_bound,
)

CELLS_PER_S = 10_000_000
"""Cells that plans look at in a second of budget, on a machine of 2026 or a slower one."""

_OVERHEAD = 5_000
"""Cells that an evaluation costs as much as, besides those that it looks at."""

_ROUNDS = 60
"""Evaluations that a grid is made for, at least."""

_SCALES = (0.25, 0.5, 1.0, 2.0)
"""Multiples of the prices of the run, the best of which the search begins with."""

_STEP, _SHORTER, _PATIENCE, _INERTIA = 0.3, 0.75, 5, 0.5
"""First step as a share of Polyak's; its factor after as many steps without gain; share of the last direction."""

_SETTLED = 1e-4
"""Share of the first step at which the search ends."""


@dataclass(frozen=True)
class PlanBound:
    """A bound found by a search, its prices, and how far the search had gone.

    Parameters
    ----------
    ticks : Fraction
        Of total weighted completion time.
    prices : PlanPrices or GangPrices
    steps : int
        Evaluations so far.
    """

    ticks: Fraction
    prices: PlanPrices | GangPrices
    steps: int

    @property
    def kind(self) -> str:
        """Name of the bound."""
        return "configurations" if isinstance(self.prices, GangPrices) else "priced-plans"


def plan_bound(jobs: Relaxation, prices: PlanPrices | GangPrices) -> Fraction:
    """The bound [ticks] of any prices, rounded down by less than a tick for each job and weight 1.

    In compiled whole numbers of 64 bits where these suffice, with times in coarser units if need be as
    long as cells begin at whole ones; else in Python's, which are slow.
    """
    scaled = scaled_bound(jobs, prices)
    return exact_plan_bound(jobs, prices) if scaled is None else scaled


@cache
def prepare() -> None:
    """Compile, or read from the cache, what the search runs; some seconds once on a machine, then one or so."""
    jobs = Relaxation([0, 0], [2, 1], [1, 1], [Fraction(1)] * 2, 1, Fraction(1))
    for _ in search(jobs, 1e-3, rigid=True):
        pass


@dataclass
class _Effort:
    """Cells that may still be looked at, and evaluations made."""

    cells: int
    until: float
    steps: int = 0

    def count(self, evaluated: Evaluated) -> Evaluated:
        """Take an evaluation into account."""
        self.cells -= evaluated.cells + _OVERHEAD
        self.steps += 1
        return evaluated

    @property
    def left(self) -> bool:
        """True while there is effort and time."""
        return self.cells > 0 and time.monotonic() < self.until


def search(
    jobs: Relaxation, budget_s: float, *, rigid: bool = False, until: float = math.inf
) -> Iterator[PlanBound]:
    """Bounds of ever better prices: those of the run's own, and then each that is larger.

    The effort is a number of cells to look at, so that the result does not depend on the machine.

    Parameters
    ----------
    budget_s : float
        The effort, in seconds of a common machine [s].
    rigid : bool
        Whether every job always holds its whole gang and shares it with nobody: then prices of gangs
        bound as well.
    until : float
        Moment of ``time.monotonic()`` by which the search ends in any case; infinite for the same result
        on every run.
    """
    if not any(jobs.weight) or not any(jobs.work) or budget_s <= 0:
        return
    begin, end = min(jobs.release), _drained(jobs)
    shift = ScaledJobs.shift_of(jobs, end)
    coarse = _even_bounds(begin >> shift, (end >> shift) + 1, len(jobs.release))
    if end >= 2**61:
        return
    scaled = ScaledJobs(jobs, shift)
    effort = _Effort(int(budget_s * CELLS_PER_S), until)
    served = scaled.serve(coarse)
    if not served.full.any():
        return  # Nobody waits in this run: the bound is that of jobs alone.
    fine = served.finer(min(effort.cells // _ROUNDS, 10**12))
    served = scaled.serve(fine)
    pool, start = PooledCapacity(jobs.capacity), served.prices()[None, :]
    tried = [
        effort.count(scaled.evaluate(fine, scaled.rounded(scale * start), pool))
        for scale in _SCALES
    ]
    best = max(tried, key=lambda evaluated: evaluated.ticks)
    grid = scaled.grid_ticks(fine)
    yield PlanBound(best.ticks, PlanPrices(grid, tuple(best.prices[0].tolist())), effort.steps)
    by_width = Configurations.of(scaled, fine) if rigid else None
    if by_width is not None and by_width.work_per_cell * len(fine) * _ROUNDS > effort.cells // 2:
        by_width = None
    whole = replace(effort, cells=effort.cells if by_width is None else effort.cells // 2)
    ascent = _Ascent(scaled, fine, pool, target=served.delays)
    for step in ascent.steps(best, whole):
        best = step
        yield PlanBound(step.ticks, PlanPrices(grid, tuple(step.prices[0].tolist())), whole.steps)
    if by_width is not None:
        rest = _Effort(effort.cells // 2 + whole.cells, until, whole.steps)
        ascent = _Ascent(scaled, fine, by_width, target=2 * served.delays - scaled.alone)
        yield from _by_width(ascent, best, rest)


def _by_width(ascent: _Ascent, known: Evaluated, effort: _Effort) -> Iterator[PlanBound]:
    """Bounds of prices by width, from those of a GPU on; only such as are larger than what is known."""
    scaled, bounds = ascent.scaled, ascent.bounds
    widths, grid = np.unique(scaled.gpus), scaled.grid_ticks(bounds)
    of_gangs: NDArray[np.float64] = widths[:, None].astype(np.float64) * known.prices
    first = scaled.rounded(of_gangs)
    best = effort.count(scaled.evaluate(bounds, first, ascent.room))
    for step in chain((best,), ascent.steps(best, effort)):
        if step.ticks > known.ticks:
            known = step
            rows = tuple(map(tuple, step.prices.tolist()))
            prices = GangPrices(grid, tuple(widths.tolist()), rows)
            yield PlanBound(step.ticks, prices, effort.steps)


@dataclass(frozen=True, eq=False)
class _Ascent:
    """Subgradient steps with inertia on a grid.

    Parameters
    ----------
    target : float
        A cost that bounds hardly exceed, in the unit of :attr:`Evaluated.delays`: steps are shares of the
        way to it.
    """

    scaled: ScaledJobs
    bounds: NDArray[np.int64]
    room: CapacityRule
    target: float

    def steps(self, start: Evaluated, effort: _Effort) -> Iterator[Evaluated]:
        """Steps from some prices on; those that gain something."""
        length = np.diff(self.bounds).astype(np.float64)
        best = now = start
        at = top = start.prices.astype(np.float64)
        share, idle = _STEP, 0
        direction: NDArray[np.float64] | None = None
        while effort.left and share > _SETTLED * _STEP:
            slope = now.excess.copy()
            slope[(at <= 0) & (slope < 0)] = 0.0
            last = slope if direction is None else direction
            direction = _INERTIA * last + (1 - _INERTIA) * slope
            size = float((direction**2 * length).sum())
            if size <= 0:
                return
            way = max(self.target - now.delays, 0.0)
            at = np.maximum(at + share * way / size * direction, 0.0)
            whole: Matrix = self.scaled.rounded(at)
            now = effort.count(self.scaled.evaluate(self.bounds, whole, self.room))
            if now.ticks > best.ticks:
                best, top, idle = now, at, 0
                yield best
                continue
            idle += 1
            if idle >= _PATIENCE:
                share, idle, direction = share * _SHORTER, 0, None
                now, at = best, top


def _drained(jobs: Relaxation) -> int:
    """A moment by which a run at full use could be over [ticks]."""
    area = sum(g * p for g, p in zip(jobs.gpus, jobs.work, strict=True))
    return max(jobs.release) + max(jobs.work) + math.ceil(area / jobs.capacity)


def _even_bounds(first: int, last: int, jobs: int) -> NDArray[np.int64]:
    """Bounds of cells of about the same length [units]."""
    cells = min(COARSE_CELLS, FEWEST_CELLS + CELLS_PER_JOB * jobs, last - first)
    inner = [first + (last - first) * k // cells for k in range(cells + 1)]
    return np.array(inner, dtype=np.int64)
