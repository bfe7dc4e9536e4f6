"""Instances of jobs with graphs, and a policy that maps their replicas at random."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import StageMapping
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.solvers.policy import Decision, Knowledge, State
from support.graph_strategies import job_graphs
from support.states import Stops

COSTLY = Overheads(start_s=1.0, restart_s=5.0, migration_s=2.0)


@st.composite
def graph_instances(draw: st.DrawFn, *, max_jobs: int = 5) -> Instance:
    """A small cluster and jobs with graphs that fit it, up to the whole cluster."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    drawn = draw(st.lists(job_graphs(max_stages=4, max_gpus=sum(sizes)), min_size=1, max_size=3))
    n = draw(st.integers(1, max_jobs))
    of = np.array(draw(st.lists(st.integers(0, len(drawn) - 1), min_size=n, max_size=n)))
    bandwidth = st.floats(1e8, 1e11)
    sharing = draw(st.sampled_from(["per-gpu", "per-job"]))
    network = Network(draw(bandwidth), draw(bandwidth), max(sizes), sharing)
    arrival = sorted(draw(st.lists(st.integers(0, 20), min_size=n, max_size=n)))
    workload = Workload.from_columns(
        arrival_s=arrival,
        gpus=[drawn[k].gpus for k in of],
        work=draw(st.lists(st.floats(0.25, 40.0), min_size=n, max_size=n)),
    )
    overheads = draw(st.sampled_from([Overheads(), COSTLY]))
    cluster = Cluster(tuple(Node(gpus) for gpus in sizes))
    return Instance(cluster, workload, overheads, graphs=JobGraphs(tuple(drawn), of, network))


@dataclass(frozen=True)
class Chance:
    """Starts under random mappings, stops and takes back at random; everybody finishes."""

    seed: int
    stops: int = 8
    name: str = "chance"
    knows: frozenset[Knowledge] = field(default=frozenset({Knowledge.DURATION}))
    preemptive: bool = True

    def decide(self, state: State) -> Decision:
        draw = state.notes(random.Random, lambda: random.Random(self.seed))
        stops = state.notes(Stops, lambda: Stops(self.stops))
        live, decision = state.live(), Decision(state)
        assert np.all(live.remaining_s > -1e-9)
        assert np.all(live.remaining_s <= live.processing_s)
        stopped = []
        for job in list(state.running):
            if stops.left and draw.random() < 0.3:
                stops.left -= 1
                decision.stop(job)
                if draw.random() < 0.7 or not decision.resume_in_place(job):
                    stopped.append(job)
        jobs = [*state.waiting, *stopped]
        draw.shuffle(jobs)
        for job in jobs:
            mapping = random_mapping(state, job, draw)
            if mapping is None or draw.random() < 0.2:
                assert decision.start(job) == (mapping is not None)
            else:
                assert decision.start_mapped(job, mapping)
        if stops.left and (state.running or decision.starts):
            decision.wake_at(state.now_s + draw.choice((0.25, 3.0)))
        return decision


def random_mapping(state: State, job: int, draw: random.Random) -> StageMapping | None:
    free = state.free_gpus_by_node()
    assert sum(free) == state.allocator.free_gpus
    graph = state.graph_of(job)
    if sum(free) < graph.gpus:
        return None
    slots = [node for node, gpus in enumerate(free) for _ in range(gpus)]
    chosen = draw.sample(slots, graph.gpus)
    there: dict[int, list[int]] = {node: [0] * len(graph.stages) for node in chosen}
    replicas = [s for s, stage in enumerate(graph.stages) for _ in range(stage.replicas)]
    for node, stage in zip(chosen, replicas, strict=True):
        there[node][stage] += 1
    return tuple((node, tuple(counts)) for node, counts in there.items())
