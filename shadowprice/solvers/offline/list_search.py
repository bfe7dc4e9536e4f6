"""Good non-preemptive schedules fast: list scheduling with back-filling, improved by local search.

Source: serial schedule generation, Kolisch, EJOR 90, 1996. Jobs are taken in the order of a
list, each at its earliest feasible slot beside those already placed. Some list gives an optimal
schedule for any regular objective, so a search over lists can reach it.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.slotted import Slotted


def place(jobs: Slotted, order: list[int]) -> NDArray[np.int64]:
    """Start slots, shape (n,), of the jobs placed in this order.

    Free GPUs are kept as a step function of time, so the cost, O(n^2), does not depend on how
    fine the slots are.
    """
    release, duration, gpus = jobs.release.tolist(), jobs.duration.tolist(), jobs.gpus.tolist()
    times, free = [0], [jobs.capacity]  # free[i] GPUs from times[i] until times[i + 1]
    starts = np.zeros(jobs.jobs, dtype=np.int64)
    for j in order:
        start, need = release[j], gpus[j]
        end = start + duration[j]
        k = bisect_right(times, start) - 1
        while True:
            if free[k] < need:
                start = times[k + 1]
                end = start + duration[j]
            elif k + 1 == len(times) or times[k + 1] >= end:
                break
            k += 1
        first, last = _cut(times, free, start), _cut(times, free, end)
        for k in range(first, last):
            free[k] -= need
        starts[j] = start
    return starts


def _cut(times: list[int], free: list[int], at: int) -> int:
    """Position of a step at a time, made if there is none."""
    k = bisect_left(times, at)
    if k == len(times) or times[k] != at:
        times.insert(k, at)
        free.insert(k, free[k - 1])
    return k


def safe_horizon(jobs: Slotted) -> int:
    """A slot by which every list schedule has ended: last release plus all durations."""
    return int(jobs.release.max(initial=0) + jobs.duration.sum())


def total(jobs: Slotted, starts: NDArray[np.int64]) -> float:
    """Weighted total completion time [slots]."""
    return float(np.dot(jobs.weight, starts + jobs.duration))


def makespan(jobs: Slotted, starts: NDArray[np.int64]) -> float:
    """Last completion [slots]."""
    return float((starts + jobs.duration).max(initial=0))


def exact_cost(jobs: Slotted, starts: NDArray[np.int64], *, span: bool) -> Fraction:
    """Weighted total completion time, or the last completion, exactly [slots]."""
    ends = (starts + jobs.duration).tolist()
    if span:
        return Fraction(max(ends, default=0))
    pairs = zip(jobs.exact_weight, ends, strict=True)
    return sum((w * end for w, end in pairs), Fraction(0))


def _orders(jobs: int) -> float:
    """Number of orders of so many jobs; infinite beyond a dozen."""
    return math.factorial(jobs) if jobs <= 12 else math.inf


def search(
    jobs: Slotted, *, span: bool, seed: int, budget_s: float, moves: int
) -> NDArray[np.int64]:
    """Best starts found from several priority rules and a first-improvement insertion search.

    Where there are no more orders than moves all of them are tried instead, so that the starts are
    optimal. Deterministic for a given number of moves, unless the time budget ends it first.
    """
    cost = makespan if span else total
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
    scored = [(cost(jobs, place(jobs, order)), k) for k, order in enumerate(orders)]
    best_cost, k = min(scored)
    order = orders[k]
    best = place(jobs, order)
    rng, until = np.random.default_rng([seed, 7]), time.monotonic() + budget_s
    if _orders(jobs.jobs) <= moves:
        for each in permutations(range(jobs.jobs)):
            if time.monotonic() > until:
                break
            starts = place(jobs, list(each))
            value = cost(jobs, starts)
            if value < best_cost:
                best_cost, best = value, starts
        return best
    for _ in range(moves):
        if time.monotonic() > until:
            break
        i, j = rng.integers(0, jobs.jobs, 2).tolist()
        candidate = order.copy()
        if rng.random() < 0.5:
            candidate[i], candidate[j] = candidate[j], candidate[i]
        else:
            candidate.insert(j, candidate.pop(i))
        starts = place(jobs, candidate)
        value = cost(jobs, starts)
        if value <= best_cost:
            best_cost, best, order = value, starts, candidate
    return best
