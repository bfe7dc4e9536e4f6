"""Speeds of jobs as records of certificates have them: by width, beside partners, of copies and of graphs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature, missing
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.speeds.conditions import on_whole_gpus
from shadowprice.proofs import graph_time, run_speed

if TYPE_CHECKING:
    from shadowprice.instances.graphs.job_graph import JobGraph
    from shadowprice.instances.graphs.network import Network
    from shadowprice.instances.graphs.workload_graphs import JobGraphs
    from shadowprice.instances.instance import Instance

TYPED_KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,
        Feature.SHARING,  # where nobody does
        Feature.FAILURES,
        Feature.CORES,
        Feature.AMOUNTS,
    }
)
"""With these the speed of whole gangs that run alone depends on their GPU type and on nothing else."""

WHOLE_GPU = 1000

Sort = tuple[str, int, bool]
"""Model and gang of a job, of which the speed of pairs depends, and whether it holds whole GPUs."""


def plain_gangs(instance: Instance) -> bool:
    """True if no job's speed depends on anything, GPU types, nodes and others among it."""
    ticks = run_speed.alone_ticks(instance)
    return types_alone(instance) and bool((ticks == ticks[:, :1]).all())


def types_alone(instance: Instance) -> bool:
    """True if no job's speed depends on anything but GPU types, where nobody shares."""
    return not missing(instance, TYPED_KNOWS)


def may_grow(instance: Instance) -> NDArray[np.bool_]:
    """True for jobs that may hold more than their gang, shape (n,)."""
    jobs, conditions = instance.workload, instance.conditions
    if conditions is None or conditions.elasticity is None:
        return np.zeros(len(jobs), dtype=np.bool_)
    return np.asarray(conditions.elasticity.widest > jobs.gpus)


def speeds_by_width(instance: Instance, job: int) -> list[float]:
    """Speeds of a job on as many GPUs as its gang has, on one more, and so on."""
    conditions, gang = instance.conditions, int(instance.workload.gpus[job])
    if conditions is None or conditions.elasticity is None:
        return [1.0]
    width = np.arange(gang, int(conditions.elasticity.widest[job]) + 1)
    row = np.full(len(width), job)
    gangs = np.full(len(width), gang)
    return [float(v) for v in run_speed.width_speed(conditions.elasticity, row, gangs, width)]


def sorts(instance: Instance) -> tuple[list[Sort], list[int]]:
    """Sorts of jobs in order of appearance, and that of every job; who holds a part or cores shares with nobody."""
    jobs = instance.workload
    columns = jobs.model, jobs.gpus, on_whole_gpus(jobs)
    every = list(zip(*(column.tolist() for column in columns), strict=True))
    place = {sort: k for k, sort in enumerate(dict.fromkeys(every))}
    return list(place), [place[sort] for sort in every]


Beside = list[dict[int, dict[int, int]]]
"""Of every job, ticks of all of it by GPU type and sort of its partner."""


def ticks_beside(instance: Instance) -> Beside:
    """Whole jobs beside a partner of each sort that they may share GPUs with, at speed 1; O(n sorts types)."""
    alone, (names, of) = run_speed.alone_ticks(instance), sorts(instance)
    first: list[list[int]] = [[] for _ in names]
    for job, sort in enumerate(of):
        if len(first[sort]) < 2:
            first[sort].append(job)
    found: Beside = [{} for _ in of]
    for sort, some in enumerate(first):
        # A job is not its own partner; of another's sort there may be one job only.
        partner = [next((p for p in some if p != job), job) for job in range(len(of))]
        for kind in range(alone.shape[1]):
            rows = np.arange(len(of)), np.array(partner), np.full(len(of), kind)
            for job, ticks in enumerate(run_speed.beside_ticks(instance, alone, *rows).tolist()):
                if ticks:
                    found[job].setdefault(kind, {})[sort] = ticks
    return found


def widths_and_ticks(instance: Instance, job: int, ticks: int) -> Iterator[tuple[int, int]]:
    """Widths of a job, and ticks of all of it at each, not spread and with the best of CPUs and memory."""
    conditions = instance.conditions
    speed = 1.0
    fed = conditions is not None and not instance.workload.on_cores[job]
    if fed and conditions is not None and conditions.sensitivity is not None:
        speed = conditions.sensitivity.profile_of(job).best
    by_width = speeds_by_width(instance, job)
    for width, more in enumerate(by_width, int(instance.workload.gpus[job])):
        one = np.array([ticks]), np.array([speed * more])
        yield width, int(run_speed.slower_ticks(*one)[0])


def copy_rates(instance: Instance) -> list[dict[str, Fraction]]:
    """Of every job, steps a tick on one GPU of each type on which it can run."""
    jobs, names = instance.workload, dict.fromkeys(n.gpu_type for n in instance.cluster.nodes)
    found = []
    for job, gang in enumerate(jobs.gpus.tolist()):
        rate = dict.fromkeys(names, Fraction(1, gang))
        if jobs.throughput is not None:
            row = {name: float(jobs.throughput[job, jobs.gpu_types.index(name)]) for name in names}
            rate = {name: Fraction(r) / gang / TICKS_PER_S for name, r in row.items() if r > 0}
        found.append(rate)
    return found


def spread_ticks(graphs: JobGraphs, work: NDArray[np.float64]) -> list[int]:
    """Ticks of every job on two nodes or more, at least; ``work`` in iterations, shape (n,)."""
    least = np.array([_spread_s(graph, graphs.network) for graph in graphs.graph])
    return [int(each) for each in run_speed.iterations_ticks(work, least[graphs.of])]


def on_one_node_ticks(graphs: JobGraphs, work: NDArray[np.float64]) -> list[int]:
    """Ticks of every job with all replicas on one node; ``work`` in iterations, shape (n,)."""
    each = [
        graph_time.iteration_s(graph, [[stage.replicas for stage in graph.stages]], graphs.network)
        for graph in graphs.graph
    ]
    return [int(t) for t in run_speed.iterations_ticks(work, np.array(each)[graphs.of])]


def _spread_s(graph: JobGraph, network: Network) -> float:
    """Time of an iteration that no mapping on two nodes or more falls short of [s].

    Some stage is on several nodes, and its ring crosses a NIC; or two that exchange bytes are on different nodes, if
    exchanges connect all stages.
    """
    intra, nic = Fraction(network.intra_bytes_per_s), Fraction(network.nic_bytes_per_s)
    away = nic / network.gpus_per_node if network.sharing == "per-gpu" else nic
    apart = 2 * max(1 / away - 1 / intra, Fraction(0))
    sent: list[dict[int, Fraction]] = [{} for _ in graph.stages]
    for link in graph.links:
        each, ends = Fraction(link.bytes_per_replica), (link.source, link.target)
        back = each * graph.stages[ends[0]].replicas / graph.stages[ends[1]].replicas
        for one, other, amount in ((*ends, each), (*ends[::-1], back)):
            sent[one][other] = sent[one].get(other, Fraction(0)) + amount
    least = Fraction(_unhindered_s(graph, network))
    seen, rest = {0}, [0]
    while rest:
        more = sent[rest.pop()].keys() - seen
        seen |= more
        rest += more
    cases, near = [], []
    for stage, peers in zip(graph.stages, sent, strict=True):
        compute = Fraction(stage.forward_s) + Fraction(stage.backward_s)
        near.append(compute + 2 * sum(peers.values(), Fraction(0)) / max(intra, away))
        if stage.replicas > 1:
            ring = Fraction(2 * (stage.replicas - 1), stage.replicas)
            cases.append(near[-1] + ring * Fraction(stage.parameter_bytes) / nic)
    for one, peers in enumerate(sent):
        for other, amount in peers.items():
            both = near[one] + amount * apart, near[other] + sent[other][one] * apart
            cases.append(max(both))
    if len(seen) < len(sent) or not cases:
        return float(least)
    q, depth = graph.microbatches, _depth(graph)
    flush = Fraction(q + depth - 1, q) if q else Fraction(1)
    return max(float(least), float(min(cases) * flush))


def _unhindered_s(graph: JobGraph, network: Network) -> float:
    """Time of an iteration that no mapping falls short of [s]."""
    intra, nic = Fraction(network.intra_bytes_per_s), Fraction(network.nic_bytes_per_s)
    sent = [Fraction(0) for _ in graph.stages]
    for link in graph.links:
        each = Fraction(link.bytes_per_replica)
        ends = graph.stages[link.source].replicas, graph.stages[link.target].replicas
        sent[link.source] += each
        sent[link.target] += each * ends[0] / ends[1]
    slowest = Fraction(0)
    for stage, traffic in zip(graph.stages, sent, strict=True):
        ring = Fraction(2 * (stage.replicas - 1), stage.replicas) * Fraction(stage.parameter_bytes)
        ring /= max(intra, nic) if stage.replicas <= network.gpus_per_node else nic
        compute = Fraction(stage.forward_s) + Fraction(stage.backward_s)
        slowest = max(slowest, compute + ring + 2 * traffic / max(intra, nic))
    q, depth = graph.microbatches, _depth(graph)
    return float(slowest * Fraction(q + depth - 1, q) if q else slowest)


def _depth(graph: JobGraph) -> int:
    """Stages on the longest path of links that are no exchanges."""
    depth = [1] * len(graph.stages)
    for _ in graph.stages:
        for link in graph.links:
            if not link.exchange:
                depth[link.target] = max(depth[link.target], depth[link.source] + 1)
    return max(depth)
