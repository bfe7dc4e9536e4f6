"""What the verifier checks of jobs with graphs: where the replicas of every run are.

Rows that hold the same replicas and runs of the same rows are checked once, and alpha is computed
once for each of them, from the graph and the rows alone and not from what the engine remembers.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.proofs import run_speed
from shadowprice.proofs.certificate_runs import Runs

if TYPE_CHECKING:
    from shadowprice.instances.graphs.job_graph import JobGraph
    from shadowprice.instances.graphs.workload_graphs import JobGraphs
    from shadowprice.instances.schedule import Schedule

_MANY = 2**31
"""More replicas than a node has GPUs."""


class MappedRuns:
    """The replicas of every run of a schedule, read from its column ``stages``; O(R + S) entries.

    Attributes
    ----------
    fault : (int, str) or None
        The first row, in order of job and start, that is no part of a mapping of its job's graph,
        and what is wrong.
    iteration_s : ndarray, shape (runs,)
        alpha of every run [s]; only where there is no fault.
    """

    def __init__(self, graphs: JobGraphs, schedule: Schedule, runs: Runs) -> None:
        self._graphs = graphs
        self._rows: dict[tuple[int, ...], int] = {}
        self.iteration_s: NDArray[np.float64] = np.zeros(0)
        self.fault = self._gather(schedule, runs) or self._time(schedule, runs)

    def _gather(self, schedule: Schedule, runs: Runs) -> tuple[int, str] | None:
        """Number the different rows; the first one that cannot be."""
        assert schedule.stages is not None
        rows, order = self._rows, runs.order.tolist()
        cells = schedule.stages[runs.order].tolist()
        numbers = []
        for row, cell in zip(order, cells, strict=True):
            if type(cell) is not tuple or not _whole(cell, rows):
                return row, f"stages is {cell!r:.80}, expected a tuple of whole numbers >= 0"
            numbers.append(rows.setdefault(cell, len(rows)))
        self._number = np.array(numbers, dtype=np.int64)
        length = np.array([len(cell) for cell in rows], dtype=np.int64)[self._number]
        total = np.array([sum(cell) for cell in rows], dtype=np.int64)[self._number]
        stages = np.array([len(graph.stages) for graph in self._graphs.graph], dtype=np.int64)
        stages = stages[self._graphs.of[schedule.job[runs.order]]]
        gpus = schedule.gpus[runs.order]
        wrong = (length != stages) | (total != gpus)
        if not wrong.any():
            return None
        k = int(wrong.argmax())
        if length[k] != stages[k]:
            return order[k], f"has {length[k]} stages, its job's graph has {stages[k]}"
        return order[k], f"has {total[k]} replicas on {gpus[k]} GPUs, expected one on each"

    def _time(self, schedule: Schedule, runs: Runs) -> tuple[int, str] | None:
        """Alpha of every run; the first one whose replicas do not add up."""
        graph = self._graphs.of[schedule.job[runs.row]].tolist()
        number, cells = self._number.tolist(), list(self._rows)
        ends = [*runs.first[1:].tolist(), len(number)]
        known: dict[tuple[int, tuple[int, ...]], int] = {}
        which: list[int] = []
        times: list[float] = []
        for run, (first, end) in enumerate(zip(runs.first.tolist(), ends, strict=True)):
            pieces = number[first:end]
            key = (graph[run], tuple(sorted(pieces) if len(pieces) > 1 else pieces))
            if key not in known:
                nodes = [cells[piece] for piece in pieces]
                found = self._iteration_s(self._graphs.graph[graph[run]], nodes)
                if isinstance(found, str):
                    return int(runs.row[run]), found
                known[key] = len(times)
                times.append(found)
            which.append(known[key])
        self.iteration_s = np.array(times, dtype=np.float64)[np.array(which, dtype=np.int64)]
        return None

    def _iteration_s(self, graph: JobGraph, nodes: Sequence[Sequence[int]]) -> float | str:
        """Alpha [s], or what is wrong."""
        for stage, *counts in zip(graph.stages, *nodes, strict=True):
            if sum(counts) != stage.replicas:
                return (
                    f"the run has {sum(counts)} replicas of stage {stage.name!r}, "
                    f"its job's graph has {stage.replicas}"
                )
        most, limit = max(map(sum, nodes)), int(self._graphs.network.gpus_per_node)
        if most > limit:
            return f"the run has {most} replicas on one node, expected at most {limit}, its GPUs"
        return run_speed.iteration_s(graph, nodes, self._graphs.network)


def _whole(cell: tuple[object, ...], known: dict[tuple[int, ...], int]) -> bool:
    """Whether all are whole numbers from 0; equal ones were asked before."""
    try:
        if cell in known:
            return True
    except TypeError:
        return False
    return all(isinstance(count, Integral) and 0 <= int(count) < _MANY for count in cell)
