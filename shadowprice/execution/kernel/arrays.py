"""Arrays that the compiled loop works on: one row a job, a node, a gang size, a piece."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.instance import Instance

NOBODY = -1
"""No job, no piece, no node."""

JOB = np.dtype(
    [
        ("arrival_s", "f8"),
        ("weight", "f8"),
        ("processing_s", "f8"),
        ("left_s", "f8"),
        ("attained_s", "f8"),
        ("first_start_s", "f8"),
        ("debt_s", "f8"),  # owed when it resumes
        ("level", "f8"),
        ("key", "f8"),
        ("tie", "f8"),
        ("step_s", "f8"),  # attained time at which the key steps next
        ("crossing_s", "f8"),  # and when it attains that if it goes on running
        ("start_s", "f8"),  # of the present run, as are the next three
        ("end_s", "f8"),
        ("progress_from_s", "f8"),
        ("overhead_s", "f8"),
        ("gpus", "i4"),
        ("size", "i4"),  # row of its gang size
        ("pieces", "i4"),  # the first of those it holds
        ("at", "i4"),  # position in the heap of ends, NOBODY if it does not run
        ("before", "i4"),  # neighbours among waiting jobs, in the order they began to wait
        ("after", "i4"),
    ],
    align=True,
)

SIZE = np.dtype(
    [
        ("gpus", "i8"),
        ("first", "i8"),  # where its heap of waiting jobs begins
        ("waiting", "i8"),  # and how many are in it
        ("listed", "i8"),  # where its list of running jobs begins
        ("running", "i8"),  # and how many are in it
        ("split", "i8"),  # those of them that come before a certain waiting job
        ("refused", "i8"),  # the last decision in which a gang of this size found no place
        ("restart_s", "f8"),  # charge for resuming
    ],
    align=True,
)
"""Gang sizes, in increasing order."""

NODE = np.dtype(
    [("free", "i8"), ("gpus", "i8"), ("stacked", "i8"), ("by_size", "i8"), ("taken", "i8")]
)
"""Nodes; ``stacked`` and ``by_size`` are lists of nodes: the stack of count, and the largest first."""

PIECE = np.dtype([("node", "i4"), ("gpus", "i4"), ("next", "i4")], align=True)

ROW = np.dtype(
    [
        ("start_s", "f8"),
        ("end_s", "f8"),
        ("overhead_s", "f8"),
        ("job", "i4"),
        ("node", "i4"),
        ("gpus", "i4"),
    ],
    align=True,
)
"""Rows of the schedule."""

RUN = np.dtype(
    [
        ("now_s", "f8"),
        ("wake_s", "f8"),
        ("round_s", "f8"),
        ("first_round_s", "f8"),
        ("start_charge_s", "f8"),
        ("migration_s", "f8"),
        ("quantum_s", "f8"),
        ("rule", "i8"),
        ("placement", "i8"),
        ("told", "i8"),  # whether keys are told how long jobs run
        ("changes", "i8"),  # whether keys change while jobs run, beside steps
        ("disorders", "i8"),  # and the order of running jobs of one gang size with them
        ("steps", "i8"),
        ("levels", "i8"),
        ("by_first_start", "i8"),
        ("charges", "i8"),
        ("total_gpus", "i8"),
        ("free_gpus", "i8"),
        ("largest_node", "i8"),
        ("height", "i8"),  # of the stack of nodes
        ("spare_piece", "i8"),  # the first of the pieces that nobody holds
        ("admitted", "i8"),
        ("waiting", "i8"),
        ("waiting_gpus", "i8"),
        ("head", "i8"),  # first and last of the waiting jobs
        ("tail", "i8"),
        ("running", "i8"),
        ("listed", "i8"),  # length of the one list of running jobs, jobs that ended included
        ("crossing_s", "f8"),  # the first time at which the key of a running job may step
        ("crossing", "i8"),  # the job whose key does, NOBODY if it is not known
        ("unsettled_gpus", "i8"),  # of all jobs that have arrived and whose key has steps to come
        ("rows", "i8"),
        ("decisions", "i8"),
        ("faulty", "i8"),  # a job whose key is no number
    ],
    align=True,
)

COUNT, CONSOLIDATE, PACK = range(3)
"""Placements."""

HEAD_BLOCKS, SKIPS, PREEMPTS, BACKFILLS = range(4)
"""Rules."""


class Arrays(NamedTuple):
    """All that a run changes.

    ``run`` has one row. ``heaps`` are heaps of waiting jobs, one a gang size; ``listed`` lists of running
    jobs, ``sorting`` room to sort them; ``ends`` a
    heap of the running jobs by end; ``chosen`` and ``stopped`` jobs of a decision under construction;
    ``with_free`` the number of nodes by free GPUs; ``held_at``, ``held`` and ``held_count`` the pieces
    that each job held last, which cost nothing to come back to.
    """

    run: NDArray[Any]
    jobs: NDArray[Any]
    sizes: NDArray[Any]
    nodes: NDArray[Any]
    pieces: NDArray[Any]
    rows: NDArray[Any]
    heaps: NDArray[np.int32]
    listed: NDArray[np.int32]
    sorting: NDArray[np.int32]
    ends: NDArray[np.int32]
    chosen: NDArray[np.int32]
    stopped: NDArray[np.int32]
    with_free: NDArray[np.int64]
    held_at: NDArray[np.int64]
    held: NDArray[Any]
    held_count: NDArray[np.int32]


def arrays_of(instance: Instance, rows: int) -> Arrays:
    """Arrays of an instance before its first event, with room for so many rows at a time."""
    overheads, n = instance.overheads, len(instance.workload)
    sizes, which = np.unique(instance.workload.gpus, return_inverse=True)
    gpus = instance.cluster.gpus_per_node
    total, most = int(gpus.sum()), len(gpus)
    counts = np.bincount(which, minlength=len(sizes))
    size = np.zeros(max(len(sizes), 1), dtype=SIZE)
    size["gpus"][: len(sizes)] = sizes
    size["first"][: len(sizes)] = np.cumsum(counts) - counts
    most_running = np.minimum(counts, total // sizes)
    size["listed"][: len(sizes)] = np.cumsum(most_running) - most_running
    size["refused"] = NOBODY
    size["restart_s"][: len(sizes)] = [overheads.restart_charge_s(g) for g in sizes.tolist()]
    room_listed = int(most_running.sum())
    moves = overheads.migration_s > 0
    room = np.minimum(instance.workload.gpus, most) if moves else np.zeros(n, dtype=np.int64)
    held = np.zeros(int(room.sum()), dtype=PIECE)
    return Arrays(
        run=_run(instance, gpus),
        jobs=_jobs(instance, which),
        sizes=size,
        nodes=_nodes(gpus),
        pieces=_pieces(2 * total),
        rows=np.zeros(rows + 2 * total, dtype=ROW),
        heaps=np.zeros(n, dtype=np.int32),
        listed=np.zeros(max(4 * total, room_listed), dtype=np.int32),
        sorting=np.zeros(max(4 * total, room_listed), dtype=np.int32),
        ends=np.zeros(total, dtype=np.int32),
        chosen=np.zeros(total, dtype=np.int32),
        stopped=np.zeros(total, dtype=np.int32),
        with_free=np.bincount(gpus, minlength=int(gpus.max()) + 1).astype(np.int64),
        held_at=np.cumsum(room) - room,
        held=held,
        held_count=np.full(n, NOBODY, dtype=np.int32),
    )


def _run(instance: Instance, gpus: NDArray[np.int64]) -> NDArray[Any]:
    run = np.zeros(1, dtype=RUN)
    overheads = instance.overheads
    run["wake_s"] = run["crossing_s"] = np.inf
    run["start_charge_s"], run["migration_s"] = overheads.start_s, overheads.migration_s
    run["charges"] = not overheads.free
    run["total_gpus"] = run["free_gpus"] = gpus.sum()
    run["largest_node"], run["height"] = gpus.max(), len(gpus)
    run["head"] = run["tail"] = run["faulty"] = run["crossing"] = NOBODY
    return run


def _jobs(instance: Instance, size: NDArray[np.int64]) -> NDArray[Any]:
    workload = instance.workload
    jobs = np.zeros(len(workload), dtype=JOB)
    jobs["arrival_s"], jobs["weight"], jobs["gpus"] = (
        workload.arrival_s,
        workload.weight,
        workload.gpus,
    )
    jobs["processing_s"] = jobs["left_s"] = instance.shortest_s
    jobs["first_start_s"] = jobs["step_s"] = jobs["crossing_s"] = np.inf
    jobs["size"] = size
    for name in ("pieces", "at", "before", "after"):
        jobs[name] = NOBODY
    return jobs


def _nodes(gpus: NDArray[np.int64]) -> NDArray[Any]:
    nodes = np.zeros(len(gpus), dtype=NODE)
    nodes["free"] = nodes["gpus"] = gpus
    nodes["stacked"] = np.arange(len(gpus))[::-1]
    nodes["by_size"] = np.argsort(-gpus, kind="stable")
    return nodes


def _pieces(count: int) -> NDArray[Any]:
    """Pieces that nobody holds, each with the next one."""
    pieces = np.zeros(count, dtype=PIECE)
    pieces["next"] = np.arange(1, count + 1)
    pieces["next"][-1] = NOBODY
    return pieces
