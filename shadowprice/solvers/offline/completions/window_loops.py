"""Compiled loops of :mod:`.window_prices`: cheapest plans within windows, and steps of prices.

The same code evaluates prices that are whole numbers, exactly in 64 bits, and floats during a search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

NEVER = 2**61
"""More than any cost: no plan ends within its window."""

_INERTIA, _SHORTER, _SETTLED, _FADING = 0.5, 0.6, 0.01, 0.9
"""Share of the last direction; factor of steps without gain; share of a step at which steps end; memory of ends."""

JOB = np.dtype(
    [(name, np.int64) for name in ("release", "work", "weight", "earliest", "latest")], align=True
)
"""A job in whole units, cost of a unit of time until it ends, and the window of its completion."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Table = NDArray[Any]
"""Prices, shape (n, cells), whole or floats; or records of jobs, for numba no class of ours."""


@njit(cache=True)
def _keep_plan(held: Table, cell: Ints, length: Ints, size: int, last: int, in_last: int) -> None:
    """Write down what a plan takes of each cell."""
    held[:] = 0
    for q in range(size):
        held[cell[q]] = length[q]
    held[last] = in_last


@njit(cache=True)
def window_plan(job: Any, prices: Table, bounds: Ints, costs: Table, held: Table) -> Any:
    """Least of weight x (end - release) + price of the time taken, of ends within the window.

    Cell by cell the end grows, and dearer time is given up for the cheaper time of the cell. Within a cell the
    cost is convex and changes its slope at whole units only. O(cells^2) at worst.

    Parameters
    ----------
    job : record of ``JOB``
        Its earliest completion is a point of the grid, or its release plus its work.
    costs : ndarray, shape (cells,)
        Written: least cost of plans that end in each cell, its begin apart; ``NEVER`` where none does.
    held : ndarray, shape (cells,)
        Written: time of each cell that a cheapest plan takes.
    """
    cells = len(prices)
    price, length = np.empty(cells, prices.dtype), np.empty(cells, np.int64)
    cell = np.empty(cells, np.int64)
    costs[:] = NEVER
    best, paid = costs[0], prices[0] * 0
    size, left = 0, job.work
    for k in range(cells):
        now, end = max(bounds[k], job.release), min(bounds[k + 1], job.latest)
        if bounds[k] >= job.latest:
            break
        taken = 0
        while now < end:
            if left > 0:
                step = min(left, end - now)
                left -= step
                paid += step * prices[k]
            elif size > 0 and price[size - 1] > prices[k]:
                step = min(length[size - 1], end - now)
                paid -= step * (price[size - 1] - prices[k])
                length[size - 1] -= step
                if length[size - 1] == 0:
                    size -= 1
            else:
                break
            now += step
            taken += step
            if left == 0 and now >= job.earliest:
                cost = job.weight * (now - job.release) + paid
                costs[k] = min(costs[k], cost)
                if cost < best:
                    best = cost
                    _keep_plan(held, cell, length, size, k, taken)
        if left == 0 and end >= job.earliest:
            # The end of the cell, also where nothing of it is worth taking.
            cost = job.weight * (end - job.release) + paid
            costs[k] = min(costs[k], cost)
            if cost < best:
                best = cost
                _keep_plan(held, cell, length, size, k, taken)
        if taken > 0:
            q = size
            while q > 0 and price[q - 1] > prices[k]:
                price[q], length[q], cell[q] = price[q - 1], length[q - 1], cell[q - 1]
                q -= 1
            price[q], length[q], cell[q] = prices[k], taken, k
            size += 1
    return best


@njit(cache=True)
def most_worth(
    jobs: Table, prices: Table, bounds: Ints, members: Ints, sizes: Ints, running: Table
) -> Any:
    """Worth over time of the most valuable jobs that fit together; a cell counts who can run within it.

    Parameters
    ----------
    members, sizes : ndarray of int, shape (sets, n) and (sets,)
        Jobs that fit together, in the first entries of each row.
    running : ndarray, shape (n, cells)
        Written: time for which each job runs in a best choice.
    """
    total = prices[0, 0] * 0
    running[:, :] = 0
    for k in range(len(bounds) - 1):
        most, which = prices[0, 0] * 0, -1
        for s in range(len(sizes)):
            worth = prices[0, 0] * 0
            for q in range(sizes[s]):
                j = members[s, q]
                if jobs[j].release < bounds[k + 1] and bounds[k] < jobs[j].latest:
                    worth += prices[j, k]
            if worth > most:
                most, which = worth, s
        total += most * (bounds[k + 1] - bounds[k])
        if which >= 0:
            for q in range(sizes[which]):
                j = members[which, q]
                if jobs[j].release < bounds[k + 1] and bounds[k] < jobs[j].latest:
                    running[j, k] = bounds[k + 1] - bounds[k]
    return total


@njit(cache=True)
def evaluate_plans(
    jobs: Table, prices: Table, bounds: Ints, least: Table, costs: Table, held: Table
) -> bool:
    """Cheapest plans of all jobs; False if one cannot end within its window."""
    for j in range(len(jobs)):
        least[j] = window_plan(jobs[j], prices[j], bounds, costs[j], held[j])
        if least[j] >= NEVER:
            return False
    return True


@njit(cache=True)
def ascend(
    jobs: Table,
    start: Floats,
    bounds: Ints,
    members: Ints,
    sizes: Ints,
    target: float,
    effort: tuple[int, float, int],
) -> tuple[float, Floats, Floats, Floats]:
    """Subgradient steps with inertia from some prices towards a target.

    Parameters
    ----------
    target : float
        Steps end once the bound reaches it, and are shares of the way to it.
    effort : tuple
        Evaluations at most; first step as a share of Polyak's; steps without gain after which they get shorter.

    Returns
    -------
    tuple
        The largest bound, its prices, and mean and variance of the ends of cheapest plans, shape (n,).
    """
    n, cells = start.shape
    steps, share, patience = effort
    least, costs, held, running = (
        np.empty(n),
        np.empty((n, cells)),
        np.empty((n, cells)),
        np.empty((n, cells)),
    )
    at, top, direction = start.copy(), start.copy(), np.zeros((n, cells))
    mean, square = np.zeros(n), np.zeros(n)
    best, idle, fresh = -np.inf, 0, True
    for step in range(steps):
        if not evaluate_plans(jobs, at, bounds, least, costs, held):
            return np.inf, top, mean, square
        value = least.sum() - most_worth(jobs, at, bounds, members, sizes, running)
        if value > best:
            best, idle = value, 0
            top = at.copy()  # compiles in a fifth of the time of `top[:, :] = at`
            if best >= target:
                break
        else:
            idle += 1
            if idle >= patience:
                share, idle, fresh = share * _SHORTER, 0, True
                if share < _SETTLED:
                    break
                at = top.copy()
                continue
        size = 0.0
        for j in range(n):
            end = float(bounds[1 + np.argmin(costs[j])])
            keep = _FADING if step > 0 else 0.0
            mean[j] = keep * mean[j] + (1 - keep) * end
            square[j] = keep * square[j] + (1 - keep) * end * end
            for k in range(cells):
                length = bounds[k + 1] - bounds[k]
                slope = (held[j, k] - running[j, k]) / length
                if at[j, k] <= 0 and slope < 0:
                    slope = 0.0
                if bounds[k + 1] <= jobs[j].release or bounds[k] >= jobs[j].latest:
                    slope = 0.0
                last = slope if fresh else direction[j, k]
                direction[j, k] = _INERTIA * last + (1 - _INERTIA) * slope
                size += direction[j, k] ** 2 * length
        fresh = False
        if size <= 0:
            break
        far = share * max(target - value, 0.0) / size
        for j in range(n):
            for k in range(cells):
                at[j, k] = max(at[j, k] + far * direction[j, k], 0.0)
    for j in range(n):
        square[j] = max(square[j] - mean[j] * mean[j], 0.0)
    return best, top, mean, square
