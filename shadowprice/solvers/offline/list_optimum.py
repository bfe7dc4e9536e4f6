"""The best schedule in which each job begins once, of few jobs: the cheapest of all lists, best first.

Jobs start one after the other as a list has them, each as early as it fits at or after the start of the one before;
some best schedule is made so (``shadowprice.proofs.lower_bounds.list_schedules``). Beginnings of lists are taken up in
order of what such a list costs at least, at prices of GPU time; one is left out where the same jobs were begun before
for no more, no later, and with no fewer GPUs free from then on. The first list that is complete is the cheapest; where
the search ends before, none costs less than the beginning that would have come next. Prices only decide how soon.
"""

from __future__ import annotations

import heapq
import sys
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise
from math import inf, lcm

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.solvers.offline.bounds import Relaxation
from shadowprice.solvers.offline.lagrangian import PRICE_UNIT
from shadowprice.solvers.offline.plan_prices import PlanPrices

Held = tuple[tuple[int, int], ...]
"""Ends and gangs of jobs that run, the first end first."""

_LOOK = 64
"""Beginnings that are taken up between two looks at the clock."""


@dataclass(frozen=True)
class ListOptimum:
    """Least that any list costs, and the cheapest if it was found.

    Parameters
    ----------
    ticks : Fraction
        Total weighted completion time, or the last completion [ticks].
    starts : tuple of int or None, shape (n,)
        Starts [ticks] of a schedule of that cost; None if the search ended before.
    looked_at : int
        Beginnings of lists that were taken up.
    """

    ticks: Fraction
    starts: tuple[int, ...] | None
    looked_at: int


@dataclass(frozen=True, order=True)
class _Beginning:
    """The beginning of a list: ordered by what the list costs at least, the longest first."""

    least: int
    left: int
    number: int
    cost: int = field(compare=False)
    now: int = field(compare=False)
    held: Held = field(compare=False)
    jobs: frozenset[int] = field(compare=False)
    last: int = field(compare=False)
    before: _Beginning | None = field(compare=False, repr=False)

    def starts(self) -> Iterator[tuple[int, int]]:
        """Jobs and their starts, the last first."""
        here: _Beginning | None = self
        while here is not None and here.before is not None:
            yield here.last, here.now
            here = here.before


class _Market:
    """Prices of GPU time: what all GPUs cost up to a moment, and what starts of jobs cost at least."""

    def __init__(self, jobs: Relaxation, weight: list[int], prices: PlanPrices) -> None:
        self._jobs, self._weight, self._grid = jobs, weight, prices.grid_ticks
        unit = max(weight) // PRICE_UNIT
        self._price = [unit * each for each in prices.prices]
        cells = zip(self._price, pairwise(self._grid), strict=True)
        self._paid = [0, *accumulate(price * (end - begin) for price, (begin, end) in cells)]
        self._known: dict[tuple[int, int], int] = {}
        self._kinks = [self._kinks_of(j) for j in range(len(weight))]

    def paid(self, until: int) -> int:
        """Price of a GPU until then."""
        inside = min(max(until, self._grid[0]), self._grid[-1])
        k = min(bisect_right(self._grid, inside), len(self._price)) - 1
        return self._paid[k] + self._price[k] * (inside - self._grid[k])

    def rest(self, now: int, held: Held) -> int:
        """Price of all GPUs that nobody holds from a moment on."""
        mine, every = self.paid(now), self._paid[-1]
        taken = sum(gang * (self.paid(end) - mine) for end, gang in held)
        return self._jobs.total_gpus * (every - mine) - taken

    def least(self, j: int, now: int) -> int:
        """Least weighted end and price of a job that starts then or later."""
        start = max(now, self._jobs.release[j])
        if (j, start) not in self._known:
            kinks, cheapest = self._kinks[j]
            later = cheapest[bisect_right(kinks, start)]
            self._known[j, start] = int(min(self._from(j, start), later))
        return self._known[j, start]

    def _from(self, j: int, start: int) -> int:
        end = start + self._jobs.work[j]
        return self._weight[j] * end + self._jobs.gpus[j] * (self.paid(end) - self.paid(start))

    def _kinks_of(self, j: int) -> tuple[list[int], list[float]]:
        work = self._jobs.work[j]
        kinks = sorted({*self._grid, *(at - work for at in self._grid)})
        cheapest: list[float] = [inf]
        for at in reversed(kinks):
            cheapest.append(min(cheapest[-1], self._from(j, at)))
        return kinks, cheapest[::-1]


class _Search:
    """Beginnings of lists, those that cost least first; costs are whole in units of 1 / ``scale``."""

    def __init__(self, jobs: Relaxation, prices: PlanPrices | None, *, span: bool) -> None:
        self._jobs, self._span = jobs, span
        self.scale = 1 if span else PRICE_UNIT * lcm(*(each.denominator for each in jobs.weight))
        self._weight = [0 if span else int(each * self.scale) for each in jobs.weight]
        priced = None if span else prices
        self._market = None if priced is None else _Market(jobs, self._weight, priced)
        self._made = 0
        self._known: dict[frozenset[int], list[_Beginning]] = {}
        every = frozenset(range(len(jobs.release)))
        first = _Beginning(0, len(every), 0, 0, 0, (), every, -1, None)
        self.queue = [first]

    def take_up(self, here: _Beginning) -> None:
        """Queue what may follow a beginning."""
        options = [(j, *self._earliest(j, here)) for j in sorted(here.jobs)]
        soonest = min(start + self._jobs.work[j] for j, start, _ in options)
        seen: set[tuple[int, int, int, Fraction]] = set()
        for j, start, held in options:
            jobs = self._jobs
            alike = (jobs.release[j], jobs.work[j], jobs.gpus[j], jobs.weight[j])
            if start >= soonest or alike in seen:
                continue
            seen.add(alike)
            self._queue(here, j, start, held)

    def _queue(self, here: _Beginning, j: int, start: int, held: Held) -> None:
        end = start + self._jobs.work[j]
        cost = max(here.cost, end) if self._span else here.cost + self._weight[j] * end
        held, left = tuple(sorted((*held, (end, self._jobs.gpus[j])))), here.jobs - {j}
        known = self._known.setdefault(left, [])
        if any(_no_worse(each, cost, start, held) for each in known):
            return
        self._made += 1
        least = max(here.least, cost + self._more(cost, start, held, left))
        after = _Beginning(least, len(left), self._made, cost, start, held, left, j, here)
        known.append(after)
        heapq.heappush(self.queue, after)

    def _earliest(self, j: int, here: _Beginning) -> tuple[int, Held]:
        """Earliest start of a job after a beginning, and who still runs then."""
        start, need = max(here.now, self._jobs.release[j]), self._jobs.gpus[j]
        moments = [start, *(end for end, _ in here.held if end > start)]
        for at in moments:
            running = tuple(each for each in here.held if each[0] > at)
            if sum(gang for _, gang in running) + need <= self._jobs.total_gpus:
                break
        return at, running

    def _more(self, cost: int, now: int, held: Held, left: frozenset[int]) -> int:
        """Least that a list costs beyond its beginning."""
        jobs, market = self._jobs, self._market
        ends = {j: max(now, jobs.release[j]) + jobs.work[j] for j in left}
        if self._span:
            area = sum(jobs.gpus[j] * jobs.work[j] for j in left)
            area += sum(gang * (end - now) for end, gang in held)
            return max(now - (-area // jobs.total_gpus), *ends.values(), cost) - cost
        alone = sum(self._weight[j] * end for j, end in ends.items())
        if market is None:
            return alone
        return max(alone, sum(market.least(j, now) for j in left) - market.rest(now, held))


def _no_worse(known: _Beginning, cost: int, now: int, held: Held) -> bool:
    """True if whatever follows a beginning with these can follow a known one of the same jobs, for no more."""
    if known.cost > cost or known.now > now:
        return False
    taken, mine = sum(gang for _, gang in held), [*known.held]
    for at, gang in ((now, 0), *held):
        taken -= gang
        if sum(other for end, other in mine if end > at) > taken:
            return False
    return True


def cheapest_list(
    jobs: Relaxation,
    *,
    span: bool = False,
    prices: PlanPrices | None = None,
    most: int = 100_000,
    until: float = inf,
) -> ListOptimum:
    """The least total weighted completion time of schedules in which each job begins once, or a bound of it.

    Parameters
    ----------
    jobs : Relaxation
        Gangs of which no two are on a GPU, of no more GPUs than there are.
    span : bool
        Ask for the last completion instead.
    prices : PlanPrices or None
        Prices at which lists are cut off; better ones let fewer be looked at. Those of ``span`` have none.
    most : int
        Beginnings of lists that are taken up at most.
    until : float
        Moment of the monotonic clock [s] at which it ends.
    """
    search = _Search(jobs, prices, span=span)
    looked_at = 0
    while True:
        here = search.queue[0]
        least = Fraction(here.least, search.scale)
        if not here.jobs:
            starts = dict(here.starts())
            return ListOptimum(least, tuple(starts[j] for j in range(len(starts))), looked_at)
        late = looked_at % _LOOK == 0 and time.monotonic() > until
        if looked_at >= most or late:
            return ListOptimum(least, None, looked_at)
        heapq.heappop(search.queue)
        search.take_up(here)
        looked_at += 1


def optimal_starts_s(instance: Instance, *, span: bool = False) -> NDArray[np.float64]:
    """Starts [s], shape (n,), of the cheapest schedule in which each job begins once.

    Parameters
    ----------
    instance : Instance
        Of few jobs that run alone and at one speed; milliseconds for nine of them.
    span : bool
        Minimise the last completion instead of the total weighted completion time.
    """
    optimum = cheapest_list(Relaxation.of(instance), span=span, most=sys.maxsize)
    assert optimum.starts is not None
    return np.array(optimum.starts, dtype=np.float64) / TICKS_PER_S
