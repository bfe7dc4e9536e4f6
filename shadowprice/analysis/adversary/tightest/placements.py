"""The theorem on Heavy-Edge: how slow an iteration is on its placement, of the most that its factor allows."""

from __future__ import annotations

from shadowprice.analysis.adversary.tightest.comparisons import (
    SOLVED,
    TightnessOf,
    WholeColumn,
    WitnessedRatio,
    as_solved,
)
from shadowprice.instances.graphs.iteration_time import Network, iteration_s
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.hard_instances import Rows
from shadowprice.proofs.asrpt import heavy_edge
from shadowprice.solvers.graph_placement.heavy_edge import HeavyEdge

_NETWORK = Network(100e9, 10e9, 2)


def of_heavy_edge(rows: Rows) -> WitnessedRatio | None:
    """Four stages of one replica for two nodes of two GPUs, placed not as well as they could be.

    Links are in MB, no two of the same stages.
    """
    ends = [(a, b) for a, b, _ in rows]
    if any(a >= b for a, b in ends) or len(set(ends)) < len(ends):
        return None
    stages = tuple(Stage(f"s{k}", 1, 0.001, 0.001) for k in range(4))
    links = tuple(Link(a, b, 1e6 * size) for a, b, size in rows)
    graph = JobGraph("links", stages, links)
    placed = HeavyEdge().place(graph, [2, 2], _NETWORK)
    assert placed is not None
    least, most = heavy_edge.bound(graph, _NETWORK)
    takes = iteration_s(graph, placed, _NETWORK)
    if takes == least:
        return None
    return WitnessedRatio(as_solved(takes / least), as_solved(most / least))


ENTRIES = (
    TightnessOf(
        "asrpt.heavy_edge",
        "time of an iteration on Heavy-Edge's placement over alpha_min, and rho",
        (WholeColumn("stage", 0, 2), WholeColumn("other", 1, 3), WholeColumn("megabytes", 1, 100)),
        1,
        6,
        of_heavy_edge,
        off=SOLVED,
    ),
)
"""Entries of this theorem."""
