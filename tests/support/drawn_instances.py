"""Random small instances with exactly the features that are asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import merged
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.features import Feature
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.copies import CopyRules
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.terms.racks import Racks
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.terms.window import JobWindow
from shadowprice.instances.workload import Workload
from support.feature_instances import HUNGRY, TYPES, with_implied
from support.goodput_tables import small
from support.own_terms import Curfew


@dataclass(frozen=True)
class Shape:
    """Jobs and clusters that a theorem speaks of, beside features.

    Parameters
    ----------
    nodes : sequence of tuple of int
        Clusters to draw from, as GPUs of each node.
    gangs : sequence of int
        Gangs to draw from; those wider than a cluster are cut to it.
    together : bool
        All jobs are there at 0.
    """

    nodes: Sequence[tuple[int, ...]] = ((1,), (2,), (4,), (2, 2))
    gangs: Sequence[int] = (1, 1, 2, 4)
    together: bool = False


def drawn(random: np.random.Generator, features: Collection[Feature], shape: Shape) -> Instance:
    """Two to seven jobs with these features and those that they bring.

    Raises
    ------
    InputError
        If what was drawn is no instance, such as where a gang fits no GPU type.
    """
    has = with_implied(features)
    size = shape.nodes[int(random.integers(len(shape.nodes)))]
    if Feature.TYPES in has and len(size) == 1:
        size = (size[0], size[0])
    count = int(random.integers(2, 8))
    # With several types a gang fits one of them.
    most = min(size) if Feature.TYPES in has else sum(size)
    gang = np.minimum(random.choice(shape.gangs, count), most)
    if Feature.CORES in has:
        gang = np.where(_first(random, count), 1, gang)
    cluster = _cluster(random, has, size, gang)
    jobs = _workload(random, has, gang, shape)
    instance = Instance(cluster, jobs, **_fields(random, has, size, jobs))
    assert instance.features == has, (instance.features, has)
    return instance


def _first(random: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    """Some of them, the first at least."""
    found = random.random(count) < 0.5
    found[0] = True
    return found


def _cluster(
    random: np.random.Generator,
    has: frozenset[Feature],
    size: tuple[int, ...],
    gang: np.ndarray[Any, Any],
) -> Cluster:
    node = {"cpus": 8.0, "memory_gb": 64.0}
    types = [TYPES[k % 2] if Feature.TYPES in has else TYPES[0] for k in range(len(size))]
    nodes = [Node(gpus, gpu_type=name, **node) for gpus, name in zip(size, types, strict=True)]
    if Feature.CORES in has:
        nodes.append(Node(4, gpu_type="cores", **node))
    quotas = None
    if Feature.QUOTAS in has:
        least, most = int(gang.max()), sum(size)
        limits = [[int(random.integers(least, most + 1)) for _ in "ab"] for _ in range(2)]
        quotas = Quotas(("a", "b"), (0.0, 5.0), tuple((one, two) for one, two in limits))
    return Cluster(tuple(nodes), quotas=quotas)


def _workload(
    random: np.random.Generator,
    has: frozenset[Feature],
    gang: np.ndarray[Any, Any],
    shape: Shape,
) -> Workload:
    count = len(gang)
    more: dict[str, Any] = {}
    if Feature.RATES in has:
        more["throughput"] = random.choice([0.25, 0.5, 1.0, 2.0], (count, len(TYPES)))
        more["gpu_types"] = TYPES
    if Feature.PARTS in has:
        few = np.where(_first(random, count), random.choice([100, 400], count), 1000)
        gang = np.where(few < 1000, 1, gang)
        more["gpu_milli"] = few
    if Feature.CPU_MEMORY in has:
        more["cpus"] = np.where(_first(random, count), gang * random.choice([1.0, 2.0], count), 0.0)
        more["cpus"][0] = 4.0 if gang[0] == 1 else 8.0
    if Feature.CORES in has:
        more["allowed_types"] = ["cores", *[""] * (count - 1)]
    arrival = np.sort(random.integers(0, 6, count)) * (not shape.together)
    return Workload.from_columns(
        arrival_s=arrival.astype(float),
        gpus=gang,
        work=random.integers(1, 10, count).astype(float),
        tenant=random.choice(["a", "b"], count),
        model=random.choice(["m", "n"], count),
        **more,
    )


def _fields(
    random: np.random.Generator, has: frozenset[Feature], size: tuple[int, ...], jobs: Workload
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    count = len(jobs)
    racks = [Racks(1, 1.0, 0.5, 1)] if Feature.RACKS in has else []
    own = [Curfew(int(jobs.gpus.max()), 6.0, 0.75)] if Feature.OWN in has else []
    goodput = [Goodput((small("m"), small("n")))] if Feature.GOODPUT in has else []
    if racks or own or goodput:
        found["declared"] = (*racks, *goodput, *own)
    if Feature.CHARGES in has:
        found["overheads"] = Overheads(start_s=float(random.integers(1, 9)), restart_s=2.0)
    if Feature.SHARING in has:
        kinds = sorted({(m, int(g)) for m in "mn" for g in jobs.gpus.tolist()})
        rates = {
            (name, one, other): (0.75, 1.0)
            for name in TYPES
            for one in kinds
            for other in kinds
            if one[1] == other[1]
        }
        found["sharing_rates"] = Throughputs(TYPES, {}, rates)
    if Feature.GRAPHS in has:
        found["graphs"] = _graphs(jobs, size)
    if Feature.PROFILES in has:
        found["sensitivity"] = Sensitivity((HUNGRY,), np.zeros(count, dtype=np.int64))
    if Feature.SPREAD in has:
        found["locality"] = Locality(random.choice([0.25, 0.5, 1.0], count))
    if Feature.WIDTHS in has:
        widest = np.minimum(jobs.gpus * 2, max(size))
        widest = np.maximum(widest, jobs.gpus)
        efficiency = random.choice([0.75, 1.0], count)
        found["elasticity"] = Elasticity(widest, efficiency)
    if Feature.COPIES in has:
        found["copies"] = CopyRules(round_s=4.0, restart_s=1.0, aggregation_s=1.0, max_copies=2)
    if Feature.FAILURES in has:
        down = np.cumsum(random.integers(2, 6, 3)).astype(float)
        rule = (
            Checkpointing() if has & {Feature.RESTART, Feature.COPIES} else Checkpointing(1.0, 0.0)
        )
        nodes = random.integers(0, len(size), 3)
        found["failures"] = merged(nodes, down, down + 1.0, "faults", rule)
    if Feature.WINDOW in has:
        found["until_complete"] = JobWindow(0, count - 1)
    if Feature.STOPPED in has:
        found["stopped_s"] = 6.0
    if Feature.RESTART in has:
        found["preemption"] = Preemption.RESTART
    return found


def _graphs(jobs: Workload, size: tuple[int, ...]) -> JobGraphs:
    every = {
        gang: JobGraph(
            f"of{gang}",
            tuple(Stage(f"s{k}", 1, 0.5, 0.25, 1e9 if gang == 1 else 0.0) for k in range(gang)),
            tuple(Link(k, k + 1, 1e9) for k in range(gang - 1)),
        )
        for gang in sorted(set(jobs.gpus.tolist()))
    }
    of = np.array([list(every).index(gang) for gang in jobs.gpus.tolist()])
    return JobGraphs(tuple(every.values()), of, Network(1e9, 5e8, max(size)))
