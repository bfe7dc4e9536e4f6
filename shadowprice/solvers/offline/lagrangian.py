r"""Bounds from any prices, in exact arithmetic: the capacity rows of an LP dualised.

For prices beta >= 0 the Lagrangian bounds are

.. math::

    L(\beta) = \sum_j \min_{t} \Bigl( w_j (t + p_j) + g_j \sum_{s=t}^{t+p_j-1} \beta_s \Bigr) - G \sum_t \beta_t

for the time-indexed programme, and likewise for the interval LP. They hold for every beta >= 0,
wherever it came from: LB-lp (Neumaier and Shcherbina, Math. Programming A 99, 2004; Jansson,
SIAM J. Optim. 14, 2004). A float solver proposes the prices; here they are rounded to multiples
of 2**-20 and everything after is integer arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.slotted import Slotted

PRICE_UNIT = 2**20
"""Prices and costs are multiples of 1 / PRICE_UNIT."""

Whole = NDArray[Any]
"""Whole numbers, of 64 bits or, where these do not suffice, of any size."""

_LIMIT = 2**62


def exact_prices(prices: NDArray[np.float64]) -> Whole:
    """Prices clipped to be >= 0 and rounded, in units of 1 / PRICE_UNIT; of any size.

    Any prices give a bound: what is no number becomes 0, what is beyond 1e300 is cut.
    """
    rounded = np.round(np.clip(np.nan_to_num(prices, nan=0.0), 0.0, 1e300) * PRICE_UNIT)
    if rounded.max(initial=0.0) < _LIMIT:
        return rounded.astype(np.int64)
    whole = np.array([int(price) for price in rounded.ravel().tolist()], dtype=object)
    return whole.reshape(rounded.shape)


def reduced_costs(jobs: Slotted, prices: Whole, horizon: int) -> tuple[int, Whole]:
    """Exact time-indexed bound, and the reduced cost of every start.

    Parameters
    ----------
    prices : ndarray of int, shape (horizon,)
        beta_t in units of 1 / PRICE_UNIT; slots from the horizon on are free.
    horizon : int
        Starts 0 .. horizon are priced; a later start costs more than one at the horizon.

    Returns
    -------
    bound : int
        L(beta) in units of 1 / PRICE_UNIT.
    reduced : ndarray of int, shape (n, horizon + 1)
        Increase of the bound if job j starts in slot t; -1 where t < release. Numbers that do not
        fit 64 bits are Python's, which is slow and as exact.
    """
    weight = [Fraction(w) * PRICE_UNIT for w in jobs.weight.tolist()]
    if any(w.denominator != 1 for w in weight):
        weight = [Fraction(int(w)) for w in weight]  # rounding weights down keeps the bound
    unit = np.array([int(w) for w in weight], dtype=object)
    top = int(max(unit, default=0)) * (2 * horizon + int(jobs.duration.max(initial=0)))
    rents = sum(int(price) for price in prices.tolist())
    kind = np.int64 if top + jobs.capacity * rents < _LIMIT else object
    beyond = max(_LIMIT, top + jobs.capacity * rents + 1)
    cumulative = np.concatenate((np.zeros(1, dtype=kind), np.cumsum(prices.astype(kind))))
    slots = np.arange(horizon + 1)
    ends = np.minimum(slots[None, :] + jobs.duration[:, None], horizon)
    rent = (cumulative[ends] - cumulative[slots][None, :]) * jobs.gpus[:, None]
    cost = unit.astype(kind)[:, None] * (slots[None, :] + jobs.duration[:, None]) + rent
    allowed = slots[None, :] >= jobs.release[:, None]
    alpha = np.where(allowed, cost, beyond).min(axis=1)
    bound = sum(alpha.tolist()) - jobs.capacity * rents
    return bound, np.where(allowed, cost - alpha[:, None], -1)


def weight_scale(weight: NDArray[np.float64]) -> float:
    """A power of two near the largest weight, 1 for no weights above 0.

    Prices are proportional to weights. Float solvers are given weights divided by it, so that their
    tolerances mean the same whatever the unit of weights is; nothing is rounded by that.
    """
    most = float(weight.max(initial=0.0))
    return 2.0 ** math.floor(math.log2(most)) if most > 0 else 1.0


def interval_bound(
    release: list[int],
    work: list[int],
    gpus: list[int],
    weight: list[Fraction],
    capacity: int | Fraction,
    bounds: list[int],
    prices: Whole,
) -> Fraction:
    """Exact bound of the interval LP, its constant included, in the unit of the times.

    Each job takes its work from the cheapest half-intervals open to it, at cost w_j b_jk / p_j +
    g_j beta_k for each unit of time in the first half and w_j u_jk / p_j more in the second;
    O(n K log K). First halves are rounded up and second ones down, which keeps the bound.
    """
    if any(start >= end for start, end in pairwise(bounds)):
        raise ValueError("interval bounds are not increasing")
    rents = sum(int(b) * (e - s) for b, s, e in zip(prices, bounds, bounds[1:], strict=False))
    total = -capacity * Fraction(rents, PRICE_UNIT)
    starts, ends = np.array(bounds[:-1], dtype=np.int64), np.array(bounds[1:], dtype=np.int64)
    for r, p, g, w in zip(release, work, gpus, weight, strict=True):
        first = int(np.searchsorted(ends, r, side="right"))
        begin = np.maximum(starts[first:], r)
        most = np.minimum(ends[first:] - begin, p)
        room = np.concatenate((most - most // 2, most // 2))
        begin = np.concatenate((begin, begin + most))
        price = np.concatenate((prices[first:], prices[first:]))
        # cost of a unit of time x (p * denominator of w * PRICE_UNIT), a whole number
        scale = w.numerator * PRICE_UNIT
        rent = int(g) * p * w.denominator
        if 2 * scale * bounds[-1] + rent * int(prices.max(initial=0)) >= _LIMIT:
            unit = [
                scale * int(b) + rent * int(q)
                for b, q in zip(begin.tolist(), price.tolist(), strict=True)
            ]
            order = sorted(range(len(unit)), key=unit.__getitem__)
        else:
            unit = (scale * begin + rent * price).tolist()
            order = np.argsort(np.array(unit), kind="stable").tolist()
        left, cost = p, 0
        for k in order:
            take = min(left, int(room[k]))
            cost += take * unit[k]
            left -= take
            if not left:
                break
        total += Fraction(cost, p * w.denominator * PRICE_UNIT) + w * Fraction(p, 2)
    return total
