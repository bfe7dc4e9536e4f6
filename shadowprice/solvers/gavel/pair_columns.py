"""Space sharing with many pairs: only those that pay are ever given to the solver.

Column generation for the highest level (derived; Dantzig and Wolfe's idea). A programme with some
of the pairs gives prices; a pair is worth adding on type j if T1 y_first + T2 y_second exceeds what it
takes, u_first + u_second + s p_j. When none is, the prices are feasible for the whole programme and
its optimum is reached; what rounding leaves is added to the time prices, so that the bound holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import Pairs
from shadowprice.solvers.gavel.prices import PricedLevel
from shadowprice.solvers.gavel.rates import FloatArray, Rates

MANY_PAIRS = 2000
"""From so many pairs it is faster than the whole programme."""

_PER_JOB = 10
"""Pairs added for each job in a round, at most."""

_PAYS = 1e-9
"""Relative profit from which a pair is added."""


def with_columns(rates: Rates, solve: Callable[[Rates], PricedLevel]) -> PricedLevel:
    """The highest level over all pairs of the rates, solving programmes with some of them."""
    pairs = rates.pairs
    inside = np.zeros(len(pairs), dtype=bool)
    while True:
        some = pairs.select(inside) if inside.any() else Pairs.none(rates.alone.shape[1])
        level = solve(replace(rates, pairs=some))
        profit = _profit(rates, level)
        pays = ~inside & (profit > _PAYS * level.value / rates.rows)
        if not pays.any():
            y = np.zeros((len(pairs), rates.alone.shape[1]))
            y[inside] = level.y
            return replace(level, y=y, bound=_bound(rates, level, profit))
        inside[_best(pairs, profit, pays, rates.rows)] = True


def _profit(rates: Rates, level: PricedLevel) -> FloatArray:
    """Profit of each pair: its worth less its cost, on the type where that is most."""
    pairs = rates.pairs
    on_type = level.worker_price[list(rates.accelerators)]
    worth = (
        pairs.throughput_first * level.job_price[pairs.first][:, None]
        + pairs.throughput_second * level.job_price[pairs.second][:, None]
        - rates.gang[pairs.first][:, None] * on_type[None, :]
    )
    time = level.time_price
    return np.asarray(worth.max(axis=1) - time[pairs.first] - time[pairs.second])


def _best(
    pairs: Pairs, profit: FloatArray, pays: NDArray[np.bool_], rows: int
) -> NDArray[np.int64]:
    """The most profitable pairs of each job, a few for each."""
    candidates = np.flatnonzero(pays)
    order = candidates[np.argsort(-profit[candidates], kind="stable")]
    count = [0] * rows
    chosen = []
    first, second = pairs.first[order].tolist(), pairs.second[order].tolist()
    for k, one, other in zip(order.tolist(), first, second, strict=True):
        if count[one] < _PER_JOB or count[other] < _PER_JOB:
            chosen.append(k)
            count[one] += 1
            count[other] += 1
    return np.array(chosen, dtype=np.int64)


def _bound(rates: Rates, level: PricedLevel, profit: FloatArray) -> float:
    """The bound of prices whose time prices cover every pair's profit."""
    missing = np.zeros(rates.rows)
    np.maximum.at(missing, rates.pairs.first, profit)
    return level.bound + float(rates.count @ missing)
