"""Instances and schedules of the package that say what small worlds say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.copies import CopyRules
from shadowprice.instances.terms.racks import Racks
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.terms.window import JobWindow
from shadowprice.instances.workload import Workload
from support.small_search import runs_of
from support.small_ways import Choice
from support.small_worlds import TICKS, Klass, SmallGraph, SmallProfile, World


def cluster_of(world: World) -> Cluster:
    """Its nodes and quotas."""
    nodes = tuple(
        Node(node.gpus, node.kind, cpus=float(node.cpus), memory_gb=float(node.memory_gb))
        for node in world.nodes
    )
    if not world.quotas:
        return Cluster(nodes)
    names = tuple(sorted({name for _, quotas in world.quotas for name in quotas}))
    starts = tuple(float(begin) for begin, _ in world.quotas)
    gpus = tuple(tuple(quotas[name] for name in names) for _, quotas in world.quotas)
    return Cluster(nodes, Quotas(names, starts, gpus))


def workload_of(world: World) -> Workload:
    """Its jobs."""
    jobs = world.jobs
    kinds = tuple(dict.fromkeys(node.kind for node in world.nodes))
    rates = None
    if any(job.rates is not None for job in jobs):
        rates = [[float((job.rates or {}).get(kind, 0)) for kind in kinds] for job in jobs]
    return Workload.from_columns(
        arrival_s=[job.release for job in jobs],
        gpus=[job.gang for job in jobs],
        work=[float(job.work) for job in jobs],
        weight=[float(job.weight) for job in jobs],
        model=[job.model for job in jobs],
        tenant=[job.tenant for job in jobs],
        gpu_milli=[job.milli for job in jobs],
        cpus=[float(job.cpus) for job in jobs],
        memory_gb=[float(job.memory_gb) for job in jobs],
        allowed_types=["cores" if job.on_cores else "" for job in jobs],
        throughput=rates,
        gpu_types=() if rates is None else kinds,
        source=f"{' '.join(world.features)} {world.seed}",
    )


def pairs_of(world: World) -> Throughputs | None:
    """Rates of jobs that share."""
    if "sharing" not in world.features:
        return None
    kinds = tuple(dict.fromkeys(kind for kind, *_ in world.pairs))
    table = {
        (kind, (one, gang), (other, gang)): (float(a), float(b))
        for (kind, one, other, gang), (a, b) in world.pairs.items()
    }
    return Throughputs(kinds, {}, table)


def _profile(given: SmallProfile) -> Profile:
    speeds = np.array([[float(each) for each in row] for row in given.speed])
    return Profile(
        np.array(given.cpus, dtype=float), np.array(given.memory_gb, dtype=float), speeds
    )


def speeds_of(world: World) -> dict[str, Any]:
    """Profiles, speeds of spread gangs and widths."""
    jobs, features = world.jobs, world.features
    speeds: dict[str, Any] = {}
    if "profiles" in features:
        known = list(dict.fromkeys(job.profile for job in jobs if job.profile is not None))
        of = np.array([known.index(job.profile) for job in jobs if job.profile is not None])
        speeds["sensitivity"] = Sensitivity(tuple(map(_profile, known)), of)
    if "spread" in features:
        speeds["locality"] = Locality(np.array([float(job.spread) for job in jobs]))
    if "widths" in features:
        grows = [job.milli == 1000 and not job.on_cores for job in jobs]
        widest = [
            max(job.widest, job.gang) if may else job.gang
            for job, may in zip(jobs, grows, strict=True)
        ]
        speeds["elasticity"] = Elasticity(
            np.array(widest), np.array([float(job.doubling) / 2 for job in jobs])
        )
    return speeds


def _graph(given: SmallGraph, name: str) -> JobGraph:
    half = [float(stage.compute_s) / 2 for stage in given.stages]
    stages = tuple(
        Stage(f"s{k}", stage.replicas, half[k], half[k], stage.parameter_bytes)
        for k, stage in enumerate(given.stages)
    )
    return JobGraph(name, stages, tuple(Link(*link) for link in given.links))


def graphs_of(world: World) -> JobGraphs | None:
    """Stages of jobs."""
    known = list(dict.fromkeys(job.graph for job in world.jobs if job.graph is not None))
    if not known:
        return None
    first = known[0]
    of = np.array([known.index(job.graph) for job in world.jobs if job.graph is not None])
    network = Network(first.inside, first.nic, first.gpus_per_node)
    return JobGraphs(tuple(_graph(each, f"g{k}") for k, each in enumerate(known)), of, network)


def failures_of(world: World) -> NodeFailures | None:
    """Downtimes of nodes."""
    if not world.down:
        return None
    node, down, up = (
        list(column)
        for column in zip(*sorted(world.down, key=lambda d: d[1:2] + d[:1]), strict=True)
    )
    interval, cost = map(float, world.checkpoints or (math.inf, 0))
    return NodeFailures(
        np.array(node, dtype=np.int64),
        np.array(down, dtype=float),
        np.array(up, dtype=float),
        checkpoints=Checkpointing(interval, cost),
    )


def overheads_of(world: World) -> Overheads:
    """Charges of runs."""
    return Overheads(*map(float, world.charges))


def copies_of(world: World) -> CopyRules | None:
    """Rules of copies."""
    rules = world.copies
    if rules is None:
        return None
    charges = float(rules.restart_s), float(rules.averaging_s)
    return CopyRules(float(rules.round_s), *charges, rules.most)


def racks_of(world: World) -> tuple[Racks, ...]:
    """Racks of its nodes."""
    given = world.racks
    if given is None:
        return ()
    return (Racks(given.nodes, float(given.across_nodes), float(given.across_racks), given.uplink),)


def instance_of(world: World) -> Instance:
    """The instance."""
    return Instance(
        cluster_of(world),
        workload_of(world),
        overheads_of(world),
        pairs_of(world),
        graphs_of(world),
        **speeds_of(world),
        copies=copies_of(world),
        until_complete=None if world.window is None else JobWindow(*world.window),
        failures=failures_of(world),
        stopped_s=None if world.stopped is None else float(world.stopped),
        preemption=Preemption.RESTART if world.restarts else Preemption.RESUME,
        declared=racks_of(world),
    )


def klass_of(holds_for: ScheduleClass) -> Klass:
    """A class of the package in the words of the search."""
    return Klass(holds_for.preemptive, holds_for.sharing, holds_for.elastic, holds_for.consolidated)


def schedule_of(world: World, found: Sequence[Choice]) -> Schedule:
    """A schedule that the search found, row by row."""
    rows = [
        (run, node, n)
        for run in runs_of(world, found)
        for node, n in enumerate(run.held.way.at)
        if n
    ]

    def column(values: list[object], kind: type) -> NDArray[np.generic]:
        return np.array(values, dtype=kind)

    more: dict[str, object] = {}
    if "graphs" in world.features:
        stages = np.empty(len(rows), dtype=object)
        for k, (run, node, _) in enumerate(rows):
            stages[k] = tuple(each[node] for each in run.held.way.stages)
        more["stages"] = stages
    if "profiles" in world.features:
        more["cpus"] = np.array([float(run.held.way.cpus[node]) for run, node, _ in rows])
        more["memory_gb"] = np.array([float(run.held.way.memory[node]) for run, node, _ in rows])
    if "parts" in world.features:
        more["shared_gpu"] = np.array([run.held.way.part for run, _, _ in rows], dtype=np.int64)
    return Schedule(
        np.array([run.job for run, _, _ in rows], dtype=np.int64),
        np.array([node for _, node, _ in rows], dtype=np.int64),
        np.array([n for _, _, n in rows], dtype=np.int64),
        np.array([run.start / TICKS for run, _, _ in rows]),
        np.array([run.end / TICKS for run, _, _ in rows]),
        np.array([run.overhead / TICKS for run, _, _ in rows]),
        partner=np.array([run.held.partner for run, _, _ in rows], dtype=np.int64),
        **more,
    )
