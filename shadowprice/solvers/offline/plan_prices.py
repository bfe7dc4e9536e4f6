r"""Prices of GPU time over time, and the bound that every job's cheapest plan gives at them, exactly.

A *plan* of job j says when it runs: p_j units of time between its release and its completion, in one piece
or several. For prices :math:`\lambda(t) \ge 0` of a GPU at a moment, constant on cells of a grid and 0 outside,

.. math:: L(\lambda) = \sum_j \min_{\text{plans}} \Bigl( w_j C_j + g_j \int_{\text{plan}} \lambda \Bigr)
          - \kappa m \int \lambda

is a lower bound of total weighted completion time (LB-plan, in ``shadowprice.proofs.lower_bounds``). With the same
prices it is no less than the bound of :mod:`shadowprice.models.interval_lp`, which charges a job that is
interrupted for half of the interruption only. Prices may be those of whole gangs instead, by width: then what is
subtracted is the most that gangs which fit together are worth (LB-conf).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.lagrangian import PRICE_UNIT


@dataclass(frozen=True, eq=False)
class PlanPrices:
    """Prices of GPU time by cells of time; 0 before the first cell and after the last.

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
        expect_cells(self.grid_ticks, self.prices)

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """One row of prices."""
        return (self.prices,)


@dataclass(frozen=True, eq=False)
class GangPrices:
    """Prices of the time of a whole gang, by its width and by cells of time; 0 outside the cells.

    Parameters
    ----------
    grid_ticks : tuple of int, shape (cells + 1,)
        Where cells begin, and where the last ends [ticks].
    widths : tuple of int, shape (classes,)
        GPUs of gangs, increasing.
    rows : tuple of tuple of int, shape (classes, cells)
        Per gang and tick, in units of the largest weight / ``PRICE_UNIT``.
    """

    grid_ticks: tuple[int, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        """Refuse what is no grid, has a price below 0 or no price for a width."""
        if len(self.widths) != len(self.rows) or not self.rows:
            raise ValueError(f"{len(self.rows)} rows of prices: expected {len(self.widths)} >= 1")
        if list(self.widths) != sorted(set(self.widths)) or self.widths[0] < 1:
            raise ValueError(f"widths {self.widths}: expected increasing whole numbers >= 1")
        for row in self.rows:
            expect_cells(self.grid_ticks, row)


def expect_cells(grid_ticks: Sequence[int], prices: Sequence[int]) -> None:
    """Refuse what is no grid, or has a price below 0.

    Raises
    ------
    ValueError
        Saying which.
    """
    if len(grid_ticks) != len(prices) + 1 or not prices:
        raise ValueError(f"{len(prices)} prices: expected one or more, and one bound of cells more")
    if any(start >= end for start, end in pairwise(grid_ticks)):
        raise ValueError("bounds of cells are not increasing")
    if min(prices) < 0:
        raise ValueError(f"price {min(prices)}: expected whole numbers >= 0")


def exact_plan_bound(
    jobs: Relaxation, prices: PlanPrices | GangPrices, until: int | None = None
) -> Fraction:
    """L [ticks], exactly; O(n cells log cells) in Python's whole numbers.

    Parameters
    ----------
    until : int, optional
        Moment after which nothing counts [ticks], later than all releases: jobs that are not complete then cost w_j
        times it.

    Raises
    ------
    ValueError
        If a gang has no price, or gangs have prices where jobs may share GPUs.
    """
    unit = max(jobs.weight, default=Fraction(0)) / PRICE_UNIT
    total = Fraction(0)
    for r, p, g, w in zip(jobs.release, jobs.work, jobs.gpus, jobs.weight, strict=True):
        total += w * r
        row, multiple = row_of(prices, g)
        if w:
            cells = _cells_from(r, p, prices.grid_ticks, prices.rows[row])
            most = None if until is None else w * (until - r)
            total += _least_cost(r, p, w, multiple * unit, cells, most)
    spans = [end - begin for begin, end in pairwise(prices.grid_ticks)]
    if isinstance(prices, GangPrices):
        worth: Sequence[Fraction | int] = _most_worth(jobs, prices)
    else:
        worth = [jobs.capacity * price for price in prices.prices]
    return total - unit * sum(each * span for each, span in zip(worth, spans, strict=True))


def row_of(prices: PlanPrices | GangPrices, gpus: int) -> tuple[int, int]:
    """Row of a gang's prices, and how many of them a unit of its time costs."""
    if isinstance(prices, PlanPrices):
        return 0, gpus
    if gpus not in prices.widths:
        raise ValueError(f"a gang of {gpus}: expected one of {prices.widths}, which have prices")
    return prices.widths.index(gpus), 1


def copies_by_cell(jobs: Relaxation, prices: GangPrices) -> list[list[int]]:
    """Gangs of each width that have been released by the end of each cell; shape (classes, cells)."""
    if jobs.speedup != 1:
        raise ValueError("prices of gangs: expected jobs that do not share GPUs")
    copies = []
    for width in prices.widths:
        there = zip(jobs.release, jobs.gpus, strict=True)
        release = sorted(r for r, g in there if g == width)
        copies.append([bisect_left(release, end) for end in prices.grid_ticks[1:]])
    return copies


def _most_worth(jobs: Relaxation, prices: GangPrices) -> list[int]:
    """Most that gangs which fit together are worth, of each cell."""
    worth = []
    for values, copies in zip(
        zip(*prices.rows, strict=True), zip(*copies_by_cell(jobs, prices), strict=True), strict=True
    ):
        best = [0] * (jobs.total_gpus + 1)
        for value, width, count in zip(values, prices.widths, copies, strict=True):
            for _ in range(min(count, jobs.total_gpus // width) if value else 0):
                best = [
                    max(most, best[full - width] + value if full >= width else 0)
                    for full, most in enumerate(best)
                ]
        worth.append(best[-1])
    return worth


def _least_cost(
    release: int,
    work: int,
    weight: Fraction,
    rent: Fraction,
    cells: Iterator[tuple[int, int, int]],
    undone: Fraction | None,
) -> Fraction:
    """Least of weight x (end - release) + rent x price of the time taken, and ``undone``, the cost of doing nothing."""
    best = undone
    taken: list[tuple[int, int]] = []  # Of (-price, length), the dearest first.
    left, paid = work, 0
    for begin, end, price in cells:
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


def _cells_from(
    release: int, work: int, grid: Sequence[int], prices: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """Begin, end and price of all cells from a release on, and of enough time after the last."""
    if release < grid[0]:
        yield release, grid[0], 0
    for (begin, end), price in zip(pairwise(grid), prices, strict=True):
        if end > release:
            yield max(begin, release), end, price
    last = max(release, grid[-1])
    yield last, last + work, 0
