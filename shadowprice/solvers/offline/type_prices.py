r"""Bounds where GPUs differ in speed, from one price a GPU type: for any number of jobs.

In the symbols of :mod:`shadowprice.models.typed_interval_lp`, with prices :math:`\lambda_r \ge 0` and
:math:`\Lambda = \sum_r G_r \lambda_r`: work of j costs at least :math:`v_j = \min_r \lambda_r g_j p_{jr}`, and
all that is held at a moment costs at most :math:`\Lambda`. So one machine of speed :math:`\Lambda` with work v_j
is no slower than the cluster (LB-price). For the last completion jobs have prices of their own time
beside: the dual of :mod:`shadowprice.models.typed_span` (LB-span). Proofs are in
``shadowprice.proofs.lower_bounds``.

A search proposes prices for total completion time, a float solver those for the span; both are rounded to
whole numbers, and bounds are evaluated in whole numbers, rounded down. Where jobs may share GPUs, p_jr and
G_r are services, as in :mod:`shadowprice.solvers.offline.modes.types`; charges of starts are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, permutations

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.offline.bounds import fluid_ticks, mean_busy_of_areas
from shadowprice.solvers.offline.modes.job_modes import (
    USE_UNIT,
    ModeTable,
    capacity_floats,
    every_kth,
    shortest,
    use_floats,
)
from shadowprice.solvers.offline.relaxation import solve_relaxation

_UNIT = 2**20
"""Prices are whole numbers of about this size."""

_STEPS = tuple(Fraction(1, 2**k) for k in range(1, 8))
"""Shares of all prices that a step of the search moves from one type to another."""

_MOST_EVALUATIONS = 120

SAMPLE = 5_000
"""Jobs up to which all of them count in the search for prices."""

_SPAN_ROUNDS = 4
"""Span programmes, each of the jobs from some arrival on."""

MOST_SPAN_COLUMNS = 150_000
"""Jobs times types up to which the span programme is solved."""


def costs(jobs: ModeTable, prices: Sequence[int]) -> list[int]:
    """v_j for whole prices > 0 [price x ticks], shape (n,); O(n types).

    Raises
    ------
    ValueError
        If there are not as many prices as pools, or one is not positive.
    """
    if len(prices) != len(jobs.capacity) or min(prices) < 1:
        raise ValueError(f"prices {prices}: expected {len(jobs.capacity)} whole numbers >= 1")
    return _least([0] * len(jobs.kind), jobs, prices)


def _least(own: Sequence[int], jobs: ModeTable, prices: Sequence[int]) -> list[int]:
    """min_m p_jm (sum_q v_jmq lambda_q + mu_j) of every job, mu_j the price of its own time; times USE_UNIT."""
    rent = (jobs.use.astype(object) @ np.array(prices, dtype=object)).tolist()
    rows = zip(jobs.kind.tolist(), jobs.time.tolist(), own, strict=True)
    return [
        min(
            ticks * (price + mine * USE_UNIT)
            for ticks, price in zip(row, rent[kind], strict=True)
            if ticks
        )
        for kind, row, mine in rows
    ]


def _rent(jobs: ModeTable, prices: Sequence[int]) -> Fraction:
    """Lambda: the most that all resources cost at a moment; times USE_UNIT."""
    pairs = zip(jobs.capacity.tolist(), prices, strict=True)
    return USE_UNIT * sum((Fraction(units) * price for units, price in pairs), Fraction(0))


# Total completion time.


def fluid_price_ticks(jobs: ModeTable, prices: Sequence[int]) -> int:
    """Sum C_j of SRPT on the machine [ticks], rounded down, whatever the weights; LB-price (a)."""
    works = costs(jobs, prices)
    return fluid_ticks(jobs.release.tolist(), works, [1] * len(works), _rent(jobs, prices))


def busy_price_ticks(jobs: ModeTable, prices: Sequence[int]) -> int:
    """Sum w_j (M_j + q_j / 2), M_j by preemptive WSPT on the machine [ticks], rounded down; LB-price (b)."""
    return mean_busy_of_areas(
        jobs.release.tolist(),
        shortest(jobs).tolist(),
        costs(jobs, prices),
        list(jobs.weight),
        _rent(jobs, prices),
    )


def best_prices(jobs: ModeTable) -> tuple[int, ...]:
    """Prices for which :func:`busy_price_ticks` is large; the same on every run.

    From units that cost as much of all resources, such as GPUs of all types, shares of the rent are moved from one
    resource to another, ever smaller ones, as long as the bound grows. O(n log n) an evaluation, at most 120 of them;
    of more than ``SAMPLE`` jobs every second, third ... is looked at, for as large a share of the resources.
    """
    if len(jobs.release) > SAMPLE:
        return best_prices(every_kth(jobs, -(-len(jobs.release) // SAMPLE)))
    gpus = capacity_floats(jobs)
    share = gpus / gpus.sum()
    best, left = busy_price_ticks(jobs, _whole(share / gpus)), _MOST_EVALUATIONS
    for step in map(float, _STEPS):
        improved = True
        while improved and left > 0:
            improved = False
            for giver, taker in permutations(range(len(gpus)), 2):
                moved = min(step, float(share[giver]))
                if moved <= 0 or left <= 0:
                    continue
                other = share.copy()
                other[giver] -= moved
                other[taker] += moved
                left -= 1
                value = busy_price_ticks(jobs, _whole(other / gpus))
                if value > best:
                    best, share, improved = value, other, True
    return _whole(share / gpus)


def _whole(prices: NDArray[np.float64]) -> tuple[int, ...]:
    """Prices as whole numbers >= 1, the largest about ``_UNIT``."""
    return tuple(max(round(price), 1) for price in (prices / prices.max() * _UNIT).tolist())


# The last completion.


@dataclass(frozen=True)
class SpanPrices:
    """Prices of GPUs and of the jobs' own time, whole numbers >= 0.

    Parameters
    ----------
    types : tuple of int, shape (pools,)
        lambda_r.
    own : tuple of int, shape (n,)
        mu_j.
    """

    types: tuple[int, ...]
    own: tuple[int, ...]


def span_ticks(jobs: ModeTable, prices: SpanPrices) -> tuple[Fraction, int]:
    """Earliest possible last completion [ticks], and the arrival from which jobs decide it; LB-span.

    The largest over arrivals r of r + (what the jobs from r on cost) / (what all GPUs and these jobs'
    time cost at a moment), and of r_j + q_j. O(n (types + log n)).

    Raises
    ------
    ValueError
        If a price is negative, there are not as many as pools and jobs, or no GPU has one above 0.
    """
    shape = len(jobs.capacity), len(jobs.release)
    if (len(prices.types), len(prices.own)) != shape or min(prices.types + prices.own) < 0:
        raise ValueError(f"{prices}: expected {shape[0]} and {shape[1]} whole numbers >= 0")
    if not any(prices.types):
        raise ValueError(f"prices {prices.types}: expected one above 0")
    late = sorted(range(len(jobs.release)), key=lambda j: -int(jobs.release[j]))
    release, fastest = jobs.release.tolist(), shortest(jobs).tolist()
    work, rent = _least(prices.own, jobs, prices.types), _rent(jobs, prices.types)
    worth = accumulate(work[j] for j in late)
    own = accumulate(prices.own[j] * USE_UNIT for j in late)
    best, when = max((Fraction(release[j] + fastest[j]), release[j]) for j in late)
    for j, value, time in zip(late, worth, own, strict=True):
        end = release[j] + value / (rent + time)
        if end > best:
            best, when = end, release[j]
    return best, when


def best_span_prices(jobs: ModeTable) -> tuple[Fraction, SpanPrices]:
    """The largest :func:`span_ticks` of some prices [ticks], and these; the same on every run.

    The span programme of all jobs proposes prices, then that of the jobs from the arrival on that
    decides, while this helps. With more than ``MOST_SPAN_COLUMNS`` columns, prices are those of total
    completion time.
    """
    nobody = (0,) * len(jobs.release)
    best, when = Fraction(-1), int(jobs.release.min())
    cheapest = SpanPrices((1,) * len(jobs.capacity), nobody)
    small = jobs.time.size <= MOST_SPAN_COLUMNS
    for _ in range(_SPAN_ROUNDS):
        some = np.flatnonzero(jobs.release >= when)
        of_programme = _programme_prices(jobs, some) if small else None
        prices = of_programme or SpanPrices(best_prices(jobs), nobody)
        ticks, decides = span_ticks(jobs, prices)
        if ticks <= best:
            break
        best, cheapest = ticks, prices
        if of_programme is None or decides == when:
            break
        when = decides
    return best, cheapest


def _programme_prices(jobs: ModeTable, some: NDArray[np.int64]) -> SpanPrices | None:
    """Duals of the span programme of some jobs; None if it was not solved or no GPU has a price."""
    from shadowprice.models import typed_span

    time = np.where(jobs.time[some] > 0, jobs.time[some], np.inf)
    unit = float(np.median(shortest(jobs)[some]))
    use = use_floats(jobs)[jobs.kind[some]]
    solved = solve_relaxation(
        typed_span.build, use, time / unit, capacity_floats(jobs), method="highs"
    )
    if solved is None:
        return None
    rent, rows = np.zeros(len(jobs.capacity)), solved.model.capacity_of
    rent[*rows.index_set().numbers] = solved.prices(rows)
    rent = np.maximum(rent, 0.0)
    if not rent.any():
        return None
    own = np.zeros(len(jobs.release))
    own[some] = np.maximum(solved.prices(solved.model.alone), 0.0)
    scale = _UNIT * _UNIT / rent.max()
    return SpanPrices(
        tuple(round(each) for each in (rent * scale).tolist()),
        tuple(round(each) for each in (own * scale).tolist()),
    )
