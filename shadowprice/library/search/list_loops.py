"""Compiled loops of :mod:`.compiled_orders`: what an order of jobs on one pool of GPUs costs, and moves in orders.

All times are whole numbers in one unit. Costs are floats during a search; the schedule of the order that is left is
verified and its cost computed exactly by others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Jobs = NDArray[Any]
"""Records of :data:`JOB`, shape (n,)."""

JOB = np.dtype(
    [
        *((name, np.int64) for name in ("rank", "release", "work", "gang", "end")),
        ("weight", np.float64),
    ],
    align=True,
)
"""A job, its place in an order, and where it ends by that."""

TIE = 1e-7
"""Weight of the mean completion beside the last one, where the last one is the cost."""
REACH = 40
"""Places by which a move takes a job on or back at most."""


@njit(cache=True)
def admitted(jobs: Jobs, j: int, live: Ints, size: int) -> int:
    """Put a job among others that are in order of rank; how many there are then."""
    at = size
    while at and jobs[live[at - 1]].rank > jobs[j].rank:
        live[at] = live[at - 1]
        at -= 1
    live[at] = j
    return size + 1


@njit(cache=True)
def _step(jobs: Jobs, live: Ints, size: int, left: Ints, capacity: int) -> int:
    """Time until the first of those that run ends."""
    free, step = capacity, 2**62
    for at in range(size):
        j = live[at]
        if jobs[j].gang <= free:
            free -= jobs[j].gang
            step = min(step, left[j])
    return step


@njit(cache=True)
def preemptive_ends(jobs: Jobs, arrivals: Ints, capacity: int, runs: Ints) -> int:
    """Ends when at each event live jobs get GPUs in order of rank, and who does not fit is passed over.

    Parameters
    ----------
    arrivals : ndarray
        Jobs in order of arrival.
    runs : ndarray, shape (most, 3)
        Filled with job, start and end of runs, as many as there is room for; parts of one run are several.

    Returns
    -------
    int
        Number of runs.
    """
    live, left = np.empty(len(jobs), np.int64), jobs["work"].copy()
    size = k = made = now = 0
    while k < len(jobs) or size:
        if not size:
            now = max(now, jobs[arrivals[k]].release)
        while k < len(jobs) and jobs[arrivals[k]].release <= now:
            size = admitted(jobs, arrivals[k], live, size)
            k += 1
        step = _step(jobs, live, size, left, capacity)
        if k < len(jobs):
            step = min(step, jobs[arrivals[k]].release - now)
        free, kept = capacity, 0
        for at in range(size):
            j = live[at]
            if jobs[j].gang <= free:
                free -= jobs[j].gang
                left[j] -= step
                if made < len(runs):
                    runs[made, 0], runs[made, 1], runs[made, 2] = j, now, now + step
                    made += 1
                if not left[j]:
                    jobs[j].end = now + step
                    continue
            live[kept] = j
            kept += 1
        size = kept
        now += step
    return made


@njit(cache=True)
def _cut(times: Ints, free: Ints, size: int, at: int) -> int:
    """Make a step at a time, if there is none; how many there are then."""
    k = size
    while k and times[k - 1] >= at:
        k -= 1
    if k < size and times[k] == at:
        return size
    for back in range(size, k, -1):
        times[back], free[back] = times[back - 1], free[back - 1]
    times[k], free[k] = at, free[k - 1]
    return size + 1


@njit(cache=True)
def _first_fit(times: Ints, free: Ints, size: int, gang: int, release: int, work: int) -> int:
    """First time at or after a release at which so many GPUs are free for so long."""
    k = 0
    while k + 1 < size and times[k + 1] <= release:
        k += 1
    start = release
    while True:
        if free[k] < gang:
            start = times[k + 1]
        elif k + 1 == size or times[k + 1] >= start + work:
            return start
        k += 1


@njit(cache=True)
def _held(times: Ints, free: Ints, size: int, gang: int, start: int, end: int) -> int:
    """Take GPUs from a time to another; how many steps there are then."""
    size = _cut(times, free, size, start)
    size = _cut(times, free, size, end)
    k = size - 1
    while k and times[k] >= end:
        k -= 1
    while k >= 0 and times[k] >= start:
        free[k] -= gang
        k -= 1
    return size


@njit(cache=True)
def once_ends(jobs: Jobs, order: Ints, capacity: int) -> None:
    """Ends when jobs are put one after the other, in an order, where they fit first and for good."""
    times, free = np.empty(2 * len(jobs) + 3, np.int64), np.empty(2 * len(jobs) + 3, np.int64)
    times[0], free[0], size = 0, capacity, 1
    for j in order:
        gang, release, work = jobs[j].gang, jobs[j].release, jobs[j].work
        start = _first_fit(times, free, size, gang, release, work)
        size = _held(times, free, size, gang, start, start + work)
        jobs[j].end = start + work


@njit(cache=True)
def planned_starts(
    jobs: Jobs, order: Ints, work: Ints, capacity: Ints, choice: Ints, pool: Ints
) -> None:
    """Ends and pools when jobs are put one after the other, in an order, where each ends first.

    Parameters
    ----------
    work : ndarray, shape (n, pools)
        Run times; 0 where a job cannot run.
    choice : ndarray, shape (n,)
        0 for any pool, else one more than the pool; if the job cannot run there, any.
    pool : ndarray, shape (n,)
        Filled with pools.
    """
    pools, most = len(capacity), 2 * len(jobs) + 3
    times, free = np.zeros((pools, most), np.int64), np.zeros((pools, most), np.int64)
    free[:, 0] = capacity
    size = np.ones(pools, np.int64)
    for j in order:
        gang, release, best = jobs[j].gang, jobs[j].release, 2**62
        only = choice[j] - 1 if choice[j] and work[j, choice[j] - 1] else -1
        for k in range(pools):
            if work[j, k] and gang <= capacity[k] and only in (-1, k):
                end = work[j, k] + _first_fit(times[k], free[k], size[k], gang, release, work[j, k])
                if end < best:
                    best, pool[j] = end, k
        k = pool[j]
        size[k] = _held(times[k], free[k], size[k], gang, best - work[j, k], best)
        jobs[j].end = best


@njit(cache=True)
def cost_of(jobs: Jobs, span: bool) -> float:
    """Weighted completions, or the last one and a little of the mean."""
    total, last = 0.0, 0
    for j in range(len(jobs)):
        total += jobs[j].weight * jobs[j].end
        last = max(last, jobs[j].end)
    return last + TIE * total / len(jobs) if span else total


@njit(cache=True)
def moved(now: Ints, other: Ints, draws: Floats) -> bool:
    """A job taken out and put some places on or back, or two swapped, in a copy; False if that changes nothing."""
    n = len(now)
    other[:] = now
    a = min(int(draws[0] * n), n - 1)
    far = 1 + int(draws[1] * draws[1] * min(REACH, n - 1))
    b = min(max(a + far if draws[2] < 0.5 else a - far, 0), n - 1)
    if draws[2] * 4 % 1.0 < 0.3:
        other[a], other[b] = now[b], now[a]
    elif a < b:
        other[a:b] = now[a + 1 : b + 1]
        other[b] = now[a]
    else:
        other[b + 1 : a + 1] = now[b:a]
        other[b] = now[a]
    return a != b


@njit(cache=True)
def anneal(
    jobs: Jobs,
    order: Ints,
    arrivals: Ints,
    capacity: int,
    once: bool,
    span: bool,
    draws: Floats,
    heat: float,
) -> tuple[Ints, float]:
    """The best order that so many moves come to, and its cost.

    A move that costs more is taken with a probability that falls with what it costs more and, to nothing at the end,
    with time.

    Parameters
    ----------
    draws : ndarray, shape (moves, 4)
        Random numbers from 0 to 1.
    heat : float
        What a move may cost more at the beginning, about.
    """
    now, other, best = order.copy(), order.copy(), order.copy()
    runs, best_cost, cost = np.empty((0, 3), np.int64), math.inf, math.inf
    for move in range(-1, len(draws)):
        if move >= 0 and not moved(now, other, draws[move]):
            continue
        if once:
            once_ends(jobs, other, capacity)
        else:
            for at in range(len(order)):
                jobs[other[at]].rank = at
            preemptive_ends(jobs, arrivals, capacity, runs)
        found = cost_of(jobs, span)
        warm = heat * (1.0 - move / (len(draws) + 1)) ** 2
        more = found - cost
        if more <= 0 or (warm > 0 and draws[move, 3] < math.exp(-more / warm)):
            now[:] = other
            cost = found
            if found < best_cost:
                best_cost = found
                best[:] = other
    return best, best_cost
