r"""Classes of interchangeable nodes, and costs of the cheapest gangs by round that follow the load.

Source: derived. Hadar (IPDPS'24, recalled) prices a GPU by node; here nodes of equal GPU type, size
and price function that bear the same load are one class, since they cost the same and admit the same
gangs. The state of a cluster in a round is how many nodes there are of each class, at most kinds of
nodes x (GPUs of a node + 1) numbers, however many nodes there are.

:class:`NodeClasses` serves both forms of Hadar: the dual subroutine of a round
(:mod:`.round_selection`), which searches many states at once, and the commit-once form
(:mod:`.committed_load`), which asks for the cost of a gang in every round to come.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.prices import ExponentialPrices
from shadowprice.solvers.placement.protocol import Pieces


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

    def count(self, load: NDArray[np.int64]) -> NDArray[np.int64]:
        """Nodes in each class by round, shape (rounds, classes), for loads of shape (rounds, nodes)."""
        # One bincount for all rounds: those of the k-th are shifted by k times the classes.
        place = self.when_empty + load + len(self) * np.arange(len(load))[:, None]
        return np.bincount(place.ravel(), minlength=len(load) * len(self)).reshape(len(load), -1)

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
