"""Least costs over all schedules in which jobs are placed anew every second, starts charged: exhaustive search.

Speeds are those of the verifier's own evaluator, so that nothing of the bounds is asked for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np

from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.proofs import graph_time, run_speed
from support.typed_jobs import LeastCosts

Counts = tuple[int, ...]
"""GPUs on every node."""

NEVER = Fraction(10**9)


@dataclass(frozen=True)
class Option:
    """A way to run a job: its GPUs, CPUs and memory on every node, and ticks of the whole job."""

    gpus: Counts
    cpus: tuple[float, ...]
    memory_gb: tuple[float, ...]
    ticks: int


def counts(sizes: Counts, total: int) -> Iterator[Counts]:
    """All ways to take so many from nodes of these sizes."""
    for each in product(*(range(min(size, total) + 1) for size in sizes)):
        if sum(each) == total:
            yield each


def options(instance: Instance, job: int) -> list[Option]:
    """All ways to run a job by itself."""
    sizes = tuple(instance.cluster.gpus_per_node.tolist())
    gang, known = int(instance.workload.gpus[job]), instance.sensitivity
    widest = gang
    if instance.elasticity is not None:
        widest = int(instance.elasticity.widest[job])
    cpu_memory = [(0.0, 0.0)]
    if known is not None:
        profile = known.profile_of(job)
        cpu_memory = list(
            product(profile.cpus_per_gpu.tolist(), profile.memory_gb_per_gpu.tolist())
        )
    found = []
    for width in range(gang, widest + 1):
        for gpus, (cpus, memory) in product(counts(sizes, width), cpu_memory):
            ticks = _ticks(instance, job, gpus, (cpus, memory))
            if ticks:
                held = [tuple(each * n for n in gpus) for each in (cpus, memory)]
                found.append(Option(gpus, held[0], held[1], ticks))
    return found


def _ticks(instance: Instance, job: int, gpus: Counts, each: tuple[float, float]) -> int:
    """Ticks of a whole job on these GPUs, 0 where it cannot run."""
    used = [node for node, n in enumerate(gpus) if n]
    if instance.graphs is not None:
        return _mapped_ticks(instance, job, gpus)
    _, gpu_type = run_speed.gpu_types(instance.cluster)
    columns = [0] if instance.workload.throughput is None else gpu_type[used].tolist()
    whole = [int(run_speed.alone_ticks(instance)[job, r]) for r in columns]
    if 0 in whole:
        return 0
    speed, one = 1.0, np.array([job])
    if instance.sensitivity is not None:
        held = (np.array([amount]) for amount in each)
        speed *= float(run_speed.profile_speed(instance.sensitivity, one, np.array([1]), *held)[0])
    if instance.locality is not None:
        fewest = int(run_speed.fewest_nodes(instance.cluster, np.array([sum(gpus)]))[0])
        speed *= float(instance.locality.spread_speed[job]) if len(used) > fewest else 1.0
    if instance.elasticity is not None:
        gang = instance.workload.gpus[[job]]
        speed *= float(
            run_speed.width_speed(instance.elasticity, one, gang, np.array([sum(gpus)]))[0]
        )
    if not speed:
        return 0
    return int(run_speed.slower_ticks(np.array([max(whole)]), np.array([speed]))[0])


def _mapped_ticks(instance: Instance, job: int, gpus: Counts) -> int:
    """Ticks under the best mapping of a job's replicas to these GPUs."""
    graphs = instance.graphs
    assert graphs is not None
    graph = graphs.graph[int(graphs.of[job])]
    best = NEVER.numerator * TICKS_PER_S

    def place(stage: int, left: Counts, there: tuple[Counts, ...]) -> None:
        nonlocal best
        if stage == len(graph.stages):
            nodes = [[each[node] for each in there] for node, n in enumerate(gpus) if n]
            alpha = graph_time.iteration_s(graph, nodes, graphs.network)
            work = instance.workload.work[[job]]
            best = min(best, int(run_speed.iterations_ticks(work, np.array([alpha]))[0]))
            return
        for each in counts(left, graph.stages[stage].replicas):
            rest = tuple(a - b for a, b in zip(left, each, strict=True))
            place(stage + 1, rest, (*there, each))

    place(0, gpus, ())
    return best


Choice = tuple[Option | None, ...]


def choices(instance: Instance, *, consolidated: bool) -> list[Choice]:
    """All ways to run some of the jobs together, each alone on its GPUs or two on the same."""
    n = len(instance.workload)
    ways = [options(instance, j) for j in range(n)]
    if consolidated:
        width = np.array([0, *range(1, instance.cluster.total_gpus + 1)])
        fewest = run_speed.fewest_nodes(instance.cluster, width).tolist()
        ways = [[o for o in mine if sum(map(bool, o.gpus)) <= fewest[sum(o.gpus)]] for mine in ways]
    found = [each for each in product(*([None, *mine] for mine in ways)) if _fits(instance, each)]
    for i, j in combinations(range(n), 2):
        for o in ways[i]:
            both = _beside(instance, i, j, o), _beside(instance, j, i, o)
            if None in both:
                continue
            others = [[None, *ways[k]] if k not in (i, j) else [None] for k in range(n)]
            for rest in product(*others):
                # Held once: the first of the two stands for both.
                held = list(rest)
                held[i] = o
                if _fits(instance, tuple(held)):
                    held[i], held[j] = both
                    found.append(tuple(held))
    return found


def _fits(instance: Instance, choice: Choice) -> bool:
    for node, room in enumerate(instance.cluster.nodes):
        held = [(o.gpus[node], o.cpus[node], o.memory_gb[node]) for o in choice if o is not None]
        total = [sum(each) for each in zip(*held, strict=True)] if held else [0, 0, 0]
        if any(t > r for t, r in zip(total, (room.gpus, room.cpus, room.memory_gb), strict=True)):
            return False
    return True


def _beside(instance: Instance, job: int, partner: int, option: Option) -> Option | None:
    if instance.sharing_rates is None:
        return None
    _, gpu_type = run_speed.gpu_types(instance.cluster)
    rows = gpu_type[[node for node, n in enumerate(option.gpus) if n]]
    one, other = (np.full(len(rows), each) for each in (job, partner))
    alone = run_speed.alone_ticks(instance)
    ticks = run_speed.sharing_ticks(instance, alone, one, other, rows)
    if (ticks == 0).any():
        return None
    return Option(option.gpus, option.cpus, option.memory_gb, int(ticks.max()))


def least_placed_costs(
    instance: Instance, slots: int, *, start_slots: int = 0, consolidated: bool = False
) -> LeastCosts:
    """Least costs over schedules that change at whole seconds and end in so many.

    Parameters
    ----------
    start_slots : int
        Seconds that a job holds its GPUs without progress whenever it is placed elsewhere than before.
    """
    weight = [Fraction(each) for each in instance.workload.weight.tolist()]
    arrival = instance.workload.arrival_s.tolist()
    ways, n = choices(instance, consolidated=consolidated), len(instance.workload)
    nowhere: tuple[Counts, ...] = ((),) * n

    @cache
    def grow(
        now: int, left: tuple[Fraction, ...], at: tuple[Counts, ...], owed: Counts
    ) -> tuple[Fraction, Fraction]:
        if not any(left):
            return Fraction(0), Fraction(0)
        if now == slots:
            return NEVER, NEVER
        best = soonest = NEVER
        for choice in ways:
            if any(
                o is not None and not (left[j] and arrival[j] <= now) for j, o in enumerate(choice)
            ):
                continue
            after, owing, cost, last = list(left), list(owed), Fraction(0), Fraction(0)
            for j, o in enumerate(choice):
                if o is None:
                    continue
                if start_slots and at[j] != o.gpus:
                    owing[j] += start_slots
                if owing[j]:
                    owing[j] -= 1
                    continue
                done = Fraction(TICKS_PER_S, o.ticks)
                if done >= left[j]:
                    end = now + left[j] / done
                    cost, last = cost + weight[j] * end, max(last, end)
                after[j] = max(left[j] - done, Fraction(0))
            there = tuple(() if o is None else o.gpus for o in choice) if start_slots else nowhere
            later_cost, later_last = grow(now + 1, tuple(after), there, tuple(owing))
            best = min(best, cost + later_cost)
            soonest = min(soonest, max(last, later_last))
        return best, soonest

    return LeastCosts(*grow(0, (Fraction(1),) * n, nowhere, (0,) * n))
