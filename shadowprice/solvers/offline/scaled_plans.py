"""Bounds of cheapest plans in whole numbers of 64 bits, compiled, and the run from which a search takes its prices.

Times are in units of a power of two of ticks, in which all costs fit: seconds of long traces in units of a
millisecond or so. Releases, work and weights are rounded so that bounds only fall.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.lagrangian import PRICE_UNIT
from shadowprice.solvers.offline.plan_prices import GangPrices, PlanPrices

_BITS = 54
"""Bits of the largest delay times weight; prices have the others up to 61."""

COARSE_CELLS, FEWEST_CELLS, MOST_CELLS, CELLS_PER_JOB = 1_000, 100, 4_000, 30
"""Cells of a first grid; cells of a finer one, at least, at most, and at most beyond these for each job."""

Matrix = NDArray[np.int64]
"""Prices, shape (rows, cells)."""


class CapacityRule(Protocol):
    """Limits of how many gangs run at a moment."""

    def columns(self, jobs: ScaledJobs) -> NDArray[Any]:
        """Records of the jobs, with their rows of prices and multiples."""
        ...

    def most(
        self, prices: Matrix, lengths: NDArray[np.int64]
    ) -> tuple[Fraction | int, NDArray[np.float64]]:
        """Most that what runs is worth in cells of these lengths, and what is then held, shape (rows, cells)."""
        ...

    @property
    def work_per_cell(self) -> float:
        """Effort of :meth:`most`, in cells read for one plan."""
        ...


@dataclass(frozen=True)
class PooledCapacity:
    """Gangs that hold as many GPUs as there are, kappa m, or less; one row of prices, of a GPU."""

    capacity: Fraction

    def columns(self, jobs: ScaledJobs) -> NDArray[Any]:
        """Each job holds as many GPUs as its gang has."""
        return jobs.records

    def most(
        self, prices: Matrix, lengths: NDArray[np.int64]
    ) -> tuple[Fraction | int, NDArray[np.float64]]:
        """All GPUs."""
        held = np.full(prices.shape, float(self.capacity))
        return self.capacity * _product(prices[0], lengths), held

    @property
    def work_per_cell(self) -> float:
        """Nothing to speak of."""
        return 0.0


@dataclass(frozen=True, eq=False)
class Configurations:
    """Gangs of which those that run together fit; a row of prices for each width.

    Parameters
    ----------
    widths : ndarray of int, shape (classes,)
    copies : ndarray of int, shape (classes, cells)
        Gangs of each width released by the end of a cell.
    gpus : int
        m.
    """

    widths: NDArray[np.int64]
    copies: NDArray[np.int64]
    gpus: int

    @classmethod
    def of(cls, jobs: ScaledJobs, bounds: NDArray[np.int64]) -> Configurations:
        """Of jobs on a grid in their units; a cell that a job is released within counts it.

        Widths and GPUs are divided by the widths' common divisor.
        """
        widths, row = np.unique(jobs.gpus, return_inverse=True)
        copies = [
            np.searchsorted(np.sort(jobs.release[row == c]), bounds[1:], side="left")
            for c in range(len(widths))
        ]
        divisor = math.gcd(*widths.tolist())
        return cls(widths // divisor, np.array(copies), jobs.jobs.total_gpus // divisor)

    def columns(self, jobs: ScaledJobs) -> NDArray[Any]:
        """Each job pays the price of its width."""
        records = jobs.records.copy()
        records["row"] = np.unique(jobs.gpus, return_inverse=True)[1]
        records["multiple"] = 1
        return records

    def most(
        self, prices: Matrix, lengths: NDArray[np.int64]
    ) -> tuple[Fraction | int, NDArray[np.float64]]:
        """A best choice of gangs for each cell."""
        from shadowprice.solvers.offline.plan_loops import fill_cells

        taken, worth = np.zeros_like(prices), np.zeros(prices.shape[1], dtype=np.int64)
        fill_cells(prices, self.widths, self.copies, self.gpus, taken, worth)
        return _product(worth, lengths), taken.astype(np.float64)

    @property
    def work_per_cell(self) -> float:
        """Steps of the dynamic programme, of which ten are about a look at a cell."""
        lots = np.ceil(np.log2(np.minimum(self.copies.max(axis=1), self.gpus // self.widths) + 1))
        return float(lots.sum()) * self.gpus / 10


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Prices and their bound.

    Parameters
    ----------
    prices : ndarray of int, shape (rows, cells)
    ticks : Fraction
        The bound on total weighted completion time.
    delays : float
        The same without releases, in weights of 1 / ``PRICE_UNIT`` times units.
    excess : ndarray, shape (rows, cells)
        What plans hold of a cell at its average moment, less what there is.
    cells : int
        Effort: cells that plans have looked at.
    """

    prices: Matrix
    ticks: Fraction
    delays: float
    excess: NDArray[np.float64]
    cells: int


class ScaledJobs:
    """Jobs in whole units of 2**shift ticks."""

    def __init__(self, jobs: Relaxation, shift: int) -> None:
        self.jobs, self.shift = jobs, shift
        self.release = np.array(jobs.release, dtype=np.int64) >> shift
        self.work = np.array(jobs.work, dtype=np.int64) >> shift
        self.gpus = np.array(jobs.gpus, dtype=np.int64)
        self.largest = max(jobs.weight)
        whole = {w: math.floor(w * PRICE_UNIT / self.largest) for w in set(jobs.weight)}
        self.weight = np.array([whole[w] for w in jobs.weight], dtype=np.int64)

    @classmethod
    def of(cls, jobs: Relaxation, grid_ticks: Sequence[int]) -> ScaledJobs | None:
        """The jobs in the finest units for which 64 bits suffice; None if cells begin within such units."""
        if not any(jobs.weight):
            return None
        shift = cls.shift_of(jobs, grid_ticks[-1])
        if any(bound % 2**shift for bound in grid_ticks) or grid_ticks[-1] >= 2**62:
            return None
        return cls(jobs, shift)

    @staticmethod
    def shift_of(jobs: Relaxation, end: int) -> int:
        """The unit: its logarithm in ticks."""
        span = max(end, max(jobs.release)) - min(jobs.release) + max(jobs.work)
        return max((span * PRICE_UNIT).bit_length() - _BITS, 0)

    @cached_property
    def records(self) -> NDArray[Any]:
        """Jobs as compiled code has them, with as many prices of a GPU as their gangs have GPUs."""
        from shadowprice.solvers.offline.plan_loops import JOB

        table = np.zeros(len(self.release), dtype=JOB)
        table["release"], table["work"] = self.release, self.work
        table["weight"], table["multiple"] = self.weight, self.gpus
        return table

    @cached_property
    def released(self) -> Fraction:
        """Weighted releases [ticks]."""
        by_weight: dict[Fraction, int] = {}
        for w, r in zip(self.jobs.weight, self.release.tolist(), strict=True):
            by_weight[w] = by_weight.get(w, 0) + r
        total = sum((w * r for w, r in by_weight.items()), Fraction(0))
        return Fraction(total * 2**self.shift)

    @property
    def alone(self) -> float:
        """Delays if all jobs ran at once."""
        return float((self.weight * self.work.astype(np.float64)).sum())

    def units(self, grid_ticks: Sequence[int]) -> NDArray[np.int64]:
        """Bounds of cells in units."""
        return np.array(grid_ticks, dtype=np.int64) >> self.shift

    def grid_ticks(self, bounds: NDArray[np.int64]) -> tuple[int, ...]:
        """Bounds of cells in ticks."""
        return tuple((bounds << self.shift).tolist())

    @cached_property
    def most_price(self) -> int:
        """The largest price of a GPU, or of a gang, for which costs fit 61 bits."""
        dear = int(self.work.max()) * int(self.gpus.max())
        return 2**60 // max(dear, self.jobs.total_gpus, 1)

    def rounded(self, prices: NDArray[np.float64]) -> Matrix:
        """Prices as whole numbers that fit."""
        return np.round(np.clip(prices, 0.0, float(self.most_price // 2))).astype(np.int64)

    def evaluate(self, bounds: NDArray[np.int64], prices: Matrix, room: CapacityRule) -> Evaluated:
        """The bound in whole numbers; prices must fit."""
        from shadowprice.solvers.offline.plan_loops import least_costs

        cost = np.zeros(len(self.release), dtype=np.int64)
        held = np.zeros(prices.shape)
        cells = int(least_costs(room.columns(self), bounds, prices, cost, held))
        # Sums of numbers below 2**62 in two parts, each of which fits 64 bits.
        plans = (int((cost >> 31).sum()) << 31) + int((cost & (2**31 - 1)).sum())
        lengths = np.diff(bounds)
        rent, there = room.most(prices, lengths)
        delays = plans - rent
        ticks = self.released + delays * self.largest * Fraction(2**self.shift, PRICE_UNIT)
        effort = cells + int(room.work_per_cell * len(lengths))
        return Evaluated(prices, ticks, float(delays), held / lengths - there, effort)

    def serve(self, bounds: NDArray[np.int64]) -> ServedInOrder:
        """The run in order of weight over GPU-time, ties by release."""
        from shadowprice.solvers.offline.plan_loops import serve_in_order

        density = self.weight / np.maximum(self.work * self.gpus, 1)
        order = np.lexsort((np.arange(len(density)), self.release, -density))
        free = float(self.jobs.capacity) * np.diff(bounds)
        filler = np.full(len(free), -1, dtype=np.int64)
        ends = np.zeros(len(density))
        serve_in_order(self.records, self.gpus, order, bounds, free, filler, ends)
        return ServedInOrder(self, bounds, filler, ends)


def scaled_bound(jobs: Relaxation, prices: PlanPrices | GangPrices) -> Fraction | None:
    """The bound [ticks] in 64 bits; None where these do not suffice or cells begin within units."""
    scaled = ScaledJobs.of(jobs, prices.grid_ticks)
    if scaled is None or max(map(max, prices.rows)) > scaled.most_price:
        return None
    bounds = scaled.units(prices.grid_ticks)
    room: CapacityRule = PooledCapacity(jobs.capacity)
    if isinstance(prices, GangPrices):
        room = Configurations.of(scaled, bounds)
        if jobs.speedup != 1 or tuple(np.unique(scaled.gpus).tolist()) != prices.widths:
            return None
    return scaled.evaluate(bounds, np.array(prices.rows, dtype=np.int64), room).ticks


@dataclass(frozen=True, eq=False)
class ServedInOrder:
    """A run in order of weight over GPU-time on a grid.

    Parameters
    ----------
    jobs : ScaledJobs
    bounds : ndarray of int, shape (cells + 1,)
        The grid [units].
    filler : ndarray of int, shape (cells,)
        Job that took the last of them, or -1.
    ends : ndarray, shape (n,)
        Completions [units].
    """

    jobs: ScaledJobs
    bounds: NDArray[np.int64]
    filler: NDArray[np.int64]
    ends: NDArray[np.float64]

    @property
    def full(self) -> NDArray[np.bool_]:
        """Cells in which all GPUs are in use, shape (cells,)."""
        return self.filler >= 0

    @property
    def delays(self) -> float:
        """Weighted times from release to completion, in weights of 1 / ``PRICE_UNIT`` times units."""
        return float((self.jobs.weight * (self.ends - self.jobs.release)).sum())

    def finer(self, cells_seen: int) -> NDArray[np.int64]:
        """A grid that is finer where all GPUs are in use, so that an evaluation sees so many cells or less."""
        bounds = self.bounds
        full = np.diff(bounds) * self.full
        before = np.concatenate(([0.0], np.cumsum(full, dtype=np.float64)))
        delay = np.interp(self.ends, bounds, before)
        delay -= np.interp(self.jobs.release, bounds, before)
        # A job sees the cells until its end, and about as many more until waiting cannot pay.
        share = 2.0 * float(delay.sum()) / before[-1]
        most = (cells_seen - 4 * len(delay)) / max(share, 1e-9)
        cells = int(
            np.clip(most, FEWEST_CELLS, min(MOST_CELLS, FEWEST_CELLS + CELLS_PER_JOB * len(delay)))
        )
        inner = np.interp(np.linspace(0.0, before[-1], cells + 1), before, bounds)
        edges = bounds[1:-1][self.full[1:] != self.full[:-1]]
        together = np.concatenate((bounds[[0, -1]], edges, inner.astype(np.int64)))
        return np.unique(together)

    def prices(self) -> NDArray[np.float64]:
        """Prices at which the last job that is served in a cell could as well wait, in weights / PRICE_UNIT."""
        bounds, jobs = self.bounds, self.jobs
        levels = np.zeros(len(self.filler))
        worth: dict[int, float] = {}  # Price plus falling weight of a job, constant where it fills.
        after = 0.0
        for k in range(len(levels) - 1, -1, -1):
            j = int(self.filler[k])
            if j < 0:
                after = 0.0
                continue
            fall = float(jobs.weight[j] / (jobs.work[j] * jobs.gpus[j]))
            worth.setdefault(j, after + fall * float(bounds[k + 1]))
            levels[k] = max(worth[j] - fall * float(bounds[k] + bounds[k + 1]) / 2, 0.0)
            after = max(worth[j] - fall * float(bounds[k]), 0.0)
        return levels


def _product(prices: NDArray[np.int64], lengths: NDArray[np.int64]) -> int:
    """Scalar product in whole numbers of Python: of two numbers of 61 bits no 64 would hold it."""
    return sum(map(mul, prices.tolist(), lengths.tolist()))
