"""Small instances in which nodes, shared GPUs, widths, CPUs or memory matter; for exhaustive search."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import strategies as st

from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import Workload

SHARES = st.sampled_from([0.25, 0.5, 0.75, 1.0])
HUNGRY = Profile(np.array([1.0, 2.0]), np.array([5.0]), np.array([[0.5], [1.0]]), "hungry")


@st.composite
def sharing(draw: st.DrawFn, n: int) -> Instance:
    """Jobs of two kinds on two GPU types, of which some may share."""
    models = [draw(st.sampled_from("ab")) for _ in range(n)]
    speed = {m: draw(st.sampled_from([(1.0, 2.0), (1.0, 1.0), (0.5, 1.0)])) for m in "ab"}
    types = ("k80", "p100")
    table = {
        (t, (one, 1), (other, 1)): tuple(
            draw(SHARES) * speed[m][types.index(t)] for m in (one, other)
        )
        for t, (one, other) in product(types, [("a", "a"), ("a", "b"), ("b", "b")])
    }
    jobs = Workload.from_columns(
        arrival_s=[draw(st.integers(0, 1)) for _ in range(n)],
        gpus=[1] * n,
        work=[float(draw(st.integers(1, 2))) for _ in range(n)],
        model=models,
        weight=[draw(st.sampled_from([0.5, 1.0])) for _ in range(n)],
        throughput=[speed[m] for m in models],
        gpu_types=types,
    )
    cluster = Cluster.parse(draw(st.sampled_from(["1x1:k80,1x1:p100", "1x1:k80"])))
    return Instance(cluster, jobs, sharing_rates=Throughputs(types, {}, table))


@st.composite
def grown_or_profiled(draw: st.DrawFn, n: int) -> Instance:
    """Jobs that may grow or have a profile, or both, on nodes of 2 GPUs, 3 CPUs and 10 GB."""
    columns = {
        name: draw(st.lists(st.integers(low, high), min_size=n, max_size=n))
        for name, low, high in (("arrival_s", 0, 1), ("gpus", 1, 2), ("work", 1, 2))
    }
    jobs = Workload.from_columns(**columns)
    of = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    light = Profile(np.array([1.0]), np.array([5.0]), np.array([[1.0]]), "light")
    grown = Elasticity(np.maximum(jobs.gpus, 2), np.full(n, draw(st.sampled_from([0.6, 1.0]))))
    profiles = Sensitivity((HUNGRY, light), of)
    known, wider = draw(st.sampled_from([(profiles, None), (None, grown), (profiles, grown)]))
    nodes = (Node(2, cpus=3.0, memory_gb=10.0),) * draw(st.integers(1, 2))
    return Instance(Cluster(nodes), jobs, sensitivity=known, elasticity=wider)


@st.composite
def placed(draw: st.DrawFn, n: int) -> tuple[Instance, bool]:
    """Gangs that are slower when spread, or whose schedules are to be consolidated, and whether they are."""
    cluster = Cluster.parse(draw(st.sampled_from(["2x3", "1x2,1x3", "2x2"])))
    columns = {
        name: draw(st.lists(st.integers(low, high), min_size=n, max_size=n))
        for name, low, high in (("arrival_s", 0, 1), ("gpus", 1, 4), ("work", 1, 2))
    }
    weight = draw(st.sampled_from([1.0, [0.5] + [1.0] * (n - 1)]))
    jobs = Workload.from_columns(**columns, weight=weight)
    slower = Locality(np.full(n, draw(st.sampled_from([0.5, 0.9]))))
    locality, consolidated = draw(st.sampled_from([(None, True), (slower, False), (slower, True)]))
    return Instance(cluster, jobs, locality=locality), consolidated


@st.composite
def small_graphs(draw: st.DrawFn) -> Instance:
    """Two jobs of graphs whose traffic matters, on two nodes."""
    graphs = [
        draw(
            st.sampled_from(
                [
                    JobGraph(
                        "pair",
                        (Stage("s", 1, 0.5, 0.25), Stage("t", 1, 0.25, 0.25)),
                        (Link(0, 1, 1e9),),
                    ),
                    JobGraph("ring", (Stage("s", 2, 0.5, 0.5, 1e9),), ()),
                    JobGraph("alone", (Stage("s", 1, 0.5, 0.5, 1e9),), ()),
                ]
            )
        )
        for _ in range(2)
    ]
    network = Network(draw(st.sampled_from([1e9, 1e12])), draw(st.sampled_from([5e8, 4e9])), 2)
    work = [draw(st.integers(1, 2))] * 2
    jobs = Workload.from_columns(
        arrival_s=[0.0, 0.0], gpus=[graph.gpus for graph in graphs], work=work
    )
    return Instance(
        Cluster.parse("2x2"), jobs, graphs=JobGraphs(tuple(graphs), np.arange(2), network)
    )
