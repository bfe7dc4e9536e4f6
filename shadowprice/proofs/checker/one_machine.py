"""Bounds without multipliers: service on one machine, and the area of all work."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from fractions import Fraction

from .costs import LeastWork, alike, weighted
from .form import LARGEST, Record, need


def one_machine(
    arrival: list[int], area: list[int], capacity: int, rank: list[int]
) -> Iterator[tuple[int, int, int, bool]]:
    """Pieces (job, begin, end, last) of preemptive service by rank, then work left; time in 1 / capacity ticks."""
    order = sorted(range(len(area)), key=arrival.__getitem__)
    left = list(area)
    never = max(arrival) * capacity + sum(left) + 1  # after all is done
    queue: list[tuple[int, int, int]] = []
    now = k = 0
    comes = arrival[order[0]] * capacity
    while queue or k < len(order):
        now = now if queue else max(now, comes)
        while comes <= now:
            j = order[k]
            heapq.heappush(queue, (rank[j], left[j], j))
            k += 1
            comes = arrival[order[k]] * capacity if k < len(order) else never
        _, _, j = heapq.heappop(queue)
        until = min(now + left[j], comes)
        left[j] -= until - now
        yield j, now, until, not left[j]
        if left[j]:
            heapq.heappush(queue, (rank[j], left[j], j))
        now = until


def bound_fluid(jobs: LeastWork, bound: Record) -> Fraction:
    """SRPT on one machine, which at every moment has the fewest jobs that are not complete."""
    need(alike(jobs.weight), "fluid: weights differ")
    service = one_machine(jobs.arrival, jobs.area, jobs.capacity, [0] * len(jobs.area))
    until = LARGEST**2 if jobs.until is None else jobs.until * jobs.capacity
    ends = sum(min(end, until) for _, _, end, last in service if last)
    return jobs.weight[0] * Fraction(ends, jobs.capacity)


def bound_mean_busy_time(jobs: LeastWork, bound: Record) -> Fraction:
    """Mean busy times of preemptive WSPT on one machine; of each job rounded down to 2^-64 ticks."""
    area, capacity, n = jobs.area, jobs.capacity, len(jobs.area)
    rank = area
    if not alike(jobs.weight):
        ratio = [-weight / each for weight, each in zip(jobs.weight, area, strict=True)]
        rank = [0] * n
        for place, j in enumerate(sorted(range(n), key=ratio.__getitem__)):
            rank[j] = place
    twice = [each * capacity * ticks for each, ticks in zip(area, jobs.shortest, strict=True)]
    for j, begin, end, _ in one_machine(jobs.arrival, area, capacity, rank):
        twice[j] += end * end - begin * begin
    means = ((t << 64) // (2 * each * capacity) for t, each in zip(twice, area, strict=True))
    return weighted(jobs.weight, means) / 2**64


def bound_job(jobs: LeastWork, bound: Record) -> Fraction:
    """Every job as if it were alone."""
    ends = (r + p for r, p in zip(jobs.arrival, jobs.shortest, strict=True))
    return weighted(jobs.weight, ends)


def some(jobs: LeastWork, which: list[int], machines: int) -> LeastWork:
    """Some jobs, as if each needed a whole one of so many machines."""
    arrival, shortest, gang = (
        [column[j] for j in which] for column in (jobs.arrival, jobs.shortest, jobs.gang)
    )
    weight = [jobs.weight[j] for j in which]
    return LeastWork(arrival, weight, shortest, shortest, gang, machines, machines, 1, False)


def bound_wide_gangs(jobs: LeastWork, bound: Record) -> Fraction:
    """GangSchedule of which at most q fit on a machine of speed q, all others as if alone; the largest for q to 8."""
    need(jobs.gangs, "wide-gangs: jobs share GPUs, hold parts of them or run as copies")
    alone = [r + p for r, p in zip(jobs.arrival, jobs.shortest, strict=True)]
    every, best = weighted(jobs.weight, alone), Fraction(0)
    for most in range(1, 9):
        which = [j for j, gang in enumerate(jobs.gang) if gang * (most + 1) > jobs.gpus]
        if which:
            wide = some(jobs, which, most)
            value = bound_mean_busy_time(wide, bound)
            if alike(wide.weight):
                value = max(value, bound_fluid(wide, bound))
            best = max(best, every - weighted(wide.weight, [alone[j] for j in which]) + value)
    return best


def bound_area(jobs: LeastWork, bound: Record) -> Fraction:
    """Lower bound on the end of the last of the jobs."""
    area = lone = best = 0
    for j in sorted(range(len(jobs.area)), key=lambda j: -jobs.arrival[j]):
        area += jobs.area[j]
        lone += jobs.shortest[j] if jobs.gangs and 2 * jobs.gang[j] > jobs.gpus else 0
        rest = max(-(-area // jobs.capacity), lone, jobs.shortest[j])
        best = max(best, jobs.arrival[j] + rest)
    return Fraction(best)
