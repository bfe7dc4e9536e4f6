"""Hypothesis strategies for what the laws are tried on."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import merged
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import Workload
from shadowprice.proofs.testing.subject import Case
from shadowprice.solvers.registry import placements

T = TypeVar("T")

TYPES = ("fast", "slow")
MODELS = ("a", "b")
_WIDEST = 12
_CPUS_PER_GPU, _MEMORY_GB_PER_GPU = 3.0, 10.0
_HUNGRY = Profile(
    np.array([1.0, 3.0, 6.0]),
    np.array([5.0, 10.0]),
    np.array([[0.25, 0.5], [0.5, 1.0], [0.5, 2.0]]),
)
_FRUGAL = Profile(np.array([1.0]), np.array([1.0]), np.array([[1.0]]))

_CONDITIONS = [which for which in product((False, True), repeat=3) if any(which)]
"""Which of profiles, spreading and width there are, at least one."""

FACTORS = (0.25, 0.5, 2.0, 8.0, 3.0)

charges = st.builds(
    Overheads,
    start_s=st.sampled_from([0.0, 1.0]),
    restart_s=st.sampled_from([0.0, 0.5, 5.0]),
    migration_s=st.sampled_from([0.0, 2.0]),
)


def plain() -> st.SearchStrategy[Case]:
    """Equal GPUs, no charges, counted placement, a decision at every event."""
    return st.builds(Case, instances())


def placed() -> st.SearchStrategy[Case]:
    """Equal GPUs, any placement, with and without rounds of the engine."""
    return st.builds(
        Case,
        st.one_of(instances(), instances(whole_seconds=False)),
        st.sampled_from(sorted(placements())),
        st.sampled_from([0.0, 0.0, 7.0]),
    )


def scaled() -> st.SearchStrategy[Case]:
    """A factor for all times."""
    return st.builds(Case, instances(), factor=st.sampled_from(FACTORS))


@st.composite
def reordered(draw: st.DrawFn) -> Case:
    """Another order of the rows; no two jobs arrive together, so that it breaks no ties."""
    instance = draw(instances(distinct_arrivals=True))
    order = draw(st.permutations(range(len(instance.workload))))
    return Case(instance, order=tuple(order))


@st.composite
def charged(draw: st.DrawFn) -> Case:
    """Starts, restarts and migrations cost time."""
    bare = draw(instances())
    instance = Instance(bare.cluster, bare.workload, draw(charges))
    return Case(instance, draw(st.sampled_from(sorted(placements()))))


@st.composite
def failing(draw: st.DrawFn) -> Case:
    """Nodes go down and come up again, jobs write checkpoints or do not, and starts may be charged."""
    bare = draw(instances())
    fault = st.tuples(
        st.integers(0, len(bare.cluster.nodes) - 1), st.integers(0, 80), st.integers(1, 15)
    )
    faults = draw(st.lists(fault, max_size=6))
    interval_s = draw(st.sampled_from([math.inf, 1.0, 4.0, 10.0]))
    cost_s = 0.0 if interval_s == math.inf else draw(st.sampled_from([0.0, 1.0]))
    node, down_s, length_s = zip(*faults, strict=True) if faults else ((), (), ())
    failures = merged(
        np.array(node, dtype=np.int64),
        np.array(down_s, dtype=np.float64),
        np.array(down_s, dtype=np.float64) + np.array(length_s, dtype=np.float64),
        "strategy",
        Checkpointing(interval_s, cost_s),
    )
    instance = replace(bare, overheads=draw(charges), failures=failures)
    where = draw(st.sampled_from(sorted(placements())))
    return Case(instance, where, draw(st.sampled_from([0.0, 0.0, 7.0])))


@st.composite
def typed(draw: st.DrawFn, *, sharing: bool = False) -> Case:
    """Two GPU types on which jobs are unequally fast, some unable to use the second."""
    cluster = draw(_two_types())
    fast = int(cluster.gpus_per_type[cluster.gpu_types.index(TYPES[0])])
    n = draw(st.integers(1, 6))
    second = draw(_column(st.sampled_from([0.0, 0.5, 1.0, 2.5]), n))
    models = draw(_column(st.integers(0, 1), n))
    if sharing:
        second = [(0.7, 1.0)[model] for model in models]
    workload = Workload.from_columns(
        arrival_s=draw(_column(st.integers(0, 20), n)),
        gpus=draw(_column(st.integers(1, fast), n)),
        work=draw(_column(st.integers(1, 40), n)),
        model=[MODELS[model] for model in models],
        throughput=[[2.0, rate] for rate in second],
        gpu_types=TYPES,
        source="strategy",
    )
    together = draw(_pairs()) if sharing else None
    return Case(Instance(cluster, workload, draw(charges), together))


def shared() -> st.SearchStrategy[Case]:
    """Pairs of jobs may share their GPUs, to their advantage or not."""
    return typed(sharing=True)


@st.composite
def conditioned(draw: st.DrawFn) -> Case:
    """Speeds depend on CPUs and memory, on spreading, or on width."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    cluster = Cluster(
        tuple(
            Node(size, cpus=size * _CPUS_PER_GPU, memory_gb=size * _MEMORY_GB_PER_GPU)
            for size in sizes
        )
    )
    n = draw(st.integers(1, 6))
    workload = Workload.from_columns(
        arrival_s=draw(_column(st.integers(0, 20), n)),
        gpus=draw(_column(st.integers(1, cluster.total_gpus), n)),
        work=draw(_column(st.integers(1, 30), n)),
        source="strategy",
    )
    hungry, spread, grows = draw(st.sampled_from(_CONDITIONS))
    widest = np.minimum(workload.gpus * 2, cluster.total_gpus)
    instance = Instance(
        cluster,
        workload,
        draw(charges),
        sensitivity=Sensitivity((_HUNGRY, _FRUGAL), np.arange(n) % 2) if hungry else None,
        locality=Locality(np.linspace(0.3, 1.0, n)) if spread else None,
        elasticity=Elasticity(widest, np.full(n, 0.9)) if grows else None,
    )
    return Case(instance)


def _column(values: st.SearchStrategy[T], rows: int) -> st.SearchStrategy[list[T]]:
    return st.lists(values, min_size=rows, max_size=rows)


@st.composite
def _two_types(draw: st.DrawFn) -> Cluster:
    first = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    second = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    nodes = [Node(size, TYPES[0]) for size in first] + [Node(size, TYPES[1]) for size in second]
    return Cluster(tuple(nodes))


@st.composite
def _pairs(draw: st.DrawFn) -> Throughputs:
    together = {}
    part = st.sampled_from([0.25, 0.5, 0.9])
    alone = {TYPES[0]: (2.0, 2.0), TYPES[1]: (0.7, 1.0)}
    for kind, one, other in product(TYPES, (0, 1), (0, 1)):
        if one <= other and draw(st.integers(0, 3)):
            left = draw(part), draw(part)
            rates = (alone[kind][one] * left[0], alone[kind][other] * left[one != other])
            for gpus in range(1, _WIDEST + 1):
                together[kind, (MODELS[one], gpus), (MODELS[other], gpus)] = rates
    return Throughputs(TYPES, {}, together)
