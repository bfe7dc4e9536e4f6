r"""Bounds from prices of GPU time over time: every job's cheapest plan, for any number of jobs.

A *plan* of job j says when it runs: p_j units of time between its release and its completion, in one piece
or several. For prices :math:`\lambda(t) \ge 0` of a GPU at a moment, constant on cells of a grid and 0 outside,

.. math:: L(\lambda) = \sum_j \min_{\text{plans}} \Bigl( w_j C_j + g_j \int_{\text{plan}} \lambda \Bigr)
          - \kappa m \int \lambda

is a lower bound of total weighted completion time (LB-plan, in ``shadowprice.proofs.lower_bounds``). With the same
prices it is no less than the bound of :mod:`shadowprice.models.interval_lp`, which charges a job that is
interrupted for half of the interruption only.

Prices are first those at which one more GPU-second would delay what waits in a run of the instance: jobs in order of
weight over GPU-time, each as early as GPUs are left. Where all are in use, the last job that was served is
indifferent between now and its end, so the price falls by its weight over its GPU-time as time goes on.
Subgradient steps follow: what plans hold of a cell beyond the GPUs there are raises its price. All of it is a search;
whatever it proposes is evaluated in whole numbers, rounded down.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.offline.bounds import RelaxedJobs
from shadowprice.solvers.offline.lagrangian import PRICE_UNIT

CELLS_PER_S = 10_000_000
"""Cells of plans that are looked at in a second of budget, on a machine of 2026 or a slower one."""

_COARSE, _FEWEST, _FINEST, _PER_JOB = 1_000, 100, 4_000, 100
"""Cells of the first grid; cells of the second, at least, at most and at most for each job."""

_ROUNDS = 60
"""Evaluations that a grid is made for."""

_SCALES = (0.25, 0.5, 1.0, 2.0)
"""Multiples of the prices of the run, the best of which the search begins with."""

_STEP, _SHORTER, _PATIENCE, _INERTIA = 0.3, 0.7, 4, 0.5
"""First step as a share of Polyak's; its factor after as many steps without gain; share of the last direction."""

_SETTLED = 1e-4
"""Share of the first step at which the search ends."""

_BITS = 54
"""Bits of the largest delay times weight; prices have the others up to 61."""


@dataclass(frozen=True, eq=False)
class PlanPrices:
    """Prices of a GPU by cells of time; 0 before the first cell and after the last.

    Parameters
    ----------
    grid_ticks : tuple of int, shape (cells + 1,)
        Where cells begin, and where the last ends [ticks].
    prices : tuple of int, shape (cells,)
        Per GPU and tick, in units of the largest weight / ``PRICE_UNIT``.
    """

    grid_ticks: tuple[int, ...]
    prices: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse what is no grid, or has a price below 0."""
        if len(self.grid_ticks) != len(self.prices) + 1 or not self.prices:
            raise ValueError(
                f"{len(self.prices)} prices: expected one or more, and one bound of cells more"
            )
        if any(start >= end for start, end in pairwise(self.grid_ticks)):
            raise ValueError("bounds of cells are not increasing")
        if min(self.prices) < 0:
            raise ValueError(f"price {min(self.prices)}: expected whole numbers >= 0")


@dataclass(frozen=True)
class PlanBound:
    """A bound found by a search, its prices, and how the search went.

    Parameters
    ----------
    ticks : Fraction
        Of total weighted completion time.
    prices : PlanPrices
    steps : int
        Evaluations so far.
    """

    ticks: Fraction
    prices: PlanPrices
    steps: int


def plan_bound(jobs: RelaxedJobs, prices: PlanPrices) -> Fraction:
    """L [ticks] for any prices, rounded down by less than a tick for each job and weight 1.

    In compiled whole numbers of 64 bits where these suffice, with times in coarser units if need be as
    long as cells begin at whole ones; else in Python's, which are slow.
    """
    scaled = _Scaled.of(jobs, prices.grid_ticks)
    if scaled is None or not scaled.holds(prices):
        return exact_plan_bound(jobs, prices)
    return scaled.evaluate(prices).ticks


def exact_plan_bound(jobs: RelaxedJobs, prices: PlanPrices) -> Fraction:
    """L [ticks], exactly; O(n cells log cells) in Python's whole numbers."""
    largest = max(jobs.weight, default=Fraction(0))
    unit = largest / PRICE_UNIT
    total = Fraction(0)
    for r, p, g, w in zip(jobs.release, jobs.work, jobs.gpus, jobs.weight, strict=True):
        total += w * r
        if w:
            total += _least_cost(r, p, w, g * unit, prices)
    cells = zip(prices.prices, pairwise(prices.grid_ticks), strict=True)
    return total - jobs.capacity * unit * sum(price * (b - a) for price, (a, b) in cells)


def _least_cost(
    release: int, work: int, weight: Fraction, rent: Fraction, prices: PlanPrices
) -> Fraction:
    """Least of weight x (end - release) + rent x price of the time taken."""
    best: Fraction | None = None
    taken: list[tuple[int, int]] = []  # Of (-price, length), the dearest first.
    left, paid = work, 0
    for begin, end, price in _cells_from(release, work, prices):
        if best is not None and weight * (begin - release) >= best:
            break
        now, mine = begin, 0
        while now < end:
            if left:
                length = min(left, end - now)
                left -= length
                paid += length * price
            elif taken and -taken[0][0] > price:
                dear, most = heapq.heappop(taken)
                length = min(most, end - now)
                paid -= length * (-dear - price)
                if length < most:
                    heapq.heappush(taken, (dear, most - length))
            else:
                break
            now += length
            mine += length
            if not left:
                cost = weight * (now - release) + rent * paid
                best = cost if best is None else min(best, cost)
        if mine:
            heapq.heappush(taken, (-price, mine))
    return best or Fraction(0)


def _cells_from(release: int, work: int, prices: PlanPrices) -> Iterator[tuple[int, int, int]]:
    """Begin, end and price of all cells from a release on, and of enough time after the last."""
    grid = prices.grid_ticks
    if release < grid[0]:
        yield release, grid[0], 0
    for (begin, end), price in zip(pairwise(grid), prices.prices, strict=True):
        if end > release:
            yield max(begin, release), end, price
    last = max(release, grid[-1])
    yield last, last + work, 0


def search(jobs: RelaxedJobs, budget_s: float, *, until: float = math.inf) -> Iterator[PlanBound]:
    """Bounds of ever better prices: that of the run's own, and then each that is larger.

    The effort is a number of cells to look at, so that the result does not depend on the machine.

    Parameters
    ----------
    budget_s : float
        The effort, in seconds of a common machine [s].
    until : float
        Moment of ``time.monotonic()`` by which the search ends in any case; infinite for the same result
        on every run.
    """
    if not any(jobs.weight) or not any(jobs.work) or budget_s <= 0:
        return
    left = int(budget_s * CELLS_PER_S)
    begin, end = min(jobs.release), _drained(jobs)
    few = min(_COARSE, _FEWEST + _PER_JOB * len(jobs.release))
    coarse = _even_grid(begin, end, few, _Scaled.shift_of(jobs, end))
    scaled = _Scaled.of(jobs, coarse)
    if scaled is None:
        return
    served = scaled.serve(coarse)
    if not served.full.any():
        return  # Nobody waits in this run: the bound is that of jobs alone.
    fine = served.finer(scaled, min(left // _ROUNDS, 10**12))
    served = scaled.serve(fine)
    start = served.prices(scaled)
    best: _Evaluated | None = None
    for scale in _SCALES:
        found = scaled.evaluate(scaled.rounded(fine, scale * start))
        left -= found.cells
        if best is None or found.ticks > best.ticks:
            best = found
    assert best is not None
    yield PlanBound(best.ticks, best.prices, len(_SCALES))
    for steps, better in _ascent(scaled, best, served.cost, left, until):
        yield PlanBound(better.ticks, better.prices, len(_SCALES) + steps)


def _ascent(
    scaled: _Scaled, start: _Evaluated, target: float, effort: int, until: float
) -> Iterator[tuple[int, _Evaluated]]:
    """Subgradient steps with inertia from some prices on; those that gain something, with their number.

    Parameters
    ----------
    target : float
        A cost that no bound exceeds, in weights times units: steps are shares of the way to it.
    """
    length = np.diff(scaled.units(start.prices.grid_ticks)).astype(np.float64)
    best = now = start
    at = top = np.array(start.prices.prices, dtype=np.float64)
    share, idle, steps = _STEP, 0, 0
    direction: NDArray[np.float64] | None = None
    while effort > 0 and share > _SETTLED * _STEP and time.monotonic() < until:
        slope = now.held / length - scaled.capacity
        slope[(at <= 0) & (slope < 0)] = 0.0
        last = slope if direction is None else direction
        direction = _INERTIA * last + (1 - _INERTIA) * slope
        size = float((direction**2 * length).sum())
        if size <= 0:
            return
        at = np.maximum(at + share * max(target - now.value, 0.0) / size * direction, 0.0)
        now = scaled.evaluate(scaled.rounded(start.prices.grid_ticks, at))
        effort -= now.cells
        steps += 1
        if now.ticks > best.ticks:
            best, top, idle = now, at, 0
            yield steps, best
            continue
        idle += 1
        if idle >= _PATIENCE:
            share, idle, direction = share * _SHORTER, 0, None
            now, at = best, top


def _drained(jobs: RelaxedJobs) -> int:
    """A moment by which a run at full use could be over [ticks]."""
    area = sum(g * p for g, p in zip(jobs.gpus, jobs.work, strict=True))
    return max(jobs.release) + max(jobs.work) + math.ceil(area / jobs.capacity)


def _even_grid(begin: int, end: int, cells: int, shift: int) -> tuple[int, ...]:
    """Cells of about the same length, which begin at multiples of 2**shift [ticks]."""
    first, last = begin >> shift, (end >> shift) + 1
    cells = min(cells, last - first)
    return tuple((first + (last - first) * k // cells) << shift for k in range(cells + 1))


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """Prices, their bound [ticks] and what plans hold of each cell [GPUs times units].

    ``value`` is the bound on weighted delays, in weights of 1 / PRICE_UNIT times units.
    """

    prices: PlanPrices
    ticks: Fraction
    value: float
    held: NDArray[np.float64]
    cells: int


@dataclass(frozen=True, eq=False)
class _Served:
    """A run in order of weight over GPU-time on a grid.

    Parameters
    ----------
    grid_ticks : tuple of int
    full : ndarray of bool, shape (cells,)
        Where all GPUs are in use.
    filler : ndarray of int, shape (cells,)
        Job that took the last of them, or -1.
    ends : ndarray, shape (n,)
        Completions [units].
    """

    grid_ticks: tuple[int, ...]
    full: NDArray[np.bool_]
    filler: NDArray[np.int64]
    ends: NDArray[np.float64]
    cost: float

    def finer(self, scaled: _Scaled, cells_seen: int) -> tuple[int, ...]:
        """A grid that is finer where all GPUs are in use, so that an evaluation sees so many cells or less."""
        bounds = scaled.units(self.grid_ticks)
        full = np.diff(bounds) * self.full
        before = np.concatenate(([0.0], np.cumsum(full, dtype=np.float64)))
        delay = np.interp(self.ends, bounds, before)
        delay -= np.interp(scaled.release, bounds, before)
        # A job sees the cells until its end, and about as many more until waiting cannot pay.
        share = 2.0 * float(delay.sum()) / before[-1]
        most = (cells_seen - 4 * len(delay)) / max(share, 1e-9)
        cells = int(np.clip(most, _FEWEST, min(_FINEST, _FEWEST + _PER_JOB * len(delay))))
        inner = np.interp(np.linspace(0.0, before[-1], cells + 1), before, bounds)
        edges = bounds[1:-1][self.full[1:] != self.full[:-1]]
        together = np.concatenate((bounds[[0, -1]], edges, inner.astype(np.int64)))
        return tuple((np.unique(together) << scaled.shift).tolist())

    def prices(self, scaled: _Scaled) -> NDArray[np.float64]:
        """Prices at which the last job that is served in a cell could as well wait, in weights / PRICE_UNIT."""
        bounds = scaled.units(self.grid_ticks)
        jobs = scaled.columns
        found = np.zeros(len(self.filler))
        worth: dict[int, float] = {}  # Price plus falling weight of a job, constant where it fills.
        after = 0.0
        for k in range(len(found) - 1, -1, -1):
            j = int(self.filler[k])
            if j < 0:
                after = 0.0
                continue
            fall = float(jobs["weight"][j] / (jobs["work"][j] * scaled.gpus[j]))
            worth.setdefault(j, after + fall * float(bounds[k + 1]))
            found[k] = max(worth[j] - fall * float(bounds[k] + bounds[k + 1]) / 2, 0.0)
            after = max(worth[j] - fall * float(bounds[k]), 0.0)
        return found


class _Scaled:
    """Jobs in whole units of 2**shift ticks, rounded so that bounds only fall.

    A job that is released earlier, or has less to do, costs no more.
    """

    def __init__(self, jobs: RelaxedJobs, shift: int) -> None:
        from shadowprice.solvers.offline.plan_loops import JOB

        self.shift = shift
        self.jobs = jobs
        self.largest = max(jobs.weight)
        weight = {w: math.floor(w * PRICE_UNIT / self.largest) for w in set(jobs.weight)}
        n = len(jobs.release)
        self.release = np.array(jobs.release, dtype=np.int64) >> shift
        self.gpus = np.array(jobs.gpus, dtype=np.int64)
        self.columns = np.zeros(n, dtype=JOB)
        self.columns["release"] = self.release
        self.columns["work"] = np.array(jobs.work, dtype=np.int64) >> shift
        self.columns["weight"] = [weight[w] for w in jobs.weight]
        self.columns["multiple"] = self.gpus
        self.capacity = float(jobs.capacity)
        ticks = zip(jobs.weight, self.release.tolist(), strict=True)
        by_weight: dict[Fraction, int] = {}
        for w, r in ticks:
            by_weight[w] = by_weight.get(w, 0) + r
        self.released = sum((w * r for w, r in by_weight.items()), Fraction(0)) * 2**shift

    @classmethod
    def of(cls, jobs: RelaxedJobs, grid_ticks: Sequence[int]) -> _Scaled | None:
        """The jobs in the finest units for which 64 bits suffice; None if cells begin within such units."""
        if not any(jobs.weight):
            return None
        shift = cls.shift_of(jobs, grid_ticks[-1])
        if any(bound % 2**shift for bound in grid_ticks) or grid_ticks[-1] >= 2**62:
            return None
        return cls(jobs, shift)

    @staticmethod
    def shift_of(jobs: RelaxedJobs, end: int) -> int:
        """The unit: its logarithm in ticks."""
        span = max(end, max(jobs.release)) - min(jobs.release) + max(jobs.work)
        return max((span * PRICE_UNIT).bit_length() - _BITS, 0)

    def units(self, grid_ticks: Sequence[int]) -> NDArray[np.int64]:
        """Bounds of cells in units."""
        return np.array(grid_ticks, dtype=np.int64) >> self.shift

    def _most_price(self) -> int:
        """The largest price for which costs of plans fit 61 bits."""
        dear = int(self.columns["work"].max()) * int(self.gpus.max())
        return 2**60 // max(dear, 1)

    def holds(self, prices: PlanPrices) -> bool:
        """True if costs at these prices fit 64 bits."""
        return max(prices.prices) <= self._most_price()

    def rounded(self, grid_ticks: tuple[int, ...], prices: NDArray[np.float64]) -> PlanPrices:
        """Prices as whole numbers that fit."""
        whole = np.round(np.minimum(prices, float(self._most_price() // 2)))
        return PlanPrices(grid_ticks, tuple(whole.astype(np.int64).tolist()))

    def serve(self, grid_ticks: tuple[int, ...]) -> _Served:
        """The run in order of weight over GPU-time, ties by release."""
        from shadowprice.solvers.offline.plan_loops import serve_in_order

        jobs, bounds = self.columns, self.units(grid_ticks)
        density = jobs["weight"] / np.maximum(jobs["work"] * self.gpus, 1)
        order = np.lexsort((np.arange(len(density)), self.release, -density))
        free = self.capacity * np.diff(bounds)
        filler = np.full(len(free), -1, dtype=np.int64)
        ends = np.zeros(len(density))
        serve_in_order(jobs, self.gpus, order, bounds, free, filler, ends)
        cost = float((jobs["weight"] * (ends - self.release)).sum())
        return _Served(grid_ticks, filler >= 0, filler, ends, cost)

    def evaluate(self, prices: PlanPrices) -> _Evaluated:
        """The bound in whole numbers; prices must fit."""
        from shadowprice.solvers.offline.plan_loops import least_costs

        bounds = self.units(prices.grid_ticks)
        cost = np.zeros(len(self.release), dtype=np.int64)
        held = np.zeros((1, len(prices.prices)))
        row = np.array([prices.prices], dtype=np.int64)
        cells = int(least_costs(self.columns, bounds, row, cost, held))
        # Sums of numbers below 2**62 in two parts, each of which fits 64 bits.
        plans = (int((cost >> 31).sum()) << 31) + int((cost & (2**31 - 1)).sum())
        lengths = np.diff(bounds).tolist()
        rent = sum(p * length for p, length in zip(prices.prices, lengths, strict=True))
        delays = plans - self.jobs.capacity * rent
        ticks = self.released + delays * self.largest * Fraction(2**self.shift, PRICE_UNIT)
        return _Evaluated(prices, ticks, float(delays), held[0], cells)
