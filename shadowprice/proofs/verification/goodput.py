r"""Goodput by the verifier's own code: batches of runs, whom others slow, and the way of each job through its epochs.

Definitions. A run on replicas r_1, ..., r_k, in the order of its rows, at local batch b, accumulated a more times, has
batch B = (r_1 + ... + r_k) b (a + 1) and goodput

.. math:: g = \frac{(\sigma^2 + \mu^2) / (\sigma^2 / (B / B_0) + \mu^2)}{s + (s - y) a} (1 - i)

in an epoch with gradients of square :math:`\mu^2` and variance :math:`\sigma^2`, with steps of s seconds of which y
exchange gradients, and the interference i if others slow it. Every operation is that of IEEE 754 in this order, so
that g is a double. Tables are read as the module of applications says: step times by placement in its smallest
rotation and linear in b, else by Delaunay triangles of (nodes, replicas, b), for which SciPy is asked; noise is linear
in B. Progress is g times time, exactly; an epoch of which w is left takes the fewest ticks that make w, or w / g
seconds rounded to whole ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature
from shadowprice.proofs.run_speed import TICKS_PER_S
from shadowprice.proofs.verification.rules import SeenRun, TermRule

if TYPE_CHECKING:
    from collections.abc import Callable

    from shadowprice.instances.goodput.application import Application
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.terms.goodput import Goodput
    from shadowprice.instances.workload import Workload
    from shadowprice.proofs.verification.speeds import Runs

Ring = tuple[int, ...]
Fault = tuple[str, NDArray[np.bool_], "Callable[[int], str]"]

_LESS = 1e-8
_NODES = 16


def _wide(term: Goodput, runs: Sequence[SeenRun]) -> Iterator[tuple[int, str]]:
    """Runs on more GPUs than the batch of their job has smallest local batches."""
    least: dict[str, tuple[int, int]] = {}
    for app in term.applications:
        least[app.name] = app.records[-1].batch, min(step.local for step in app.placed)
    for k, seen in enumerate(runs):
        largest, local = least[seen.jobs.model[seen.job]]
        most = max((int(seen.jobs.batch_size[seen.job]) or largest) // local, 1)
        if seen.gpus > most:
            yield k, f"holds {seen.gpus} GPUs, a job of its batch has {most} at most"


RULE = TermRule(_wide)
"""Rule of each run by itself; all else is in :class:`GoodputRuns`."""


class StepTables:
    """Tables of one application, looked up by the definitions above."""

    def __init__(self, app: Application) -> None:
        self.batches = [each.batch for each in app.records]
        self.records = app.records
        self.epochs = min(len(each.progress) for each in app.records)
        self.most_local = app.most_local or max(step.local for step in app.placed)
        least = [min(each.progress[k] for each in app.records) for k in range(self.epochs)]
        marks = [Fraction(0), *map(Fraction, least)]
        self.work = [max(b - a, Fraction(0)) for a, b in pairwise(marks)]
        self._lines: dict[Ring, list[tuple[int, float, float]]] = {}
        points: dict[tuple[int, int, int], list[tuple[float, float]]] = {}
        for ring, local, step_s, sync_s in app.placed:
            self._lines.setdefault(tuple(ring), []).append((local, step_s, sync_s))
            points.setdefault((len(ring), sum(ring), local), []).append((step_s, sync_s))
        for line in self._lines.values():
            line.sort()
        self._at = [list(key) for key in sorted(points)]
        self._of = [_mean(points[key]) for key in sorted(points)]
        for nodes, replicas, local, step_s, sync_s in app.scaled:
            self._at.append([nodes, replicas, local])
            self._of.append([step_s, sync_s])
        self._planes: Any = None
        self._known: dict[tuple[Ring, int, int, int], float] = {}

    def goodput(self, ring: Ring, local: int, accumulated: int, epoch: int) -> float:
        """Progress a second; 0 where nothing was measured."""
        key = ring, local, accumulated, epoch
        if key not in self._known:
            step = self._step(ring, local) if local > 0 and accumulated >= 0 else None
            noise = self._noise(sum(ring) * local * (accumulated + 1), epoch)
            self._known[key] = (
                0.0 if step is None or noise is None else _rate(step, noise, accumulated)
            )
        return self._known[key]

    def made_up(self, batch: int, replicas: int) -> tuple[int, int]:
        """Local batch and accumulations of so many replicas for a batch that is kept."""
        each = ceil(batch / replicas - _LESS)
        more = ceil(each / self.most_local - _LESS) - 1
        if replicas == 1 and batch > self.batches[0] and more < 1:
            more = 1
        return min(
            ceil(each / (more + 1) - _LESS), self.batches[-1] // (replicas * (more + 1))
        ), more

    def _step(self, ring: Ring, local: int) -> tuple[float, float] | None:
        lowest = min(ring[k:] + ring[:k] for k in range(len(ring)))
        line = self._lines.get(lowest)
        if line is None:
            return self._on_planes(len(ring), sum(ring), local)
        locals_ = [point[0] for point in line]
        if local in locals_ and len(line) == 1:
            return line[0][1:]
        if len(line) == 1 or not locals_[0] <= local <= locals_[-1]:
            return next((point[1:] for point in line if point[0] == local), None)
        k = min(max(bisect_left(locals_, local), 1), len(line) - 1)
        (x0, step0, sync0), (x1, step1, sync1) = line[k - 1], line[k]
        run, rise = local - x0, x1 - x0
        return (step1 - step0) / rise * run + step0, (sync1 - sync0) / rise * run + sync0

    def _on_planes(self, nodes: int, replicas: int, local: int) -> tuple[float, float] | None:
        if self._planes is None:
            from scipy.interpolate import LinearNDInterpolator
            from scipy.spatial import QhullError

            try:
                corners = np.array(self._at, float), np.array(self._of, float)
                self._planes = LinearNDInterpolator(*corners)
            except (QhullError, ValueError):
                self._planes = _nowhere
        step_s, sync_s = self._planes([min(nodes, _NODES), replicas, local])[0].tolist()
        return (step_s, sync_s) if isfinite(step_s) and isfinite(sync_s) else None

    def _noise(self, batch: int, epoch: int) -> tuple[float, float, float] | None:
        """Square and variance of the gradients, and the batch over the smallest."""
        k = bisect_left(self.batches, batch)
        if k == len(self.batches) or batch < self.batches[0]:
            return None
        high = self.records[k]
        scale = batch / self.batches[0]
        if high.batch == batch:
            return high.grad_sqr[epoch], high.grad_var[epoch], scale
        low = self.records[k - 1]
        up, down, span = batch - low.batch, high.batch - batch, high.batch - low.batch
        sqr = (up * high.grad_sqr[epoch] + down * low.grad_sqr[epoch]) / span
        var = (up * high.grad_var[epoch] + down * low.grad_var[epoch]) / span
        return sqr, var, scale


def _words(text: str) -> Callable[[int], str]:
    return lambda _: text


def _nowhere(_: Sequence[int]) -> NDArray[np.float64]:
    """Times between points that span no volume."""
    return np.full((1, 2), np.nan)


def _mean(rows: list[tuple[float, float]]) -> list[float]:
    first, second = 0.0, 0.0
    for step_s, sync_s in rows:
        first, second = first + step_s, second + sync_s
    return [first / len(rows), second / len(rows)]


def _rate(step: tuple[float, float], noise: tuple[float, float, float], accumulated: int) -> float:
    (step_s, sync_s), (sqr, var, scale) = step, noise
    below, length_s = var / scale + sqr, step_s + (step_s - sync_s) * accumulated
    if below <= 0 or length_s <= 0:
        return 0.0
    result = (var + sqr) / below / length_s
    return result if isfinite(result) and result > 0 else 0.0


def has_goodput(instance: Instance) -> bool:
    """True if jobs have goodput."""
    return any(term.feature is Feature.GOODPUT for term in instance.declared)


def amiss_in_columns(instance: Instance, schedule: Schedule) -> str:
    """Message about columns of batches that are there and should not be, or the other way; empty if none is."""
    goodput = has_goodput(instance)
    slows = any(getattr(term, "interference", 0.0) > 0 for term in instance.declared)
    there = {"local_batch": goodput, "accumulated": goodput, "slowed": goodput and slows}
    for name, expected in there.items():
        if (getattr(schedule, name) is not None) != expected:
            return f"the schedule has {'no' if expected else 'a'} column {name}"
    return ""


class GoodputRuns:
    """Runs of jobs with goodput.

    Parameters
    ----------
    term : Goodput
    schedule : Schedule
        With columns of batches.
    runs : Runs
        Of the schedule.
    """

    def __init__(self, term: Goodput, schedule: Schedule, runs: Runs, jobs: Workload) -> None:
        self._schedule, self._runs, self._jobs, self._term = schedule, runs, jobs, term
        self._tables = {app.name: StepTables(app) for app in term.applications}
        bounds = [*runs.first.tolist(), len(runs.order)]
        # Replicas form a ring in the order of the rows, not of the nodes.
        rows = [sorted(runs.order[a:b].tolist()) for a, b in pairwise(bounds)]
        self._rings: list[Ring] = [tuple(int(schedule.gpus[k]) for k in mine) for mine in rows]

    @classmethod
    def of(cls, instance: Instance, schedule: Schedule, runs: Runs) -> GoodputRuns | None:
        """Runs of an instance whose jobs have goodput; None where they have none."""
        for term in instance.declared:
            if term.feature is Feature.GOODPUT:
                known: Any = term
                return cls(known, schedule, runs, instance.workload)
        return None

    def faults(self) -> Iterator[Fault]:
        """Batches that jobs do not have, and runs that are not slowed where they are; entries are runs."""
        s, row = self._schedule, self._runs.row
        assert s.local_batch is not None
        assert s.accumulated is not None
        for name in ("local_batch", "accumulated", "slowed"):
            column = getattr(s, name)
            if column is not None:
                apart = column[self._runs.order] != column[row[self._runs.piece]]
                bad = np.bincount(self._runs.piece[apart], minlength=len(row)) > 0
                yield "batch", bad, _words(f"has another {name} than the rest of its gang")
        changed, idle = np.zeros(len(row), dtype=bool), np.zeros(len(row), dtype=bool)
        for k, ring in enumerate(self._rings):
            job = int(s.job[row[k]])
            tables, batch = self._tables[self._jobs.model[job]], int(self._jobs.batch_size[job])
            pair = int(s.local_batch[row[k]]), int(s.accumulated[row[k]])
            changed[k] = bool(batch) and pair != tables.made_up(batch, sum(ring))
            idle[k] = not all(
                tables.goodput(ring, *pair, epoch) > 0 or not work
                for epoch, work in enumerate(tables.work)
            )
        yield "batch", changed, _words("makes up another batch than that of its job")
        yield (
            "batch",
            idle,
            _words("makes no progress on GPUs, or at a batch, that were not measured"),
        )
        if s.slowed is not None:
            odd = ~np.isin(s.slowed[row], (0, 1))
            yield "slowed", odd, _words("slowed is neither 0 nor 1")
            say = "shares a node with another gang across nodes, by which it is slowed"
            yield "slowed", self._unslowed(s.slowed[row]), _words(say)

    def _unslowed(self, slowed: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Runs across nodes that are not said to be slowed while another such run is on one of their nodes."""
        s, runs = self._schedule, self._runs
        bad = np.zeros(len(runs.row), dtype=bool)
        spread = np.array([len(ring) > 1 for ring in self._rings], dtype=bool)
        here: dict[int, list[tuple[float, float, int]]] = {}
        for at, k in zip(runs.order.tolist(), runs.piece.tolist(), strict=True):
            if spread[k]:
                span = float(s.start_s[at]), float(s.end_s[at])
                here.setdefault(int(s.node[at]), []).append((*span, k))
        for spans in here.values():
            active: list[tuple[float, float, int]] = []
            for start_s, end_s, k in sorted(spans):
                active = [each for each in active if each[1] > start_s]
                for *_, other in active:
                    bad[k] |= not slowed[k]
                    bad[other] |= not slowed[other]
                active.append((start_s, end_s, k))
        return bad

    def progress(self, ran: NDArray[np.int64]) -> Iterator[tuple[int, bool, str]]:
        """Each job that runs, whether it is complete, and what is amiss with its work; empty where nothing is.

        Parameters
        ----------
        ran : ndarray of int
            Ticks of progress of each run.
        """
        s, row = self._schedule, self._runs.row
        jobs = s.job[row]
        first = np.flatnonzero(np.diff(jobs, prepend=-1)).tolist()
        for a, b in zip(first, [*first[1:], len(row)], strict=True):
            yield int(jobs[a]), *self._way(range(a, b), ran)

    def _way(self, mine: range, ran: NDArray[np.int64]) -> tuple[bool, str]:
        s, row = self._schedule, self._runs.row
        tables = self._tables[self._jobs.model[s.job[row[mine[0]]]]]
        epoch, done = 0, Fraction(0)
        for k in mine:
            ticks = int(ran[k])
            if k == mine[-1]:
                needed = sum(
                    self._epoch(tables, k, e, done if e == epoch else Fraction(0))[0]
                    for e in range(epoch, tables.epochs)
                )
                if needed == ticks:
                    return True, ""
            while epoch < tables.epochs:
                needs, true = self._epoch(tables, k, epoch, done)
                if true > ticks:
                    done += self._per_tick(tables, k, epoch) * ticks
                    break
                ticks, epoch, done = max(ticks - needs, 0), epoch + 1, Fraction(0)
            if epoch == tables.epochs:
                if k < mine[-1]:
                    return False, "completes its last epoch, and runs again"
                return False, f"runs for {ticks} ticks after its last epoch"
        return False, f"is in epoch {epoch} of {tables.epochs} when its last run ends"

    def _epoch(self, tables: StepTables, k: int, epoch: int, done: Fraction) -> tuple[int, int]:
        """Ticks that the rest of an epoch takes in a run, and ticks in which all its progress is made."""
        left = tables.work[epoch] - done
        if left <= 0:
            return 0, 0
        ticks = left / self._per_tick(tables, k, epoch)
        if self._term.whole_seconds:
            return round(ticks / TICKS_PER_S) * TICKS_PER_S, ceil(ticks)
        return ceil(ticks), ceil(ticks)

    def _per_tick(self, tables: StepTables, k: int, epoch: int) -> Fraction:
        s, at = self._schedule, self._runs.row[k]
        assert s.local_batch is not None
        assert s.accumulated is not None
        rate = tables.goodput(self._rings[k], int(s.local_batch[at]), int(s.accumulated[at]), epoch)
        slowed = s.slowed is not None and bool(s.slowed[at])
        return Fraction(rate * (1.0 - (self._term.interference if slowed else 0.0))) / TICKS_PER_S
