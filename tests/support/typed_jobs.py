"""Small instances with speeds by GPU type, and the least costs of their schedules by exhaustive search."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
from hypothesis import strategies as st

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload

TYPES = ("k80", "p100", "v100")


@st.composite
def typed_instances(draw: st.DrawFn, max_jobs: int = 5, weights: bool = True) -> Instance:
    """Jobs with speeds by type; a speed of 0 where one cannot run, but somewhere it can."""
    n = draw(st.integers(1, max_jobs))
    types = TYPES[: draw(st.integers(2, 3))]
    cluster = ",".join(f"{draw(st.integers(1, 2))}x{draw(st.integers(2, 3))}:{t}" for t in types)
    speed = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.7])
    rows = st.lists(speed, min_size=len(types), max_size=len(types)).filter(any)
    numbers = {
        name: draw(st.lists(st.integers(low, high), min_size=n, max_size=n))
        for name, low, high in (("arrival_s", 0, 20), ("gpus", 1, 2), ("work", 1, 40))
    }
    weight = draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 5.0]), min_size=n, max_size=n))
    jobs = Workload.from_columns(
        **numbers,
        weight=weight if weights else 1.0,
        gpu_types=types,
        throughput=draw(st.lists(rows, min_size=n, max_size=n)),
    )
    return Instance(Cluster.parse(cluster), jobs)


@st.composite
def slotted_instances(draw: st.DrawFn) -> Instance:
    """One or two jobs on two types, few enough for :func:`least_slotted_costs` in 7 slots."""
    n = draw(st.integers(1, 2))
    numbers = {
        name: draw(st.lists(st.integers(low, high), min_size=n, max_size=n))
        for name, low, high in (("arrival_s", 0, 1), ("gpus", 1, 2), ("work", 1, 3))
    }
    speeds = st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=2, max_size=2)
    table = draw(st.lists(speeds, min_size=n, max_size=n))
    jobs = Workload.from_columns(**numbers, throughput=table, gpu_types=TYPES[:2])
    return Instance(Cluster.parse("1x2:k80,1x2:p100"), jobs)


@dataclass(frozen=True)
class LeastCosts:
    """Least total weighted completion time and least last completion [s], each by a schedule of its own."""

    total_s: Fraction
    last_s: Fraction


def least_slotted_costs(instance: Instance, slots: int) -> LeastCosts:
    """Least costs over all schedules that change type at whole seconds and end in so many; exhaustive."""
    weight = [Fraction(each) for each in instance.workload.weight.tolist()]
    sizes = instance.cluster.gpus_per_type.tolist()
    times = instance.processing_s
    arrival = instance.workload.arrival_s.tolist()
    gangs, n = instance.workload.gpus.tolist(), len(instance.workload)
    usable = [[None, *np.flatnonzero(np.isfinite(row)).tolist()] for row in times]
    never = Fraction(10**9)

    @cache
    def grow(now: int, left: tuple[Fraction, ...]) -> tuple[Fraction, Fraction]:
        if not any(left):
            return Fraction(0), Fraction(0)
        if now == slots:
            return never, never
        best, soonest = never, never
        open_ = [usable[j] if left[j] and arrival[j] <= now else [None] for j in range(n)]
        for choice in product(*open_):
            held = [0] * len(sizes)
            for j, kind in enumerate(choice):
                if kind is not None:
                    held[kind] += gangs[j]
            if any(h > size for h, size in zip(held, sizes, strict=True)):
                continue
            after, cost, last = list(left), Fraction(0), Fraction(0)
            for j, kind in enumerate(choice):
                if kind is not None:
                    done = Fraction(1) / Fraction(float(times[j, kind]))
                    if done >= left[j]:
                        end = now + left[j] / done
                        cost, last = cost + weight[j] * end, max(last, end)
                    after[j] = max(left[j] - done, Fraction(0))
            later_cost, later_last = grow(now + 1, tuple(after))
            best = min(best, cost + later_cost)
            soonest = min(soonest, max(last, later_last))
        return best, soonest

    return LeastCosts(*grow(0, (Fraction(1),) * n))
