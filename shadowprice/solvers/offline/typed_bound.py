r"""Bounds where jobs have several modes: prices of resources by interval, evaluated exactly.

The modes are GPU types where these differ in speed, and the resources the GPUs of each; or any other of
:mod:`shadowprice.solvers.offline.modes.job_modes`. For prices beta >= 0 and values alpha of the jobs' work the dual
of the typed interval LP is

.. math::

    L(\alpha, \beta) = \sum_j \Bigl( \alpha_j + w_j \tfrac{q_j}{2} - \sum_{k,l} d_{jkl}
        \max\Bigl(0, \max_r \tfrac{\alpha_j - w_j (b_{jk} + c_{jkl})}{p_{jr}} - \sum_q v_{jrq} \beta_{kq}\Bigr) \Bigr)
        - \sum_{k,q} U_q (b_{k+1} - b_k) \beta_{kq}

in the symbols of :mod:`shadowprice.models.typed_interval_lp`: each job takes its work where time and
what it uses cost least. By weak duality it is a bound for every beta >= 0 and every alpha_j <= w_j b_K; with
the latter nothing is gained from work after the last interval either, so the grid need not be
long enough for anything. A float solver proposes beta, a search alpha; both are rounded to multiples
of 2**-20, and everything after is done in whole numbers, rounded so that the bound only falls.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.offline.lagrangian import PRICE_UNIT, Whole, exact_prices, weight_scale
from shadowprice.solvers.offline.modes.job_modes import (
    ModeTable,
    capacity_floats,
    pieces,
    rents,
    shortest,
    use_floats,
)
from shadowprice.solvers.offline.relaxation import solve_relaxation

COLUMNS_PER_S, MOST_COLUMNS, FEWEST_INTERVALS = 6_000, 150_000, 8
"""Columns of the LPs for each second of budget, and at most; intervals, at least."""

LARGEST_TICKS = 2**62
"""Grids that end later are not made: their ticks would not fit 64 bits."""

_FINE = 2**20
"""Terms are rounded to multiples of 1 / (PRICE_UNIT * _FINE)."""


@dataclass(frozen=True, eq=False)
class TypedPrices:
    """Prices of resources by interval.

    Parameters
    ----------
    bounds : ndarray of int, shape (intervals + 1,)
        The grid [ticks].
    prices : ndarray of int, shape (intervals, resources)
        In units of 1 / PRICE_UNIT per unit, such as a GPU, and tick; Python's where 64 bits do not suffice.
    """

    bounds: NDArray[np.int64]
    prices: Whole

    @property
    def floats(self) -> NDArray[np.float64]:
        """The prices rounded to floats, in the same units."""
        return np.asarray(self.prices, dtype=np.float64)


def typed_bound(
    jobs: ModeTable, prices: TypedPrices, values: NDArray[np.float64] | None = None
) -> Fraction:
    """L [ticks] in exact arithmetic, for any prices >= 0; O(n intervals modes).

    Parameters
    ----------
    values : ndarray, shape (n,), optional
        alpha_j [weighted ticks], cut to w_j b_K; those of :func:`work_values` if not given.

    Raises
    ------
    ValueError
        If the grid does not increase or a price is negative.
    """
    if np.any(np.diff(prices.bounds) <= 0) or np.any(prices.prices < 0):
        raise ValueError("interval bounds are not increasing, or a price is negative")
    begin, size, charge = pieces(jobs, prices.bounds)
    values = work_values(jobs, prices) if values is None else values
    end = int(prices.bounds[-1])
    length = np.diff(prices.bounds).astype(object)
    rent = sum((length @ prices.prices.astype(object)) * jobs.capacity.astype(object))
    total = -Fraction(rent) / PRICE_UNIT
    dear = rents(jobs, prices.prices)
    for j, (w, most) in enumerate(zip(jobs.weight, shortest(jobs).tolist(), strict=True)):
        alpha = min(Fraction(round(values[j] * 2), 2), w * end)
        total += alpha + w * Fraction(most, 2)
        when = begin[j][:, None] + charge[j]
        # Only pieces in which the fastest type gains something without rent can count.
        some = np.argwhere((size[j] > 0) & (float(w) * when < float(alpha) * (1 + 1e-9) + 1))
        if len(some):
            taken = _gain(jobs, dear[jobs.kind[j]], j, alpha, when, size[j], some)
            total -= Fraction(taken, PRICE_UNIT * _FINE)
    return total


def _gain(
    jobs: ModeTable,
    rent: NDArray[Any],
    j: int,
    alpha: Fraction,
    when: NDArray[np.int64],
    size: NDArray[np.int64],
    some: NDArray[np.int64],
) -> int:
    """Gain of a job over its alpha in these pieces, rounded up, in 1 / (PRICE_UNIT _FINE) ticks."""
    intervals, piece = some.T
    w = jobs.weight[j]
    common = w.denominator * alpha.denominator
    left = int(alpha * common) - int(w * common) * when[intervals, piece].astype(object)
    best = np.zeros(len(some), dtype=object)
    for mode in np.flatnonzero(jobs.time[j]).tolist():
        divisor = int(jobs.time[j, mode]) * common
        earned = -((-left * (PRICE_UNIT * _FINE)) // divisor)
        best = np.maximum(best, earned - rent[intervals, mode] * _FINE)
    return int((best * size[intervals, piece].astype(object)).sum())


def work_values(jobs: ModeTable, prices: TypedPrices, steps: int = 50) -> NDArray[np.float64]:
    """Values alpha_j [weighted ticks] that nearly maximise L, by bisection; shape (n,)."""
    begin, size, charge = pieces(jobs, prices.bounds)
    able = jobs.time > 0
    with np.errstate(divide="ignore"):
        rate = np.where(able, 1.0 / jobs.time, 0.0)
    weight = np.array([float(w) for w in jobs.weight])
    when = weight[:, None, None] * (begin[:, :, None] + charge)
    rent = np.einsum("kmq,iq->kim", use_floats(jobs), prices.floats / PRICE_UNIT)[jobs.kind]
    low, high = weight * jobs.release, weight * float(prices.bounds[-1])
    for _ in range(steps):
        alpha = (low + high) / 2
        enough = _work_done(alpha, when, size, rate, rent, able) >= 1.0
        low, high = np.where(enough, low, alpha), np.where(enough, alpha, high)
    return (low + high) / 2


def _work_done(
    alpha: NDArray[np.float64],
    when: NDArray[np.float64],
    size: NDArray[np.int64],
    rate: NDArray[np.float64],
    rent: NDArray[np.float64],
    able: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Share of its work that each job buys where it gains, if all of it is worth alpha."""
    left = alpha[:, None, None] - when
    best = np.zeros_like(left)
    bought = np.zeros_like(left)
    for pool in range(rate.shape[1]):
        gain = left * rate[:, pool, None, None] - rent[:, :, pool, None]
        better = (gain > best) & able[:, pool, None, None]
        best = np.where(better, gain, best)
        bought = np.where(better, rate[:, pool, None, None], bought)
    return np.asarray((bought * size).sum(axis=(1, 2)))


def typed_prices(
    jobs: ModeTable, budget_s: float, columns: int | None = None
) -> TypedPrices | None:
    """Dual prices of the typed interval LP on grids that a budget [s] affords; None if too large.

    The second grid is finer where the first one's prices say that GPUs are scarce; the prices that
    bound more are returned. None as well where there is one mode and one resource, and one pool says as much.

    Parameters
    ----------
    columns : int, optional
        Size of the two LPs together, if it is not to follow from the budget.
    """
    until = time.monotonic() + budget_s
    if jobs.time.shape[1] == len(jobs.capacity) == 1 or not len(jobs.release):
        return None
    if int(jobs.release.max()) + sum(jobs.time.max(axis=1).tolist()) >= LARGEST_TICKS:
        return None
    most = min(COLUMNS_PER_S * budget_s, MOST_COLUMNS) if columns is None else columns
    from shadowprice.models.typed_interval_lp import PIECES

    best: TypedPrices | None = None
    for share in (0.25, 0.75):
        intervals = int(share * most / (PIECES * int((jobs.time > 0).sum())))
        left = until - time.monotonic()
        if intervals < FEWEST_INTERVALS or left <= 0:
            continue
        solved = _lp_prices(jobs, _grid(jobs, intervals, best), left)
        if solved is not None and (
            best is None or typed_bound(jobs, solved) > typed_bound(jobs, best)
        ):
            best = solved
    return best


def _lp_prices(jobs: ModeTable, bounds: NDArray[np.int64], left_s: float) -> TypedPrices | None:
    """Prices of the LP on a grid; None if it is not solved, or not in time."""
    from shadowprice.models import typed_interval_lp as typed_relaxation

    until = time.monotonic() + left_s
    weight = np.array([float(w) for w in jobs.weight])
    scale = weight_scale(weight)
    first, step = int(bounds[0]), float(np.median(np.diff(bounds)))
    begin, size, charge = pieces(jobs, bounds)
    data = typed_relaxation.TypedIntervals(
        weight / scale,
        use_floats(jobs)[jobs.kind],
        np.where(jobs.time > 0, jobs.time, np.inf) / step,
        capacity_floats(jobs),
        (bounds - first) / step,
        (begin - first) / step,
        size / step,
        charge / step,
    )
    solved = solve_relaxation(typed_relaxation.build, data, until=until)
    if solved is None:
        return None
    prices, rows = np.zeros((len(bounds) - 1, len(jobs.capacity))), solved.model.capacity
    prices[*rows.index_set().numbers] = solved.prices(rows).ravel()
    return TypedPrices(bounds, exact_prices(prices * scale))


def _drained(jobs: ModeTable) -> float:
    """Time in which all work could be done at full use [ticks], as far as one resource after the other says."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(jobs.time > 0, 1.0 / jobs.time, 0.0)
        most = (capacity_floats(jobs) / use_floats(jobs)[jobs.kind]).min(axis=2)
    # The most progress of a job at a moment if it had all: of each mode as much as its scarcest resource allows.
    drained = (rate * np.where(rate > 0, most, 0.0)).sum(axis=1)
    return float((1.0 / drained).sum()) + 1.0


def _grid(jobs: ModeTable, intervals: int, known: TypedPrices | None) -> NDArray[np.int64]:
    """Starts of intervals, and the end of the last, by which all is done one after the other.

    Equal ones until all work could be done at full use, then ever longer ones; if prices are known,
    half of the equal ones are placed where the rent is, by its quantiles.
    """
    first, last = int(jobs.release.min()), int(jobs.release.max())
    longest = jobs.time.max(axis=1)
    end = last + int(longest.sum()) + 1
    drained = last + _drained(jobs)
    tail = max(intervals // 4, 2)
    points = [np.linspace(first, min(drained, end), intervals - tail)]
    if known is not None and known.prices.any():
        rent = np.diff(known.bounds) * (known.floats @ capacity_floats(jobs))
        paid = np.concatenate(([0.0], np.cumsum(rent))) / rent.sum()
        half = (intervals - tail) // 2
        quantiles = np.interp(np.linspace(0.0, 1.0, half), paid, known.bounds)
        points = [np.linspace(first, min(drained, end), half), quantiles]
    if drained < end:
        points.append(first + np.geomspace(drained - first, end - first, tail))
    inner = np.unique(np.concatenate(points).astype(np.int64))
    inner = inner[(inner > first) & (inner < end)]
    return np.concatenate(([first], inner, [end]))
