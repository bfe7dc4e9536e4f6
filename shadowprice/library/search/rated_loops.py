"""Compiled loops of :mod:`.engine_orders`: about what the engine would make of an order and choices, in no time.

They follow the rules of :mod:`.ranked` in floats, without nodes and ticks; the engine carries out what is left.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_DONE = 1e-12
"""Part of a job that may be left of one that is complete."""


@njit(cache=True)
def rated_ends(
    rank: Ints,
    arrivals: Ints,
    release: Floats,
    gang: Ints,
    rate: Floats,
    able: Ints,
    pools: Ints,
    speed: Floats,
    width: Ints,
    widest: Ints,
    times: Floats,
    room: Ints,
    ends: Floats,
) -> None:
    """Ends, shape (n,), when jobs that are there get GPUs by rank and may stop and move at every event.

    Parameters
    ----------
    rate : ndarray, shape (n, pools)
        Part of each job done in a second on its gang.
    able, pools : ndarray
        Pools of each job, the fastest first, shape (n, pools), and how many of them it may use.
    speed : ndarray, shape (n, widths)
        Speed on so many GPUs beyond the gang.
    width, widest : ndarray, shape (n,)
        GPUs that a job takes in its turn, and after all others.
    times, room : ndarray, shape (changes,) and (changes, pools)
        GPUs of each pool from a time on; the first from 0.
    """
    n = len(rank)
    live, left = np.empty(n, np.int64), np.ones(n)
    pool, taken, free = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(room.shape[1], np.int64)
    size = k = change = 0
    now = 0.0
    while k < n or size:
        if not size:
            now = max(now, release[arrivals[k]])
        while change + 1 < len(times) and times[change + 1] <= now:
            change += 1
        while k < n and release[arrivals[k]] <= now:
            j = arrivals[k]
            k += 1
            at = size
            while at and rank[live[at - 1]] > rank[j]:
                live[at] = live[at - 1]
                at -= 1
            live[at] = j
            size += 1
        free[:] = room[change]
        for at in range(size):
            j = live[at]
            taken[j] = 0
            for q in range(pools[j]):
                where = able[j, q]
                if free[where] >= gang[j]:
                    taken[j] = min(width[j], free[where])
                    free[where] -= taken[j]
                    pool[j] = where
                    break
        until = np.inf
        if k < n:
            until = release[arrivals[k]]
        if change + 1 < len(times):
            until = min(until, times[change + 1])
        for at in range(size):
            j = live[at]
            if taken[j]:
                more = min(widest[j] - taken[j], free[pool[j]])
                if more > 0:
                    taken[j] += more
                    free[pool[j]] -= more
                pace = rate[j, pool[j]] * speed[j, taken[j] - gang[j]]
                until = min(until, now + left[j] / pace)
        if until == np.inf:
            ends[:] = np.inf
            return
        kept = 0
        for at in range(size):
            j = live[at]
            if taken[j]:
                left[j] -= (until - now) * rate[j, pool[j]] * speed[j, taken[j] - gang[j]]
                if left[j] <= _DONE:
                    ends[j] = until
                    continue
            live[kept] = j
            kept += 1
        size = kept
        now = until


@njit(cache=True)
def paired_ends(
    rank: Ints,
    arrivals: Ints,
    release: Floats,
    gang: Ints,
    rate: Floats,
    beside: Floats,
    choice: Ints,
    gpus: int,
    ends: Floats,
) -> None:
    """Ends, shape (n,), when jobs run alone by rank, and who finds no free GPUs beside one with whom most is done.

    Parameters
    ----------
    rate : ndarray, shape (n,)
        Part of each job done in a second alone.
    beside : ndarray, shape (n, n)
        Speed of each job beside each other over that alone; 0 where they cannot share.
    choice : ndarray, shape (n,)
        Odd: nobody joins it; from 2 on: it joins nobody.
    """
    n = len(rank)
    live, left = np.empty(n, np.int64), np.ones(n)
    partner, pace = np.empty(n, np.int64), np.empty(n)
    size = k = 0
    now = 0.0
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
        free = gpus
        for at in range(size):
            j = live[at]
            pace[j] = 0.0
            partner[j] = -1
            if gang[j] <= free:
                free -= gang[j]
                pace[j] = rate[j]
                continue
            if choice[j] >= 2:
                continue
            host, most = -1, 1.0
            for other in range(at):
                h = live[other]
                alone = pace[h] > 0 and partner[h] < 0 and choice[h] % 2 == 0
                if alone and gang[h] == gang[j]:
                    mine, theirs = beside[j, h], beside[h, j]
                    if mine > 0 and theirs > 0 and mine + theirs > most:
                        host, most = h, mine + theirs
            if host >= 0:
                partner[host], partner[j] = j, host
                pace[j], pace[host] = rate[j] * beside[j, host], rate[host] * beside[host, j]
        until = np.inf
        if k < n:
            until = release[arrivals[k]]
        for at in range(size):
            j = live[at]
            if pace[j] > 0:
                until = min(until, now + left[j] / pace[j])
        kept = 0
        for at in range(size):
            j = live[at]
            left[j] -= (until - now) * pace[j]
            if left[j] <= _DONE:
                ends[j] = until
                continue
            live[kept] = j
            kept += 1
        size = kept
        now = until
