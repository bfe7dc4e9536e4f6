r"""Prices whose bound of the total utility is low: subgradient steps on the dual of HADAR-any.

The dual value :math:`D(k) = \sum_j \mu_j(k) + \sum c_r k_r(t)` is convex in the prices, and the GPU time left
over when every job buys what it likes best, :math:`c_r - \sum_j`, is a subgradient. Steps are Polyak's
towards the utility of the best run known, halved when nothing is gained (derived; the method is textbook,
Polyak 1969, recalled). Nothing has to be believed here: whatever prices come
out, the checker computes their bound anew, exactly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shadowprice.proofs.hadar.any_schedule import BoundedJob, WorkPieces, least_costs
from shadowprice.solvers.hadar.prices import whole_prices

Prices = NDArray[np.float64]

_BITS = 24
"""Prices of a step are whole multiples of 2**-24 of the highest."""
_PATIENCE = 5
"""Steps without gain after which the step length is halved."""
_SMALLEST = 1e-4


def improve(
    demands: Sequence[BoundedJob],
    capacity: NDArray[np.int64],
    start: Prices,
    round_ticks: int,
    earned: float,
    budget_s: float,
) -> Prices:
    """Prices with a lower dual value, or those given.

    Parameters
    ----------
    start : ndarray, shape (rounds, types)
    earned : float
        Utility that some schedule reaches.
    budget_s : float
        CPU time [s]; a step takes O(jobs x rounds x types x log rounds).
    """
    end = time.process_time() + budget_s
    prices = best = start
    best_value, length, since = math.inf, 1.0, 0
    while length > _SMALLEST:
        dual = _dual(demands, capacity, prices, round_ticks, end)
        if dual is None:
            break
        value, left = dual
        since += 1
        if value < best_value - 1e-6 * abs(value):
            best_value, best, since = value, prices, 0
        norm = float((left * left).sum())
        gap = value - earned
        if norm == 0.0 or gap <= 1e-9 * abs(value):
            break
        if since > _PATIENCE:
            length, since = length / 2.0, 0
            prices = best
            continue
        prices = np.maximum(prices - length * gap / norm * left, 0.0)
    return best


def _dual(
    demands: Sequence[BoundedJob],
    capacity: NDArray[np.int64],
    prices: Prices,
    round_ticks: int,
    end: float,
) -> tuple[float, Prices] | None:
    """Dual value and the GPUs left over, shape (rounds, types); None if time has run out."""
    whole, exponent = whole_prices(prices, _BITS)
    unit = 2.0**exponent
    left = np.repeat(capacity[None, :].astype(np.float64), len(prices), axis=0)
    value = float((whole * capacity).sum()) * unit
    for demand in demands:
        if time.process_time() > end:
            return None
        payoff, last = _best_end(demand, capacity, whole, round_ticks, unit)
        value += payoff
        if last is not None:
            _buy(left, demand, capacity, whole, round_ticks, last)
    return value, left


def _best_end(
    demand: BoundedJob,
    capacity: NDArray[np.int64],
    prices: NDArray[np.int64],
    round_ticks: int,
    unit: float,
) -> tuple[float, int | None]:
    """Largest payoff and the round of completion; None where it buys nothing."""
    best, last = float(demand.values[-1]), None
    costs = least_costs(demand, capacity, prices, round_ticks)
    for number in range(demand.arrival // round_ticks, len(prices)):
        utility = float(demand.values[number])
        if utility <= best:
            break
        cost = next(costs)
        if cost is None:
            continue
        payoff = utility - cost.numerator / cost.denominator * unit
        if payoff > best:
            best, last = payoff, number
    return best, last


def _buy(
    left: Prices,
    demand: BoundedJob,
    capacity: NDArray[np.int64],
    prices: NDArray[np.int64],
    round_ticks: int,
    last: int,
) -> None:
    """Take the GPUs of the cheapest way to complete by the end of a round from those left over."""
    work_pieces = WorkPieces.of(demand, capacity, prices, round_ticks)
    need = int(demand.share * work_pieces.work)
    pieces = []
    for number in range(work_pieces.first, last + 1):
        before = -1
        for slope, units, place in work_pieces.pieces(number):
            pieces.append((slope, number, before, place, units))
            before = place
    for _, number, before, place, units in sorted(pieces):
        if need <= 0:
            return
        step = work_pieces.speeds[place] - (work_pieces.speeds[before] if before >= 0 else 0)
        part = min(need, units) / (step * round_ticks)
        need -= units
        gang = _gang(demand, capacity, prices[number], place)
        if before >= 0:
            gang = gang - _gang(demand, capacity, prices[number], before)
        left[number] -= part * gang


def _gang(
    demand: BoundedJob, capacity: NDArray[np.int64], prices: NDArray[np.int64], place: int
) -> NDArray[np.int64]:
    """GPUs of each type in the cheapest gang at a speed, by its place, the one whose price the work pieces have."""
    times = sorted({ticks for ticks in demand.ticks if ticks})
    enough = [
        ticks
        for ticks in times
        if sum(c for c, t in zip(capacity.tolist(), demand.ticks, strict=True) if 0 < t <= ticks)
        >= demand.gpus
    ]
    able = np.array([0 < other <= enough[place] for other in demand.ticks])
    taken = np.zeros(len(capacity), dtype=np.int64)
    wanted = demand.gpus
    for gpu_type in np.flatnonzero(able)[np.argsort(prices[able], kind="stable")].tolist():
        taken[gpu_type] = min(wanted, int(capacity[gpu_type]))
        wanted -= int(taken[gpu_type])
    return taken
