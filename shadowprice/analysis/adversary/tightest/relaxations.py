"""Lower bounds of clusters of several types, of nodes, of pairs, of amounts and widths: how much each can lose.

Instances are such that the optimum is known: every job can run alone at its best from its arrival on, or jobs of more
than half of the GPUs follow one another.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from shadowprice.analysis.adversary.tightest.comparisons import (
    SOLVED,
    TightnessOf,
    WholeColumn,
    WitnessedRatio,
)
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.hard_instances import Rows
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import Workload
from shadowprice.proofs.lower_bounds import amounts, nodes, pairs, priced_machine, span
from shadowprice.solvers.offline.modes.amounts import amount_modes
from shadowprice.solvers.offline.modes.job_modes import ModeTable
from shadowprice.solvers.offline.modes.nodes import node_modes
from shadowprice.solvers.offline.modes.pairs import pair_modes
from shadowprice.solvers.offline.modes.types import gpu_type_modes
from shadowprice.solvers.offline.type_prices import best_prices, best_span_prices


def _alone(rows: Rows) -> Fraction:
    """Total completion time of jobs that run from their arrival on [s]; arrival and work are the first columns."""
    return Fraction(sum(row[0] + row[1] for row in rows))


def _some(jobs: ModeTable | None) -> ModeTable:
    if jobs is None:
        raise ValueError("expected an instance that the bound is about")
    return jobs


def of_price(rows: Rows) -> WitnessedRatio:
    """Jobs of one GPU that fit on the fast GPUs, beside slow ones."""
    workload = Workload.from_columns(
        arrival_s=[float(a) for a, _ in rows],
        work=[float(p) for _, p in rows],
        gpus=1,
        throughput=[[0.5, 1.0]] * len(rows),
        gpu_types=("slow", "fast"),
    )
    instance = Instance(Cluster.parse("1x3:slow,1x3:fast"), workload)
    prices = best_prices(gpu_type_modes(instance))
    return WitnessedRatio(_alone(rows) / priced_machine.bound(instance, prices))


def of_span(rows: Rows) -> WitnessedRatio:
    """Gangs of five of eight GPUs follow one another, all there at 0."""
    workload = Workload.from_columns(
        arrival_s=[0.0] * len(rows), work=[float(p) for (p,) in rows], gpus=5
    )
    instance = Instance(Cluster.parse("1x8"), workload)
    _, prices = best_span_prices(gpu_type_modes(instance))
    return WitnessedRatio(Fraction(sum(p for (p,) in rows)) / span.bound(instance, prices))


def of_amount(rows: Rows) -> WitnessedRatio:
    """Two jobs of one GPU on four, which with two each are half as fast again."""
    plain = Workload.from_columns(
        arrival_s=[float(a) for a, _ in rows], work=[float(3 * p) for _, p in rows], gpus=1
    )
    count = len(rows)
    elastic = Elasticity(np.full(count, 2), np.full(count, 0.75))
    instance = Instance(Cluster.parse("1x4"), plain, elasticity=elastic)
    prices = best_prices(_some(amount_modes(instance)))
    least = Fraction(sum(a + 2 * p for a, p in rows))
    return WitnessedRatio(least / amounts.bound(instance, prices))


def of_pair(rows: Rows) -> WitnessedRatio:
    """Jobs of one GPU, a GPU each, that may share one without loss."""
    workload = Workload.from_columns(
        arrival_s=[float(a) for a, _ in rows],
        work=[float(p) for _, p in rows],
        gpus=1,
        model=["a"] * len(rows),
    )
    rates = Throughputs(("gpu",), {}, {("gpu", ("a", 1), ("a", 1)): (1.0, 1.0)})
    instance = Instance(Cluster.parse("1x4"), workload, sharing_rates=rates)
    prices = best_prices(_some(pair_modes(instance)))
    return WitnessedRatio(_alone(rows) / pairs.bound(instance, prices))


def of_node(rows: Rows) -> WitnessedRatio:
    """Gangs of three on nodes of four, a node each, consolidated."""
    workload = Workload.from_columns(
        arrival_s=[float(a) for a, _ in rows], work=[float(p) for _, p in rows], gpus=3
    )
    instance = Instance(Cluster.parse("4x4"), workload)
    prices = best_prices(_some(node_modes(instance, consolidated=True)))
    return WitnessedRatio(_alone(rows) / nodes.bound(instance, prices, consolidated=True))


_JOB = (WholeColumn("arrival_s", 0, 8), WholeColumn("work_s", 1, 8))

ENTRIES = (
    TightnessOf(
        "lower_bounds.priced_machine",
        "total completion time of jobs that never wait, on 3 slow and 3 fast GPUs, over the bound",
        _JOB,
        1,
        3,
        of_price,
        off=SOLVED,
    ),
    TightnessOf(
        "lower_bounds.span",
        "last completion of gangs of 5 on 8 GPUs over the bound",
        (WholeColumn("work_s", 1, 8),),
        1,
        4,
        of_span,
        off=SOLVED,
    ),
    TightnessOf(
        "lower_bounds.amounts",
        "total completion time of jobs that never wait and may have 2 of 4 GPUs, over the bound",
        _JOB,
        1,
        2,
        of_amount,
        off=SOLVED,
    ),
    TightnessOf(
        "lower_bounds.pairs",
        "total completion time of jobs that never wait, on 4 GPUs, over the bound",
        _JOB,
        2,
        4,
        of_pair,
        off=SOLVED,
    ),
    TightnessOf(
        "lower_bounds.nodes",
        "total completion time of gangs of 3 that never wait, on 4 nodes of 4 GPUs, over the bound",
        _JOB,
        1,
        4,
        of_node,
        off=SOLVED,
    ),
)
"""Entries of these theorems."""
