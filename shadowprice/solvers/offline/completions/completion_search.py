"""The preemptive optimum of a few rigid gangs: a search over windows of completions, with preemption at any moment.

Upper bounds are schedules of :mod:`.completion_orders`, lower ones prices of :mod:`.window_prices`. A set of windows is
closed once prices show that no schedule within costs less than the best one known; else one job's window
is cut in two where cheapest plans disagree on when the job ends. Windows also lose what the prices at hand
show to be too dear. The tree of cuts, with the prices of every part that was closed, is the proof, which
``shadowprice.proofs.lower_bounds.completion_windows`` checks in rationals.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.completions.completion_orders import (
    Event,
    Interval,
    events_of,
    improve,
    joined,
    runs_of,
    served_by_priority,
)
from shadowprice.solvers.offline.completions.window_loops import Ints
from shadowprice.solvers.offline.completions.window_prices import (
    PriceProgramme,
    WindowJobs,
    Windows,
)

MOST_SEARCHED = 12
"""Jobs up to which the optimum is searched for."""

TOLERANCE = Fraction(1, 10**6)
"""Share of the best schedule's weighted flow time by which parts that are closed may allow less."""

_FIRST_EFFORT, _EFFORT = (3_000, 1.0, 20), (400, 1.0, 12)
"""Steps of prices for all schedules, and for parts."""

_CELLS, _MOVES = 120, 200
"""Cells of a grid; orders tried from one."""


@dataclass(frozen=True, eq=False, repr=False)
class Priced(Brief):
    """A part of the tree that prices bound.

    Parameters
    ----------
    grid_ticks : tuple of Fraction, shape (cells + 1,)
    rows : tuple of tuple of int, shape (n, cells)
        Price of a tick of each job, in the unit of :class:`CompletionTree`.
    """

    grid_ticks: tuple[Fraction, ...]
    rows: tuple[tuple[int, ...], ...]


@dataclass(eq=False, repr=False)
class Cut(Brief):
    """A part of the tree cut in two: a job completes up to a moment, or from it on.

    Parameters
    ----------
    job : int
        Its number among all jobs.
    at_ticks : Fraction
    early, late : Part
    """

    job: int
    at_ticks: Fraction
    early: Part
    late: Part


Part: TypeAlias = "Cut | Priced"


@dataclass(frozen=True, eq=False, repr=False)
class CompletionTree(Brief):
    """Parts that cover all schedules, with prices.

    Parameters
    ----------
    root : Part
    jobs : tuple of int
        Jobs that have prices, in the order of the rows.
    price_unit : Fraction
        Weight that a price of 1 stands for.
    """

    root: Part
    jobs: tuple[int, ...]
    price_unit: Fraction


@dataclass(frozen=True, eq=False, repr=False)
class SearchedOptimum(Brief):
    """Bounds of the least weighted completion time of preemptive schedules.

    Parameters
    ----------
    lower_ticks, upper_ticks : Fraction
        The first is of the tree, in exact arithmetic; the second of the runs.
    runs : tuple of Interval
        A schedule on one pool of GPUs.
    tree : CompletionTree
    parts : int
        Parts that were looked at.
    finished : bool
        Whether the two differ by :data:`TOLERANCE` of the weighted flow time at most.
    """

    lower_ticks: Fraction
    upper_ticks: Fraction
    runs: tuple[Interval, ...]
    tree: CompletionTree
    parts: int
    finished: bool


@dataclass(order=True)
class _Open:
    """A part that is not closed, by its bound."""

    value: float
    number: int
    windows: Windows = field(compare=False)
    hole: _Hole = field(compare=False)


@dataclass(eq=False)
class _Hole:
    """A place in the tree that is to be filled."""

    part: Part | None = None
    cut: tuple[int, Fraction, _Hole, _Hole] | None = None

    def filled(self) -> Part:
        """The part, whose holes are all filled."""
        if self.cut is None:
            assert self.part is not None
            return self.part
        job, at, early, late = self.cut
        return Cut(job, at, early.filled(), late.filled())


@cache
def prepare() -> None:
    """Compile, or read from the cache, what the search runs; some seconds once on a machine, then one or so."""
    jobs = Relaxation([0, 0, 1], [2, 1, 1], [1, 1, 1], [Fraction(1)] * 3, 1, Fraction(1))
    for _ in search_optimum(jobs):
        pass


def search_optimum(jobs: Relaxation, *, until: float = math.inf) -> Iterator[SearchedOptimum]:
    """Bounds of the preemptive optimum: of all schedules at once first, and at the end of the search.

    Nothing is yielded for more jobs than :data:`MOST_SEARCHED`, or where the times are too long for 64 bits.

    Parameters
    ----------
    until : float
        Moment of ``time.monotonic()`` by which the search ends.
    """
    if len(jobs.release) > MOST_SEARCHED:
        return
    windows = WindowJobs.of(jobs)
    if windows is None:
        return
    searched = _Search(jobs, windows, until)
    searched.begin()
    yield searched.result()
    if searched.open and time.monotonic() < until:
        searched.run()
        yield searched.result()


def columns_of(
    runs: Sequence[Interval],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Job, start [s] and end [s] of runs."""
    table = np.array(runs, dtype=np.int64).reshape(-1, 3)
    start, end = (table[:, k].astype(np.float64) / TICKS_PER_S for k in (1, 2))
    return table[:, 0], start, end


class _Search:
    """State of the search."""

    def __init__(self, jobs: Relaxation, windows: WindowJobs, until: float) -> None:
        self.jobs, self.windows, self.until = jobs, windows, until
        self.gangs = [jobs.gpus[j] for j in windows.index]
        self.seen: set[tuple[Event, ...]] = set()
        self.upper: Fraction | None = None
        self.runs: list[Interval] = []
        self.open: list[_Open] = []
        self.root = _Hole()
        self.closed = math.inf
        self.parts = 0

    @property
    def best(self) -> Fraction:
        """Cost of the best schedule [units]."""
        assert self.upper is not None
        return self.windows.units(self.upper)

    @property
    def goal(self) -> int:
        """Bound from which parts are closed [units]."""
        return math.ceil(self.best * (1 - TOLERANCE))

    def begin(self) -> None:
        """Schedules and prices of all at once, on grids that follow the best schedule."""
        release, work = self.windows.records["release"], self.windows.records["work"]
        size = work * np.array(self.gangs) / np.maximum(self.windows.records["weight"], 1)
        for key in (size, work, release + size, release):
            order = np.argsort(key, kind="stable").tolist()
            self.try_ends(served_by_priority(self.windows, self.jobs.total_gpus, self.gangs, order))
        part = Windows.without_prices(self.windows, self.grid())
        value, part = part.improved(float(self.best), _FIRST_EFFORT)
        self.try_mean(part)
        for _ in range(2):
            known = self.upper
            part = part.regridded(self.grid())
            value, part = part.improved(float(self.best), _FIRST_EFFORT)
            self.try_mean(part)
            if self.upper == known:
                break
        value, part = self.sharpened(value, part)
        self.parts = 1
        self.put(value, part, self.root)

    def try_mean(self, part: Windows) -> None:
        """Look for schedules in the order of the mean ends of cheapest plans."""
        self.try_ends(part.mean.tolist())
        order = np.argsort(part.mean, kind="stable").tolist()
        self.try_ends(served_by_priority(self.windows, self.jobs.total_gpus, self.gangs, order))

    def try_ends(self, ends: list[float] | list[int]) -> None:
        """Look for schedules from the order of some ends on, and keep one that costs less."""
        better = improve(self.windows, events_of(self.windows, ends), _MOVES, self.seen)
        if better is None:
            return
        runs = runs_of(self.windows, better)
        last = [0] * len(self.gangs)
        for job, _, end in runs:
            last[job] = max(last[job], end)
        cost = sum(
            (w * end for w, end in zip(self.windows.weights, last, strict=True)), Fraction(0)
        )
        if self.upper is None or cost < self.upper:
            self.upper, self.runs = cost, runs

    def grid(self) -> Ints:
        """A grid of whole divisors of all times if they are few, else where the best schedule changes and evenly."""
        jobs = self.windows
        last = int(jobs.records["latest"].max())
        ends = sorted({int((end - jobs.begin_ticks) / jobs.unit_ticks) for _, _, end in self.runs})
        reach = ends[-1] + jobs.divisor
        if reach // jobs.divisor <= _CELLS:
            points = set(range(0, reach, jobs.divisor))
        else:
            starts = {int((at - jobs.begin_ticks) / jobs.unit_ticks) for _, at, _ in self.runs}
            even = {reach * k // _CELLS for k in range(_CELLS + 1)}
            points = even | starts | set(ends) | set(jobs.records["release"].tolist())
        return np.array(sorted(points | {0, max(last, reach)}), dtype=np.int64)

    def sharpened(self, value: float, part: Windows) -> tuple[float, Windows]:
        """The bound of a part after more effort, unless it is as large as can be."""
        exact, _ = part.bound(part.whole_prices())
        if exact is None or exact >= self.best:
            return value, part
        programme = PriceProgramme(part)
        higher, _, prices = programme.solve(float(self.best), part.prices)
        other = replace(part, prices=prices)
        sharper, _ = other.bound(other.whole_prices())
        if sharper is None or sharper > exact:
            value, part = max(value, higher), other
        return value, replace(part, mean=programme.mean, variance=programme.variance)

    def put(self, value: float, part: Windows, hole: _Hole) -> None:
        """Close a part, or keep it open."""
        if value >= self.goal and self.close(part, hole):
            return
        self.parts += 1
        heapq.heappush(self.open, _Open(min(value, float(self.best)), self.parts, part, hole))

    def close(self, part: Windows, hole: _Hole) -> bool:
        """Fill a hole with prices if their exact bound suffices."""
        prices = part.whole_prices()
        value, _ = part.bound(prices)
        if value is not None and value < self.goal:
            return False
        hole.part = self.priced(part, prices)
        if value is not None:
            self.closed = min(self.closed, value)
        return True

    def priced(self, part: Windows, prices: Ints) -> Priced:
        """A part of the tree with prices."""
        jobs = self.windows
        grid = [jobs.begin_ticks + at * jobs.unit_ticks for at in part.bounds.tolist()]
        return Priced(tuple(grid), tuple(map(tuple, prices.tolist())))

    def run(self) -> None:
        """Cut open parts, the one with the smallest bound first."""
        while self.open and time.monotonic() < self.until:
            part = heapq.heappop(self.open)
            if part.value >= self.goal and self.close(part.windows, part.hole):
                continue
            known = self.upper
            self.try_mean(part.windows)
            if self.upper != known:
                heapq.heappush(self.open, part)
                continue
            if not self.cut(part):
                heapq.heappush(self.open, part)
                return

    def cut(self, part: _Open) -> bool:
        """Cut a part in two; False if no window is wide enough."""
        windows, hole = self.tightened(part.windows, part.hole)
        records = windows.records
        width = records["latest"] - records["earliest"]
        if width.max() < 2:
            return False
        score = np.where(width < 2, -1.0, windows.variance + 1e-4 * width)
        job = int(score.argmax())
        at = self.place(windows, job)
        early, late = _Hole(), _Hole()
        hole.cut = (self.windows.index[job], self.ticks(at), early, late)
        windows = windows.on_grid(at)
        first, last = int(records["earliest"][job]), int(records["latest"][job])
        for below, begin, end in ((early, first, at), (late, at, last)):
            child = windows.between(job, begin, end)
            value, child = child.improved(float(self.best) * (1 + 1e-4), _EFFORT)
            value = max(value, part.value)
            value, child = self.sharpened(value, child)
            self.put(value, child, below)
        return True

    def place(self, windows: Windows, job: int) -> int:
        """Moment that cuts a window: near the mean end, at whole divisors while the window holds one."""
        record, step = windows.records[job], self.windows.divisor
        first, last = int(record["earliest"]), int(record["latest"])
        mean = float(windows.mean[job])
        lowest, highest = first // step + 1, (last - 1) // step
        if lowest <= highest:
            return min(max(round(mean / step - 0.5), lowest), highest) * step
        return min(max(round(mean), first + 1), last - 1)

    def tightened(self, windows: Windows, hole: _Hole) -> tuple[Windows, _Hole]:
        """Windows without what the prices at hand show to be too dear, cell by cell."""
        prices = windows.whole_prices()
        value, costs = windows.bound(prices)
        if value is None:
            return windows, hole
        leaf = self.priced(windows, prices)
        for job in range(len(self.gangs)):
            dear = costs[job] + value - int(costs[job].min())
            allowed = np.flatnonzero(dear < math.ceil(self.best))
            if not len(allowed):
                continue
            begin = int(windows.bounds[allowed[0]])
            # Costs are continuous, so that only the end of a cell that is too dear is too dear itself.
            after = min(int(allowed[-1]) + 1, costs.shape[1] - 1)
            end = int(windows.bounds[after + 1])
            index = self.windows.index[job]
            if begin > windows.records["earliest"][job]:
                self.closed = min(self.closed, int(dear[: allowed[0]].min()))
                rest = _Hole()
                hole.cut = (index, self.ticks(begin), _Hole(leaf), rest)
                windows, hole = (
                    windows.between(job, begin, int(windows.records["latest"][job])),
                    rest,
                )
            if end < windows.records["latest"][job]:
                self.closed = min(self.closed, int(dear[after:].min()))
                rest = _Hole()
                hole.cut = (index, self.ticks(end), rest, _Hole(leaf))
                windows, hole = windows.between(job, 0, end), rest
        return windows, hole

    def ticks(self, at: int) -> Fraction:
        """A moment [ticks] of one in units."""
        return self.windows.begin_ticks + at * self.windows.unit_ticks

    def result(self) -> SearchedOptimum:
        """Bounds so far: parts that are open count with the exact bound of the prices at hand."""
        lower = self.closed
        for part in self.open:
            prices = part.windows.whole_prices()
            value, _ = part.windows.bound(prices)
            part.hole.part = self.priced(part.windows, prices)
            if value is not None:
                lower = min(lower, value)
        assert self.upper is not None
        ticks = self.upper if lower == math.inf else min(self.windows.ticks(int(lower)), self.upper)
        jobs = self.windows
        unit = jobs.heaviest / jobs.weight_units
        tree = CompletionTree(self.root.filled(), jobs.index, unit)
        runs = self.with_weightless()
        return SearchedOptimum(ticks, self.upper, tuple(runs), tree, self.parts, not self.open)

    def with_weightless(self) -> list[Interval]:
        """The best schedule, numbered as the jobs given, with jobs without weight at its end, one after the other."""
        runs = [(self.windows.index[job], start, end) for job, start, end in self.runs]
        now = max(end for _, _, end in runs)
        for j, weight in enumerate(self.jobs.weight):
            if not weight:
                start = max(now, self.jobs.release[j])
                now = start + self.jobs.work[j]
                runs.append((j, start, now))
        return joined(runs)
