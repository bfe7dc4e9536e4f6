r"""HE: what a placement by Heavy-Edge can cost, in time of an iteration and in bytes between nodes.

Statement. A job graph of :math:`g` replicas, nodes with :math:`f_m` free GPUs, at most :math:`G` each, and a
network, as in ``instances.graphs.iteration_time``.

1. Heavy-Edge places the gang if and only if :math:`\sum_m f_m \ge g`; every replica then has one GPU
   of its own, and it uses as few nodes as any placement does.
2. For its placement :math:`P`: :math:`\alpha^{min} \le \alpha(P) \le \alpha^{max}`, with the bounds
   ``shortest_iteration_s`` and ``longest_iteration_s`` of the graph. So it is within
   :math:`\rho = \alpha^{max} / \alpha^{min}` of the fastest placement.
3. The bytes it cuts are within no constant of the least: on :func:`clique_family` they are :math:`k - 1` times
   as many.

Status. Ours; the published lemma on :math:`\alpha` could not be read.
Remarks. 2 holds for every placement, so
that it says nothing for Heavy-Edge over others; whether a smaller factor than :math:`\rho` holds for it is
open. What it loses in practice is measured against the exact programme in the benchmarks.

Proof.

1. Nodes are taken by free GPUs, largest first, until they hold g: no smaller number of nodes holds g,
   and if all do not, nothing does. Every node but the last is filled, the last takes what is left,
   and each step of the greedy rule moves one replica not yet placed to the node at hand.
2. Both bounds hold for every mapping onto nodes of at most G GPUs, stage by stage and term by term:
   the proofs are with the functions. By 1, P is such a mapping.
3. Two cliques of k stages with one replica each, all edges of weight 1, and an edge of weight 2 that
   joins them; two nodes of k GPUs. The rule begins with the ends of the heavy edge, one from each
   clique. If a node holds x of one clique and k - x of the other, it cuts 2 x (k - x) edges of weight 1:
   beginning with both ends and k >= 3, next comes any neighbour, a tie; from then on the clique
   with more replicas there exchanges more with the node, so it takes k - 1 of one and 1 of the other:
   2 (k - 1) edges of weight 1, and the heavy one is inside. The least cut is the heavy edge alone, of
   weight 2. Q.E.D.

Check. :func:`check` looks at a placement; the last float of either bound is theirs, see there.
"""

from __future__ import annotations

from itertools import accumulate, combinations

from shadowprice.instances.graphs.iteration_time import (
    Network,
    iteration_s,
    longest_iteration_s,
    shortest_iteration_s,
)
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage, StageMapping
from shadowprice.solvers.graph_placement.protocol import FreeGpus, as_free

STATUS = "ours"


def bound(graph: JobGraph, network: Network) -> tuple[float, float]:
    """alpha_min and alpha_max, between which every iteration lasts [s]; O(stages + links)."""
    return shortest_iteration_s(graph, network), longest_iteration_s(graph, network)


def check(graph: JobGraph, free: FreeGpus, network: Network, mapping: StageMapping | None) -> bool:
    """True if a placement of a graph on free GPUs, or None, is as statements 1 and 2 say."""
    room = as_free(free)
    if mapping is None:
        return bool(room.sum() < graph.gpus)
    least, most = bound(graph, network)
    fits = all(sum(row) <= room[node] for node, row in mapping)
    return (
        fits
        and _complete(graph, mapping)
        and len(mapping) <= _fewest(room.tolist(), graph.gpus)
        and least <= iteration_s(graph, mapping, network) <= most
    )


def clique_family(k: int) -> JobGraph:
    """Two cliques of k >= 3 single replicas and a heavy edge between them, for two nodes of k GPUs."""
    stages = tuple(Stage(f"s{n}", 1, 0.1, 0.1) for n in range(2 * k))
    cliques = tuple(Link(s, t, 1e9) for s, t in combinations(range(2 * k), 2) if (s < k) == (t < k))
    return JobGraph("cliques", stages, (*cliques, Link(k - 1, k, 2e9)))


def _complete(graph: JobGraph, mapping: StageMapping) -> bool:
    placed = [sum(row[s] for _, row in mapping) for s in range(len(graph.stages))]
    return placed == [stage.replicas for stage in graph.stages]


def _fewest(free: list[int], gpus: int) -> int:
    """Least number of nodes that hold a gang; one more than there are if they do not."""
    return 1 + sum(total < gpus for total in accumulate(sorted(free, reverse=True)))
