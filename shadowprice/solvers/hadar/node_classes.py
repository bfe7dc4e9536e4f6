r"""Classes of interchangeable nodes, and costs of the cheapest gangs by round that follow the load.

Source: derived. Hadar (IPDPS'24, recalled) prices a GPU by node; here nodes of equal GPU type, size
and price function that bear the same load are one class, since they cost the same and admit the same
gangs. The state of a cluster in a round is how many nodes there are of each class, at most kinds of
nodes x (GPUs of a node + 1) numbers, however many nodes there are.

:class:`NodeClasses` serves both forms of Hadar: the dual subroutine of a round
(:mod:`.round_selection`), which searches many states at once, and the commit-once form
(:mod:`.commit_schedule`), which asks for the cost of a gang in every round to come.
:class:`GangCostCache` keeps those costs for every gang size and set of GPU types that was asked for,
until the prices change; a commitment changes the rounds of one job only.

Complexity: a round whose load changed O(classes), whatever the number of nodes; a request
O(rounds committed) comparisons of integers; the nodes of a gang O(nodes).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.prices import ExponentialPrices
from shadowprice.solvers.placement.protocol import Pieces

INITIAL_ROUNDS = 32
"""Rounds for which memory is reserved at first."""


@dataclass(frozen=True)
class GangRequest:
    """Gangs whose cheapest one is asked for.

    Parameters
    ----------
    gpus : int
        Gang size.
    types : tuple of bool
        GPU types that it may have, by type.
    fits : bool
        Whether only GPUs that are free count; otherwise all, at the price of their node's load.
    """

    gpus: int
    types: tuple[bool, ...]
    fits: bool


class NodeClasses:
    """Classes of nodes of equal GPU type, size, price function and load.

    The classes of a kind of node follow each other by load: a node of which g more GPUs are taken
    moves on by g classes.

    Parameters
    ----------
    capacity, type_of_node : ndarray of int, shape (nodes,)
        GPUs and GPU type of each node.
    prices : ExponentialPrices

    Attributes
    ----------
    when_empty : ndarray of int, shape (nodes,)
        Class of each node when it is empty.
    gpu_type, capacity, load, free : ndarray of int, shape (classes,)
        GPU type, GPUs, load and free GPUs of the nodes in a class.
    price : ndarray, shape (classes,)
        Price of one of their GPUs.
    cheapest_first : ndarray of int, shape (classes,)
        Classes in order of price, those with more free GPUs first at equal prices.
    price_position : ndarray of int, shape (classes,)
        Position of each class in that order.
    """

    def __init__(
        self,
        capacity: NDArray[np.int64],
        type_of_node: NDArray[np.int64],
        prices: ExponentialPrices,
    ) -> None:
        columns = (type_of_node, capacity, prices.full_at, prices.lowest, prices.highest)
        _, sample, kind = np.unique(
            np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True
        )
        sizes = capacity[sample] + 1
        begin = np.cumsum(sizes) - sizes
        # A node of the kind that each class belongs to.
        node = np.repeat(sample, sizes)
        self.when_empty = begin[kind.ravel()]
        self.gpu_type = type_of_node[node]
        self.capacity = capacity[node]
        self.load = np.arange(len(node)) - np.repeat(begin, sizes)
        self.free = self.capacity - self.load
        by_class = ExponentialPrices(
            prices.lowest[node], prices.highest[node], prices.full_at[node]
        )
        self.price = by_class.at(self.load)
        self.cheapest_first = np.lexsort((-self.free, self.price))
        self.price_position = np.argsort(self.cheapest_first)
        self._price_rank = np.unique(self.price, return_inverse=True)[1].ravel()

    def __len__(self) -> int:
        return len(self.load)

    def empty_cluster(self) -> NDArray[np.int64]:
        """Nodes in each class while all are empty, shape (classes,)."""
        return np.bincount(self.when_empty, minlength=len(self))

    def costs(self, nodes: NDArray[np.int64], request: GangRequest) -> NDArray[np.float64]:
        """Cost of the cheapest gang, infinite where none fits, shape (rounds,).

        Parameters
        ----------
        nodes : ndarray of int, shape (rounds, classes)
            Nodes in each class.
        """
        free = self.free if request.fits else self.capacity
        usable = np.array(request.types)[self.gpu_type] & (free > 0)
        order = self.cheapest_first[usable[self.cheapest_first]]
        if not len(order):
            return np.full(len(nodes), np.inf)
        # Classes of one price are added up first, so that costs that are equal are equal as floats.
        price, begin = np.unique(self.price[order], return_index=True)
        room = np.add.reduceat(nodes[:, order] * free[order], begin, axis=1)
        given = np.minimum(room.cumsum(axis=1), request.gpus)
        taken = np.diff(given, axis=1, prepend=0)
        return np.where(given[:, -1] < request.gpus, np.inf, (taken * price).sum(axis=1))

    def cheapest_gangs(self, load: NDArray[np.int64], request: GangRequest) -> list[Pieces]:
        """Nodes and GPUs of the cheapest gang, in order of price and number; one must fit.

        O(rounds x nodes).

        Parameters
        ----------
        load : ndarray of int, shape (rounds, nodes)
        """
        nodes = np.flatnonzero(np.array(request.types)[self.gpu_type[self.when_empty]])
        node_class = self.when_empty[nodes] + load[:, nodes]
        free = (self.free if request.fits else self.capacity)[node_class]
        # One whole number for price and node, so that it suffices to find the smallest few: a gang
        # of W GPUs is on at most W nodes. Nodes without room come last.
        rank = np.where(free > 0, self._price_rank[node_class], len(self))
        key = rank * len(nodes) + np.arange(len(nodes))
        few = min(request.gpus, len(nodes))
        column = np.sort(np.partition(key, few - 1, axis=1)[:, :few], axis=1) % len(nodes)
        room = np.take_along_axis(free, column, axis=1)
        taken = np.clip(request.gpus - (room.cumsum(axis=1) - room), 0, room)
        return [
            tuple((node, gpus) for node, gpus in zip(*row, strict=True) if gpus)
            for row in zip(nodes[column].tolist(), taken.tolist(), strict=True)
        ]


@dataclass
class _CachedCosts:
    """Costs by round for one request, as they were after some change of the load."""

    as_of: int = 0
    cost: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


class GangCostCache:
    """Costs of the cheapest gangs by round, computed anew only where the load changed.

    The load itself is the caller's, who reports its changes.

    Parameters
    ----------
    capacity, type_of_node : ndarray of int, shape (nodes,)
    """

    def __init__(self, capacity: NDArray[np.int64], type_of_node: NDArray[np.int64]) -> None:
        self._capacity = capacity
        self._type_of_node = type_of_node
        self._prices: ExponentialPrices | None = None
        self._classes: NodeClasses | None = None
        # By round: nodes in each class, whether they have been counted since the load was last
        # handed out, and the change at which the load was last different.
        self._nodes = np.zeros((0, 0), dtype=np.int64)
        self._counted = np.zeros(0, dtype=np.bool_)
        self._changed_at = np.zeros(0, dtype=np.int64)
        self._changes = 1
        self._costs: dict[GangRequest, _CachedCosts] = {}

    def invalidate(self, first: int, last: int) -> None:
        """Forget the rounds first to last - 1: their load may change in any way."""
        self._reserve(last)
        self._changes += 1
        self._counted[first:last] = False
        self._changed_at[first:last] = self._changes

    def add_load(
        self,
        rounds: NDArray[np.int64],
        nodes: NDArray[np.int64],
        before: NDArray[np.int64],
        gpus: NDArray[np.int64],
    ) -> None:
        """Follow a load that has grown on some nodes in some rounds, each pair once, from ``before``."""
        self._reserve(int(rounds.max(initial=-1)) + 1)
        self._changes += 1
        self._changed_at[rounds] = self._changes
        if self._classes is not None:
            # Rounds that are not counted become wrong here; they are counted before they are read.
            node_class = self._classes.when_empty[nodes] + before
            np.subtract.at(self._nodes, (rounds, node_class), 1)
            np.add.at(self._nodes, (rounds, node_class + gpus), 1)

    def costs(
        self, request: GangRequest, prices: ExponentialPrices, load: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Cost of the cheapest gang by round, infinite where none fits; the last is of an empty round.

        Parameters
        ----------
        load : ndarray of int, shape (rounds, nodes)
            Load of the rounds up to the last that was committed.

        Returns
        -------
        ndarray, shape (rounds + 1,)
        """
        classes = self._classes_at(prices)
        rounds = len(load) + 1
        self._reserve(rounds)
        cached = self._costs.setdefault(request, _CachedCosts())
        if len(cached.cost) < rounds:
            grown = np.empty(max(rounds, 2 * len(cached.cost)))
            grown[: len(cached.cost)] = cached.cost
            grown[len(cached.cost) :] = classes.costs(classes.empty_cluster()[None, :], request)
            cached.cost = grown
        stale = np.flatnonzero(self._changed_at[: len(load)] > cached.as_of)
        if len(stale):
            self._count(classes, stale, load)
            cached.cost[stale] = classes.costs(self._nodes[stale], request)
        cached.as_of = self._changes
        return cached.cost[:rounds]

    def cheapest_gangs(
        self, request: GangRequest, prices: ExponentialPrices, load: NDArray[np.int64]
    ) -> list[Pieces]:
        """The cheapest gangs at some loads, shape (rounds, nodes); see :class:`NodeClasses`."""
        return self._classes_at(prices).cheapest_gangs(load, request)

    def _classes_at(self, prices: ExponentialPrices) -> NodeClasses:
        """Classes at these prices; where the prices are new, no cached cost holds."""
        if self._prices is not None and self._classes is not None and _equal(self._prices, prices):
            return self._classes
        classes = NodeClasses(self._capacity, self._type_of_node, prices)
        # Counts outlive new prices as long as the same nodes are interchangeable.
        if self._classes is None or not np.array_equal(
            self._classes.when_empty, classes.when_empty
        ):
            self._nodes = np.tile(classes.empty_cluster(), (len(self._changed_at), 1))
            self._counted[:] = False
        self._costs.clear()
        self._prices = prices
        self._classes = classes
        return classes

    def _count(
        self, classes: NodeClasses, rounds: NDArray[np.int64], load: NDArray[np.int64]
    ) -> None:
        """Count the nodes of rounds that have not been counted."""
        rows = rounds[~self._counted[rounds]]
        if len(rows):
            # One bincount for all rounds: those of the k-th are shifted by k times the classes.
            place = classes.when_empty + load[rows] + len(classes) * np.arange(len(rows))[:, None]
            counts = np.bincount(place.ravel(), minlength=len(rows) * len(classes))
            self._nodes[rows] = counts.reshape(len(rows), len(classes))
            self._counted[rows] = True

    def _reserve(self, rounds: int) -> None:
        """Make room; new rounds are empty, and counted as such."""
        had = len(self._changed_at)
        if rounds <= had:
            return
        more = max(rounds, 2 * had, INITIAL_ROUNDS) - had
        self._changed_at = np.concatenate([self._changed_at, np.zeros(more, dtype=np.int64)])
        self._counted = np.concatenate([self._counted, np.ones(more, dtype=np.bool_)])
        if self._classes is not None:
            empty = np.tile(self._classes.empty_cluster(), (more, 1))
            self._nodes = np.concatenate([self._nodes, empty])


def _equal(one: ExponentialPrices, other: ExponentialPrices) -> bool:
    return (
        np.array_equal(one.lowest, other.lowest)
        and np.array_equal(one.highest, other.highest)
        and np.array_equal(one.full_at, other.full_at)
    )
