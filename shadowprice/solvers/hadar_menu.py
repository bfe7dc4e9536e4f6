"""What a gang costs in each round: the choices of which a job's schedule is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar_prices import ExponentialPrices
from shadowprice.solvers.placement.protocol import Pieces

if TYPE_CHECKING:
    from shadowprice.solvers.hadar_commit import Book, Task

Chosen = list[tuple[int, int]]
"""Rounds and positions of levels."""

_CHUNK = 32
"""Rounds whose cheapest gangs are computed together at first; as many again each time."""


class Menu:
    """Cheapest gangs of one task by round and level, computed as far as they are asked for."""

    def __init__(self, task: Task, book: Book, prices: ExponentialPrices, fits: bool) -> None:
        self.task, self.book, self.prices, self.fits = task, book, prices, fits
        self.levels = task.levels()
        self._costs: list[list[float]] = []

    def costs(self, number: int) -> list[float]:
        """Cost of the cheapest gang in a round at each level, infinite where none fits."""
        first = self.task.first_round
        while number - first >= len(self._costs):
            begin = first + len(self._costs)
            end = min(begin + max(_CHUNK, len(self._costs)), self.task.last_round + 1)
            rounds = np.arange(begin, end)
            columns = [self._cheapest(rounds, level)[2] for level in self.levels]
            self._costs += np.stack(columns, axis=1).tolist()
        return self._costs[number - first]

    def gangs(self, chosen: Chosen) -> dict[int, Pieces]:
        """The cheapest gangs themselves, of rounds at positions of levels."""
        found: dict[int, Pieces] = {}
        for position, level in enumerate(self.levels):
            rounds = [number for number, chosen_level in chosen if chosen_level == position]
            if not rounds:
                continue
            nodes, taken, _ = self._cheapest(np.array(rounds), level)
            # Those that give GPUs, row by row; in a row the cheapest first.
            row, place = np.nonzero(taken)
            bounds = np.searchsorted(row, np.arange(1, len(rounds))).tolist()
            pairs = list(zip(nodes[row, place].tolist(), taken[row, place].tolist(), strict=True))
            for number, begin, end in zip(rounds, [0, *bounds], [*bounds, len(pairs)], strict=True):
                found[number] = tuple(pairs[begin:end])
        return found

    def least(self) -> float:
        """What any schedule costs at least: the rounds it needs on the fastest type, all empty."""
        rounds = -(-self.task.work // max(self.task.units))
        return rounds * self.task.gpus * float(self.prices.lowest.min()) * (1.0 - 1e-9)

    def _cheapest(
        self, rounds: NDArray[np.int64], level: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Nodes in order of price, GPUs taken on them and cost; one row a round."""
        task, book = self.task, self.book
        first = int(rounds.min())
        load = book.load(first, int(rounds.max()) + 1)[rounds - first]
        speed = np.array([units >= task.units[level] for units in task.units])
        room = book.capacity - load if self.fits else book.capacity + 0 * load
        free = np.where(speed[book.type_of_node], room, 0)
        price = self.prices.at(load)
        nodes = np.argsort(np.where(free > 0, price, np.inf), axis=1, kind="stable")
        free = np.take_along_axis(free, nodes, axis=1)
        taken = np.clip(task.gpus - (free.cumsum(axis=1) - free), 0, free)
        cost = (taken * np.take_along_axis(price, nodes, axis=1)).sum(axis=1)
        cost[taken.sum(axis=1) < task.gpus] = np.inf
        return nodes, taken, cost
