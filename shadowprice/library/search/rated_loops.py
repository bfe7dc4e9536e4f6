"""Compiled loops of :mod:`.rated_orders`: about what the engine would make of an order and choices, in no time.

They follow the rules of :mod:`.ranked` in floats, without nodes and ticks; the engine carries out what is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shadowprice.library.search.list_loops import admitted

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Jobs = NDArray[Any]
"""Records of :data:`JOB`, shape (n,)."""

JOB = np.dtype(
    [
        *(
            (name, np.int64)
            for name in ("rank", "gang", "pools", "width", "widest", "choice", "pool", "taken")
        ),
        *((name, np.float64) for name in ("release", "left", "pace", "end")),
    ],
    align=True,
)
"""A job: its rank, how many pools it may use, GPUs that it takes in its turn and after all others; and how it runs.

``left`` is 1 and ``end`` infinite at first.
"""

_DONE = 1e-12
"""Part of a job that may be left of one that is complete."""


@njit(cache=True)
def _arrived(jobs: Jobs, arrivals: Ints, live: Ints, size: int, k: int, now: float) -> int:
    """Jobs that are there, with those that have arrived."""
    while k < len(jobs) and jobs[arrivals[k]].release <= now:
        size = admitted(jobs, arrivals[k], live, size)
        k += 1
    return size


@njit(cache=True)
def _proceed(jobs: Jobs, live: Ints, size: int, now: float, until: float) -> int:
    """Let jobs run, and keep those that are not complete."""
    kept = 0
    for at in range(size):
        j = live[at]
        jobs[j].left -= (until - now) * jobs[j].pace
        if jobs[j].left <= _DONE:
            jobs[j].end = until
            continue
        live[kept] = j
        kept += 1
    return kept


@njit(cache=True)
def _next_end(jobs: Jobs, live: Ints, size: int, now: float, until: float) -> float:
    """Moment at which the first of the jobs that run is complete, if that is before."""
    for at in range(size):
        if jobs[live[at]].pace > 0:
            until = min(until, now + jobs[live[at]].left / jobs[live[at]].pace)
    return until


@njit(cache=True)
def _allot(
    jobs: Jobs, live: Ints, size: int, rate: Floats, able: Ints, speed: Floats, free: Ints
) -> None:
    """GPUs of pools for jobs by rank, and then more of them."""
    for at in range(size):
        j = live[at]
        jobs[j].taken = 0
        for q in range(jobs[j].pools):
            k = able[j, q]
            if free[k] >= jobs[j].gang:
                jobs[j].taken, jobs[j].pool = min(jobs[j].width, free[k]), k
                free[k] -= jobs[j].taken
                break
    for at in range(size):
        j = live[at]
        jobs[j].pace = 0.0
        if jobs[j].taken:
            k = jobs[j].pool
            more = max(min(jobs[j].widest - jobs[j].taken, free[k]), 0)
            jobs[j].taken += more
            free[k] -= more
            jobs[j].pace = rate[j, k] * speed[j, jobs[j].taken - jobs[j].gang]


@njit(cache=True)
def rated_ends(
    jobs: Jobs,
    arrivals: Ints,
    rate: Floats,
    able: Ints,
    speed: Floats,
    times: Floats,
    room: Ints,
) -> None:
    """Ends when jobs that are there get GPUs by rank and may stop and move at every event.

    Parameters
    ----------
    rate : ndarray, shape (n, pools)
        Part of each job done in a second on its gang.
    able : ndarray, shape (n, pools)
        Pools of each job, the fastest first.
    speed : ndarray, shape (n, widths)
        Speed on so many GPUs beyond the gang.
    times, room : ndarray, shape (changes,) and (changes, pools)
        GPUs of each pool from a time on; the first from 0.
    """
    live = np.empty(len(jobs), np.int64)
    size = k = change = 0
    now = 0.0
    while k < len(jobs) or size:
        if not size:
            now = max(now, jobs[arrivals[k]].release)
        while change + 1 < len(times) and times[change + 1] <= now:
            change += 1
        came = _arrived(jobs, arrivals, live, size, k, now)
        k += came - size
        size = came
        _allot(jobs, live, size, rate, able, speed, room[change].copy())
        until = jobs[arrivals[k]].release if k < len(jobs) else np.inf
        if change + 1 < len(times):
            until = min(until, times[change + 1])
        until = _next_end(jobs, live, size, now, until)
        if until == np.inf:
            return
        size = _proceed(jobs, live, size, now, until)
        now = until


@njit(cache=True)
def _host_of(jobs: Jobs, live: Ints, at: int, sharing_rate: Floats) -> int:
    """Among those before, the job alone with which most is done together; -1 if none is worth it."""
    j = live[at]
    host, most = -1, 1.0
    for other in range(at):
        h = live[other]
        alone = jobs[h].pace > 0 and jobs[h].taken < 0 and jobs[h].choice % 2 == 0
        if alone and jobs[h].gang == jobs[j].gang:
            mine, theirs = sharing_rate[j, h], sharing_rate[h, j]
            if mine > 0 and theirs > 0 and mine + theirs > most:
                host, most = h, mine + theirs
    return host


@njit(cache=True)
def paired_ends(jobs: Jobs, arrivals: Ints, rate: Floats, sharing_rate: Floats, gpus: int) -> None:
    """Ends when jobs run alone by rank, and who finds no free GPUs beside one with whom most is done.

    Of a job ``taken`` is its partner, -1 for none; an odd ``choice``: nobody joins it; from 2 on: it joins nobody.

    Parameters
    ----------
    rate : ndarray, shape (n,)
        Part of each job done in a second alone.
    sharing_rate : ndarray, shape (n, n)
        Speed of each job beside each other over that alone; 0 where they cannot share.
    """
    live = np.empty(len(jobs), np.int64)
    size = k = 0
    now = 0.0
    while k < len(jobs) or size:
        if not size:
            now = max(now, jobs[arrivals[k]].release)
        came = _arrived(jobs, arrivals, live, size, k, now)
        k += came - size
        size, free = came, gpus
        for at in range(size):
            j = live[at]
            jobs[j].pace, jobs[j].taken = 0.0, -1
            if jobs[j].gang <= free:
                free -= jobs[j].gang
                jobs[j].pace = rate[j]
                continue
            host = _host_of(jobs, live, at, sharing_rate) if jobs[j].choice < 2 else -1
            if host >= 0:
                jobs[host].taken, jobs[j].taken = j, host
                jobs[j].pace, jobs[host].pace = (
                    rate[j] * sharing_rate[j, host],
                    rate[host] * sharing_rate[host, j],
                )
        until = jobs[arrivals[k]].release if k < len(jobs) else np.inf
        until = _next_end(jobs, live, size, now, until)
        size = _proceed(jobs, live, size, now, until)
        now = until
