"""Prices of GPU time by slots, of the time-indexed programme: what makes starts of jobs without preemption dear.

Any prices bound what schedules cost in which each job begins once (LB-lp, LB-list); those of the linear relaxation of
``models.time_indexed`` (Sousa and Wolsey, Mathematical Programming 54, 1992) give its value, but for their rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.slotted import Slotted
from shadowprice.solvers.offline import list_search
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.lagrangian import exact_prices
from shadowprice.solvers.offline.plan_prices import PlanPrices
from shadowprice.solvers.offline.relaxation import solve_relaxation

MAX_ENTRIES = 1_000_000
"""About the most matrix entries of a time-indexed model; beyond it the grid is coarsened."""

_DEAREST = 2.0**41
"""Largest price of a slot: what is above fits no 64 bits, and any prices bound."""

_MOVES = 20
"""Moves of the search for a schedule whose end the slots reach, for each job."""


def windows_until(jobs: Slotted, end: int) -> list[NDArray[np.int64]]:
    """Start slots of each job with which it ends by then."""
    columns = zip(jobs.release.tolist(), jobs.duration.tolist(), strict=True)
    return [np.arange(r, end - p + 1) for r, p in columns]


def slot_prices(jobs: Slotted, horizon: int, until: float) -> tuple[NDArray[np.float64], bool]:
    """Prices of slots, shape (horizon,), and whether the programme was solved to its end.

    Without an answer all are 0, which bounds as well as any.

    Parameters
    ----------
    horizon : int
        Slots by which jobs end.
    until : float
        By the monotonic clock [s].
    """
    from shadowprice.models import time_indexed

    windows, prices = windows_until(jobs, horizon), np.zeros(horizon)
    solved = solve_relaxation(time_indexed.build, jobs, windows, until=until, relaxed=True)
    if solved is None:
        return prices, False
    (slots,) = solved.model.capacity.index_set().columns
    prices[slots] = np.minimum(solved.prices(solved.model.capacity), _DEAREST)
    return prices, solved.finished


def coarse_enough(jobs: Slotted, coarser: Callable[[int], Slotted]) -> Slotted:
    """Double the slot until the capacity rows are small enough: every start fills p_j of them.

    A start of a job that is shorter than a slot fills none, and is a column nevertheless.

    Parameters
    ----------
    coarser : callable
        The jobs in slots of so many ticks.
    """
    while True:
        area = int(np.dot(jobs.duration, jobs.gpus)) // jobs.capacity
        horizon = int(jobs.release.max() + area + jobs.duration.max())
        if horizon * int(np.maximum(jobs.duration, 1).sum()) <= MAX_ENTRIES:
            return jobs
        jobs = coarser(2 * jobs.slot_ticks)


def start_prices(relaxed: Relaxation, until: float) -> PlanPrices:
    """Prices at which jobs start late or wait, of gangs that begin once; by steps of time that are alike.

    Parameters
    ----------
    relaxed : Relaxation
        Gangs of which no two are on a GPU.
    until : float
        By the monotonic clock [s].
    """
    finest = Slotted(
        np.array(relaxed.release, dtype=np.int64),
        np.array(relaxed.work, dtype=np.int64),
        np.array(relaxed.gpus, dtype=np.int64),
        np.array([float(each) for each in relaxed.weight]),
        relaxed.total_gpus,
        1,
        True,
    )

    def coarser(ticks: int) -> Slotted:
        return replace(
            finest,
            release=finest.release // ticks,
            duration=finest.duration // ticks,
            slot_ticks=ticks,
            exact=False,
        )

    jobs = coarse_enough(coarser(math.gcd(*relaxed.release, *relaxed.work) or 1), coarser)
    best = list_search.search(jobs, span=False, seed=0, budget_s=math.inf, moves=_MOVES * jobs.jobs)
    horizon = int((best + jobs.duration).max()) + 1
    prices, _ = slot_prices(jobs, horizon, until)
    units = exact_prices(prices / float(jobs.weight.max())).tolist()
    # A step ends where the next slot costs more or less.
    steps = [t for t in range(horizon) if t == 0 or units[t] != units[t - 1]]
    grid = [*steps, horizon]
    return PlanPrices(tuple(t * jobs.slot_ticks for t in grid), tuple(units[t] for t in steps))
