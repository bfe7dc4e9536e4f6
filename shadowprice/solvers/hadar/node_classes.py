r"""Costs of the cheapest gangs in every sold round: kept, and renewed where the load changed.

Nodes of one kind (GPUs, GPU type, price function) and one load cost the same, so that a round is
described by how many nodes there are of each kind and load. Costs are kept for every gang size
and set of GPU types that was asked for, until the prices change; a sale changes the rounds of one job.

Derived. Cost: a renewed round O(kinds x loads), whatever the number of nodes; asking
O(rounds sold) comparisons of integers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.prices import ExponentialPrices
from shadowprice.solvers.placement.protocol import Pieces

_FIRST_ROUNDS = 32
"""Rounds that there is room for at first."""


@dataclass(frozen=True)
class GangRequest:
    """Gangs that are asked for.

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


class LoadClasses:
    """Kinds of nodes by load.

    Parameters
    ----------
    capacity, type_of_node : ndarray of int, shape (nodes,)
        GPUs and GPU type of each node.
    prices : ExponentialPrices

    Attributes
    ----------
    first : ndarray of int, shape (nodes,)
        Bucket of each node when it is empty; with a load of l it is in the l-th after that.
    load, capacity, type, price : ndarray, shape (buckets,)
        Load, GPUs and GPU type of the nodes in a bucket, and the price of one of their GPUs.
    """

    def __init__(
        self,
        capacity: NDArray[np.int64],
        type_of_node: NDArray[np.int64],
        prices: ExponentialPrices,
    ) -> None:
        columns = (capacity, type_of_node, prices.full_at, prices.lowest, prices.highest)
        _, sample, kind = np.unique(
            np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True
        )
        loads = capacity[sample] + 1
        begin = np.cumsum(loads) - loads
        node = np.repeat(sample, loads)
        self.first = begin[kind.ravel()]
        self.load = np.arange(len(node)) - np.repeat(begin, loads)
        self.capacity, self.type = capacity[node], type_of_node[node]
        of_bucket = ExponentialPrices(
            prices.lowest[node], prices.highest[node], prices.full_at[node]
        )
        self.price = of_bucket.at(self.load)
        self._rank = np.unique(self.price, return_inverse=True)[1].ravel()

    def __len__(self) -> int:
        return len(self.load)

    def costs(self, nodes: NDArray[np.int64], wanted: GangRequest) -> NDArray[np.float64]:
        """Cost of the cheapest gang, infinite where none fits, shape (rounds,).

        Parameters
        ----------
        nodes : ndarray of int, shape (rounds, buckets)
            Nodes in each bucket.
        """
        free = self.capacity - self.load if wanted.fits else self.capacity
        usable = np.flatnonzero(np.array(wanted.types)[self.type] & (free > 0))
        if not len(usable):
            return np.full(len(nodes), np.inf)
        order = usable[np.argsort(self.price[usable], kind="stable")]
        # Buckets of one price are one, so that costs that are equal are equal as floats.
        price, begin = np.unique(self.price[order], return_index=True)
        room = np.add.reduceat(nodes[:, order] * free[order], begin, axis=1)
        given = np.minimum(room.cumsum(axis=1), wanted.gpus)
        taken = np.diff(given, axis=1, prepend=0)
        return np.where(given[:, -1] < wanted.gpus, np.inf, (taken * price).sum(axis=1))

    def cheapest(self, load: NDArray[np.int64], wanted: GangRequest) -> list[Pieces]:
        """Nodes and GPUs of the cheapest gang, in order of price and number; one fits.

        O(rounds x nodes).

        Parameters
        ----------
        load : ndarray of int, shape (rounds, nodes)
        """
        # A column for every node of the types that are wanted.
        nodes = np.flatnonzero(np.array(wanted.types)[self.type[self.first]])
        bucket = self.first[nodes] + load[:, nodes]
        free = (self.capacity - self.load if wanted.fits else self.capacity)[bucket]
        # One whole number for price and node, so that it suffices to find the smallest few.
        key = np.where(free > 0, self._rank[bucket], len(self)) * len(nodes) + np.arange(len(nodes))
        few = min(wanted.gpus, len(nodes))
        column = np.sort(np.partition(key, few - 1, axis=1)[:, :few], axis=1) % len(nodes)
        room = np.take_along_axis(free, column, axis=1)
        taken = np.clip(wanted.gpus - (room.cumsum(axis=1) - room), 0, room)
        return [
            tuple((node, gpus) for node, gpus in zip(*row, strict=True) if gpus)
            for row in zip(nodes[column].tolist(), taken.tolist(), strict=True)
        ]


@dataclass
class _CachedCosts:
    """Costs by round, as they were at some change."""

    as_of: int = 0
    cost: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))


class GangCostCache:
    """Nodes by bucket and round, and what gangs cost there; it follows the load of a book.

    Parameters
    ----------
    capacity, type_of_node : ndarray of int, shape (nodes,)
    """

    def __init__(self, capacity: NDArray[np.int64], type_of_node: NDArray[np.int64]) -> None:
        self._capacity, self._type_of_node = capacity, type_of_node
        self._prices: ExponentialPrices | None = None
        self._buckets: LoadClasses | None = None
        self._nodes = np.zeros((0, 0), dtype=np.int64)
        self._counted = np.zeros(0, dtype=np.bool_)
        self._changed = np.zeros(0, dtype=np.int64)
        self._now = 1
        self._kept: dict[GangRequest, _CachedCosts] = {}

    def touched(self, first: int, last: int) -> None:
        """The load of the rounds first to last - 1 may have changed in any way."""
        self._reserve(last)
        self._now += 1
        self._counted[first:last] = False
        self._changed[first:last] = self._now

    def sold(
        self,
        rounds: NDArray[np.int64],
        nodes: NDArray[np.int64],
        before: NDArray[np.int64],
        gpus: NDArray[np.int64],
    ) -> None:
        """The load of some nodes in some rounds, each pair once, has grown from ``before``."""
        self._reserve(int(rounds.max(initial=-1)) + 1)
        self._now += 1
        self._changed[rounds] = self._now
        if self._buckets is not None:
            # Rows that are not counted are counted anew before they are read.
            bucket = self._buckets.first[nodes] + before
            np.subtract.at(self._nodes, (rounds, bucket), 1)
            np.add.at(self._nodes, (rounds, bucket + gpus), 1)

    def costs(
        self, wanted: GangRequest, prices: ExponentialPrices, load: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Cost of the cheapest gang by round, infinite where none fits; the last is of an empty round.

        Parameters
        ----------
        load : ndarray of int, shape (rounds, nodes)
            Load of the rounds sold so far.

        Returns
        -------
        ndarray, shape (rounds + 1,)
        """
        buckets = self._at(prices)
        # One row more than was sold: it is empty.
        rounds = len(load) + 1
        self._reserve(rounds)
        kept = self._kept.setdefault(wanted, _CachedCosts())
        if len(kept.cost) < rounds:
            grown = np.empty(max(rounds, 2 * len(kept.cost)))
            grown[: len(kept.cost)] = kept.cost
            grown[len(kept.cost) :] = buckets.costs(self._empty(buckets), wanted)
            kept.cost = grown
        stale = np.flatnonzero(self._changed[: len(load)] > kept.as_of)
        if len(stale):
            self._count(buckets, stale, load)
            kept.cost[stale] = buckets.costs(self._nodes[stale], wanted)
        kept.as_of = self._now
        return kept.cost[:rounds]

    def cheapest(
        self, wanted: GangRequest, prices: ExponentialPrices, load: NDArray[np.int64]
    ) -> list[Pieces]:
        """The cheapest gangs at some loads, shape (rounds, nodes), where one fits; see :class:`LoadClasses`."""
        return self._at(prices).cheapest(load, wanted)

    def _at(self, prices: ExponentialPrices) -> LoadClasses:
        """Buckets at these prices; where they are new, nothing that was kept holds."""
        old, held = self._prices, self._buckets
        if old is not None and held is not None and _same(old, prices):
            return held
        buckets = LoadClasses(self._capacity, self._type_of_node, prices)
        if held is None or not np.array_equal(held.first, buckets.first):
            self._nodes = np.tile(self._empty(buckets), (len(self._changed), 1))
            self._counted[:] = False
        self._kept.clear()
        self._prices, self._buckets = prices, buckets
        return buckets

    def _empty(self, buckets: LoadClasses) -> NDArray[np.int64]:
        """Nodes by bucket in an empty round, shape (1, buckets)."""
        return np.bincount(buckets.first, minlength=len(buckets))[None, :]

    def _count(
        self, buckets: LoadClasses, rounds: NDArray[np.int64], load: NDArray[np.int64]
    ) -> None:
        """Count the nodes of rounds that have not been counted."""
        rows = rounds[~self._counted[rounds]]
        if len(rows):
            place = buckets.first + load[rows] + len(buckets) * np.arange(len(rows))[:, None]
            counts = np.bincount(place.ravel(), minlength=len(rows) * len(buckets))
            self._nodes[rows] = counts.reshape(len(rows), len(buckets))
            self._counted[rows] = True

    def _reserve(self, rounds: int) -> None:
        """Make room; new rounds are empty, and counted as such."""
        had = len(self._changed)
        if rounds <= had:
            return
        more = max(rounds, 2 * had, _FIRST_ROUNDS) - had
        self._changed = np.concatenate([self._changed, np.zeros(more, dtype=np.int64)])
        self._counted = np.concatenate([self._counted, np.ones(more, dtype=np.bool_)])
        if self._buckets is not None:
            self._nodes = np.concatenate(
                [self._nodes, np.tile(self._empty(self._buckets), (more, 1))]
            )


def _same(one: ExponentialPrices, other: ExponentialPrices) -> bool:
    return (
        np.array_equal(one.lowest, other.lowest)
        and np.array_equal(one.highest, other.highest)
        and np.array_equal(one.full_at, other.full_at)
    )
