"""A small instance with exactly the features that are asked for, and every pair of them that may meet."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import merged
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.features import APART, Feature
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.profiles import Profile
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.copies import CopyRules
from shadowprice.instances.terms.declared import DeclaredTerm
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.terms.racks import Racks
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.terms.window import JobWindow
from shadowprice.instances.workload import Workload
from support.drawn_worlds import FEATURES
from support.goodput_tables import small
from support.own_terms import Curfew

TYPES = ("v100", "k80")
GANG = (1, 2, 1, 1, 1)
LATE_S = 60.0
STOP_S = 6.0

HUNGRY = Profile(np.array([1.0, 4.0]), np.array([8.0]), np.array([[0.5], [1.0]]), "hungry")


def with_implied(features: Collection[Feature]) -> frozenset[Feature]:
    """Features with those that they bring: types are told apart by throughputs, as nodes of cores are."""
    more = (
        {Feature.TYPES, Feature.RATES} if {Feature.TYPES, Feature.CORES} & set(features) else set()
    )
    return frozenset({*features, *more})


def may_meet(features: Collection[Feature]) -> bool:
    """True if no two of these are apart."""
    return all(frozenset(pair) not in APART for pair in combinations(with_implied(features), 2))


def pairs_that_meet() -> list[tuple[Feature, Feature]]:
    """Every pair of features that an instance may have."""
    return [pair for pair in combinations(Feature, 2) if may_meet(pair)]


def pairs_not_searched() -> list[tuple[Feature, Feature]]:
    """Pairs with a feature of which there are no small worlds, whose best schedules are found by exhaustive search."""
    return [pair for pair in pairs_that_meet() if not set(pair) <= set(FEATURES)]


def instance_with(*features: Feature) -> Instance:
    """Four or five jobs on two nodes of two GPUs, with exactly these features and those that they bring."""
    return _instance_with(with_implied(features))


@cache
def _instance_with(has: frozenset[Feature]) -> Instance:
    cluster, jobs = _cluster(has), _workload(has)
    instance = Instance(cluster, jobs, **_fields(has, cluster, jobs))
    assert instance.features == has, (instance.features, has)
    return instance


def _cluster(has: frozenset[Feature]) -> Cluster:
    node = {"cpus": 8.0, "memory_gb": 16.0}
    types = TYPES if Feature.TYPES in has else (TYPES[0],) * 2
    nodes = [Node(2, gpu_type=name, **node) for name in types]
    if Feature.CORES in has:
        nodes.append(Node(4, gpu_type="cores", **node))
    quotas = None
    if Feature.QUOTAS in has:
        quotas = Quotas(("a", "b"), (0.0, 5.0), ((2, 2), (3, 2)))
    return Cluster(tuple(nodes), quotas=quotas)


def _workload(has: frozenset[Feature]) -> Workload:
    more: dict[str, Any] = {}
    if Feature.RATES in has:
        more["throughput"] = [[2.0, 1.0], [1.0, 0.5], [2.0, 2.0], [1.0, 1.0], [1.0, 1.0]]
        more["gpu_types"] = TYPES
    if Feature.PARTS in has:
        more["gpu_milli"] = [400, 1000, 400, 1000, 1000]
    if Feature.CPU_MEMORY in has:
        more["cpus"] = [2.0, 4.0, 0.0, 0.0 if Feature.CORES in has else 1.0, 1.0]
    if Feature.CORES in has:
        more["allowed_types"] = ["", "", "", "cores", ""]
    columns: dict[str, Any] = {
        "arrival_s": [0.0, 0.0, 1.0, 2.0, LATE_S],
        "gpus": GANG,
        "work": [4.0, 4.0, 2.0, 3.0, 1.0],
        "tenant": ["a", "b", "a", "b", "a"],
        "model": ["m", "n", "m", "m", "m"],
        **more,
    }
    # Of a window of jobs all are complete before the last one arrives.
    jobs = 5 if Feature.WINDOW in has else 4
    types = columns.pop("gpu_types", ())
    return Workload.from_columns(
        **{name: column[:jobs] for name, column in columns.items()}, gpu_types=types
    )


def _fields(has: frozenset[Feature], cluster: Cluster, jobs: Workload) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if Feature.CHARGES in has:
        found["overheads"] = Overheads(start_s=1.0, restart_s=1.0)
    if Feature.SHARING in has:
        kind = ("m", 1)
        rates = {(name, kind, kind): (0.75, 0.75) for name in TYPES}
        found["sharing_rates"] = Throughputs(TYPES, {}, rates)
    if Feature.GRAPHS in has:
        found["graphs"] = _graphs(len(jobs))
    found |= _speeds(has, jobs)
    if Feature.COPIES in has:
        found["copies"] = CopyRules(round_s=4.0, restart_s=1.0, aggregation_s=1.0, max_copies=2)
    if Feature.FAILURES in has:
        down, until = np.array([3.0]), np.array([4.0])
        rule = (
            Checkpointing() if has & {Feature.RESTART, Feature.COPIES} else Checkpointing(1.0, 0.0)
        )
        found["failures"] = merged(np.array([0]), down, until, "faults", rule)
    if Feature.WINDOW in has:
        found["until_complete"] = JobWindow(0, 2)
    if Feature.STOPPED in has:
        found["stopped_s"] = STOP_S
    if Feature.RESTART in has:
        found["preemption"] = Preemption.RESTART
    declared: list[DeclaredTerm] = []
    if Feature.RACKS in has:
        declared.append(Racks(1, 1.0, 0.5, 1))
    if Feature.GOODPUT in has:
        declared.append(Goodput((small("m"), small("n"))))
    if Feature.OWN in has:
        declared.append(Curfew(2, 8.0, 0.5))
    if declared:
        found["declared"] = tuple(declared)
    return found


def _speeds(has: frozenset[Feature], jobs: Workload) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if Feature.PROFILES in has:
        found["sensitivity"] = Sensitivity((HUNGRY,), np.zeros(len(jobs), dtype=np.int64))
    if Feature.SPREAD in has:
        found["locality"] = Locality(np.full(len(jobs), 0.5))
    if Feature.WIDTHS in has:
        widest = np.where(jobs.fractional | jobs.on_cores, jobs.gpus, 2)
        found["elasticity"] = Elasticity(widest, np.full(len(jobs), 0.75))
    return found


def _graphs(jobs: int) -> JobGraphs:
    pair = JobGraph(
        "pair", (Stage("s", 1, 0.5, 0.25), Stage("t", 1, 0.25, 0.25)), (Link(0, 1, 1e9),)
    )
    alone = JobGraph("alone", (Stage("s", 1, 0.5, 0.5, 1e9),), ())
    of = np.array([0 if gang == 2 else 1 for gang in GANG[:jobs]])
    return JobGraphs((pair, alone), of, Network(1e9, 5e8, 2))
