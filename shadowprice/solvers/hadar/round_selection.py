"""FIND_ALLOC of Hadar (IPDPS'24, recalled): the best gang for a job at the prices of a round.

Nodes of the same type, size and number of free GPUs have the same price and are interchangeable. A
state of the cluster is therefore the number of nodes in each such class, at most types x (GPUs of a
node + 1) of them, however many nodes there are. All states of a beam are searched at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.prices import ExponentialPrices
from shadowprice.solvers.placement.protocol import Pieces

Shape = tuple[tuple[int, int, int], ...]
"""Parts of a gang: GPU type, GPUs of the node, GPUs taken on it."""


@dataclass(frozen=True)
class NodeClasses:
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
    ) -> NodeClasses:
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
    """Request of a job in a round.

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
class GangAllocations:
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
    shelves: NodeClasses, states: NDArray[np.int64], request: Request, communication: float
) -> GangAllocations:
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
    return GangAllocations(payoff[rows, best], taken[rows, best])


def take(
    shelves: NodeClasses, states: NDArray[np.int64], taken: NDArray[np.int64]
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
    shelves: NodeClasses, states: NDArray[np.int64], gpus: int, types: NDArray[np.int64]
) -> NDArray[np.int64]:
    """GPUs taken on one node of each type, shape (states, types, classes)."""
    roomy = shelves.free >= gpus
    able = (states[:, None, :] > 0) & (roomy & (shelves.gpu_type == types[:, None]))[None]
    first = able.argmax(axis=2)  # classes are in order of price
    return np.asarray(gpus * ((np.arange(len(roomy)) == first[:, :, None]) & able))


def _mixed(
    shelves: NodeClasses, states: NDArray[np.int64], request: Request, types: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The cheapest GPUs of each type and all faster ones, then of each type alone."""
    rate = request.rate[shelves.gpu_type]
    faster = rate >= request.rate[types][:, None]
    alone = shelves.gpu_type == types[:, None]
    there = np.concatenate((faster, alone)) * (states * shelves.free)[:, None, :]
    before = there.cumsum(axis=2) - there
    return np.asarray(np.clip(request.gpus - before, 0, there))


# The dual subroutine of Hadar (IPDPS'24, recalled) as a dynamic programme with a beam.
#
# Jobs are taken in order of payoff per GPU; for each one, every state kept so far is continued
# without it and with its best allocation at the prices that the state's load implies. With a beam as
# wide as there are subsets this is the recursion skip / take of the paper, exactly; else the
# ``width`` states of largest value survive. O(jobs x width x types x classes of nodes).


EXACT_JOBS = 12
"""Queues up to this length are searched exactly."""


@dataclass(frozen=True)
class RoundSelection:
    """Jobs that run in the round.

    Parameters
    ----------
    payoff : float
        Sum of the payoffs.
    gangs : tuple of (int, Shape)
        Positions of the jobs and the parts of their gangs.
    state : ndarray of int, shape (classes,)
        Nodes left in each class.
    """

    payoff: float
    gangs: tuple[tuple[int, Shape], ...]
    state: NDArray[np.int64]


@dataclass(frozen=True)
class _Step:
    """Backpointers of the states after a job: their parents, and the GPUs taken."""

    position: int
    parent: NDArray[np.int64]
    taken: NDArray[np.int64]


def select(
    shelves: NodeClasses,
    state: NDArray[np.int64],
    requests: Sequence[Request],
    width: int = 64,
    communication: float = 0.0,
) -> RoundSelection:
    """Jobs and gangs of (nearly) the largest total payoff, in the order of ``requests``."""
    width = 2 ** len(requests) if len(requests) <= EXACT_JOBS else width
    states, values = state[None, :].copy(), np.zeros(1)
    steps: list[_Step] = []
    ahead = _best_ahead(shelves, requests)
    for position, request in enumerate(requests):
        room = int((states @ shelves.free).max())
        if room == 0:
            break
        if request.gpus > room:
            continue
        found = find_alloc(shelves, states, request, communication)
        able = np.flatnonzero(found.payoff > 0)
        if not len(able):
            continue
        after = take(shelves, states[able], found.taken[able])
        # Those that take come first: ties are theirs.
        states = np.concatenate((after, states))
        values = np.concatenate((values[able] + found.payoff[able], values))
        parent = np.concatenate((able, np.arange(len(values) - len(able))))
        taken = np.concatenate((found.taken[able], np.zeros_like(states[len(able) :])))
        kept = _best(states, values, width)
        hope = values[kept] + (states[kept] @ shelves.free) * ahead[position + 1]
        # A state that cannot overtake the best one is dropped; that costs nothing.
        kept = kept[(hope > values[kept[0]]) | (np.arange(len(kept)) == 0)]
        states, values = states[kept], values[kept]
        steps.append(_Step(position, parent[kept], taken[kept]))
    return _trace(shelves, steps, states, values)


def _best_ahead(shelves: NodeClasses, requests: Sequence[Request]) -> NDArray[np.float64]:
    """Largest payoff for a GPU of any later job, on an empty cluster: no later one can have more."""
    price = shelves.price.min()  # the slowest type's value may come with GPUs of a cheaper one
    ahead = np.zeros(len(requests) + 1)
    for position in range(len(requests) - 1, -1, -1):
        request = requests[position]
        payoff = np.where(request.rate > 0, request.value / request.gpus - price, 0.0)
        ahead[position] = max(float(payoff.max()), ahead[position + 1])
    return ahead


def _best(states: NDArray[np.int64], values: NDArray[np.float64], width: int) -> NDArray[np.int64]:
    """The states of largest value, each once, best first."""
    order = np.argsort(-values, kind="stable")
    rows = np.ascontiguousarray(states[order])
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    first = np.sort(np.unique(keys, return_index=True)[1])
    return np.asarray(order[first[:width]])


def _trace(
    shelves: NodeClasses,
    steps: Sequence[_Step],
    states: NDArray[np.int64],
    values: NDArray[np.float64],
) -> RoundSelection:
    best = row = int(values.argmax())
    gangs: list[tuple[int, Shape]] = []
    for step in reversed(steps):
        taken = step.taken[row]
        if taken.any():
            gangs.append((step.position, shelves.shape(taken)))
        row = int(step.parent[row])
    return RoundSelection(float(values[best]), tuple(reversed(gangs)), states[best])


# From the parts of gangs to nodes: who keeps its GPUs, and where the others go.


def place(
    shapes: Mapping[int, Shape],
    running: Mapping[int, Pieces],
    capacity: Sequence[int],
    type_of_node: Sequence[int],
    *,
    scattered: bool,
) -> dict[int, Pieces]:
    """Nodes for gangs whose parts are given by GPU type and size.

    A running job that is to have as many GPUs of each type as it holds keeps them, on no more nodes
    than asked for (on any if ``scattered``). The others are packed best fit, largest first.
    Since the parts were found before who stays where, a part may have to be split over
    nodes of its type; by type there are always enough GPUs. O(parts x nodes).
    """
    free = list(capacity)
    placed: dict[int, Pieces] = {}
    for job, shape in shapes.items():
        pieces = running.get(job)
        if pieces is not None and _stays(pieces, shape, type_of_node, scattered):
            placed[job] = pieces
            for node, gpus in pieces:
                free[node] -= gpus
    nodes_of: dict[int, list[int]] = {}
    for node, kind in enumerate(type_of_node):
        nodes_of.setdefault(kind, []).append(node)
    parts = [
        (size, -order, job, kind)
        for order, (job, shape) in enumerate(shapes.items())
        if job not in placed
        for kind, _, size in shape
    ]
    found: dict[int, Counter[int]] = {}
    for size, _, job, kind in sorted(parts, reverse=True):
        _pack(found.setdefault(job, Counter()), size, nodes_of[kind], free)
    return placed | {job: tuple(sorted(nodes.items())) for job, nodes in found.items()}


def _stays(pieces: Pieces, shape: Shape, type_of_node: Sequence[int], scattered: bool) -> bool:
    held: Counter[int] = Counter()
    for node, gpus in pieces:
        held[type_of_node[node]] += gpus
    wanted: Counter[int] = Counter()
    for kind, _, gpus in shape:
        wanted[kind] += gpus
    return held == wanted and (scattered or len(pieces) <= len(shape))


def _pack(found: Counter[int], size: int, nodes: Sequence[int], free: list[int]) -> None:
    """Give a part to the fullest node with room for it, or spread it over the emptiest ones."""
    roomy = [node for node in nodes if free[node] >= size]
    if roomy:
        node = min(roomy, key=free.__getitem__)
        found[node] += size
        free[node] -= size
        return
    for node in sorted(nodes, key=lambda each: -free[each]):
        part = min(size, free[node])
        if part:
            found[node] += part
            free[node] -= part
            size -= part
        if not size:
            return
