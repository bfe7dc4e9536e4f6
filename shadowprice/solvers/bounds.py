"""Lower bounds of the offline optimum in exact arithmetic.

Every bound is computed in whole ticks of 2**-20 s and rounded down, so that no float error can
lift it above the optimum. ``m`` is the number of GPUs, g_j the gang, p_j the shortest possible
processing time, w_j the weight. All hold for preemptive schedules, any placement and overheads,
which only restrict a schedule further; proofs are in ``shadowprice.proofs``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective


@dataclass(frozen=True)
class Bound:
    """No schedule costs less.

    Parameters
    ----------
    value_s : float
        The bound in the objective [s].
    kind : str
        How it was found: ``fluid``, ``job``, ``mean-busy-time``, ``area``, ``interval-lp``,
        ``typed-interval-lp``, ``time-indexed-lp`` or, if it is proven to be attained, ``optimum``.
    preemptive : bool
        Whether it also holds for schedules that preempt.
    certified : bool
        Whether it holds in exact arithmetic, whatever a float solver did.
    """

    value_s: float
    kind: str
    preemptive: bool
    certified: bool


def fluid_ticks(release: list[int], work: list[int], gpus: list[int], capacity: int) -> int:
    """Sum C_j of SRPT on one machine with work g_j p_j / m, in ticks, rounded down; LB-fluid.

    O(n log n). In units of 1/m tick everything is a whole number.
    """
    jobs = sorted((r * capacity, g * p) for r, p, g in zip(release, work, gpus, strict=True))
    heap: list[int] = []
    total = now = k = 0
    while heap or k < len(jobs):
        if not heap:
            now = max(now, jobs[k][0])
        while k < len(jobs) and jobs[k][0] <= now:
            heapq.heappush(heap, jobs[k][1])
            k += 1
        left = heapq.heappop(heap)
        ends = now + left
        if k < len(jobs) and jobs[k][0] < ends:
            heapq.heappush(heap, ends - jobs[k][0])
            now = jobs[k][0]
        else:
            now = ends
            total += now
    return total // capacity


def mean_busy_ticks(
    release: list[int], work: list[int], gpus: list[int], weight: list[Fraction], capacity: int
) -> int:
    """Sum w_j (M_j + p_j / 2), M_j by preemptive WSPT on one machine, in ticks, rounded down; LB-mbt.

    O(n log n). Each job's term is rounded down by less than one tick.
    """
    area = [g * p for g, p in zip(gpus, work, strict=True)]
    if len(set(weight)) <= 1:
        rank = area
    else:
        by_ratio = sorted(range(len(area)), key=lambda j: -weight[j] / area[j])
        rank = [0] * len(area)
        for position, j in enumerate(by_ratio):
            rank[j] = position
    order = sorted(range(len(area)), key=lambda j: release[j])
    left = list(area)
    twice_integral = [0] * len(area)
    heap: list[tuple[int, int]] = []
    now = k = 0
    while heap or k < len(order):
        if not heap:
            now = max(now, release[order[k]] * capacity)
        while k < len(order) and release[order[k]] * capacity <= now:
            heapq.heappush(heap, (rank[order[k]], order[k]))
            k += 1
        j = heap[0][1]
        until = now + left[j]
        if k < len(order):
            until = min(until, release[order[k]] * capacity)
        twice_integral[j] += (until - now) * (until + now)
        left[j] -= until - now
        now = until
        if not left[j]:
            heapq.heappop(heap)
    terms = zip(weight, twice_integral, area, work, strict=True)
    return sum(
        math.floor(w * Fraction(twice + p * a * capacity, 2 * a * capacity))
        for w, twice, a, p in terms
    )


def area_ticks(release: list[int], work: list[int], gpus: list[int], capacity: int) -> int:
    """Earliest possible last completion, in ticks, rounded up.

    The largest over release dates r of r + (work released from r on) / m and r + (run times of
    gangs of more than m/2 released from r on, which cannot overlap), and of r_j + p_j.
    """
    area = lone = best = 0
    for j in sorted(range(len(release)), key=lambda j: -release[j]):
        area += gpus[j] * work[j]
        lone += work[j] if 2 * gpus[j] > capacity else 0
        best = max(best, release[j] + max(-(-area // capacity), lone, work[j]))
    return best


def simple_bounds(instance: Instance, objective: Objective) -> Iterator[Bound]:
    """All bounds that take O(n log n)."""
    jobs = instance.workload
    release, work = to_ticks(jobs.arrival_s).tolist(), to_ticks(instance.shortest_s).tolist()
    gpus, capacity = jobs.gpus.tolist(), instance.cluster.total_gpus
    weight = [Fraction(w) for w in jobs.weight.tolist()]
    offset = offset_ticks(weight, release, objective)
    if objective is Objective.MAKESPAN:
        yield bound_of(area_ticks(release, work, gpus, capacity) - offset, "area")
        return
    alone = sum((w * (r + p) for w, r, p in zip(weight, release, work, strict=True)), Fraction(0))
    yield bound_of(alone - offset, "job")
    if all(w == weight[0] for w in weight):
        common = weight[0] if weight else Fraction(1)
        fluid = common * fluid_ticks(release, work, gpus, capacity)
        exact = capacity == 1
        yield bound_of(fluid - offset, "optimum" if exact else "fluid")
    yield bound_of(
        mean_busy_ticks(release, work, gpus, weight, capacity) - offset, "mean-busy-time"
    )


def offset_ticks(weight: list[Fraction], release: list[int], objective: Objective) -> Fraction:
    """What the objective subtracts from completion times, in ticks."""
    if objective is Objective.FLOW:
        return sum((w * r for w, r in zip(weight, release, strict=True)), Fraction(0))
    return Fraction(min(release, default=0) if objective is Objective.MAKESPAN else 0)


def bound_of(
    ticks: Fraction | int, kind: str, *, preemptive: bool = True, certified: bool = True
) -> Bound:
    """A bound from ticks, rounded down to a float; never negative."""
    exact = Fraction(ticks) / TICKS_PER_S
    value = float(exact)
    if Fraction(value) > exact:
        value = float(np.nextafter(value, -np.inf))
    return Bound(max(value, 0.0), kind, preemptive, certified)
