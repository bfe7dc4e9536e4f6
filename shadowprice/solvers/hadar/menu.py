"""What a gang costs in each round: the choices of which a job's schedule is made."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.node_classes import Wanted
from shadowprice.solvers.hadar.prices import ExponentialPrices
from shadowprice.solvers.placement.protocol import Pieces

if TYPE_CHECKING:
    from shadowprice.solvers.hadar.commit_schedule import Book, Task

Chosen = dict[int, list[int]]
"""Rounds by position of level."""


class Menu:
    """Cheapest gangs of one task by round and level.

    Attributes
    ----------
    levels : list of int
        A GPU type for each speed, fastest first: the slowest that a gang has.
    needed : list of int
        Rounds that the task takes at each level.
    least : float
        What any schedule costs at least: the rounds it needs on the fastest type, all empty.
    end : int
        A schedule that ends in this round or later is no better than one that ends before: its
        utility is at most what it costs, or it waits for rounds that are no emptier.
    """

    def __init__(self, task: Task, book: Book, prices: ExponentialPrices, fits: bool) -> None:
        self.task, self.book, self.prices, self.fits = task, book, prices, fits
        self.levels = task.levels()
        self.needed = [-(-task.work // task.units[level]) for level in self.levels]
        self.least = self.needed[0] * task.gpus * float(prices.lowest.min()) * (1.0 - 1e-9)
        empty = max(book.rounds, task.first_round) + self.needed[-1]
        self.end = self.worth_until(0.0, min(empty, task.last_round + 1))
        self.costs = self._costs()

    def worth_until(self, payoff: float, end: int) -> int:
        """First round before ``end`` in which no schedule is worth more than a payoff, or that end.

        O(log rounds): utilities do not increase.
        """
        value, least = self.task.value, self.least
        rounds = range(self.task.first_round, end)
        # The first of the rounds where it is true that the utility is too low.
        short = bisect_left(rounds, True, key=lambda number: value(number) - least <= payoff)
        return self.task.first_round + short

    def gangs(self, chosen: Chosen) -> dict[int, Pieces]:
        """The cheapest gangs themselves, by round."""
        found: dict[int, Pieces] = {}
        for position, numbers in chosen.items():
            rounds = sorted(numbers)
            pieces = self.book.cheapest(self._wanted(position), self.prices, np.array(rounds))
            found.update(zip(rounds, pieces, strict=True))
        return found

    def _wanted(self, position: int) -> Wanted:
        units = self.task.units
        slowest = units[self.levels[position]]
        return Wanted(self.task.gpus, tuple(each >= slowest for each in units), self.fits)

    def _costs(self) -> NDArray[np.float64]:
        """Costs from the first round to the end, infinite where no gang fits; shape (rounds, levels)."""
        first = self.task.first_round
        table = np.empty((max(self.end - first, 0), len(self.levels)))
        for position in range(len(self.levels)):
            sold = self.book.costs(self._wanted(position), self.prices)
            known = sold[first : self.end]
            table[: len(known), position] = known
            table[len(known) :, position] = sold[-1]
        return table
