"""Putting start times on nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.solvers.placement.count import CountAllocator
from shadowprice.solvers.placement.protocol import Pieces


def on_nodes(instance: Instance, start_s: NDArray[np.float64]) -> Schedule:
    """A schedule from start times [s] of uninterrupted runs, nodes assigned by count."""
    alike = [0] * len(instance.cluster.nodes)
    allocator = CountAllocator(instance.cluster, alike)
    ends = start_s + instance.shortest_s
    events = sorted(
        [(float(t), 0, j) for j, t in enumerate(ends)]
        + [(float(t), 1, j) for j, t in enumerate(start_s)]
    )
    held: dict[int, Pieces] = {}
    rows: list[tuple[int, int, int, float, float, float]] = []
    for now, kind, j in events:
        if kind == 0:
            allocator.give_back(held.pop(j))
            continue
        pieces = allocator.take(int(instance.workload.gpus[j]), (0,))
        if pieces is None:
            raise SolverError(
                f"job {instance.workload.id[j]!r} does not fit at {now} s: the start times are not feasible"
            )
        held[j] = pieces
        rows += [(j, node, gpus, now, float(ends[j]), 0.0) for node, gpus in pieces]
    columns = (
        [np.array(column) for column in zip(*rows, strict=True)] if rows else [np.zeros(0)] * 6
    )
    job, node, gpus = (column.astype(np.int64) for column in columns[:3])
    return Schedule(job, node, gpus, *(column.astype(np.float64) for column in columns[3:]))
