"""Compiled loops of :mod:`shadowprice.solvers.offline.priced_plans`: plans of least cost, and work in an order.

Everything but the estimate of :func:`serve_in_order` is whole numbers of 64 bits, which the caller keeps small enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

MOST = 2**62
"""More than any cost."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


JOB = np.dtype(
    [(name, np.int64) for name in ("release", "work", "weight", "row", "multiple")], align=True
)
"""A job in whole units: r_j, p_j, cost of a unit of time until it ends; a unit of time in cell k costs it
``multiple * prices[row, k]``."""

Records = NDArray[Any]
"""Records of jobs; for numba no class of ours, whose name it would look for when it reads an older cache."""


@njit(cache=True)
def _put(prices: Ints, lengths: Ints, size: int, price: int, length: int) -> int:
    """Add time of a price to a heap with the dearest on top; the number of its entries."""
    place = size
    while place > 0:
        above = (place - 1) >> 1
        if prices[above] >= price:
            break
        prices[place], lengths[place] = prices[above], lengths[above]
        place = above
    prices[place], lengths[place] = price, length
    return size + 1


@njit(cache=True)
def _take_top(prices: Ints, lengths: Ints, size: int) -> int:
    """Remove the dearest time; the number of entries."""
    size -= 1
    price, length = prices[size], lengths[size]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and prices[below + 1] > prices[below]:
            below += 1
        if prices[below] <= price:
            break
        prices[place], lengths[place] = prices[below], lengths[below]
        place = below
    prices[place], lengths[place] = price, length
    return size


@njit(cache=True)
def cheapest_plan(
    jobs: Records, j: int, bounds: Ints, prices: Ints, dear: Ints, lengths: Ints
) -> tuple[int, int, int, int]:
    """Least of weight x (end - release) + price of the time taken; its end, dearest price, cells seen.

    A plan that ends at t takes the cheapest p_j units between release and t. Cell by cell t grows, and
    dearer units are given up for the cheaper ones of the cell; within a cell the cost is convex in t and
    changes its slope at whole units only. Outside the grid time costs nothing. O(cells log cells).
    """
    release, work, weight = jobs[j].release, jobs[j].work, jobs[j].weight
    cells = len(prices)
    best, end, dearest, seen = MOST, release, 0, 0
    if work == 0 or weight == 0:
        return 0, release, 0, 1
    size = taken = paid = 0
    k = np.searchsorted(bounds, release, side="right") - 1
    while k <= cells:
        now = max(bounds[k], release) if k >= 0 else release
        if weight * (now - release) >= best:
            break
        seen += 1
        room = bounds[k + 1] - now if k < cells else work
        price = jobs[j].multiple * prices[k] if 0 <= k < cells else 0
        bought = min(work - taken, room)
        taken += bought
        paid += bought * price
        now += bought
        room -= bought
        while taken == work:
            cost = weight * (now - release) + paid
            if cost < best:
                best, end = cost, now
                dearest = max(dear[0], price) if size else price
            if not (size and room) or dear[0] <= price:
                break
            swapped = min(lengths[0], room)
            paid -= swapped * (dear[0] - price)
            now += swapped
            room -= swapped
            bought += swapped
            lengths[0] -= swapped
            if lengths[0] == 0:
                size = _take_top(dear, lengths, size)
        if bought:
            size = _put(dear, lengths, size, price, bought)
        k += 1
    return best, end, dearest, seen


@njit(cache=True)
def _hold(
    jobs: Records, j: int, plan: tuple[int, int], bounds: Ints, prices: Ints, held: Floats
) -> None:
    """Add what a plan of least cost takes of each cell: all that is cheaper than its dearest, and of that the rest."""
    end, dearest = plan
    release, multiple, cells = jobs[j].release, jobs[j].multiple, len(prices)
    if end <= bounds[0] or release >= bounds[cells]:
        return
    left = jobs[j].work - max(bounds[0] - release, 0) - max(end - bounds[cells], 0)
    first = max(np.searchsorted(bounds, release, side="right") - 1, 0)
    for tied in range(2):
        k = first
        while k < cells and bounds[k] < end and left > 0:
            price = multiple * prices[k]
            if (price == dearest) if tied else (price < dearest):
                length = min(left, min(bounds[k + 1], end) - max(bounds[k], release))
                held[k] += multiple * length
                left -= length
            k += 1


@njit(cache=True)
def least_costs(jobs: Records, bounds: Ints, prices: Ints, cost: Ints, held: Floats) -> int:
    """Cost of the cheapest plan of every job, and what they hold of each row and cell; the number of cells seen.

    Parameters
    ----------
    bounds : ndarray of int, shape (cells + 1,)
        Where cells begin, and where the last ends.
    prices : ndarray of int, shape (rows, cells)
        Prices >= 0 of a unit of time.
    cost : ndarray of int, shape (n,)
        Written.
    held : ndarray of float, shape (rows, cells)
        Multiples times units of time; added to.
    """
    room = len(bounds) + 2
    dear, lengths = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    total = 0
    for j in range(len(cost)):
        row = jobs[j].row
        cost[j], end, dearest, seen = cheapest_plan(jobs, j, bounds, prices[row], dear, lengths)
        _hold(jobs, j, (end, dearest), bounds, prices[row], held[row])
        total += seen
    return total


@njit(cache=True)
def serve_in_order(
    jobs: Records,
    gpus: Ints,
    order: Ints,
    bounds: Ints,
    free: Floats,
    filler: Ints,
    ends: Floats,
) -> None:
    """Serve jobs one after the other, each as early as cells have GPUs left, at most at full speed.

    Parameters
    ----------
    free : ndarray, shape (cells,)
        GPUs times units of time; what is left is written.
    filler : ndarray of int, shape (cells,)
        Written: the job that took the last of a cell, left as it is where some is free.
    ends : ndarray, shape (n,)
        Written: completions.
    """
    cells = len(free)
    skip = np.arange(cells + 1)
    least = 1e-9 * free
    for j in order:
        release, left = jobs[j].release, float(jobs[j].work)
        ends[j] = release
        k = np.searchsorted(bounds, release, side="right") - 1
        while left > 0:
            step = k
            while skip[k] != k:
                k = skip[k]
            while skip[step] != k and step != k:
                skip[step], step = k, skip[step]
            if k == cells:
                ends[j] = max(ends[j], float(bounds[cells]), float(release)) + left
                break
            now = max(bounds[k], release)
            length = min(left, float(bounds[k + 1] - now), free[k] / gpus[j])
            free[k] -= length * gpus[j]
            left -= length
            ends[j] = now + length
            if free[k] <= least[k]:
                skip[k], filler[k] = k + 1, j
            k += 1


@njit(cache=True)
def fullest(
    value: Ints, width: Ints, copies: Ints, room: int, taken: Ints, table: Ints, choice: Ints
) -> int:
    """Most value of gangs that fit into a number of GPUs, by dynamic programming over doubled copies.

    Parameters
    ----------
    value, width, copies : ndarray of int, shape (classes,)
        Value and GPUs of a gang, and how many there are.
    taken : ndarray of int, shape (classes,)
        Written: how many a best choice has.
    table : ndarray of int, shape (room + 1,)
        Scratch.
    choice : ndarray of int, shape (items, room + 1)
        Scratch; items are at least the sum over classes of the bits of ``copies``.
    """
    table[: room + 1] = 0
    item = 0
    for c in range(len(value)):
        left, lot = min(copies[c], room // width[c]), 1
        while left > 0:
            count = min(lot, left)
            gain, size = count * value[c], count * width[c]
            for full in range(room, -1, -1):
                better = full >= size and table[full - size] + gain > table[full]
                choice[item, full] = count if better else 0
                if better:
                    table[full] = table[full - size] + gain
            left -= count
            lot *= 2
            item += 1
    full = room
    for c in range(len(value) - 1, -1, -1):
        taken[c] = 0
        left, lot, items = min(copies[c], room // width[c]), 1, 0
        while left > 0:
            left -= min(lot, left)
            lot *= 2
            items += 1
        for _ in range(items):
            item -= 1
            taken[c] += choice[item, full]
            full -= choice[item, full] * width[c]
    return int(table[room])
