r"""Time of one iteration of a job graph under a mapping of its replicas to nodes.

The published equation of A-SRPT (Luo, Liu, Lee, Shroff, arXiv 2501.05563) was not at hand; what
follows is derived from the ingredients it is described by (stages, replicas, two bandwidths,
AllReduce), and generalised from chains to any graph without cycles.

==================  ==============================================================================
symbol              meaning
==================  ==============================================================================
:math:`k_s`         replicas of stage s; :math:`g = \sum_s k_s`
:math:`x_s^m`       replicas of stage s on node m, :math:`\sum_m x_s^m = k_s`
:math:`d_{st}`      bytes a replica of s sends to stage t, evenly over its replicas, per iteration
:math:`w_{st}`      bytes between one replica of s and stage t one way: :math:`d_{st}` if s sends,
                    :math:`k_t d_{ts} / k_s` if t does
:math:`h_s`         bytes of parameters of stage s
:math:`b, B, G`     bandwidth inside a node, of its NIC [bytes/s], GPUs of a node
==================  ==============================================================================

With remote bytes :math:`R_s^m = \sum_t w_{st} (1 - x_t^m / k_t)` and local bytes
:math:`L_s^m = \sum_t w_{st} x_t^m / k_t`, doubled for the gradients that return,

.. math::

   \tau_s^m = p^f_s + p^b_s + 2 L_s^m / b + 2 R_s^m / B^m + A_s, \qquad
   \alpha = \frac{q + D - 1}{q} \max_{s, m : x_s^m > 0} \tau_s^m,

where :math:`A_s = 2 (k_s - 1) / k_s \cdot h_s / b` on one node and the same with B on several, since
a ring laid out node by node crosses each NIC once in each direction. :math:`B^m` is :math:`B / G`
(``per-gpu``) or B over the number of the job's replicas on m that have remote bytes (``per-job``).
The first factor is only for pipelines flushed every iteration, with q microbatches and D stages on
the longest path. NICs shared with other jobs are not modelled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.job_graph import JobGraph, Stage, StageMapping
from shadowprice.instances.network import SHARINGS, Network

__all__ = [
    "SHARINGS",
    "Network",
    "flush_factor",
    "iteration_s",
    "longest_iteration_s",
    "node_traffic",
    "replica_counts",
    "shortest_iteration_s",
]


def iteration_s(graph: JobGraph, mapping: StageMapping, network: Network) -> float:
    """alpha, the time of one iteration under a mapping [s]; O(nodes (stages + links)).

    Parameters
    ----------
    mapping : sequence of (node, replicas of each stage there)
        All replicas of the job, each node once.

    Raises
    ------
    InputError
        If replicas do not add up, or a node appears twice or has more replicas than GPUs.

    Notes
    -----
    Derived; see the module.
    """
    counts = replica_counts(graph, mapping, network)
    busy = counts > 0
    across = busy.sum(axis=0) > 1
    ring = np.where(
        across,
        graph.ring_bytes / network.nic_bytes_per_s,
        graph.ring_bytes / network.intra_bytes_per_s,
    )
    compute = np.array([_compute_s(stage) for stage in graph.stages])
    if graph.links:
        local, remote = node_traffic(graph, counts)
        share = _nic_share(network, counts, remote)
        traffic = local / network.intra_bytes_per_s + remote / share[:, None]
        times = (compute + ring) + 2.0 * traffic
    else:
        times = np.broadcast_to(compute + ring, counts.shape)
    return float(times[busy].max()) * flush_factor(graph)


def replica_counts(graph: JobGraph, mapping: StageMapping, network: Network) -> NDArray[np.int64]:
    """The mapping as a table, one row a node in the mapping's order.

    Returns
    -------
    ndarray of int, shape (nodes of the mapping, stages)

    Raises
    ------
    InputError
        If it is no mapping of this graph's replicas.
    """
    where = f"job graph {graph.name!r}: mapping"
    stages = len(graph.stages)
    try:
        nodes = [node for node, _ in mapping]
        counts = np.array([row for _, row in mapping])
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where} is {mapping!r:.200}, expected pairs of a node and {stages} numbers of replicas"
        ) from error
    if counts.shape != (len(nodes), stages) or counts.dtype.kind not in "iu" or not nodes:
        raise InputError(
            f"{where} is {mapping!r:.200}, expected pairs of a node and {stages} numbers of replicas"
        )
    if len(set(nodes)) < len(nodes):
        twice = next(node for node in nodes if nodes.count(node) > 1)
        raise InputError(f"{where}: node {twice!r} appears twice, expected each node once")
    if counts.min() < 0:
        raise InputError(f"{where}: {counts.min()} replicas, expected >= 0")
    placed = counts.sum(axis=0)
    if (placed != graph.replicas).any():
        s = int((placed != graph.replicas).argmax())
        stage = graph.stages[s]
        raise InputError(
            f"{where}: places {placed[s]} replicas of stage {stage.name!r}, expected {stage.replicas}"
        )
    most = counts.sum(axis=1)
    if most.max() > network.gpus_per_node:
        m = int(most.argmax())
        raise InputError(
            f"{where}: {most[m]} replicas on node {nodes[m]!r}, expected at most "
            f"{network.gpus_per_node}, its GPUs"
        )
    return counts


def node_traffic(
    graph: JobGraph, counts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bytes one replica of each stage exchanges inside and outside of each node, one direction.

    Returns
    -------
    local, remote : ndarray of float, shape (nodes, stages)
        In one iteration [bytes]; values where a stage has no replica mean nothing.
    """
    ends = graph.link_ends
    inside = counts[:, ends.peer] / graph.replicas[ends.peer]
    outside = (graph.replicas[ends.peer] - counts[:, ends.peer]) / graph.replicas[ends.peer]
    local = np.zeros(counts.shape)
    remote = np.zeros(counts.shape)
    local[:, ends.stages] = np.add.reduceat(inside * ends.bytes, ends.starts, axis=1)
    remote[:, ends.stages] = np.add.reduceat(outside * ends.bytes, ends.starts, axis=1)
    return local, remote


def shortest_iteration_s(graph: JobGraph, network: Network) -> float:
    """alpha_min, at most alpha of every mapping on nodes of the network [s].

    Parameters
    ----------
    graph : JobGraph
    network : Network

    Notes
    -----
    Derived. *Claim*: alpha(P) >= alpha_min for every mapping P. *Proof*: alpha is at least the
    flush factor times tau_s^m for each stage s and any node m that has a replica of it. There:

    1. The ring of s crosses a NIC if k_s > G; else its bandwidth is at most max(b, B).
    2. B^m <= B' with B' = B/G per GPU and B' = B per job, since a replica with remote bytes counts
       itself.
    3. If b <= B', every byte takes at least 1/B'. Otherwise the time falls as bytes become local.
       One GPU of m holds the replica of s, so at most G - 1 replicas of other stages are there,
       x_t^m <= k_t, and each brings w_st / k_t local bytes: the most local bytes are those of the
       G - 1 replicas with the largest w_st / k_t (a knapsack with items of equal size, for which
       greedy is optimal).

    tau_s^m is at least the sum of the four minima, whatever the others are. QED. The bound is
    lowered by a few units in the last place if there is traffic, so that it holds as computed.
    O(S + L log L) for L links.
    """
    nic = network.nic_bytes_per_s
    intra = network.intra_bytes_per_s
    remote_rate = nic / network.gpus_per_node if network.sharing == "per-gpu" else nic
    longest = 0.0
    local, remote = _most_local(graph, network.gpus_per_node - 1)
    for s, stage in enumerate(graph.stages):
        spread = stage.replicas > network.gpus_per_node
        ring = float(graph.ring_bytes[s]) / (nic if spread else max(nic, intra))
        if intra <= remote_rate:
            traffic = (local[s] + remote[s]) / remote_rate
        else:
            traffic = local[s] / intra + remote[s] / remote_rate
        longest = max(longest, (_compute_s(stage) + ring) + 2.0 * traffic)
    return longest * flush_factor(graph) * (1.0 - _rounding(graph))


def longest_iteration_s(graph: JobGraph, network: Network) -> float:
    """alpha_max, at least alpha of every mapping on nodes of the network [s].

    Notes
    -----
    Derived. *Claim*: alpha(P) <= alpha_max for every mapping P. *Proof*: for each stage and node,
    the ring's bandwidth is at least min(b, B), and no byte takes longer than 1/min(b, B'), where
    B' <= B^m: per GPU B' = B/G; per job B' = B/n with n the most replicas with remote bytes that a
    node can have. Those belong to stages with traffic, of which there are g_L replicas; a node
    that has all of them has no remote bytes, so n <= min(G, g_L - 1). tau_s^m is at most the sum
    of the maxima. QED.

    One replica on each node, the worst case in the paper (recalled), is the maximum per GPU when
    B/G <= b, and this bound equals it. Per job it is not: 4 + 4 replicas of two stages on two nodes
    load each NIC with 4 d, spread out only with d. Raised by a few units in the last place if there
    is traffic, so that it holds as computed. O(S + L).
    """
    nic = network.nic_bytes_per_s
    intra = network.intra_bytes_per_s
    linked = int(graph.replicas[graph.stage_bytes > 0].sum())
    sharers = network.gpus_per_node
    if network.sharing == "per-job":
        sharers = max(1, min(sharers, linked - 1))
    rate = min(intra, nic / sharers)
    longest = 0.0
    for s, stage in enumerate(graph.stages):
        ring = float(graph.ring_bytes[s]) / min(nic, intra)
        traffic = float(graph.stage_bytes[s]) / rate
        longest = max(longest, (_compute_s(stage) + ring) + 2.0 * traffic)
    return longest * flush_factor(graph) * (1.0 + _rounding(graph))


def flush_factor(graph: JobGraph) -> float:
    """(q + D - 1) / q of a pipeline flushed every iteration, D stages on its longest path; else 1."""
    q = graph.microbatches
    return (q + graph.depth - 1) / q if q else 1.0


def _compute_s(stage: Stage) -> float:
    return stage.forward_s + stage.backward_s


def _nic_share(
    network: Network, counts: NDArray[np.int64], remote: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Remote bandwidth of each replica on each node, shape (nodes,) [bytes/s]."""
    if network.sharing == "per-gpu":
        return np.full(len(counts), network.nic_bytes_per_s / network.gpus_per_node)
    sharers = np.where(remote > 0, counts, 0).sum(axis=1)
    return np.asarray(network.nic_bytes_per_s / np.maximum(sharers, 1))


def _most_local(graph: JobGraph, others: int) -> tuple[list[float], list[float]]:
    """Bytes of a replica of each stage, local and remote, if the best ``others`` are beside it."""
    local = [0.0] * len(graph.stages)
    remote = [0.0] * len(graph.stages)
    peers: list[dict[int, float]] = [{} for _ in graph.stages]
    for s, t, amount in graph.link_ends.rows():
        peers[s][t] = peers[s].get(t, 0.0) + amount
    for s, amounts in enumerate(peers):
        room = others
        ranked = sorted(amounts, key=lambda t: -amounts[t] / graph.stages[t].replicas)
        for t in ranked:
            k = graph.stages[t].replicas
            beside = min(k, room)
            local[s] += amounts[t] * (beside / k)
            remote[s] += amounts[t] * ((k - beside) / k)
            room -= beside
    return local, remote


def _rounding(graph: JobGraph) -> float:
    """More than the relative rounding error of a sum over links; 0 where both sums are the same."""
    return (4 * len(graph.links) + 16) * 2.0**-53 if graph.stage_bytes.any() else 0.0
