"""Runs of gangs as the verifier sees them: their charges, resources, replicas and speeds.

Everything is computed from the rows of the schedule and plain data of the instance, in columns, and
not by the code the engine uses for single runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.proofs import graph_time, run_speed
from shadowprice.proofs.run_speed import TICKS_PER_S
from shadowprice.proofs.verification.cpu_memory import MILLIONTH

if TYPE_CHECKING:
    from shadowprice.instances.graphs.job_graph import JobGraph
    from shadowprice.instances.graphs.workload_graphs import JobGraphs
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.speeds.sensitivity import Sensitivity
    from shadowprice.instances.terms.charges import Overheads


# Rows of a schedule gathered into runs of gangs, and their charges.

_DIGIT = 16
"""Bits by which whole numbers are sorted at a time: NumPy sorts so many in linear time."""


def sorted_further(order: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions in order of whole numbers from 0, equal ones in the order given; O(R) for R positions."""
    left = numbers[order]
    most = int(left.max(initial=0))
    while True:
        step = np.argsort((left & (2**_DIGIT - 1)).astype(np.uint16), kind="stable")
        order, left = order[step], left[step] >> _DIGIT
        most >>= _DIGIT
        if not most:
            return order


@dataclass(frozen=True)
class Runs:
    """Runs of gangs in order of job, then start, cut where a partner, CPUs or memory change.

    ``order`` sorts the rows by run, ``piece`` is the run of each, ``first`` where each run begins
    and ``row`` the row there. Whole runs, from a beginning to the last that goes on from it, are :meth:`whole`.
    """

    row: NDArray[np.int64]
    first: NDArray[np.int64]
    piece: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def of(cls, schedule: Schedule) -> Runs:
        """Rows of one job that start together are one run, in order of node; O(R log R)."""
        order = sorted_further(np.arange(len(schedule)), schedule.node)
        order = order[np.argsort(schedule.start_s[order], kind="stable")]
        order = sorted_further(order, schedule.job)
        job, start = schedule.job[order], schedule.start_s[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (job[1:] != job[:-1]) | (start[1:] != start[:-1])
        return cls(order[first], np.flatnonzero(first), np.cumsum(first) - 1, order)

    def width(self, schedule: Schedule) -> NDArray[np.int64]:
        """GPUs of every run."""
        if not len(self.first):
            return np.zeros(0, dtype=np.int64)
        return np.asarray(np.add.reduceat(schedule.gpus[self.order], self.first))

    def moved(self, schedule: Schedule) -> NDArray[np.bool_]:
        """True for each run that holds other nodes or counts than the job's run before it."""
        s, pieces = schedule, np.diff(np.append(self.first, len(self.order)))
        # Piece k of a run and of the one before lie apart by the latter's number of pieces.
        before = np.arange(len(self.order)) - pieces[self.piece]
        row, old = self.order, self.order[np.maximum(before, 0)]
        same = (before >= 0) & (s.job[row] == s.job[old])
        same &= (s.node[row] == s.node[old]) & (s.gpus[row] == s.gpus[old])
        moved = np.bincount(self.piece[same], minlength=len(pieces)) < pieces
        moved[1:] |= pieces[1:] != pieces[:-1]
        return moved

    def goes_on(self, schedule: Schedule) -> NDArray[np.bool_]:
        """True for each that is no beginning: as the schedule says, which may be wrong, else where it may be none."""
        said = schedule.goes_on
        return self.may_go_on(schedule) if said is None else said[self.row]

    def faults(
        self, schedule: Schedule
    ) -> Iterator[tuple[NDArray[np.bool_], str, NDArray[np.int64]]]:
        """Rows that are said to go on and may not: the entries, what was expected, and their rows."""
        said = schedule.goes_on
        if said is not None:
            apart = said[self.order] != said[self.row[self.piece]]
            yield apart, "goes on, or begins, apart from the rest of its gang", self.order
            say = "goes on from no row of its job that ends then, on the same GPUs, and may change"
            yield said[self.row] & ~self.may_go_on(schedule), say, self.row

    def whole(self, schedule: Schedule) -> NDArray[np.int64]:
        """Number of the whole run of each, in order, from 0."""
        return np.cumsum(~self.goes_on(schedule)) - 1

    def may_go_on(self, schedule: Schedule) -> NDArray[np.bool_]:
        """True for each that begins as one of its job ends, on its GPUs, where what it has beside these may change."""
        s, row = schedule, self.row
        held = s.cpus is not None or s.local_batch is not None
        changes = ((s.partner >= 0) | held)[row]
        stays = np.zeros(len(row), dtype=bool)
        stays[1:] = s.job[row[1:]] == s.job[row[:-1]]
        stays &= ~self.moved(s)
        stays[1:] &= changes[1:] | changes[:-1]
        stays[1:] &= s.start_s[row[1:]] == s.end_s[row[:-1]]
        return stays


def owed_ticks(instance: Instance, schedule: Schedule, runs: Runs) -> NDArray[np.int64]:
    """Overhead that each run's job still owes at the end of the run [ticks]; negative if overpaid."""
    s, row, rules = schedule, runs.row, instance.overheads
    job = s.job[row]
    again = np.zeros(len(row), dtype=bool)
    again[1:] = job[1:] == job[:-1]
    gangs, which = np.unique(instance.workload.gpus, return_inverse=True)
    by_gang = np.array([_restart_s(rules, int(gang)) for gang in gangs], dtype=np.float64)
    resumed = by_gang[which[job]] + runs.moved(s) * rules.migration_s
    charge = rules.start_s + np.where(again, resumed, 0.0)
    charge[runs.goes_on(s)] = 0.0
    ticks = ticks_of(charge) - ticks_of(s.overhead_s[row])
    total = np.cumsum(ticks)
    before = (total - ticks)[~again][np.cumsum(~again) - 1] if len(row) else total
    return total - before


def ticks_of(times_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Times [s] that are on the grid, as whole ticks."""
    return (times_s * TICKS_PER_S).astype(np.int64)


def _restart_s(rules: Overheads, gang: int) -> float:
    """Restart charge of a gang [s]: the first step that is not below it, else the last."""
    steps = rules.restart_by_gpus or ((gang, rules.restart_s),)
    return next((cost for most, cost in steps if gang <= most), steps[-1][1])


Fault = tuple[int, str]
"""A row and what is wrong with it."""


class FactoredRuns:
    """Factors on the speeds of runs, by CPUs and memory, spreading and width; O(R log R) for R rows.

    Attributes
    ----------
    fault : (int, str) or None
        The first row whose CPUs and memory cannot be.
    speed : ndarray, shape (runs,)
        Speed of every run; only where there is no fault.
    """

    def __init__(self, instance: Instance, schedule: Schedule, runs: Runs) -> None:
        self._instance, self._schedule, self._runs = instance, schedule, runs
        self.speed: NDArray[np.float64] = np.ones(len(runs.row))
        self.fault: Fault | None = None
        if instance.sensitivity is not None:
            self.fault = self._counted(instance.sensitivity) or self._fits()
        job, width = schedule.job[runs.row], runs.width(schedule)
        rows = np.bincount(runs.piece, minlength=len(runs.row))
        if instance.locality is not None:
            spread = self._spread(job, width, rows)
            self.speed *= np.where(spread, instance.locality.spread_speed[job], 1.0)
        if instance.elasticity is not None:
            gang = instance.workload.gpus[job]
            self.speed *= run_speed.width_speed(instance.elasticity, job, gang, width)

    def _spread(
        self, job: NDArray[np.int64], width: NDArray[np.int64], nodes: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """True for each run on more nodes than it needs; cores are never spread."""
        few = run_speed.fewest_nodes(self._instance.cluster, width)
        return np.asarray((nodes > few) & ~self._instance.workload.on_cores[job])

    def _counted(self, sensitivity: Sensitivity) -> Fault | None:
        """Speed by CPUs and memory; the first row that has too little for any speed."""
        s, order = self._schedule, self._runs.order
        assert s.cpus is not None
        assert s.memory_gb is not None
        for name, held in (("cpus", s.cpus), ("memory_gb", s.memory_gb)):
            bad = ~(np.isfinite(held) & (held >= 0))
            if bad.any():
                row = int(bad.argmax())
                return row, f"{name} is {held[row]}, expected a number >= 0"
        jobs = self._instance.workload
        asked = jobs.memory_gb[s.job] * s.gpus / jobs.gpus[s.job]
        beside = jobs.on_cores[s.job] & ((s.cpus != 0) | (s.memory_gb > asked + MILLIONTH))
        if beside.any():
            row = int(beside.argmax())
            held_text = (
                f"{s.cpus[row]:g} CPUs beside them, expected none, and {s.memory_gb[row]:g} GB"
            )
            return row, f"holds cores and {held_text}, expected at most {asked[row]:g}"
        gpus = s.gpus * jobs.gpu_milli[s.job] / run_speed.WHOLE_MILLI
        speed = run_speed.profile_speed(sensitivity, s.job, gpus, s.cpus, s.memory_gb)
        speed = np.where(jobs.on_cores[s.job], 1.0, speed)
        if (speed == 0).any():
            row = int((speed == 0).argmax())
            held_text = f"{s.cpus[row]:g} CPUs and {s.memory_gb[row]:g} GB"
            return row, f"makes no progress with {held_text} on {s.gpus[row]} GPUs"
        slowest = np.full(len(self._runs.row), np.inf)
        np.minimum.at(slowest, self._runs.piece, speed[order])
        self.speed = self.speed * slowest
        return None

    def _fits(self) -> Fault | None:
        """The first row with which a node's CPUs or memory are exceeded at some moment."""
        s, nodes = self._schedule, self._instance.cluster.nodes
        n = len(s)
        node, time = np.concatenate((s.node, s.node)), np.concatenate((s.end_s, s.start_s))
        order = np.lexsort((np.arange(2 * n) >= n, time, node))
        sizes = {
            "CPUs": (s.cpus, np.array([each.cpus for each in nodes])),
            "GB of memory": (s.memory_gb, np.array([each.memory_gb for each in nodes])),
        }
        for name, (held, size) in sizes.items():
            assert held is not None
            # Millionths, as whole numbers: sums of floats drift. Rounded down, for thirds of 8 CPUs
            # must add up to 8; the thousandth of a millionth is for 2.0 written as 1.9999999999999998.
            # No more than one above the node's, which is too much already, so that none overflows.
            held = np.minimum(held, size[s.node] + 1.0)
            micro = np.floor(held * 1e6 + 1e-3).astype(np.int64)
            total = np.cumsum(np.concatenate((-micro, micro))[order])
            room = np.round(size * 1e6).astype(np.int64)[node[order]]
            if (total > room).any():
                k = int((total > room).argmax())
                say = f"{total[k] / 1e6:g} {name} held on the node at {time[order[k]]} s"
                return int(order[k] % n), f"{say}, it has {room[k] / 1e6:g}"
        return None


# Jobs with graphs: the nodes of the replicas of every run.
#
# Rows that hold the same replicas and runs of the same rows are checked once, and alpha is computed
# once for each of them, from the graph and the rows alone and not from what the engine remembers.


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
    speed : ndarray, shape (runs,)
        Speed of every run beside its partner, 1 alone.
    """

    def __init__(self, graphs: JobGraphs, schedule: Schedule, runs: Runs) -> None:
        self._graphs = graphs
        self._rows: dict[tuple[int, ...], int] = {}
        self.iteration_s: NDArray[np.float64] = np.zeros(0)
        self.speed: NDArray[np.float64] = np.ones(len(runs.row))
        self.fault = self._gather(schedule, runs) or self._time(schedule, runs)

    def share(self, runs: Runs, rows: NDArray[np.int64], rates: NDArray[np.float64]) -> None:
        """Take note of rows that have partners, and of their speeds beside these: a run has the least of its rows."""
        speed = np.ones(len(runs.order))
        speed[rows] = rates
        self.speed = np.minimum.reduceat(speed[runs.order], runs.first)

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
        ends = [*runs.first.tolist(), len(number)][1:]
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
        return graph_time.iteration_s(graph, nodes, self._graphs.network)


def _whole(cell: tuple[object, ...], known: dict[tuple[int, ...], int]) -> bool:
    """True if all are whole numbers from 0; equal ones were checked before."""
    try:
        if cell in known:
            return True
    except TypeError:
        return False
    return all(isinstance(count, Integral) and 0 <= int(count) < _MANY for count in cell)
