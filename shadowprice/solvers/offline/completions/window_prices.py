"""Prices of each job's time over time, with windows of completions: bounds in whole numbers, and a search of prices.

Statement and proof are in ``shadowprice.proofs.lower_bounds.completion_windows``. Subgradient steps come first, in
a fraction of a millisecond each; where they end just below what is wanted, a linear programme of prices with plans
and sets of jobs as rows, which cheapest plans and most valuable sets at its prices extend, finds the last bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.completions.window_loops import (
    JOB,
    Floats,
    Ints,
    Table,
    ascend,
    evaluate_plans,
    most_worth,
)
from shadowprice.solvers.programs.highs import HighsEnding, WarmProgram

MOST_JOBS = 14
"""Jobs up to which sets that fit together are enumerated."""

_FINER, _WEIGHTS = (60, 12, 1), (720_720, 5_040, 60)
"""Units of time in a common divisor of times, and of weight in the largest; with many divisors: thirds are whole."""

_LARGEST = 2**57
"""Largest time times weight: costs and sums of a few fit 64 bits."""

_ROUNDS, _MORE_ROUNDS, _CLOSE, _EXACT = 40, 200, 1e-9, 1e-12
"""Linear programmes for one set of windows, and until a vertex is as good as what is known to reach the target;
relative distances of what is as good as a target, and of what is it."""


@dataclass(frozen=True, eq=False)
class WindowJobs:
    """Jobs with positive weights in whole units, and which of them fit together.

    Parameters
    ----------
    records : ndarray of ``JOB``, shape (n,)
        With windows from release plus work to ``end``.
    members, sizes : ndarray of int, shape (sets, n) and (sets,)
        Maximal sets of jobs that fit together.
    index : tuple of int
        Which of the jobs given each is.
    weights : tuple of Fraction
        Theirs, unrounded.
    begin_ticks : int
        Moment that units count from.
    unit_ticks : Fraction
        Length of a unit of time.
    heaviest : Fraction
        The largest weight, which is ``weight_units`` units of weight.
    weight_units : int
    divisor : int
        Units between which no job is released, and in multiples of which work comes.
    """

    records: Table
    members: Ints
    sizes: Ints
    index: tuple[int, ...]
    weights: tuple[Fraction, ...]
    begin_ticks: int
    unit_ticks: Fraction
    heaviest: Fraction
    weight_units: int
    divisor: int

    @classmethod
    def of(cls, jobs: Relaxation) -> WindowJobs | None:
        """The jobs that count; None if there are none or too many, they may share GPUs, or last too long."""
        index = tuple(j for j, w in enumerate(jobs.weight) if w > 0)
        if not index or len(index) > MOST_JOBS or jobs.speedup != 1:
            return None
        release, work = [jobs.release[j] for j in index], [jobs.work[j] for j in index]
        begin = min(release)
        divisor = math.gcd(*work, *(r - begin for r in release))
        last = max(release) - begin + sum(work)
        heaviest = max(jobs.weight)
        # A multiple of all weights' denominators if there is room for it.
        common = math.lcm(*((jobs.weight[j] / heaviest).denominator for j in index))
        fits = (
            (finer, units)
            for units in (*(common * each for each in _WEIGHTS), *_WEIGHTS)
            for finer in _FINER
            if last * finer // divisor * units * len(index) < _LARGEST
        )
        scale = next(fits, None)
        if scale is None or not divisor:
            return None
        finer, units = scale
        records = np.zeros(len(index), dtype=JOB)
        records["release"] = [(r - begin) * finer // divisor for r in release]
        records["work"] = [p * finer // divisor for p in work]
        records["weight"] = [math.floor(jobs.weight[j] * units / heaviest) for j in index]
        records["earliest"] = records["release"] + records["work"]
        records["latest"] = last * finer // divisor
        gangs = [jobs.gpus[j] for j in index]
        sets = maximal_sets(gangs, jobs.total_gpus)
        members = np.zeros((len(sets), len(index)), dtype=np.int64)
        for row, each in enumerate(sets):
            members[row, : len(each)] = each
        return cls(
            records,
            members,
            np.array([len(each) for each in sets], dtype=np.int64),
            index,
            tuple(jobs.weight[j] for j in index),
            begin,
            Fraction(divisor, finer),
            heaviest,
            units,
            finer,
        )

    @property
    def released(self) -> Fraction:
        """Weighted releases [ticks], which bounds leave out."""
        starts = zip(self.weights, self.records["release"].tolist(), strict=True)
        after = sum((w * r for w, r in starts), Fraction(0)) * self.unit_ticks
        return after + self.begin_ticks * sum(self.weights, Fraction(0))

    def ticks(self, value: int) -> Fraction:
        """Weighted completion time [ticks] of a bound in units."""
        return self.released + value * self.heaviest / self.weight_units * self.unit_ticks

    def units(self, ticks: Fraction) -> Fraction:
        """A weighted completion time [ticks] in the units of bounds."""
        return (ticks - self.released) * self.weight_units / self.heaviest / self.unit_ticks


def maximal_sets(gangs: list[int], gpus: int) -> list[tuple[int, ...]]:
    """Sets of jobs that fit together and leave room for no other job; at most C(n, n / 2)."""
    n = len(gangs)
    held = [0] * (1 << n)
    for mask in range(1, 1 << n):
        low = (mask & -mask).bit_length() - 1
        held[mask] = held[mask & (mask - 1)] + gangs[low]
    sets = []
    for mask in range(1, 1 << n):
        if held[mask] > gpus:
            continue
        smallest = min((gangs[j] for j in range(n) if not mask >> j & 1), default=gpus + 1)
        if held[mask] + smallest > gpus:
            sets.append(tuple(j for j in range(n) if mask >> j & 1))
    return sets


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of completions, a grid and prices on it.

    Parameters
    ----------
    jobs : WindowJobs
    records : ndarray of ``JOB``, shape (n,)
    bounds : ndarray of int, shape (cells + 1,)
        Grid [units] that covers all windows, with the earliest ends of windows that were branched on among its points.
    prices : ndarray, shape (n, cells)
        Floats, in units of weight.
    mean, variance : ndarray, shape (n,)
        Of completions at the end of the search of prices [units].
    """

    jobs: WindowJobs
    records: Table
    bounds: Ints
    prices: Floats
    mean: Floats
    variance: Floats

    @classmethod
    def without_prices(cls, jobs: WindowJobs, bounds: Ints) -> Windows:
        """All completions on a grid, prices 0."""
        nothing = np.zeros(len(jobs.records))
        prices = np.zeros((len(jobs.records), len(bounds) - 1))
        return cls(jobs, jobs.records, bounds, prices, nothing, nothing)

    def between(self, job: int, earliest: int, latest: int) -> Windows:
        """The part in which a job completes between two moments [units]."""
        records = self.records.copy()
        records["earliest"][job] = max(earliest, records["earliest"][job])
        records["latest"][job] = min(latest, records["latest"][job])
        return replace(self, records=records)

    def on_grid(self, moment: int) -> Windows:
        """The same with a moment among the grid's points."""
        if moment in self.bounds:
            return self
        at = int(np.searchsorted(self.bounds, moment))
        bounds = np.insert(self.bounds, at, moment)
        return replace(
            self, bounds=bounds, prices=np.insert(self.prices, at, self.prices[:, at - 1], axis=1)
        )

    def regridded(self, bounds: Ints) -> Windows:
        """The prices in the middle of each cell of another grid."""
        middle = (bounds[1:] + bounds[:-1]) / 2
        at = np.clip(np.searchsorted(self.bounds, middle) - 1, 0, len(self.bounds) - 2)
        return replace(self, bounds=bounds, prices=self.prices[:, at])

    def whole_prices(self) -> Ints:
        """Prices as whole numbers that fit, 0 before releases and after windows."""
        there = (self.bounds[1:] > self.records["release"][:, None]) & (
            self.bounds[:-1] < self.records["latest"][:, None]
        )
        most = float(_LARGEST // max(int(self.bounds[-1]), 1))
        return np.where(there, np.round(np.clip(self.prices, 0.0, most)), 0.0).astype(np.int64)

    def bound(self, prices: Ints) -> tuple[int | None, Ints]:
        """Bound [units] at whole prices, and least costs of plans by cell; None if a window is too short."""
        n, cells = prices.shape
        least = np.zeros(n, dtype=np.int64)
        costs, held, running = (np.zeros((n, cells), dtype=np.int64) for _ in range(3))
        if not evaluate_plans(self.records, prices, self.bounds, least, costs, held):
            return None, costs
        jobs = self.jobs
        rent = most_worth(self.records, prices, self.bounds, jobs.members, jobs.sizes, running)
        return sum(least.tolist()) - int(rent), costs

    def improved(self, target: float, effort: tuple[int, float, int]) -> tuple[float, Windows]:
        """A bound by subgradient steps [units], not exact and infinite for windows too short, and its prices."""
        value, prices, mean, variance = ascend(
            self.records,
            np.ascontiguousarray(self.prices),  # one order of axes, which compiles once
            self.bounds,
            self.jobs.members,
            self.jobs.sizes,
            target,
            effort,
        )
        return value, replace(self, prices=prices, mean=mean, variance=variance)


@dataclass(frozen=True, eq=False)
class _Cut:
    """A row of the programme of prices: which columns, with which entries, and its right-hand side."""

    columns: NDArray[np.int32]
    values: Floats
    most: float


class PriceProgramme:
    """The programme of prices on one grid: most of all jobs' least costs less what sets are worth.

    Columns are least costs of the jobs, worths of the cells and prices; rows say that no plan that is known costs
    a job less, and that no set that is known is worth more. Its value is at least the largest bound on this grid.
    """

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        n, cells = windows.prices.shape
        # In these units work is some ten, which solvers like.
        self._time = max(float(windows.records["work"].max()) / 10, 1.0)
        self._weight = float(windows.jobs.weight_units)
        self._series = WarmProgram(maximise=True)
        lengths = np.diff(windows.bounds) / self._time
        there = windows.bounds[1:] > windows.records["release"][:, None]
        there &= windows.bounds[:-1] < windows.records["latest"][:, None]
        self._place = np.full((n, cells), -1, dtype=np.int64)
        self._place[there] = n + cells + np.arange(int(there.sum()))
        costs = np.concatenate((np.ones(n), -lengths, np.zeros(int(there.sum()))))
        none = [np.zeros(0, dtype=np.int64)] * len(costs)
        # No prices are wanted beyond all weights at once; without a limit the first programmes have no optimum.
        dearest = float(windows.records["weight"].sum()) / self._weight
        upper = np.where(np.arange(len(costs)) < n + cells, np.inf, dearest)
        self._series.columns(costs, upper, none, [np.zeros(0)] * len(costs))
        self._known: set[tuple[int, ...]] = set()
        self._rows: list[tuple[int, float] | None] = []
        self.mean, self.variance = windows.mean, windows.variance

    def solve(self, target: float, prices: Floats) -> tuple[float, float, Floats]:
        """Largest bound found [units], a value that no prices on this grid exceed, and its prices.

        Ends where the second is below the target, or a vertex reaches it: prices of vertices are fractions with
        small denominators, whole in these units, where those between them are not.
        """
        best, top, most, at = -math.inf, prices, math.inf, prices
        for number in range(_MORE_ROUNDS):
            if number >= _ROUNDS and best < target * (1 - _CLOSE):
                break
            value = self._extend(at)
            if value > best:
                best, top = value, at
            solution = self._series.solve()
            if solution.outcome is not HighsEnding.OPTIMAL:
                break
            most = solution.value * self._time * self._weight
            self._read(solution.duals)
            if most < target * (1 - _CLOSE):
                break
            proposed = self._prices(solution.primal)
            value = self._extend(proposed)
            if value >= target * (1 - _EXACT):
                return value, most, proposed
            if value > best:
                best, top = value, proposed
            at = (top + proposed) / 2
        return best, most, top

    def _prices(self, primal: Floats) -> Floats:
        there = self._place >= 0
        prices = np.zeros(self._place.shape)
        prices[there] = primal[self._place[there]] * self._weight
        return prices

    def _extend(self, prices: Floats) -> float:
        """Add rows of cheapest plans and most valuable sets at some prices; the bound of these."""
        windows, jobs = self.windows, self.windows.jobs
        n, cells = prices.shape
        least, costs = np.zeros(n), np.zeros((n, cells))
        held, running = np.zeros((n, cells)), np.zeros((n, cells))
        if not evaluate_plans(windows.records, prices, windows.bounds, least, costs, held):
            return math.inf
        rent = most_worth(
            windows.records, prices, windows.bounds, jobs.members, jobs.sizes, running
        )
        for j in range(n):
            self._plan(j, held[j], float(least[j] - prices[j] @ held[j]))
        for k in range(cells):
            self._set(k, np.flatnonzero(running[:, k]))
        return float(least.sum() - rent)

    def _plan(self, job: int, held: Floats, delay: float) -> None:
        key = (job, *held.astype(np.int64).tolist())
        if key in self._known:
            return
        self._known.add(key)
        cells = np.flatnonzero(held)
        columns = np.concatenate(([job], self._place[job, cells])).astype(np.int32)
        values = np.concatenate(([1.0], -held[cells] / self._time))
        self._series.row(-math.inf, delay / self._time / self._weight, columns, values)
        weight = max(int(self.windows.records["weight"][job]), 1)
        self._rows.append((job, delay / weight + float(self.windows.records["release"][job])))

    def _set(self, cell: int, members: NDArray[np.int64]) -> None:
        key = (-1 - cell, *members.tolist())
        if key in self._known or not len(members):
            return
        self._known.add(key)
        n = len(self._place)
        columns = np.concatenate(([n + cell], self._place[members, cell])).astype(np.int32)
        values = np.concatenate(([-1.0], np.ones(len(members))))
        self._series.row(-math.inf, 0.0, columns, values)
        self._rows.append(None)

    def _read(self, duals: Floats) -> None:
        """Take mean and variance of completions from the shares of plans."""
        n = len(self._place)
        total, mean, square = np.zeros(n), np.zeros(n), np.zeros(n)
        for row, share in zip(self._rows, np.abs(duals).tolist(), strict=True):
            if row is not None and share > 0:
                total[row[0]] += share
                mean[row[0]] += share * row[1]
                square[row[0]] += share * row[1] ** 2
        if (total > 0).all():
            self.mean = mean / total
            self.variance = np.maximum(square / total - self.mean**2, 0.0)
