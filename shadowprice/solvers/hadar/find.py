"""FIND_ALLOC of Hadar (IPDPS'24, recalled): the best gang for a job at the prices of a round.

Nodes of the same type, size and number of free GPUs have the same price and are interchangeable. A
state of the cluster is therefore the number of nodes in each such class, at most types x (GPUs of a
node + 1) of them, however many nodes there are. All states of a beam are searched at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.prices import ExponentialPrices

Shape = tuple[tuple[int, int, int], ...]
"""Parts of a gang: GPU type, GPUs of the node, GPUs taken on it."""


@dataclass(frozen=True)
class Shelves:
    """Classes of interchangeable nodes, cheapest first, larger ones first at equal prices.

    Parameters
    ----------
    gpu_type, capacity, free : ndarray of int, shape (classes,)
        GPU type, GPUs and free GPUs of the nodes in a class.
    price : ndarray, shape (classes,)
        Price of one of their GPUs for the round.
    left : ndarray of int, shape (classes, largest node + 1)
        Class that a node is in after some of its GPUs have been taken; -1 where there are not so many.
    """

    gpu_type: NDArray[np.int64]
    capacity: NDArray[np.int64]
    free: NDArray[np.int64]
    price: NDArray[np.float64]
    left: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        kinds: Sequence[tuple[int, int]],
        lowest: NDArray[np.float64],
        highest: NDArray[np.float64],
    ) -> Shelves:
        """Classes of nodes of some kinds (GPU type, GPUs), priced by the types' bounds."""
        rows = [(kind, size, free) for kind, size in kinds for free in range(size + 1)]
        gpu_type, capacity, free = np.array(rows, dtype=np.int64).T
        prices = ExponentialPrices(lowest[gpu_type], highest[gpu_type], capacity)
        price = prices.at(capacity - free)
        order = np.lexsort((-free, price))
        where = {rows[row]: position for position, row in enumerate(order.tolist())}
        largest = int(capacity.max())
        left = np.full((len(rows), largest + 1), -1, dtype=np.int64)
        for (kind, size, have), position in where.items():
            for taken in range(have + 1):
                left[position, taken] = where[kind, size, have - taken]
        return cls(gpu_type[order], capacity[order], free[order], price[order], left)

    def count(self, nodes: Sequence[tuple[int, int, int]]) -> NDArray[np.int64]:
        """State with these nodes (GPU type, GPUs, free GPUs), shape (classes,)."""
        rows = zip(self.gpu_type.tolist(), self.capacity.tolist(), self.free.tolist(), strict=True)
        where = {row: position for position, row in enumerate(rows)}
        found = np.array([where[node] for node in nodes], dtype=np.int64)
        return np.bincount(found, minlength=len(self.free))

    def shape(self, taken: NDArray[np.int64]) -> Shape:
        """Parts of a gang that takes so many GPUs of each class."""
        parts: list[tuple[int, int, int]] = []
        for row in np.flatnonzero(taken).tolist():
            whole, rest = divmod(int(taken[row]), int(self.free[row]))
            sizes = [int(self.free[row])] * whole + [rest] * (rest > 0)
            parts += [(int(self.gpu_type[row]), int(self.capacity[row]), size) for size in sizes]
        return tuple(parts)


@dataclass(frozen=True)
class Request:
    """What a job asks for in a round.

    Parameters
    ----------
    gpus : int
        Gang size.
    rate : ndarray, shape (types,)
        Work a second on each type, 0 where it cannot run.
    value : ndarray, shape (types,)
        Utility if each type were the slowest it runs on until it completes.
    """

    gpus: int
    rate: NDArray[np.float64]
    value: NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """The best allocation in each of several states.

    Parameters
    ----------
    payoff : ndarray, shape (states,)
        Utility less cost; -inf where the gang does not fit.
    taken : ndarray of int, shape (states, classes)
        GPUs taken in each class.
    """

    payoff: NDArray[np.float64]
    taken: NDArray[np.int64]


def find_alloc(
    shelves: Shelves, states: NDArray[np.int64], request: Request, communication: float
) -> Found:
    """Candidate with the largest payoff in each state.

    Consolidated: one node of each type, the cheapest with room. Mixed: for each slowest type
    admitted, the cheapest free GPUs of all types at least as fast, and of that type alone. The charge
    is the price of this round only. A gang on k > 1 nodes loses ``communication`` (k - 1) / k of
    its utility (derived; the published penalty is not known). O(states x types x classes).
    """
    types = np.flatnonzero(request.rate > 0)
    taken = np.concatenate(
        (
            _consolidated(shelves, states, request.gpus, types),
            _mixed(shelves, states, request, types),
        ),
        axis=1,
    )
    slowest = np.tile(types, 3)
    nodes = -(-taken // np.maximum(shelves.free, 1))
    used = np.maximum(nodes.sum(axis=2), 1)
    value = request.value[slowest] * (1.0 - communication * (used - 1) / used)
    payoff = value - taken @ shelves.price
    payoff[taken.sum(axis=2) < request.gpus] = -np.inf
    best = payoff.argmax(axis=1)
    rows = np.arange(len(states))
    return Found(payoff[rows, best], taken[rows, best])


def take(
    shelves: Shelves, states: NDArray[np.int64], taken: NDArray[np.int64]
) -> NDArray[np.int64]:
    """States after GPUs have been taken; shapes (states, classes)."""
    after = states.copy()
    row, shelf = np.nonzero(taken)
    whole, rest = np.divmod(taken[row, shelf], shelves.free[shelf])
    after[row, shelf] -= whole + (rest > 0)
    np.add.at(after, (row, shelves.left[shelf, shelves.free[shelf]]), whole)
    partly = rest > 0
    np.add.at(after, (row[partly], shelves.left[shelf[partly], rest[partly]]), 1)
    return after


def _consolidated(
    shelves: Shelves, states: NDArray[np.int64], gpus: int, types: NDArray[np.int64]
) -> NDArray[np.int64]:
    """GPUs taken on one node of each type, shape (states, types, classes)."""
    roomy = shelves.free >= gpus
    able = (states[:, None, :] > 0) & (roomy & (shelves.gpu_type == types[:, None]))[None]
    first = able.argmax(axis=2)  # classes are in order of price
    return np.asarray(gpus * ((np.arange(len(roomy)) == first[:, :, None]) & able))


def _mixed(
    shelves: Shelves, states: NDArray[np.int64], request: Request, types: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The cheapest GPUs of each type and all faster ones, then of each type alone."""
    rate = request.rate[shelves.gpu_type]
    faster = rate >= request.rate[types][:, None]
    alone = shelves.gpu_type == types[:, None]
    there = np.concatenate((faster, alone)) * (states * shelves.free)[:, None, :]
    before = there.cumsum(axis=2) - there
    return np.asarray(np.clip(request.gpus - before, 0, there))
