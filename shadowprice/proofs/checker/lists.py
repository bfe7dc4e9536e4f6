"""Schedules in which each job begins once, made from lists of jobs: LB-list."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, lcm
from typing import NamedTuple

from .costs import LeastWork
from .form import PRICE_UNIT, Record, need, rational
from .instance import CertificateInstance
from .limits import Effort
from .prices import cells_of

LISTS = "list-schedules"


class ListState(NamedTuple):
    """Some jobs that are begun: what they cost, the last of their starts, and who holds GPUs after it until when."""

    cost: int
    now: int
    held: tuple[tuple[int, int], ...]
    """Ends and gangs, the first end first."""

    def allows(self, other: ListState) -> bool:
        """True if all that the other leaves to be done can be done here, for no more; it costs no less."""
        if self.now > other.now or self.cost > other.cost:
            return False
        for at in (other.now, *(end for end, _ in other.held)):
            mine = sum(gang for end, gang in self.held if end > at)
            if mine > sum(gang for end, gang in other.held if end > at):
                return False
        return True


class ListSchedules:
    """All lists of jobs, each of which starts as early as it fits at or after the start of the one before."""

    def __init__(self, instance: CertificateInstance, jobs: LeastWork, bound: Record) -> None:
        header = instance.header
        once = "starts" in header or "preemption" in header
        need(once, f"{LISTS}: jobs of the class go on where they were stopped")
        need(jobs.gangs, f"{LISTS}: jobs share GPUs, hold parts of them or run as copies")
        need(max(jobs.gang) <= jobs.gpus, f"{LISTS}: a gang is of more GPUs than there are")
        self.arrival, self.gang, self.gpus = jobs.arrival, jobs.gang, jobs.gpus
        self.length = jobs.shortest
        self.last, self.effort = header["objective"] == "makespan", Effort(LISTS)
        self.effort.spend(len(self.gang) * (len(self.gang) + 8 * len(bound["grid"])))
        # Costs are whole in units of 1 / scale.
        scale = PRICE_UNIT * lcm(*{each.denominator for each in jobs.weight})
        scale = 1 if self.last else scale
        self.weight = [0 if self.last else int(each * scale) for each in jobs.weight]
        self.least = ceil(rational(bound["least"], "least cost of lists") * scale)
        priced = bool(bound["grid"] or bound["prices"])
        fine = not (self.last and priced)
        need(fine, f"{LISTS}: takes no prices for the last end")
        self.grid, prices = cells_of(bound["grid"], bound["prices"]) if priced else ([], [])
        unit = max(self.weight) // PRICE_UNIT
        spent = (p * unit * (b - a) for p, (a, b) in zip(prices, pairwise(self.grid), strict=True))
        self.price, self.spent = [p * unit for p in prices], [0, *accumulate(spent)]
        self.plans = [self.planned(j) for j in range(len(self.gang))] if self.grid else []
        self.before = [sum(1 << i for i in self.not_after(j)) for j in range(len(self.gang))]

    def not_after(self, j: int) -> Iterator[int]:
        """Jobs that need not start after this one: they are like it, came before and are worth as much."""
        mine = self.arrival[j], -self.weight[j], j
        for i in range(len(self.gang)):
            if (self.gang[i], self.length[i]) == (self.gang[j], self.length[j]):
                theirs = self.arrival[i], -self.weight[i], i
                if theirs < mine and theirs[1] <= mine[1]:
                    yield i

    def nothing_less(self) -> bool:
        """True if none of the lists costs less than is claimed."""
        every = range(len(self.gang))
        layer = {(1 << len(every)) - 1: [ListState(0, 0, ())]}
        for _ in every:
            later: dict[int, list[ListState]] = {}
            for left, states in layer.items():
                mine = [j for j in every if left >> j & 1]
                for state in states:
                    for j, after in self.following(left, mine, state):
                        rest = [i for i in mine if i != j]
                        if self.at_least(after, rest) < self.least:
                            later.setdefault(left ^ 1 << j, []).append(after)
            layer = {left: self.best(states) for left, states in later.items()}
        return not layer

    def following(
        self, left: int, mine: list[int], state: ListState
    ) -> Iterator[tuple[int, ListState]]:
        """States after one more job, of those that some best list may have next."""
        self.effort.spend(len(mine) * (len(mine) + len(state.held) + 1))
        begun = [(j, *self.begin(j, state)) for j in mine]
        # Who begins no sooner than somebody could be complete may as well let him.
        first = min(start + self.length[j] for j, start, _ in begun)
        for j, start, held in begun:
            if start < first and not self.before[j] & left:
                end = start + self.length[j]
                cost = max(state.cost, end) if self.last else state.cost + self.weight[j] * end
                yield j, ListState(cost, start, tuple(sorted([*held, (end, self.gang[j])])))

    def begin(self, j: int, state: ListState) -> tuple[int, list[tuple[int, int]]]:
        """Earliest start of a job from the last one on, and who holds GPUs until then or later."""
        start = max(state.now, self.arrival[j])
        held = [each for each in state.held if each[0] > start]
        free = self.gpus - sum(gang for _, gang in held)
        while free < self.gang[j]:
            start, gang = held.pop(0)
            free += gang
        return start, held

    def best(self, states: list[ListState]) -> list[ListState]:
        """Those of states of the same jobs that no other makes needless."""
        fewest: list[ListState] = []
        for state in sorted(states):
            self.effort.spend((len(fewest) + 1) * (len(state.held) + 1))
            if not any(other.allows(state) for other in fewest):
                fewest.append(state)
        return fewest

    def at_least(self, state: ListState, left: list[int]) -> int:
        """Least that a list costs which begins so."""
        ends = [max(state.now, self.arrival[j]) + self.length[j] for j in left]
        if self.last:
            area = sum(self.gang[j] * self.length[j] for j in left)
            area += sum(gang * (end - state.now) for end, gang in state.held)
            return max(state.cost, state.now - (-area // self.gpus), *ends)
        alone = sum(self.weight[j] * end for j, end in zip(left, ends, strict=True))
        if not self.grid:
            return state.cost + alone
        paid = self.paid(state.now)
        rent = self.gpus * (self.spent[-1] - paid)
        rent -= sum(gang * (self.paid(end) - paid) for end, gang in state.held)
        planned = sum(self.cheapest(j, state.now) for j in left)
        return state.cost + max(alone, planned - rent)

    def paid(self, until: int) -> int:
        """Price of a GPU up to a moment."""
        k = bisect_right(self.grid, until) - 1
        if k < 0:
            return 0
        return (
            self.spent[-1]
            if k == len(self.price)
            else self.spent[k] + self.price[k] * (until - self.grid[k])
        )

    def cost_from(self, j: int, start: int) -> int:
        """Cost of a job's end, and price of its GPUs, if it starts at a moment."""
        end = start + self.length[j]
        return self.weight[j] * end + self.gang[j] * (self.paid(end) - self.paid(start))

    def planned(self, j: int) -> tuple[list[int], list[int]]:
        """Starts at which the slope of a job's cost may change, and the least cost from each of them on."""
        cells = {at - back for at in self.grid for back in (0, self.length[j])}
        starts = sorted(at for at in cells if at > self.arrival[j])
        costs = accumulate((self.cost_from(j, at) for at in reversed(starts)), min)
        return starts, [*costs][::-1]

    def cheapest(self, j: int, now: int) -> int:
        """Least cost of a job and of its GPUs if it starts at a moment or later: then, or where a slope changes."""
        start, (starts, least) = max(now, self.arrival[j]), self.plans[j]
        k = bisect_right(starts, start)
        return min([self.cost_from(j, start), *least[k : k + 1]])


def bound_lists(instance: CertificateInstance, jobs: LeastWork, bound: Record) -> Fraction:
    """Least cost of lists of jobs as it is claimed, if none of them costs less."""
    need(ListSchedules(instance, jobs, bound).nothing_less(), f"{LISTS}: a list of jobs costs less")
    return rational(bound["least"], "least cost of lists")
