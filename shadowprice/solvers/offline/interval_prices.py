"""Prices of GPU time by interval: duals of the interval LP, on a grid that an effort affords."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from shadowprice.solvers.offline import lagrangian
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.relaxation import solve_relaxation
from shadowprice.solvers.offline.typed_bound import FEWEST_INTERVALS, LARGEST_TICKS, MOST_COLUMNS


@dataclass(frozen=True, eq=False)
class IntervalPrices:
    """Prices of GPU time, by interval.

    Parameters
    ----------
    grid_ticks : tuple of int
        Where intervals begin, and where the last ends [ticks].
    prices : ndarray of int, shape (intervals,)
        In units of 1 / ``lagrangian.PRICE_UNIT`` per GPU and tick; Python's where 64 bits do not
        suffice.
    """

    grid_ticks: tuple[int, ...]
    prices: lagrangian.Whole


def interval_prices(
    jobs: Relaxation, budget_s: float, columns: int | None = None
) -> IntervalPrices | None:
    """Dual prices of the interval LP on a grid that a time budget [s] affords; None if too large, or it has no answer.

    Parameters
    ----------
    columns : int, optional
        Size of the LP, if it is not to follow from the budget.
    """
    from shadowprice.models import interval_lp as relaxations

    until = time.monotonic() + budget_s
    columns = int(min(12_000 * budget_s, MOST_COLUMNS)) if columns is None else columns
    intervals = columns // (2 * max(len(jobs.release), 1))
    if intervals < FEWEST_INTERVALS or not jobs.release:
        return None
    first, latest = min(jobs.release), max(jobs.release)
    end = latest + sum(jobs.work) + 1  # by then one job after the other is done
    if end >= LARGEST_TICKS:
        return None
    release, work = np.array(jobs.release), np.array(jobs.work)
    horizon = first + _fluid_end(jobs)
    # No schedule needs a finer grid than one that all times are on.
    step = max(-(-(horizon - first) // intervals), math.gcd(*jobs.release, *jobs.work))
    bounds = [*range(first, min(horizon, end), step), end]
    weight = np.array([float(each) for each in jobs.weight])
    scale = lagrangian.weight_scale(weight)
    data = relaxations.Intervals(
        (release - first) / step,
        work / step,
        weight / scale,
        np.array(jobs.gpus),
        float(jobs.capacity),
        (np.array(bounds, dtype=np.float64) - first) / step,
    )
    solved = solve_relaxation(relaxations.build, data, until=until)
    if solved is None:
        return None
    prices, rows = np.zeros(len(bounds) - 1), solved.model.capacity
    prices[np.array(list(rows.index_set()), dtype=np.int64)] = solved.prices(rows)
    return IntervalPrices(tuple(bounds), lagrangian.exact_prices(prices * scale))


def _fluid_end(jobs: Relaxation) -> int:
    """Time from the first release until most work can be done: a horizon for the grid, in ticks."""
    area = sum(g * p for g, p in zip(jobs.gpus, jobs.work, strict=True))
    longest = max(jobs.work)
    spread = max(jobs.release) - min(jobs.release)
    return spread + min(int(area / jobs.capacity), longest) + longest + 1
