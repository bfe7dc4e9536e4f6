"""Load of the rounds to come, and what the cheapest gangs cost beside it.

Costs are kept for every gang size and set of GPU types that was asked for, until the prices change; a commitment
changes the rounds of one job only, and only these are computed anew.

Complexity: a round whose load changed O(classes), whatever the number of nodes; a request O(rounds committed)
comparisons of integers; the nodes of a gang O(nodes).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.node_classes import GangRequest, NodeClasses
from shadowprice.solvers.hadar.prices import ExponentialPrices
from shadowprice.solvers.placement.protocol import Pieces

INITIAL_ROUNDS = 32
"""Rounds for which memory is reserved at first."""


@dataclass(frozen=True)
class Commitment:
    """A schedule that a job is given for good.

    Parameters
    ----------
    rounds : tuple of (int, Pieces)
        Rounds in increasing order, and the GPUs held.
    utility, payoff : float
        Utility, and that less the price of the GPUs.
    """

    rounds: tuple[tuple[int, Pieces], ...]
    utility: float
    payoff: float


@dataclass
class _CachedCosts:
    """Costs by round for one request, as they were after some change of the load."""

    as_of: int = 0
    cost: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


class CommittedLoad:
    """GPUs committed by round and node, growing with the horizon.

    Parameters
    ----------
    capacity, type_of_node : ndarray of int, shape (nodes,)

    Attributes
    ----------
    rounds : int
        Rounds up to the last one that was committed or handed out.
    """

    def __init__(self, capacity: NDArray[np.int64], type_of_node: NDArray[np.int64]) -> None:
        self.capacity = capacity
        self.type_of_node = type_of_node
        self.rounds = 0
        self._load = np.zeros((INITIAL_ROUNDS, len(capacity)), dtype=np.int64)
        # By round: the change at which the load was last different, and the nodes in each class.
        self._changed_at = np.zeros(INITIAL_ROUNDS, dtype=np.int64)
        self._nodes = np.zeros((INITIAL_ROUNDS, 0), dtype=np.int64)
        self._changes = 0
        self._prices: ExponentialPrices | None = None
        self._classes: NodeClasses | None = None
        self._costs: dict[GangRequest, _CachedCosts] = {}

    def load(self, first: int, last: int) -> NDArray[np.int64]:
        """GPUs committed in the rounds first to last - 1, shape (rounds, nodes), to read."""
        self._reserve(last)
        return self._load[first:last]

    def costs(self, request: GangRequest, prices: ExponentialPrices) -> NDArray[np.float64]:
        """Cost of the cheapest gang in each round, infinite where none fits, shape (rounds + 1,).

        The last is that of an empty round, as all later ones are.
        """
        classes, rounds = self._classes_at(prices), self.rounds + 1
        cached = self._costs.setdefault(request, _CachedCosts())
        if len(cached.cost) < rounds:
            grown = np.empty(max(rounds, 2 * len(cached.cost)))
            grown[: len(cached.cost)] = cached.cost
            grown[len(cached.cost) :] = classes.costs(classes.empty_cluster()[None, :], request)
            cached.cost = grown
        stale = np.flatnonzero(self._changed_at[: self.rounds] > cached.as_of)
        if len(stale):
            cached.cost[stale] = classes.costs(self._nodes[stale], request)
        cached.as_of = self._changes
        return cached.cost[:rounds]

    def cheapest_gangs(
        self, request: GangRequest, prices: ExponentialPrices, rounds: NDArray[np.int64]
    ) -> list[Pieces]:
        """The cheapest gangs in some rounds in which one fits, cheapest GPUs first.

        O(rounds x nodes), where the load of a round differs from that of the one before.
        """
        self._reserve(int(rounds.max(initial=-1)) + 1)
        load = self._load[rounds]
        differs = np.ones(len(rounds), dtype=np.bool_)
        differs[1:] = (load[1:] != load[:-1]).any(axis=1)
        pieces = self._classes_at(prices).cheapest_gangs(load[differs], request)
        return [pieces[row] for row in (differs.cumsum() - 1).tolist()]

    def add(self, commitment: Commitment) -> None:
        """Take the GPUs of a commitment; O(its rounds)."""
        held = [
            (number, node, gpus) for number, pieces in commitment.rounds for node, gpus in pieces
        ]
        rounds, nodes, gpus = np.array(held, dtype=np.int64).reshape(-1, 3).T
        self._reserve(int(rounds.max(initial=-1)) + 1)
        before = self._load[rounds, nodes]
        self._load[rounds, nodes] = before + gpus
        self._changes += 1
        self._changed_at[rounds] = self._changes
        if self._classes is not None:
            node_class = self._classes.when_empty[nodes] + before
            np.subtract.at(self._nodes, (rounds, node_class), 1)
            np.add.at(self._nodes, (rounds, node_class + gpus), 1)

    def _classes_at(self, prices: ExponentialPrices) -> NodeClasses:
        """Classes at these prices; where the prices are new, no cached cost holds."""
        if self._prices is not None and self._classes is not None and self._prices.same_as(prices):
            return self._classes
        before, classes = self._classes, NodeClasses(self.capacity, self.type_of_node, prices)
        # Counts outlive new prices as long as the same nodes are interchangeable.
        if before is None or not np.array_equal(before.when_empty, classes.when_empty):
            self._nodes = classes.count(self._load)
        self._costs.clear()
        self._prices, self._classes = prices, classes
        return classes

    def _reserve(self, rounds: int) -> None:
        """Make room; new rounds are empty."""
        self.rounds = max(self.rounds, rounds)
        more = max(rounds, 2 * len(self._load)) - len(self._load)
        if rounds <= len(self._load):
            return
        self._load = np.pad(self._load, ((0, more), (0, 0)))
        self._changed_at = np.pad(self._changed_at, (0, more))
        if self._classes is not None:
            empty = np.tile(self._classes.empty_cluster(), (more, 1))
            self._nodes = np.concatenate([self._nodes, empty])
