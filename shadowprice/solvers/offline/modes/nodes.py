r"""Modes of gangs within a node and across nodes, and resources of nodes as bins: LB-node.

A gang that fits on a node has a mode for each size of nodes in which it runs within one of them, and one in which it
is spread over several: slower where the speed of spread gangs or a job graph says so, and not there at all among
consolidated schedules. All use GPUs of their type. For a *weight* :math:`f(s) \ge 0` of each gang size s let W be the
most that gangs which fit on a node weigh together; then the nodes of that size, of which there are N, have a resource
of N, of which a gang within a node uses :math:`f(g) / W`, and a spread gang :math:`g f(1) / W` if all nodes
of its type are of that size.

Weights are those of dual feasible functions of bin packing (Fekete and Schepers, Mathematical Programming 91, 2001;
recalled), such as 1 for gangs of more than half a node, and those that a programme of configurations of a node finds,
gangs that fit together as columns, priced by knapsacks. Whatever they are, W is computed in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.clusters.node_sizes import fits_a_node
from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICK_S, to_ticks, up_to_grid
from shadowprice.instances.instance import Instance
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.solvers.offline.modes.job_modes import USE_UNIT, ModeTable
from shadowprice.solvers.programs.linear_program import LinearProgram

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,  # only restrict
        Feature.SHARING,  # where no two of the jobs may
        Feature.GRAPHS,  # spread gangs are slower
        Feature.PROFILES,  # the fastest counts
        Feature.SPREAD,  # spread gangs are slower
        Feature.FAILURES,  # what is lost is done again
        Feature.CORES,  # nodes of a type
        Feature.CPU_MEMORY,  # only restrict
        Feature.RESTART,  # only restricts
    }
)

MOST_STEPS = 8
"""Dual feasible functions of 2 to so many steps and one more are tried."""

_ROUNDS = 60
"""Configurations of a node that are generated at most, for each row of weights."""

_WEIGHT_UNIT = 2**30


@dataclass(frozen=True)
class NodeKind:
    """Nodes of a pool of GPUs that have as many of them.

    Parameters
    ----------
    pool : int
        GPU type, or 0 where all are of one speed.
    gpus : int
        Of each node.
    number : int
        Nodes.
    only : bool
        Whether all nodes of the pool are of this kind.
    """

    pool: int
    gpus: int
    number: int
    only: bool


def node_modes(instance: Instance, *, consolidated: bool) -> ModeTable | None:
    """Modes within a node and across nodes; None where gangs fit on no node, or jobs may share GPUs.

    Parameters
    ----------
    consolidated : bool
        Whether it is about schedules alone that place every gang on as few nodes as it fits on.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "modes of nodes")
    jobs = instance.workload
    slower = instance.graphs is not None or instance.locality is not None
    gangs = jobs.gpus
    within = (gangs > 1) & fits_a_node(instance.cluster, jobs)
    if not (slower or consolidated) or not within.any() or SharingGain.of(instance) is not None:
        return None
    pools = 1 if jobs.throughput is None else len(instance.cluster.gpu_types)
    alone = instance.processing_s[:, :1] if pools == 1 else instance.processing_s
    kinds = node_kinds(instance.cluster, pools)
    time = np.zeros((len(jobs), len(kinds) + pools), dtype=np.int64)
    for m, node in enumerate(kinds):
        here = (gangs <= node.gpus) & np.isfinite(alone[:, node.pool])
        time[here, m] = to_ticks(alone[here, node.pool])
    spread = _spread_ticks(instance, alone, within, consolidated=consolidated)
    # A gang of one GPU is always within a node; one larger than all nodes never.
    time[:, len(kinds) :] = np.where((gangs > 1)[:, None], spread, 0)
    if not (time > 0).any(axis=1).all():
        return None  # Of a class that has no schedules there is nothing to say.
    widths, kind = np.unique(gangs, return_inverse=True)
    sizes = instance.cluster.gpus_per_node
    of_pool = np.zeros(len(sizes), dtype=np.int64) if pools == 1 else instance.cluster.type_of_node
    capacity = np.bincount(of_pool, sizes, pools).astype(np.int64).tolist()
    use = _gpu_uses(widths, kinds, pools)
    weight = tuple(Fraction(w) for w in jobs.weight.tolist())
    demands = _demands(time, kind, weight, len(widths))
    for m, node in enumerate(kinds):
        for row in weight_rows(
            node, widths[widths <= node.gpus], [d[widths <= node.gpus] for d in demands]
        ):
            use = np.concatenate((use, np.zeros((*use.shape[:2], 1), dtype=object)), axis=2)
            use[: len(row.weights), m, -1] = [w * USE_UNIT // row.most for w in row.weights]
            if node.only:
                each = row.of_one * USE_UNIT // row.most
                use[widths > 1, len(kinds) + node.pool, -1] = [
                    w * each for w in widths[widths > 1].tolist()
                ]
            capacity.append(node.number)
    return ModeTable.of_workload(jobs, time, np.array(capacity), kind.astype(np.int64), use)


def node_kinds(cluster: Cluster, pools: int) -> list[NodeKind]:
    """Kinds of nodes, by pool and then by size."""
    sizes = cluster.gpus_per_node
    pool = np.zeros(len(sizes), dtype=np.int64) if pools == 1 else cluster.type_of_node
    kinds = []
    for p in range(pools):
        mine, number = np.unique(sizes[pool == p], return_counts=True)
        for gpus, count in zip(mine.tolist(), number.tolist(), strict=True):
            kinds.append(NodeKind(p, gpus, count, len(mine) == 1))
    return kinds


def _spread_ticks(
    instance: Instance,
    alone: NDArray[np.float64],
    within: NDArray[np.bool_],
    *,
    consolidated: bool,
) -> NDArray[np.int64]:
    """Least run times across nodes [ticks], 0 where there are none; shape (n, pools)."""
    jobs, best = instance.workload, instance.best_speed[:, None]
    times = alone
    if consolidated:
        times = np.where(within[:, None], np.inf, alone)
    elif instance.graphs is not None:
        slow = instance.graphs.shortest_spread_s(jobs)[:, None]
        slow = np.maximum(up_to_grid(slow / best), TICK_S)
        times = np.where(within[:, None], slow, alone)
    elif instance.locality is not None:
        plain = instance.plain_processing_s[:, : alone.shape[1]]
        speed = best * instance.locality.of(jobs)[:, None]
        times = np.where(within[:, None], np.maximum(up_to_grid(plain / speed), alone), alone)
    return to_ticks(np.where(np.isfinite(times), times, 0.0))


def _gpu_uses(
    widths: NDArray[np.int64], kinds: Sequence[NodeKind], pools: int
) -> NDArray[np.object_]:
    """Uses of the GPUs of each pool, shape (widths, modes, pools)."""
    use = np.zeros((len(widths), len(kinds) + pools, pools), dtype=object)
    of = [*(node.pool for node in kinds), *range(pools)]
    for (c, width), (m, pool) in product(enumerate(widths.tolist()), enumerate(of)):
        use[c, m, pool] = width * USE_UNIT
    return use


def _demands(
    time: NDArray[np.int64], kind: NDArray[np.int64], weight: Sequence[Fraction], kinds: int
) -> list[NDArray[np.float64]]:
    """Demand of gangs of each width, as the span and as completions see it."""
    least = np.where(time > 0, time, np.iinfo(np.int64).max).min(axis=1).astype(np.float64)
    each = (least, np.sqrt(least), np.array([float(w) for w in weight]))
    return [np.asarray(np.bincount(kind, values, kinds), dtype=np.float64) for values in each]


# Rows of weights.


@dataclass(frozen=True)
class WeightRow:
    """Weights of gangs on a node.

    Parameters
    ----------
    weights : tuple of int
        Of a gang of each width, in the order that was given.
    of_one : int
        Of a single GPU of a spread gang.
    most : int
        W, the most that gangs and single GPUs which fit on the node weigh together.
    """

    weights: tuple[int, ...]
    of_one: int
    most: int


def weight_rows(
    node: NodeKind, widths: NDArray[np.int64], demands: Sequence[NDArray[np.float64]]
) -> list[WeightRow]:
    """Rows in which some gang counts for more than its share of the node's GPUs; widths fit on the node."""
    if not len(widths) or node.gpus == 1:
        return []
    rows: list[WeightRow] = []
    tried: list[dict[int, int] | None] = [
        dual_feasible(steps, node.gpus) for steps in range(1, MOST_STEPS + 1)
    ]
    tried += [_by_configurations(node.gpus, widths, each) for each in demands]
    for weight_of in tried:
        if weight_of is None:
            continue
        weights, one = tuple(weight_of[w] for w in widths.tolist()), weight_of[1]
        items = {**dict(zip(widths.tolist(), weights, strict=True))}
        items[1] = max(items.get(1, 0), one)
        row = WeightRow(weights, one, most_weight(items, node.gpus)[0])
        better = any(
            w * node.gpus > g * row.most for g, w in zip(widths.tolist(), weights, strict=True)
        )
        if better and row not in rows:
            rows.append(row)
    return rows


def dual_feasible(steps: int, gpus: int) -> dict[int, int]:
    """Weights of all sizes on a node: (steps + 1) s / gpus rounded down, but as it is where it is whole."""
    return {
        s: s * (steps + 1) * steps // gpus
        if s * (steps + 1) % gpus == 0
        else s * (steps + 1) // gpus * (steps + 1)
        for s in range(1, gpus + 1)
    }


def most_weight(weight_of: dict[int, int], gpus: int) -> tuple[int, dict[int, int]]:
    """Most that gangs which fit on a node weigh together, and how many of each do; O(gpus x widths)."""
    best, last = [0] * (gpus + 1), [0] * (gpus + 1)
    for room in range(1, gpus + 1):
        best[room], last[room] = best[room - 1], 0
        for size, weight in weight_of.items():
            if size <= room and best[room - size] + weight > best[room]:
                best[room], last[room] = best[room - size] + weight, size
    chosen: dict[int, int] = {}
    room = gpus
    while room > 0:
        size = last[room]
        if size:
            chosen[size] = chosen.get(size, 0) + 1
        room -= size or 1
    return best[gpus], chosen


def _by_configurations(
    gpus: int, widths: NDArray[np.int64], demand: NDArray[np.float64]
) -> dict[int, int] | None:
    """Weights at which a demand of gangs is dearest, such that no configuration of a node weighs more than 1."""
    from shadowprice.solvers.programs import gate

    if not demand.any():
        return None
    sizes = sorted({1, *widths.tolist()})
    amount = {1: 0.0, **dict(zip(widths.tolist(), demand.tolist(), strict=True))}
    cost = np.array([amount[s] for s in sizes])
    cost = cost / cost.max() + 1e-6 * np.array(sizes) / gpus
    columns = [{s: gpus // s} for s in sizes]
    for _ in range(_ROUNDS):
        table = np.array([[each.get(s, 0) for s in sizes] for each in columns], dtype=np.float64)
        rows = len(columns)
        none, full = np.zeros(len(sizes)), np.full(len(sizes), np.inf)
        program = LinearProgram.of(
            cost, none, full, table, np.full(rows, -np.inf), np.ones(rows), maximise=True
        )
        try:
            values = gate.solve(program).primal
        except SolverError:
            return None
        if not len(values):
            return None
        weights = {
            s: int(max(v, 0.0) * _WEIGHT_UNIT) for s, v in zip(sizes, values.tolist(), strict=True)
        }
        most, chosen = most_weight(weights, gpus)
        if most <= _WEIGHT_UNIT * (1 + 1e-7) or chosen in columns:
            return {1: weights[1], **weights}
        columns.append(chosen)
    return weights
