r"""Commit-once primal-dual: the algorithm that Hadar's theorem is about (IPDPS'24, recalled; derived).

Jobs are taken in order of arrival. Each is committed to the schedule over future rounds that
maximises its utility less the prices of its GPUs, among those that fit beside the commitments, if
that payoff is positive; otherwise it is refused for ever. Prices rise with the load. What a gang
achieves in a round depends on the slowest type it touches; for a round and a slowest type the
cheapest gang is known, and a schedule is a choice of rounds and levels. Work is counted exactly.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import UtilityTable
from shadowprice.solvers.hadar_menu import Chosen, Menu
from shadowprice.solvers.hadar_prices import ExponentialPrices
from shadowprice.solvers.placement.protocol import Pieces

_FIRST_ROUNDS = 32
"""Rounds that a book has room for at first."""


@dataclass(frozen=True)
class Task:
    """A job as the commit-once algorithm sees it.

    Parameters
    ----------
    gpus : int
        Gang size.
    first_round, last_round : int
        First and last round it may use.
    units : tuple of int
        Units of work a round does where each type is the slowest, 0 where the job cannot run.
    work : int
        Units to do.
    value : callable
        Utility if complete at the end of a round, non-increasing; 0 from some round on, or
        falling to 0.
    """

    gpus: int
    first_round: int
    units: tuple[int, ...]
    work: int
    value: Callable[[int], float]
    last_round: int

    @classmethod
    def of(
        cls,
        gpus: int,
        first_round: int,
        processing_s: Sequence[float],
        round_s: float,
        value: Callable[[int], float],
        last_round: int,
    ) -> Task:
        """Task with exact units: with times p_r and a round of L, L / p_r of the job a round."""
        ticks = [int(time * TICKS_PER_S) if time < math.inf else 0 for time in processing_s]
        work = math.lcm(*(time for time in ticks if time))
        length = int(round_s * TICKS_PER_S)
        if length < 1:
            raise InputError(f"hadar: a round lasts {round_s!r} s, expected at least 2**-20 s")
        units = tuple(length * work // time if time else 0 for time in ticks)
        return cls(gpus, first_round, units, work, value, last_round)

    def levels(self) -> list[int]:
        """One type for each distinct speed, fastest first."""
        by_speed = {units: kind for kind, units in enumerate(self.units) if units}
        return [by_speed[units] for units in sorted(by_speed, reverse=True)]


@dataclass(frozen=True)
class Commitment:
    """A job's slots.

    Parameters
    ----------
    rounds : tuple of (int, Pieces)
        Rounds in increasing order, and the GPUs held.
    utility, payoff : float
        Utility, and that less the price paid.
    """

    rounds: tuple[tuple[int, Pieces], ...]
    utility: float
    payoff: float


class Book:
    """GPUs committed by round and node, growing with the horizon.

    Parameters
    ----------
    capacity, type_of_node : ndarray of int, shape (nodes,)
    """

    def __init__(self, capacity: NDArray[np.int64], type_of_node: NDArray[np.int64]) -> None:
        self.capacity, self.type_of_node = capacity, type_of_node
        self._load = np.zeros((_FIRST_ROUNDS, len(capacity)), dtype=np.int64)

    def load(self, first: int, last: int) -> NDArray[np.int64]:
        """GPUs committed in the rounds first to last - 1, shape (rounds, nodes)."""
        if last > len(self._load):
            more = np.zeros((max(last, 2 * len(self._load)), len(self.capacity)), dtype=np.int64)
            more[: len(self._load)] = self._load
            self._load = more
        return self._load[first:last]

    def add(self, commitment: Commitment) -> None:
        """Take the GPUs of a commitment."""
        for number, pieces in commitment.rounds:
            row = self.load(number, number + 1)[0]
            for node, gpus in pieces:
                row[node] += gpus


def best_schedule(
    task: Task, book: Book, prices: ExponentialPrices, *, labels: int = 10_000, fits: bool = True
) -> Commitment | None:
    """Schedule of largest payoff that fits, or None where no payoff is positive.

    Without ``fits`` the commitments count for the prices only: what the prices would admit.

    Exact by Pareto labels (work done, cost) over the rounds as long as there are at most
    ``labels`` of them; beyond that, and for ``labels`` 0, the best among schedules that keep to one
    level. It stops at the round whose utility cannot beat what was found any more.
    """
    menu = Menu(task, book, prices, fits)
    found = _by_labels(task, menu, labels) if labels else None
    if found is None:
        found = _by_level(task, menu)
    payoff, utility, chosen = found
    if payoff <= 0:
        return None
    gangs = menu.gangs(chosen)
    return Commitment(tuple(sorted(gangs.items())), utility, payoff)


def commit(
    tasks: Sequence[Task], book: Book, prices: ExponentialPrices, *, labels: int = 10_000
) -> list[Commitment | None]:
    """Take the tasks in order; the commitments, None where a task is refused."""
    made: list[Commitment | None] = []
    for task in tasks:
        commitment = best_schedule(task, book, prices, labels=labels)
        if commitment is not None:
            book.add(commitment)
        made.append(commitment)
    return made


def _by_labels(task: Task, menu: Menu, limit: int) -> tuple[float, float, Chosen] | None:
    """Exact search; None where there are more labels than the limit."""
    units = [task.units[level] for level in menu.levels]
    least = menu.least()
    labels: list[tuple[int, float, object]] = [(0, 0.0, None)]
    best: tuple[float, float, object] = (0.0, 0.0, None)
    for number in range(task.first_round, task.last_round + 1):
        utility = task.value(number)
        if utility - least <= best[0]:
            break
        grown = list(labels)
        for level, cost in enumerate(menu.costs(number)):
            if cost == math.inf:
                continue
            for label in labels:
                work, paid = label[0] + units[level], label[1] + cost
                if paid >= utility - best[0]:
                    continue
                if work >= task.work:
                    best = (utility - paid, utility, (number, level, label[2]))
                else:
                    grown.append((work, paid, (number, level, label[2])))
        labels = _pareto(grown)
        if len(labels) > limit:
            return None
    return best[0], best[1], _path(best[2])


def _pareto(labels: list[tuple[int, float, object]]) -> list[tuple[int, float, object]]:
    """Labels that no other beats in work and cost."""
    labels.sort(key=lambda label: (-label[0], label[1]))
    kept, least = [], math.inf
    for label in labels:
        if label[1] < least:
            kept.append(label)
            least = label[1]
    return kept


def _path(link: object) -> Chosen:
    chosen: Chosen = []
    while isinstance(link, tuple):
        number, level, link = link
        chosen.append((number, level))
    return chosen


def _by_level(task: Task, menu: Menu) -> tuple[float, float, Chosen]:
    """Best schedule that runs at the same level throughout: the cheapest rounds before each end."""
    best, last, chosen_level = (0.0, 0.0), -1, 0
    least = menu.least()
    for level, kind in enumerate(menu.levels):
        needed = -(-task.work // task.units[kind])
        dearest: list[float] = []  # costs of the cheapest rounds so far, negated
        paid = 0.0
        for number in range(task.first_round, task.last_round + 1):
            utility = task.value(number)
            if utility - least <= best[0]:
                break
            cost = menu.costs(number)[level]
            if cost == math.inf:
                continue
            paid += cost
            if len(dearest) < needed:
                heapq.heappush(dearest, -cost)
            else:
                paid += heapq.heappushpop(dearest, -cost)
            if len(dearest) == needed and utility - paid > best[0]:
                best, last, chosen_level = (utility - paid, utility), number, level
    return *best, _cheapest_rounds(task, menu, last, chosen_level)


def _cheapest_rounds(task: Task, menu: Menu, last: int, level: int) -> Chosen:
    """As many rounds up to ``last`` as the work needs at a level, later ones of equal cost first."""
    needed = -(-task.work // task.units[menu.levels[level]])
    by_cost = sorted((menu.costs(n)[level], -n) for n in range(task.first_round, last + 1))
    return [(-number, level) for _, number in by_cost[:needed]]


def tasks_of(instance: Instance, utility: UtilityTable) -> list[Task]:
    """Tasks of an instance's jobs in order of arrival, with the table's rounds as the horizon."""

    def task(job: int) -> Task:
        values = utility.values[job].tolist()
        return Task.of(
            int(instance.workload.gpus[job]),
            math.ceil(float(instance.workload.arrival_s[job]) / utility.round_s),
            instance.processing_s[job].tolist(),
            utility.round_s,
            values.__getitem__,
            utility.rounds - 1,
        )

    return [task(job) for job in range(len(instance.workload))]
