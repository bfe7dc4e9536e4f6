r"""Commit-once primal-dual: the algorithm that Hadar's theorem is about (IPDPS'24, recalled; derived).

Jobs are taken in order of arrival. Each is committed to the schedule over future rounds that
maximises its utility less the prices of its GPUs, among those that fit beside the commitments, if
that payoff is positive; otherwise it is refused for ever. Prices rise with the load. What a gang
achieves in a round depends on the slowest type it touches; for a round and a slowest type the
cheapest gang is known, and a schedule is a choice of rounds and levels. Work is counted exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import UtilityTable
from shadowprice.solvers.hadar.menu import Menu
from shadowprice.solvers.hadar.node_classes import Tally, Wanted
from shadowprice.solvers.hadar.prices import ExponentialPrices
from shadowprice.solvers.hadar.search import Found, by_labels, by_level
from shadowprice.solvers.placement.protocol import Pieces

_FIRST_ROUNDS = 32
"""Rounds that a book has room for at first."""


@runtime_checkable
class Sampled(Protocol):
    """A utility that can be asked for many rounds at once."""

    def at(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Utilities if complete at the end of some rounds; the same as one by one."""
        ...


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

    def utilities(self, rounds: NDArray[np.int64]) -> NDArray[np.float64]:
        """Utilities if complete at the end of some rounds."""
        if isinstance(self.value, Sampled):
            return self.value.at(rounds)
        return np.array([self.value(number) for number in rounds.tolist()], dtype=np.float64)

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
        self.rounds = 0
        self._load = np.zeros((_FIRST_ROUNDS, len(capacity)), dtype=np.int64)
        self._tally = Tally(capacity, type_of_node)

    def load(self, first: int, last: int) -> NDArray[np.int64]:
        """GPUs committed in the rounds first to last - 1, shape (rounds, nodes), to read or to change.

        Change them before the book is asked for costs again.
        """
        self._reserve(last)
        self._tally.touched(first, last)
        return self._load[first:last]

    def costs(self, wanted: Wanted, prices: ExponentialPrices) -> NDArray[np.float64]:
        """Cost of the cheapest gang in the rounds from 0 to the first that is not sold, all empty then."""
        return self._tally.costs(wanted, prices, self._load[: self.rounds])

    def cheapest(
        self, wanted: Wanted, prices: ExponentialPrices, rounds: NDArray[np.int64]
    ) -> list[Pieces]:
        """The cheapest gangs in some rounds in which one fits, cheapest GPUs first.

        O(rounds x nodes), where the load of a round differs from that of the one before.
        """
        self._reserve(int(rounds.max(initial=-1)) + 1)
        load = self._load[rounds]
        other = np.ones(len(rounds), dtype=np.bool_)
        other[1:] = (load[1:] != load[:-1]).any(axis=1)
        pieces = self._tally.cheapest(wanted, prices, load[other])
        return [pieces[row] for row in (other.cumsum() - 1).tolist()]

    def add(self, commitment: Commitment) -> None:
        """Take the GPUs of a commitment; O(its rounds)."""
        held = [
            (number, node, gpus) for number, pieces in commitment.rounds for node, gpus in pieces
        ]
        rounds, nodes, gpus = np.array(held, dtype=np.int64).reshape(-1, 3).T
        self._reserve(int(rounds.max(initial=-1)) + 1)
        before = self._load[rounds, nodes]
        self._load[rounds, nodes] = before + gpus
        self._tally.sold(rounds, nodes, before, gpus)

    def _reserve(self, rounds: int) -> None:
        self.rounds = max(self.rounds, rounds)
        if rounds > len(self._load):
            more = np.zeros((max(rounds, 2 * len(self._load)), len(self.capacity)), dtype=np.int64)
            more[: len(self._load)] = self._load
            self._load = more


def best_schedule(
    task: Task, book: Book, prices: ExponentialPrices, *, labels: int = 10_000, fits: bool = True
) -> Commitment | None:
    """Schedule of largest payoff that fits, or None where no payoff is positive.

    Without ``fits`` the commitments count for the prices only: what the prices would admit.

    Exact by Pareto labels (work done, cost) over the rounds as long as there are at most
    ``labels`` of them; beyond that, and for ``labels`` 0, the best among schedules that keep to one
    level. It stops at the round whose utility cannot beat what was found any more.
    """
    return best_of([task], book, prices, labels=labels, fits=fits)


def best_of(
    choices: Sequence[Task],
    book: Book,
    prices: ExponentialPrices,
    *,
    labels: int = 10_000,
    fits: bool = True,
) -> Commitment | None:
    """Best schedule of any of some tasks, of which only one is to be done; see :func:`best_schedule`."""
    menus = [Menu(task, book, prices, fits) for task in choices]
    found = [_search(menu, labels) for menu in menus]
    place = max(range(len(found)), key=lambda each: found[each][0], default=-1)
    if place < 0 or found[place][0] <= 0:
        return None
    payoff, utility, chosen = found[place]
    gangs = menus[place].gangs(chosen)
    rounds = tuple((number, gangs[number]) for number in sorted(gangs))
    return Commitment(rounds, utility, payoff)


def _search(menu: Menu, labels: int) -> Found:
    found = by_labels(menu.task, menu, labels) if labels else None
    return by_level(menu.task, menu) if found is None else found


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
