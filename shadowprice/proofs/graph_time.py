"""Time of an iteration of a job graph under a mapping, for verifiers alone: standard library only.

The definition is that of ``shadowprice/instances/graphs/iteration_time.py``; the code is another, on
any objects with the fields of job graphs and networks. See :mod:`shadowprice.proofs.run_speed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any


def iteration_s(graph: Any, nodes: Sequence[Sequence[int]], network: Any) -> float:
    """Alpha of a mapping [s]: the slowest replica of an iteration, times the factor of a flush.

    Parameters
    ----------
    nodes : sequence of sequence of int
        Replicas of every stage on each node; together all of the graph's.
    """
    intra, nic = Fraction(network.intra_bytes_per_s), Fraction(network.nic_bytes_per_s)
    traffic = _traffic(graph)
    slowest = Fraction(0)
    for here in nodes:
        away = {
            s: any(here[t] < graph.stages[t].replicas and sent for t, sent in traffic[s])
            for s in range(len(here))
        }
        if network.sharing == "per-gpu":
            nic_each = nic / int(network.gpus_per_node)
        else:
            nic_each = nic / (sum(here[s] for s in away if away[s]) or 1)
        for s, stage in enumerate(graph.stages):
            if not here[s]:
                continue
            ring = Fraction(2 * (stage.replicas - 1), stage.replicas)
            ring *= Fraction(stage.parameter_bytes) / (intra if here[s] == stage.replicas else nic)
            time = Fraction(stage.forward_s) + Fraction(stage.backward_s) + ring
            for t, sent in traffic[s]:
                near = Fraction(here[t], graph.stages[t].replicas)
                time += 2 * sent * (near / intra + (1 - near) / nic_each)
            slowest = max(slowest, time)
    q = graph.microbatches
    return float(slowest * Fraction(q + _depth(graph) - 1, q) if q else slowest)


def _traffic(graph: Any) -> list[list[tuple[int, Fraction]]]:
    """For every stage, its peers and what one of its replicas exchanges with each, one way [bytes]."""
    found: list[list[tuple[int, Fraction]]] = [[] for _ in graph.stages]
    for link in graph.links:
        sent = Fraction(link.bytes_per_replica)
        ends = graph.stages[link.source].replicas, graph.stages[link.target].replicas
        found[link.source].append((link.target, sent))
        found[link.target].append((link.source, sent * ends[0] / ends[1]))
    return found


def _depth(graph: Any) -> int:
    """Stages on the longest path of links that are no exchanges."""
    after: dict[int, list[int]] = {}
    for link in graph.links:
        if not link.exchange:
            after.setdefault(link.source, []).append(link.target)
    layer, depth = set(range(len(graph.stages))), 0
    while layer:
        depth += 1
        layer = {t for s in layer for t in after.get(s, ())}
    return depth
