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

All is computed in whole numbers and rounded once, to the nearest double: the time of a run must not
depend on the order of a sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import lcm

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.instances.graphs.network import SHARINGS, Network

__all__ = [
    "SHARINGS",
    "Network",
    "flush_factor",
    "iteration_s",
    "longest_iteration_s",
    "replica_counts",
    "shortest_iteration_s",
    "shortest_spread_iteration_s",
]


def iteration_s(graph: JobGraph, mapping: StageMapping, network: Network) -> float:
    """alpha, the time of one iteration under a mapping, the nearest double [s]; O(nodes (stages + links)).

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
    counts: list[list[int]] = replica_counts(graph, mapping, network).tolist()
    terms = _Terms.of(graph, network)
    per_job = network.sharing == "per-job"
    replicas = [stage.replicas for stage in graph.stages]
    longest = 0
    for row in counts:
        sharers = 1
        if per_job:
            sharers = sum(
                here
                for here, peers in zip(row, terms.peers, strict=True)
                if here and any(row[t] < replicas[t] for t, _, _ in peers)
            )
        for s, here in enumerate(row):
            if here:
                time = terms.alone[s] if here == replicas[s] else terms.spread[s]
                for t, local, remote in terms.peers[s]:
                    time += row[t] * local + (replicas[t] - row[t]) * remote * sharers
                longest = max(longest, time)
    return longest / terms.unit


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

    tau_s^m is at least the sum of the four minima, whatever the others are. QED. Both sides are
    rounded once, to the nearest double, so that it holds as computed. O(S + L log L) for L links.
    """
    intra, nic, gpus = _rates(network)
    remote_rate = nic / gpus if network.sharing == "per-gpu" else nic
    longest = Fraction(0)
    local, remote = _most_local(graph, gpus - 1)
    for s, (compute, ring) in enumerate(_alone(graph)):
        least = ring / (nic if graph.stages[s].replicas > gpus else max(nic, intra))
        if intra <= remote_rate:
            traffic = (local[s] + remote[s]) / remote_rate
        else:
            traffic = local[s] / intra + remote[s] / remote_rate
        longest = max(longest, compute + least + 2 * traffic)
    return float(longest * _flush(graph))


def shortest_spread_iteration_s(graph: JobGraph, network: Network) -> float:
    """A bound of alpha of all mappings on two nodes or more [s], no less than alpha_min.

    Notes
    -----
    Derived. *Claim*: alpha(P) is at least this for every mapping P that uses more than one node. *Proof*: in the
    terms of :func:`shortest_iteration_s`, either some stage s is on several nodes. Then its ring crosses a NIC, and
    no byte takes less than 1 / max(b, B'). Or every stage is on one node, and some two of them are not on the same.
    If exchanges connect all stages, there are stages s and t that exchange bytes and are on different nodes; all of
    their bytes take 1 / B' then. Whichever it is, alpha is at least the flush factor times tau_s^m, and in the second
    case tau_t^m. Where exchanges do not connect all stages, only alpha_min is claimed. QED. O(S + L).
    """
    least = shortest_iteration_s(graph, network)
    intra, nic, gpus = _rates(network)
    remote_rate = nic / gpus if network.sharing == "per-gpu" else nic
    alone, peers = _alone(graph), _peers(graph)
    if not _connected(peers):
        return least
    near = [
        compute + 2 * sum((amount for _, amount in each), Fraction(0)) / max(intra, remote_rate)
        for (compute, _), each in zip(alone, peers, strict=True)
    ]
    cases = [
        near[s] + ring / nic for s, (_, ring) in enumerate(alone) if graph.stages[s].replicas > 1
    ]
    more = max(1 / remote_rate - 1 / intra, Fraction(0))
    ways = {(s, t): 2 * amount * more for s, each in enumerate(peers) for t, amount in each}
    cases += [
        max(near[s] + extra, near[t] + ways.get((t, s), Fraction(0)))
        for (s, t), extra in ways.items()
    ]
    return max(least, float(min(cases) * _flush(graph))) if cases else least


def _connected(peers: list[list[tuple[int, Fraction]]]) -> bool:
    """True if exchanges connect all stages."""
    seen, rest = {0}, [0]
    while rest:
        for t, _ in peers[rest.pop()]:
            if t not in seen:
                seen.add(t)
                rest.append(t)
    return len(seen) == len(peers)


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
    load each NIC with 4 d, spread out only with d. Rounded once, as alpha is. O(S + L).
    """
    intra, nic, sharers = _rates(network)
    if network.sharing == "per-job":
        linked = sum(
            stage.replicas
            for stage, peers in zip(graph.stages, _peers(graph), strict=True)
            if peers
        )
        sharers = max(1, min(sharers, linked - 1))
    rate = min(intra, nic / sharers)
    longest = Fraction(0)
    for (compute, ring), peers in zip(_alone(graph), _peers(graph), strict=True):
        traffic = sum((amount for _, amount in peers), Fraction(0)) / rate
        longest = max(longest, compute + ring / min(nic, intra) + 2 * traffic)
    return float(longest * _flush(graph))


def flush_factor(graph: JobGraph) -> float:
    """(q + D - 1) / q of a pipeline flushed every iteration, D stages on its longest path; else 1."""
    return float(_flush(graph))


@dataclass(frozen=True)
class _Terms:
    """Summands of alpha, in whole multiples of 1 / ``unit`` s, the factor of a flush included.

    Parameters
    ----------
    alone, spread : tuple of int
        Compute and AllReduce of each stage, on one node and on several.
    peers : tuple of tuple of (int, int, int)
        For each stage the others it exchanges bytes with, and what each of their replicas adds on the
        same node and elsewhere. Elsewhere the NIC is shared by G, or counts as whole (``per-job``).
    """

    unit: int
    alone: tuple[int, ...]
    spread: tuple[int, ...]
    peers: tuple[tuple[tuple[int, int, int], ...], ...]

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, graph: JobGraph, network: Network) -> _Terms:
        intra, nic, gpus = _rates(network)
        remote_rate = nic / gpus if network.sharing == "per-gpu" else nic
        factor = _flush(graph)
        alone, spread = (
            [factor * (compute + ring / rate) for compute, ring in _alone(graph)]
            for rate in (intra, nic)
        )
        bytes_each = [
            [(t, 2 * factor * amount / graph.stages[t].replicas) for t, amount in peers]
            for peers in _peers(graph)
        ]
        traffic = [
            [(t, amount / intra, amount / remote_rate) for t, amount in peers]
            for peers in bytes_each
        ]
        times = [
            *alone,
            *spread,
            *(time for peers in traffic for _, *both in peers for time in both),
        ]
        unit = lcm(*(time.denominator for time in times))
        return cls(
            unit,
            tuple(int(time * unit) for time in alone),
            tuple(int(time * unit) for time in spread),
            tuple(
                tuple((t, int(local * unit), int(remote * unit)) for t, local, remote in peers)
                for peers in traffic
            ),
        )


def _rates(network: Network) -> tuple[Fraction, Fraction, int]:
    """b, B [bytes/s] and G, exactly."""
    intra, nic = Fraction(network.intra_bytes_per_s), Fraction(network.nic_bytes_per_s)
    return intra, nic, int(network.gpus_per_node)


def _flush(graph: JobGraph) -> Fraction:
    q = graph.microbatches
    return Fraction(q + graph.depth - 1, q) if q else Fraction(1)


def _alone(graph: JobGraph) -> list[tuple[Fraction, Fraction]]:
    """Compute time [s] and bytes of AllReduce over each connection, of every stage."""
    return [
        (
            Fraction(stage.forward_s) + Fraction(stage.backward_s),
            Fraction(2 * (stage.replicas - 1), stage.replicas) * Fraction(stage.parameter_bytes),
        )
        for stage in graph.stages
    ]


def _peers(graph: JobGraph) -> list[list[tuple[int, Fraction]]]:
    """w_st by s: the stages that one exchanges bytes with, and how many one of its replicas does."""
    found: list[list[tuple[int, Fraction]]] = [[] for _ in graph.stages]
    for link in graph.links:
        if link.bytes_per_replica:
            sent, (s, t) = Fraction(link.bytes_per_replica), (link.source, link.target)
            found[s].append((t, sent))
            found[t].append((s, sent * graph.stages[s].replicas / graph.stages[t].replicas))
    return found


def _most_local(graph: JobGraph, others: int) -> tuple[list[Fraction], list[Fraction]]:
    """Bytes of a replica of each stage, local and remote, if the best ``others`` are beside it."""
    local = [Fraction(0) for _ in graph.stages]
    remote = [Fraction(0) for _ in graph.stages]
    for s, peers in enumerate(_peers(graph)):
        room = others
        each = [
            (amount / graph.stages[t].replicas, graph.stages[t].replicas) for t, amount in peers
        ]
        for amount, k in sorted(each, reverse=True):
            beside = min(k, room)
            local[s] += amount * beside
            remote[s] += amount * (k - beside)
            room -= beside
    return local, remote
