"""Small instances of Hadar's offline problem, all of their plans, and an independent check of one."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import GpusByNode, RoundPlan, UtilityTable
from shadowprice.instances.workload import Workload

ROUND_S = 64.0

Runs = list[tuple[int, GpusByNode]]
"""Of a job: (round, its gang)."""


def make(seed: int, jobs: int, rounds: int, nodes: str) -> Instance:
    rng = np.random.default_rng(seed)
    cluster = Cluster.parse(nodes)
    types = cluster.gpu_types
    # Work in rounds on the fastest type: eighths, so that completions in exactly k rounds occur.
    fastest = 2.0 ** rng.integers(0, 3, size=jobs)
    slower = np.array([1.0, 0.5, 0.25])[: len(types)]
    workload = Workload.from_columns(
        arrival_s=rng.integers(0, max(2, rounds // 2), size=jobs) * ROUND_S,
        gpus=rng.integers(1, cluster.gpus_per_type.max() + 1, size=jobs),
        work=rng.integers(2, 5 * rounds, size=jobs) / 8 * ROUND_S * fastest,
        throughput=fastest[:, None] * rng.permuted(np.tile(slower, (jobs, 1)), axis=1),
        gpu_types=types,
        weight=rng.integers(1, 5, size=jobs),
    )
    return Instance.feasible(cluster, workload)[0]


def round_work(instance: Instance, job: int, gpus: GpusByNode) -> Fraction:
    """Share of a job that a round does, exactly, from the table of throughputs."""
    jobs, types = instance.workload, instance.cluster.gpu_types
    columns = [jobs.gpu_types.index(types[instance.cluster.type_of_node[n]]) for n, _ in gpus]
    assert jobs.throughput is not None
    slowest = min(Fraction(float(jobs.throughput[job, k])) for k in columns)
    return slowest * Fraction(ROUND_S) / Fraction(float(jobs.work[job]))


def check(instance: Instance, table: UtilityTable, plan: RoundPlan) -> float:
    """Utility of a plan, after every rule has been looked at; shares no code with the solver."""
    used: dict[tuple[int, int], int] = {}
    value = 0.0
    assert len(plan.runs) == len(instance.workload)
    for job, runs in enumerate(plan.runs):
        done = Fraction(0)
        rounds = [t for t, _ in runs]
        assert rounds == sorted(set(rounds))
        for t, gpus in runs:
            assert 0 <= t < table.rounds
            assert t * ROUND_S >= instance.workload.arrival_s[job]
            assert sum(count for _, count in gpus) == instance.workload.gpus[job]
            assert all(count > 0 for _, count in gpus)
            for node, count in gpus:
                used[t, node] = used.get((t, node), 0) + count
            done += round_work(instance, job, gpus)
        if done >= 1:
            value += table.values[job, rounds[-1]]
    assert all(count <= instance.cluster.gpus_per_node[node] for (_, node), count in used.items())
    return value


def gangs(instance: Instance, job: int) -> list[GpusByNode]:
    """All ways to put a gang on nodes at a positive speed, as tuples (node, GPUs)."""
    sizes = instance.cluster.gpus_per_node
    found = []
    for chosen in combinations_with_replacement(
        range(len(sizes)), int(instance.workload.gpus[job])
    ):
        gpus = tuple((n, chosen.count(n)) for n in sorted(set(chosen)))
        if all(count <= sizes[n] for n, count in gpus) and round_work(instance, job, gpus) > 0:
            found.append(gpus)
    return found


def schedules(instance: Instance, job: int, table: UtilityTable) -> list[tuple[int, Runs]]:
    """All schedules of a job that stop when it is complete: (last round, runs)."""
    first = int(np.ceil(instance.workload.arrival_s[job] / ROUND_S))
    found = []
    options = [None, *gangs(instance, job)]
    for choice in product(options, repeat=max(0, table.rounds - first)):
        runs = [(first + k, gpus) for k, gpus in enumerate(choice) if gpus is not None]
        shares = [round_work(instance, job, gpus) for _, gpus in runs]
        if runs and sum(shares) >= 1 and sum(shares[:-1]) < 1:
            found.append((runs[-1][0], runs))
    return found


def brute_force(instance: Instance, table: UtilityTable) -> float:
    """The best of all combinations of schedules, job after job."""
    options = [schedules(instance, job, table) for job in range(len(instance.workload))]
    sizes = instance.cluster.gpus_per_node

    def best(job: int, free: NDArray[np.int64]) -> float:
        if job == len(options):
            return 0.0
        most = best(job + 1, free)
        for end, runs in options[job]:
            left = free.copy()
            for t, gpus in runs:
                for node, count in gpus:
                    left[t, node] -= count
            if (left >= 0).all():
                most = max(most, table.values[job, end] + best(job + 1, left))
        return most

    return best(0, np.tile(sizes, (table.rounds, 1)))
