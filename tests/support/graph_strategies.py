"""Job graphs: pipelines by hand, and Hypothesis strategies for graphs, networks and mappings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from hypothesis import strategies as st

from shadowprice.instances.graphs.iteration_time import SHARINGS, Network
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage, StageMapping


def chain(
    name: str, stages: Sequence[Stage], bytes_per_replica: Sequence[float], microbatches: int = 0
) -> JobGraph:
    """A pipeline: every stage but the last sends so much to the next."""
    links = tuple(Link(s, s + 1, sent) for s, sent in enumerate(bytes_per_replica))
    return JobGraph(name, tuple(stages), links, microbatches)


def amounts(largest: float) -> st.SearchStrategy[float]:
    """Seconds or bytes: nothing, a round number, or any from a thousandth of the largest."""
    return st.one_of(
        st.just(0.0),
        st.integers(1, 8).map(lambda eighths: largest * eighths / 8),
        st.floats(largest / 1000, largest),
    )


@st.composite
def job_graphs(
    draw: st.DrawFn,
    *,
    max_stages: int = 5,
    max_replicas: int = 6,
    max_gpus: int | None = None,
    flushed: bool | None = None,
) -> JobGraph:
    """Job graphs of any shape without cycles: one stage, chains, forks, joins, parts apart.

    Parameters
    ----------
    max_gpus : int, optional
        Largest gang, at least 1.
    flushed : bool, optional
        Whether pipelines are flushed; either by default.
    """
    room = max_stages * max_replicas if max_gpus is None else max_gpus
    replicas = [draw(st.integers(1, min(max_replicas, room)))]
    for _ in range(draw(st.integers(0, max_stages - 1))):
        room_left = room - sum(replicas)
        if room_left < 1:
            break
        replicas.append(draw(st.integers(1, min(max_replicas, room_left))))
    stages = tuple(
        Stage(f"stage {s}", k, draw(st.floats(0.001, 1.0)), draw(amounts(1.0)), draw(amounts(1e9)))
        for s, k in enumerate(replicas)
    )
    # Positions are a topological order here; shuffled, so that nothing may rely on that.
    order = draw(st.permutations(range(len(stages))))
    links = tuple(
        Link(order[a], order[b], draw(amounts(1e9)), draw(st.booleans()))
        for a, b in combinations(range(len(stages)), 2)
        if draw(st.booleans())
    )
    least, most = {None: (0, 8), True: (1, 8), False: (0, 0)}[flushed]
    return JobGraph("drawn", stages, links, draw(st.integers(least, most)))


@st.composite
def networks(draw: st.DrawFn, *, max_gpus_per_node: int = 8) -> Network:
    """Networks with NICs slower or faster than links inside nodes, and both ways of sharing."""
    return Network(
        draw(st.floats(1e8, 1e12)),
        draw(st.floats(1e8, 1e12)),
        draw(st.integers(1, max_gpus_per_node)),
        draw(st.sampled_from(SHARINGS)),
    )


@st.composite
def mappings(
    draw: st.DrawFn, graph: JobGraph, gpus_per_node: int, nodes: int | None = None
) -> StageMapping:
    """Any mapping of a graph's replicas, not only those that an algorithm would choose.

    Parameters
    ----------
    nodes : int, optional
        Nodes there are, enough for the gang; as many as replicas by default, so that every replica
        can be alone.
    """
    fewest = -(-graph.gpus // gpus_per_node)
    used = draw(st.integers(fewest, max(fewest, graph.gpus if nodes is None else nodes)))
    free = [gpus_per_node] * used
    replicas = [s for s, stage in enumerate(graph.stages) for _ in range(stage.replicas)]
    chosen = []
    for _ in replicas:
        node = draw(st.integers(0, used - 1))
        while not free[node]:
            node = (node + 1) % used
        free[node] -= 1
        chosen.append(node)
    there = Counter(zip(chosen, replicas, strict=True))
    return tuple(
        (node, tuple(there[node, s] for s in range(len(graph.stages))))
        for node in sorted(set(chosen))
    )
