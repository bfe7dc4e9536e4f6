"""Putting start times on nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.solvers.placement.count import CountAllocator
from shadowprice.solvers.placement.protocol import Pieces


def assign_nodes(instance: Instance, start_s: NDArray[np.float64]) -> Schedule:
    """A schedule from start times [s] of uninterrupted runs, nodes assigned by count.

    Every job pays the start charge of the instance first, and runs as long as on its fastest GPUs.
    """
    charge_s = instance.overheads.start_s
    end_s = start_s + instance.shortest_s + charge_s
    return assign_nodes_to_runs(instance, np.arange(len(start_s)), start_s, end_s, charge_s)


def assign_nodes_to_runs(
    instance: Instance,
    job: NDArray[np.int64],
    start_s: NDArray[np.float64],
    end_s: NDArray[np.float64],
    overhead_s: float = 0.0,
) -> Schedule:
    """A schedule from runs of jobs, nodes assigned by count; every run begins with the same overhead.

    Raises
    ------
    SolverError
        If more GPUs would be held than there are.
    """
    allocator = CountAllocator(instance.cluster, [0] * len(instance.cluster.nodes))
    gpus = instance.workload.gpus[job].tolist()
    events = [(float(t), 0, run) for run, t in enumerate(end_s)]
    events += [(float(t), 1, run) for run, t in enumerate(start_s)]
    held: dict[int, Pieces] = {}
    rows: list[tuple[int, int, int, float, float, float]] = []
    for now, kind, run in sorted(events):
        if kind == 0:
            allocator.give_back(held.pop(run))
            continue
        pieces = allocator.take(run, gpus[run], (0,))
        if pieces is None:
            raise SolverError(
                f"job {instance.workload.id[job[run]]!r} does not fit at {now} s: the runs are not feasible"
            )
        held[run] = pieces
        end = float(end_s[run])
        rows += [(int(job[run]), node, part, now, end, overhead_s) for node, part in pieces]
    columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0)] * 6
    whole = [column.astype(np.int64) for column in columns[:3]]
    times = [column.astype(np.float64) for column in columns[3:]]
    return Schedule(whole[0], whole[1], whole[2], times[0], times[1], times[2])
