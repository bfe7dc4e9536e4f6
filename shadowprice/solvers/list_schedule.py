"""Good non-preemptive schedules fast: list scheduling with back-filling, improved by local search.

Source: serial schedule generation, Kolisch, EJOR 90, 1996. Jobs are taken in the order of a
list, each at its earliest feasible slot beside those already placed. Some list gives an optimal
schedule for any regular objective, so a search over lists can reach it.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.slotted import Slotted


def place(jobs: Slotted, order: list[int], horizon: int) -> NDArray[np.int64]:
    """Start slots, shape (n,), of the jobs placed in this order; O(n x horizon)."""
    free = [jobs.capacity] * (horizon + 1)
    release, duration, gpus = jobs.release.tolist(), jobs.duration.tolist(), jobs.gpus.tolist()
    starts = np.zeros(jobs.jobs, dtype=np.int64)
    for j in order:
        t, need, p = release[j], gpus[j], duration[j]
        end = t + p
        k = t
        while k < end:
            if free[k] < need:
                t = k + 1
                end = t + p
            k += 1
        for k in range(t, end):
            free[k] -= need
        starts[j] = t
    return starts


def safe_horizon(jobs: Slotted) -> int:
    """A slot by which every list schedule has ended: last release plus all durations."""
    return int(jobs.release.max(initial=0) + jobs.duration.sum())


def total(jobs: Slotted, starts: NDArray[np.int64]) -> float:
    """Weighted total completion time [slots]."""
    return float(np.dot(jobs.weight, starts + jobs.duration))


def makespan(jobs: Slotted, starts: NDArray[np.int64]) -> float:
    """Last completion [slots]."""
    return float((starts + jobs.duration).max(initial=0))


def search(
    jobs: Slotted, *, span: bool, seed: int, budget_s: float, moves: int
) -> NDArray[np.int64]:
    """Best starts found from several priority rules and a first-improvement insertion search.

    Deterministic for a given number of moves, unless the time budget ends it first.
    """
    cost = makespan if span else total
    horizon = safe_horizon(jobs)
    g, p, r, w = jobs.gpus, jobs.duration, jobs.release, np.maximum(jobs.weight, 1e-12)
    rules = (
        r + p,
        r,
        p / w,
        g * p / w,
        r + p / w,
        r + g * p / (w * jobs.capacity),
        -g,
        r * 1.0 + g * p / jobs.capacity,
    )
    orders = [np.lexsort((p, rule)).tolist() for rule in rules]
    scored = [(cost(jobs, place(jobs, order, horizon)), k) for k, order in enumerate(orders)]
    best_cost, k = min(scored)
    order = orders[k]
    best = place(jobs, order, horizon)
    rng, until = np.random.default_rng([seed, 7]), time.monotonic() + budget_s
    for _ in range(moves):
        if time.monotonic() > until or jobs.jobs < 2:
            break
        i, j = rng.integers(0, jobs.jobs, 2).tolist()
        candidate = order.copy()
        if rng.random() < 0.5:
            candidate[i], candidate[j] = candidate[j], candidate[i]
        else:
            candidate.insert(j, candidate.pop(i))
        starts = place(jobs, candidate, horizon)
        value = cost(jobs, starts)
        if value <= best_cost:
            best_cost, best, order = value, starts, candidate
    return best
