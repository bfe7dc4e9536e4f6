"""Compiled loops of :mod:`shadowprice.solvers.offline.scaled_plans`: cheapest plans, work in order, gangs that fit.

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
def fill_cells(value: Ints, widths: Ints, copies: Ints, room: int, taken: Ints, most: Ints) -> None:
    """Most value of gangs that fit into a number of GPUs, cell by cell; dynamic programming over doubled copies.

    O(cells room sum log copies). The value of all GPUs has to fit 62 bits.

    Parameters
    ----------
    value, copies : ndarray of int, shape (classes, cells)
        Value of a gang, and how many there may be.
    widths : ndarray of int, shape (classes,)
        GPUs of a gang.
    taken : ndarray of int, shape (classes, cells)
        Written: gangs of a best choice.
    most : ndarray of int, shape (cells,)
        Written.
    """
    classes, cells = value.shape
    items = 0
    while 2**items <= room:
        items += 1
    table = np.zeros(room + 1, dtype=np.int64)
    chosen = np.zeros((classes * (items + 1), room + 1), dtype=np.int64)
    owner = np.zeros(classes * (items + 1), dtype=np.int64)
    for k in range(cells):
        table[:] = 0
        item = 0
        for c in range(classes):
            left, lot = min(copies[c, k], room // widths[c]), 1
            while left > 0 and value[c, k] > 0:
                count = min(lot, left)
                gain, size = count * value[c, k], count * widths[c]
                for full in range(room, size - 1, -1):
                    better = table[full - size] + gain > table[full]
                    chosen[item, full] = count if better else 0
                    if better:
                        table[full] = table[full - size] + gain
                chosen[item, :size] = 0
                owner[item] = c
                item += 1
                left -= count
                lot *= 2
        most[k] = table[room]
        taken[:, k] = 0
        full = room
        while item > 0:
            item -= 1
            taken[owner[item], k] += chosen[item, full]
            full -= chosen[item, full] * widths[owner[item]]
