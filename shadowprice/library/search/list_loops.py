"""Compiled loops of :mod:`.orders`: what an order of jobs on one pool of GPUs costs, and searches from order to order.

All times are whole numbers in one unit. Costs are floats during a search; the schedule of the order that is left is
verified and its cost computed exactly by others.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TIE = 1e-7
"""Weight of the mean completion beside the last one, where the last one is the cost."""


@njit(cache=True)
def preemptive_ends(
    rank: Ints,
    arrivals: Ints,
    release: Ints,
    work: Ints,
    gang: Ints,
    capacity: int,
    ends: Ints,
    runs: Ints,
) -> int:
    """Ends, shape (n,), when at each event live jobs get GPUs in order of rank, and who does not fit is passed over.

    Parameters
    ----------
    rank : ndarray
        Rank of each job.
    arrivals : ndarray
        Jobs in order of arrival.
    runs : ndarray, shape (most, 3)
        Filled with job, start and end of runs, as many as there is room for; parts of one run are several.

    Returns
    -------
    int
        Number of runs.
    """
    n = len(rank)
    live, left = np.empty(n, np.int64), work.copy()
    size = k = made = 0
    now = 0
    while k < n or size:
        if not size:
            now = max(now, release[arrivals[k]])
        while k < n and release[arrivals[k]] <= now:
            j = arrivals[k]
            k += 1
            at = size
            while at and rank[live[at - 1]] > rank[j]:
                live[at] = live[at - 1]
                at -= 1
            live[at] = j
            size += 1
        free, step = capacity, np.int64(2**62)
        if k < n:
            step = release[arrivals[k]] - now
        last = 0
        for at in range(size):
            j = live[at]
            if gang[j] <= free:
                free -= gang[j]
                step = min(step, left[j])
                last = at + 1
                if not free:
                    break
        free, kept = capacity, 0
        for at in range(size):
            j = live[at]
            if at < last and gang[j] <= free:
                free -= gang[j]
                left[j] -= step
                if made < len(runs):
                    runs[made, 0], runs[made, 1], runs[made, 2] = j, now, now + step
                    made += 1
                if not left[j]:
                    ends[j] = now + step
                    continue
            live[kept] = j
            kept += 1
        size = kept
        now += step
    return made


@njit(cache=True)
def once_ends(
    order: Ints, release: Ints, work: Ints, gang: Ints, capacity: int, ends: Ints
) -> None:
    """Ends, shape (n,), when jobs are put one after the other, in an order, where they fit first and for good."""
    n = len(order)
    times, free = np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int64)
    times[0], free[0] = 0, capacity
    size = 1
    for j in order:
        start, need = release[j], gang[j]
        low, high = 0, size
        while high - low > 1:
            middle = (low + high) // 2
            if times[middle] <= start:
                low = middle
            else:
                high = middle
        first = k = low
        while True:
            if free[k] < need:
                first = k + 1
                start = times[first]
            elif k + 1 == size or times[k + 1] >= start + work[j]:
                break
            k += 1
        end = start + work[j]
        # After the last step all GPUs are free.
        if k + 1 == size or times[k + 1] > end:
            for at in range(size, k + 1, -1):
                times[at], free[at] = times[at - 1], free[at - 1]
            times[k + 1], free[k + 1] = end, free[k]
            size += 1
        if times[first] < start:
            for at in range(size, first + 1, -1):
                times[at], free[at] = times[at - 1], free[at - 1]
            times[first + 1], free[first + 1] = start, free[first]
            size += 1
            first += 1
            k += 1
        for at in range(first, k + 1):
            free[at] -= need
        ends[j] = end


@njit(cache=True)
def cost_of(ends: Ints, weight: Floats, span: bool) -> float:
    """Weighted completions, or the last one and a little of the mean."""
    total = 0.0
    last = np.int64(0)
    for j in range(len(ends)):
        total += weight[j] * ends[j]
        last = max(last, ends[j])
    return last + TIE * total / len(ends) if span else total


@njit(cache=True)
def anneal(
    order: Ints,
    arrivals: Ints,
    release: Ints,
    work: Ints,
    gang: Ints,
    weight: Floats,
    capacity: int,
    once: bool,
    span: bool,
    draws: Floats,
    reach: int,
    heat: float,
) -> tuple[Ints, float]:
    """The best order that so many moves come to, and its cost.

    A move takes a job out and puts it up to ``reach`` places on or back, or swaps two so far apart. One that costs more
    is taken with a probability that falls with what it costs more and, to nothing at the end, with time.

    Parameters
    ----------
    draws : ndarray, shape (moves, 4)
        Random numbers from 0 to 1.
    heat : float
        What a move may cost more at the beginning, about.
    """
    n, moves = len(order), len(draws)
    now, ends, rank = order.copy(), np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    runs = np.empty((0, 3), np.int64)
    other = now.copy()
    best, best_cost, cost = now.copy(), math.inf, math.inf
    for move in range(-1, moves):
        other[:] = now
        if move >= 0:
            a = min(int(draws[move, 0] * n), n - 1)
            far = 1 + int(draws[move, 1] * draws[move, 1] * reach)
            b = a + far if draws[move, 2] < 0.5 else a - far
            b = min(max(b, 0), n - 1)
            if a == b:
                continue
            job = now[a]
            if draws[move, 2] * 4 % 1.0 < 0.3:
                other[a], other[b] = now[b], job
            elif a < b:
                other[a:b] = now[a + 1 : b + 1]
                other[b] = job
            else:
                other[b + 1 : a + 1] = now[b:a]
                other[b] = job
        if once:
            once_ends(other, release, work, gang, capacity, ends)
        else:
            for at in range(n):
                rank[other[at]] = at
            preemptive_ends(rank, arrivals, release, work, gang, capacity, ends, runs)
        found = cost_of(ends, weight, span)
        warm = heat * (1.0 - move / (moves + 1)) ** 2
        more = found - cost
        if more <= 0 or (warm > 0 and draws[move, 3] < math.exp(-more / warm)):
            now[:] = other
            cost = found
            if found < best_cost:
                best_cost = found
                best[:] = other
    return best, best_cost
