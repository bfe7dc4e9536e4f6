"""Work that every schedule of a certificate's class has to do: what its bounds are about.

A job needs ``shortest`` ticks at the best speed that it can have, and ``area``, the least GPU ticks in which all of
it can be done. Let its *service* be its speed over the best. While it holds w GPUs at a speed at which the whole
job takes P ticks it does 1 / P of itself a tick, and area / P of its area; with the least of all w P for the area
this is at most w. So all jobs together do at most as much area a tick as there are GPUs, and no job gets more than
a tick of service in a tick. The proofs of LB-fluid, LB-mbt and the priced bounds ask for nothing else; that of the
interval LP asks for an end by which all can be done, which is the last release and all p_j where no a_j is more than
the cluster does in p_j. So a job with more takes longer: p_j is a_j over what the cluster does in a tick, rounded
down, and what is then more than it does does not count. (A job may be said to be faster on more GPUs than there are.)

*Parts of GPUs*: w is the part that is held. *Pairs*: two jobs on w GPUs do at most kappa w of their areas together,
for the largest of these sums over pairs of sorts. *Copies*: each holds a node; the best speed is that on the k
fastest nodes, the area that on the fastest GPU, both rounded down. *Graphs*: the speed of a mapping is at most that
of an iteration all of whose traffic goes at the greatest bandwidth, times that beside a partner. *Failures*: what is
lost is done again, which no bound minds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.copies import total_steps
from shadowprice.instances.features import Feature, missing, require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.schedule_class import AMPLE_TYPES
from shadowprice.instances.speeds.conditions import on_whole_gpus
from shadowprice.proofs import graph_time, run_speed
from shadowprice.solvers.offline.bounds import RelaxedJobs

if TYPE_CHECKING:
    from shadowprice.instances.copies import CopyRules
    from shadowprice.instances.graphs.job_graph import JobGraph
    from shadowprice.instances.graphs.network import Network
    from shadowprice.instances.graphs.workload_graphs import JobGraphs
    from shadowprice.instances.instance import Instance

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,  # of a job the fastest counts
        Feature.CHARGES,  # are left out: they only restrict
        Feature.SHARING,  # by what pairs gain, where some share
        Feature.GRAPHS,  # no mapping is faster than traffic at the greatest bandwidth
        Feature.PROFILES,  # the fastest counts
        Feature.SPREAD,  # makes no run faster
        Feature.WIDTHS,  # the least area of all
        Feature.COPIES,
        Feature.FAILURES,  # what is lost is done again
        Feature.QUOTAS,  # are left out: they only restrict
        Feature.PARTS,  # areas count in thousandths
        Feature.CORES,  # count as GPUs of a type
        Feature.AMOUNTS,  # are left out: they only restrict
        Feature.WINDOW,  # see counted_demands
        Feature.STOPPED,  # see counted_demands
        Feature.RESTART,  # is left out: it only restricts
    }
)

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
GAIN_UNIT = 2**20
"""Gains of pairs are rounded up to multiples of one over it."""

_MULTIPLE = 1000
"""Parts of a GPU in which areas are searched for prices, where jobs do not hold their gangs all the time."""

Sort = tuple[str, int, bool]
"""Model and gang of a job, of which the speed of pairs depends, and whether it holds whole GPUs."""


@dataclass(frozen=True)
class ClassDemands:
    """Columns of the jobs, shape (n,), and the cluster.

    Parameters
    ----------
    release, shortest, gang : list of int
        r_j, p_j [ticks], g_j.
    area : list of int
        a_j, in units of 1 / ``scale`` GPU ticks; no more than the cluster does in p_j.
    weight : list of Fraction
    gpus, scale : int
        m, and parts of a GPU.
    gain : Fraction
        kappa, 1 where no two jobs share a GPU.
    gangs : bool
        Whether who runs holds all of a gang, and nobody else does.
    of_class : str
        Schedules that have to do this, in words.
    """

    release: list[int]
    shortest: list[int]
    area: list[int]
    gang: list[int]
    weight: list[Fraction]
    gpus: int
    scale: int
    gain: Fraction
    gangs: bool
    of_class: str

    @property
    def capacity(self) -> Fraction:
        """Most area in a tick."""
        return self.gain * self.gpus * self.scale

    def searched(self) -> tuple[RelaxedJobs, int]:
        """Jobs of whole gangs whose bounds at any prices are at most those of these, and their parts of a GPU."""
        columns = list(zip(self.area, self.shortest, strict=True))
        even = self.scale == 1 and all(area % ticks == 0 for area, ticks in columns)
        parts = 1 if even else _MULTIPLE
        gangs = [area * parts // (ticks * self.scale) for area, ticks in columns]
        times = self.release, self.shortest
        return RelaxedJobs(*times, gangs, self.weight, self.gpus * parts, self.gain), parts

    def whole_gangs(self) -> RelaxedJobs:
        """Jobs that hold their gangs for the shortest time, of which no two are on a GPU."""
        return RelaxedJobs(
            self.release, self.shortest, self.gang, self.weight, self.gpus, Fraction(1)
        )

    @classmethod
    def of(cls, instance: Instance, *, pairs: bool) -> ClassDemands:
        """Those of an instance; with ``pairs`` two jobs may share GPUs.

        Raises
        ------
        InputError
            If the instance has features that are not in ``KNOWS``.
        """
        require(instance, KNOWS, "certificates")
        jobs, gang = instance.workload, instance.workload.gpus.tolist()
        parts, gain, scale = jobs.gpu_milli, Fraction(1), 1
        if instance.copies is not None:
            shortest, area = _of_copies(instance, instance.copies)
        elif instance.graphs is not None:
            shortest = _of_graphs(instance, instance.graphs)
            area = [g * p for g, p in zip(gang, shortest, strict=True)]
        else:
            shortest, area = _by_width(instance)
        if pairs:
            shortest, gain = _beside(instance, shortest, area)
        if bool((parts < WHOLE_GPU).any()):
            scale = WHOLE_GPU
            area = [part * each for part, each in zip(parts.tolist(), area, strict=True)]
        known: dict[float, Fraction] = {}
        weight = [known.setdefault(w, Fraction(w)) for w in jobs.weight.tolist()]
        most = gain * instance.cluster.total_gpus * scale
        if any(a > most * p for a, p in zip(area, shortest, strict=True)):
            shortest = [max(p, int(a // most)) for a, p in zip(area, shortest, strict=True)]
            area = [min(a, math.floor(most * p)) for a, p in zip(area, shortest, strict=True)]
        return cls(
            to_ticks(jobs.arrival_s).tolist(),
            shortest,
            area,
            gang,
            weight,
            instance.cluster.total_gpus,
            scale,
            gain,
            scale == 1 and not pairs and instance.copies is None,
            _class(instance, pairs),
        )


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


Beside = list[dict[int, dict[int, float]]]
"""Of every job, by GPU type and sort of its partner, ticks of all of it; with graphs its speed against that alone."""


def beside_sorts(instance: Instance) -> Beside:
    """Jobs beside a partner of each sort that they may share GPUs with, at speed 1; O(n sorts types)."""
    found_of = run_speed.beside_ticks if instance.graphs is None else run_speed.beside_rates
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
            for job, each in enumerate(found_of(instance, alone, *rows).tolist()):
                if each:
                    found[job].setdefault(kind, {})[sort] = each
    return found


def _by_width(instance: Instance) -> tuple[list[int], list[int]]:
    """Shortest ticks and least GPU ticks of jobs alone, under the best of conditions."""
    alone = run_speed.alone_ticks(instance)
    plain = np.where(alone > 0, alone, np.iinfo(np.int64).max).min(axis=1)
    if instance.conditions is None:
        gang = instance.workload.gpus.tolist()
        ticks = plain.tolist()
        return ticks, [g * p for g, p in zip(gang, ticks, strict=True)]
    shortest, area = [], []
    for job, ticks in enumerate(plain.tolist()):
        widths = list(widths_and_ticks(instance, job, ticks))
        shortest.append(min(p for _, p in widths))
        area.append(min(width * p for width, p in widths))
    return shortest, area


def widths_and_ticks(
    instance: Instance, job: int, ticks: int, speed: float = 1.0
) -> Iterator[tuple[int, int]]:
    """Widths of a job, and ticks of all of it at each, not spread and with the best of CPUs and memory."""
    conditions = instance.conditions
    fed = conditions is not None and not instance.workload.on_cores[job]
    if fed and conditions is not None and conditions.sensitivity is not None:
        speed *= conditions.sensitivity.profile_of(job).best
    by_width = speeds_by_width(instance, job)
    for width, more in enumerate(by_width, int(instance.workload.gpus[job])):
        one = np.array([ticks]), np.array([speed * more])
        yield width, int(run_speed.slower_ticks(*one)[0])


def _beside(instance: Instance, shortest: list[int], area: list[int]) -> tuple[list[int], Fraction]:
    """Shortest ticks, beside others too, and the gain of pairs."""
    best, (_, of) = list(shortest), sorts(instance)
    graphs = instance.graphs
    alone = None if graphs is None else _unhindered_ticks(graphs, instance.workload.work)
    share: dict[tuple[int, int, int], Fraction] = {}
    for job, by_type in enumerate(beside_sorts(instance)):
        for kind, by_sort in by_type.items():
            for other, each in by_sort.items():
                key = kind, of[job], other
                both = (int(each), 1.0) if alone is None else (int(alone[job]), each)
                for width, slower in widths_and_ticks(instance, job, *both):
                    best[job] = min(best[job], slower)
                    part = Fraction(area[job], width * slower)
                    share[key] = max(share.get(key, part), part)
    sums = [
        mine + share.get((kind, other, one), -mine) for (kind, one, other), mine in share.items()
    ]
    gain = max([Fraction(1), *sums])
    return best, Fraction(math.ceil(gain * GAIN_UNIT), GAIN_UNIT)


def _of_copies(instance: Instance, rules: CopyRules) -> tuple[list[int], list[int]]:
    """Shortest ticks and least GPU ticks of jobs that run as copies."""
    nodes, rates = instance.cluster.nodes, copy_rates(instance)
    shortest, area = [], []
    for steps, rate in zip(total_steps(instance.workload).tolist(), rates, strict=True):
        speeds = sorted((node.gpus * rate.get(node.gpu_type, 0) for node in nodes), reverse=True)
        shortest.append(max(math.floor(steps / sum(speeds[: rules.max_copies])), 1))
        area.append(max(math.floor(steps / max(rate.values())), 1))
    return shortest, area


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


def _of_graphs(instance: Instance, graphs: JobGraphs) -> list[int]:
    """Ticks of every job if no traffic disturbed another and all went at the greatest bandwidth."""
    ticks = _unhindered_ticks(graphs, instance.workload.work)
    if instance.conditions is None:
        return [int(each) for each in ticks]
    return [
        min(each for _, each in widths_and_ticks(instance, job, int(plain)))
        for job, plain in enumerate(ticks)
    ]


def _unhindered_ticks(graphs: JobGraphs, work: NDArray[np.float64]) -> run_speed.Ticks:
    least = np.array([_unhindered_s(graph, graphs.network) for graph in graphs.graph])
    return run_speed.iterations_ticks(work, least[graphs.of])


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


CONSOLIDATED = ", on as few nodes as gangs fit on"
"""End of the name of a class of schedules that place every gang so."""


_UNDER: Mapping[Feature, str] = {
    Feature.FAILURES: " on nodes that fail",
    Feature.QUOTAS: " within quotas of tenants",
}
"""Where schedules are, in the name of their class."""


def _class(instance: Instance, pairs: bool) -> str:
    counts = _what_counts(instance)
    where = "".join(words for each, words in _UNDER.items() if each in instance.features)
    lose = ", jobs restart when preempted" if instance.restarts else ""
    if instance.copies is not None:
        whose = f"a job is at most {instance.copies.max_copies} copies on whole nodes"
        return f"schedules{where} in which {whose}{lose}{counts}"
    share = "at most two jobs share a GPU" if pairs else "no two jobs share a GPU"
    if Feature.PARTS in instance.features:
        more = f"{share} or no more than all of it is held in parts"
        share = more if pairs else "no GPU is held by more than all of it"
    grow = " and gangs may grow" if bool(may_grow(instance).any()) else ""
    types = f", {AMPLE_TYPES}" if instance.has_small_types else ""
    return f"preemptive schedules{where} in which {share}{grow}{types}{lose}{counts}"


def _what_counts(instance: Instance) -> str:
    """Jobs or time that the cost is of, where it is not of all."""
    window, stopped_s = instance.until_complete, instance.stopped_s
    jobs = "" if window is None else f", counting jobs {window.first} to {window.last - 1} alone"
    time = "" if stopped_s is None else f", counting time until {float(stopped_s)!r} s alone"
    return jobs + time
