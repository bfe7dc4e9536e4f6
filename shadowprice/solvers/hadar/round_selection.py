r"""Jobs and gangs of one round of Hadar: dual subroutine, FIND_ALLOC, and the nodes they get.

Source: Sultana et al., Hadar, IPDPS'24 (recalled: the recursion, the two kinds of candidates, the
charge of one round; derived: states by classes of nodes, the beam, the penalty for several nodes,
the assignment to nodes). In the order of Algorithm 1:

1. :func:`dual_subroutine` goes through the queue and takes each job or skips it,
   :math:`DP(i, s) = \max(DP(i + 1, s),\; \mu_i(s) + DP(i + 1, s - a_i(s)))`;
2. :func:`find_alloc` gives the allocation :math:`a_i(s)` of largest payoff :math:`\mu_i(s)`, utility
   less the price of its GPUs, at the prices of state s;
3. :func:`assign_nodes` turns gangs, known by GPU type so far, into nodes.

A state is the number of nodes in each class of interchangeable nodes
(:class:`.NodeClasses`), so that the prices follow from the state alone. All states of a beam are
searched at once.

Complexity: O(jobs x width x types x classes of nodes) for the selection, O(parts of gangs x nodes)
for the assignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.node_classes import NodeClasses
from shadowprice.solvers.placement.cpu_memory import NodeRoom
from shadowprice.solvers.placement.protocol import Pieces, in_turn

EXACT_JOBS = 12
"""Queues up to this length are searched exactly."""

GangParts = tuple[tuple[int, int], ...]
"""GPU type and number of GPUs of each part of a gang, a part being what it has on one node."""


@dataclass(frozen=True)
class QueuedJob:
    """A job as the dual subroutine sees it in a round.

    Parameters
    ----------
    gpus : int
        Gang size W.
    rate : ndarray, shape (types,)
        Work a second on each type, 0 where it cannot run.
    value : ndarray, shape (types,)
        Utility if each type were the slowest it runs on until it completes.
    """

    gpus: int
    rate: NDArray[np.float64]
    value: NDArray[np.float64]


# The dual subroutine


@dataclass(frozen=True)
class RoundSelection:
    """Jobs that run in the round.

    Parameters
    ----------
    payoff : float
        Sum of the payoffs.
    gangs : tuple of (int, GangParts)
        Positions of the jobs in the queue and the parts of their gangs.
    state : ndarray of int, shape (classes,)
        Nodes that each class then has.
    """

    payoff: float
    gangs: tuple[tuple[int, GangParts], ...]
    state: NDArray[np.int64]


@dataclass(frozen=True)
class _Step:
    """Backpointers of the states after a job: their parents, and the GPUs taken."""

    position: int
    parent: NDArray[np.int64]
    taken: NDArray[np.int64]


def dual_subroutine(
    classes: NodeClasses,
    state: NDArray[np.int64],
    queue: Sequence[QueuedJob],
    width: int = 64,
    communication: float = 0.0,
) -> RoundSelection:
    """Jobs and gangs of (nearly) the largest total payoff.

    A dynamic programme with a beam: for each job in the order of the queue, every state kept so far is
    continued without it (skip) and with its best allocation (take) at the prices that the state's
    load implies. With a beam as wide as there are subsets, as for up to ``EXACT_JOBS`` jobs, this is
    the recursion of the paper, exactly; else the ``width`` states of largest value survive.

    O(jobs x width x types x classes of nodes).
    """
    width = 2 ** len(queue) if len(queue) <= EXACT_JOBS else width
    states, values = state[None, :].copy(), np.zeros(1)
    steps: list[_Step] = []
    best_ahead = _best_ahead(classes, queue)
    for position, job in enumerate(queue):
        most_free = int((states @ classes.free).max())
        if most_free == 0:
            break
        if job.gpus > most_free:
            continue
        allocations = find_alloc(classes, states, job, communication)
        paying = np.flatnonzero(allocations.payoff > 0)
        if not len(paying):
            continue
        after = take(classes, states[paying], allocations.taken[paying])
        # States that take come before those that skip: ties are theirs.
        states = np.concatenate((after, states))
        values = np.concatenate((values[paying] + allocations.payoff[paying], values))
        parent = np.concatenate((paying, np.arange(len(values) - len(paying))))
        nothing = np.zeros_like(states[len(paying) :])
        taken = np.concatenate((allocations.taken[paying], nothing))
        kept = _best_states(states, values, width)
        # A state that cannot overtake the best one, even if all its free GPUs paid as much as any
        # later job could, is dropped: that loses nothing.
        hope = values[kept] + (states[kept] @ classes.free) * best_ahead[position + 1]
        kept = kept[(hope > values[kept[0]]) | (np.arange(len(kept)) == 0)]
        states, values = states[kept], values[kept]
        steps.append(_Step(position, parent[kept], taken[kept]))
    return _trace_back(classes, steps, states, values)


def _best_ahead(classes: NodeClasses, queue: Sequence[QueuedJob]) -> NDArray[np.float64]:
    """Largest payoff for a GPU of any later job, on an empty cluster: no later one can have more."""
    # The lowest price of all: the slowest type's value may come with GPUs of a cheaper one.
    price = classes.price.min()
    ahead = np.zeros(len(queue) + 1)
    for position in range(len(queue) - 1, -1, -1):
        job = queue[position]
        payoff = np.where(job.rate > 0, job.value / job.gpus - price, 0.0)
        ahead[position] = max(float(payoff.max()), ahead[position + 1])
    return ahead


def _best_states(
    states: NDArray[np.int64], values: NDArray[np.float64], width: int
) -> NDArray[np.int64]:
    """Rows of the states of largest value, each state once, best first."""
    order = np.argsort(-values, kind="stable")
    rows = np.ascontiguousarray(states[order])
    # A row of bytes as one key, so that equal states are found by one sort.
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    first = np.sort(np.unique(keys, return_index=True)[1])
    return np.asarray(order[first[:width]])


def _trace_back(
    classes: NodeClasses,
    steps: Sequence[_Step],
    states: NDArray[np.int64],
    values: NDArray[np.float64],
) -> RoundSelection:
    """The selection that led to the state of largest value."""
    best = int(values.argmax())
    row = best
    gangs: list[tuple[int, GangParts]] = []
    for step in reversed(steps):
        taken = step.taken[row]
        if taken.any():
            gangs.append((step.position, gang_parts(classes, taken)))
        row = int(step.parent[row])
    return RoundSelection(float(values[best]), tuple(reversed(gangs)), states[best])


# FIND_ALLOC


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
    classes: NodeClasses, states: NDArray[np.int64], job: QueuedJob, communication: float
) -> GangAllocations:
    """Candidate with the largest payoff in each state.

    Consolidated: one node of each type, the cheapest with room. Mixed: for each slowest type
    admitted, the cheapest free GPUs of all types at least as fast, and of that type alone. The charge
    is the price of this round only. A gang on k > 1 nodes loses ``communication`` (k - 1) / k of
    its utility (derived; the published penalty is not known). O(states x types x classes).
    """
    order = classes.cheapest_first
    gpu_type, free, price = classes.gpu_type[order], classes.free[order], classes.price[order]
    nodes = states.take(order, axis=1)
    types = np.flatnonzero(job.rate > 0)
    candidates = np.concatenate(
        (
            _consolidated(nodes, gpu_type, free, job.gpus, types),
            _mixed(nodes, gpu_type, free, job, types),
        ),
        axis=1,
    )
    # Slowest type of each candidate: one consolidated and two mixed ones a type.
    slowest = np.tile(types, 3)
    nodes_used = -(-candidates // np.maximum(free, 1))
    used = np.maximum(nodes_used.sum(axis=2), 1)
    value = job.value[slowest] * (1.0 - communication * (used - 1) / used)
    payoff = value - candidates @ price
    payoff[candidates.sum(axis=2) < job.gpus] = -np.inf
    best = payoff.argmax(axis=1)
    rows = np.arange(len(states))
    taken = candidates[rows, best].take(classes.price_position, axis=1)
    return GangAllocations(payoff[rows, best], taken)


def _consolidated(
    nodes: NDArray[np.int64],
    gpu_type: NDArray[np.int64],
    free: NDArray[np.int64],
    gpus: int,
    types: NDArray[np.int64],
) -> NDArray[np.int64]:
    """GPUs taken on one node of each type, shape (states, types, classes).

    The cheapest class with room is the first one, since classes come in order of price.
    """
    has_room = free >= gpus
    possible = (nodes[:, None, :] > 0) & (has_room & (gpu_type == types[:, None]))[None]
    first = possible.argmax(axis=2)
    return np.asarray(gpus * ((np.arange(len(free)) == first[:, :, None]) & possible))


def _mixed(
    nodes: NDArray[np.int64],
    gpu_type: NDArray[np.int64],
    free: NDArray[np.int64],
    job: QueuedJob,
    types: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The cheapest GPUs of each type and all faster ones, then of each type alone."""
    rate = job.rate[gpu_type]
    at_least_as_fast = rate >= job.rate[types][:, None]
    alone = gpu_type == types[:, None]
    available = np.concatenate((at_least_as_fast, alone)) * (nodes * free)[:, None, :]
    cheaper = available.cumsum(axis=2) - available
    return np.asarray(np.clip(job.gpus - cheaper, 0, available))


def take(
    classes: NodeClasses, states: NDArray[np.int64], taken: NDArray[np.int64]
) -> NDArray[np.int64]:
    """States after GPUs have been taken; shapes (states, classes).

    Within a class whole nodes are taken as long as they are needed, and a part of one more.
    """
    after = states.copy()
    row, column = np.nonzero(taken)
    whole, rest = np.divmod(taken[row, column], classes.free[column])
    after[row, column] -= whole + (rest > 0)
    # A node of which g GPUs are taken moves on by g classes; a whole one by all that were free.
    np.add.at(after, (row, column + classes.free[column]), whole)
    partly = rest > 0
    np.add.at(after, (row[partly], column[partly] + rest[partly]), 1)
    return after


def gang_parts(classes: NodeClasses, taken: NDArray[np.int64]) -> GangParts:
    """Parts of a gang that takes so many GPUs of each class."""
    parts: list[tuple[int, int]] = []
    for column in np.flatnonzero(taken).tolist():
        gpu_type, free = int(classes.gpu_type[column]), int(classes.free[column])
        whole, rest = divmod(int(taken[column]), free)
        parts += [(gpu_type, free)] * whole
        if rest:
            parts.append((gpu_type, rest))
    return tuple(parts)


# Placement


def assign_nodes(
    gangs: Mapping[int, GangParts],
    running: Mapping[int, Pieces],
    capacity: Sequence[int],
    type_of_node: Sequence[int],
    *,
    scattered: bool,
    room: NodeRoom | None = None,
) -> dict[int, Pieces]:
    """Nodes for gangs whose parts are given by GPU type and size.

    A running job that is to have as many GPUs of each type as it holds keeps them, on no more nodes
    than its gang has parts (on any if ``scattered``). The others are packed best fit, largest first.
    Since the parts were found before it was known who stays where, a part may have to be split over
    nodes of its type; by type there are always enough GPUs. O(parts x nodes).

    Parameters
    ----------
    room : NodeRoom, optional
        CPUs and memory, where jobs ask for them (derived, not in the paper): those who stay keep theirs, and a
        gang for which there are none left gets no nodes.
    """
    free = list(capacity)
    assigned: dict[int, Pieces] = {}
    for job, parts in gangs.items():
        pieces = running.get(job)
        if pieces is not None and _may_stay(pieces, parts, type_of_node, scattered):
            assigned[job] = pieces
            for node, gpus in pieces:
                free[node] -= gpus
                if room is not None:
                    room.add(job, node, gpus)
    nodes_of_type: dict[int, list[int]] = {}
    for node, gpu_type in enumerate(type_of_node):
        nodes_of_type.setdefault(gpu_type, []).append(node)
    moving = [
        (size, -order, job, gpu_type)
        for order, (job, parts) in enumerate(gangs.items())
        if job not in assigned
        for gpu_type, size in parts
    ]
    packed: dict[int, Counter[int]] = {}
    for size, _, job, gpu_type in sorted(moving, reverse=True):
        if room is None:
            _pack(packed.setdefault(job, Counter()), size, nodes_of_type[gpu_type], free)
        elif job not in packed or packed[job]:
            mine = packed.setdefault(job, Counter())
            _pack_within(room, job, mine, size, nodes_of_type[gpu_type], free)
    return assigned | {job: tuple(sorted(nodes.items())) for job, nodes in packed.items() if nodes}


def _pack_within(
    room: NodeRoom,
    job: int,
    gpus_by_node: Counter[int],
    size: int,
    nodes: Sequence[int],
    free: list[int],
) -> None:
    """Pack a part where CPUs and memory suffice as well; if they do not, the job gives all back."""
    usable = [0] * len(free)
    for node in nodes:
        usable[node] = room.most(job, node, free[node])
    given: Counter[int] = Counter()
    enough = sum(usable) >= size
    if enough:
        _pack(given, size, nodes, usable)
    for node, gpus in given.items() if enough else gpus_by_node.items():
        change = gpus if enough else -gpus
        room.add(job, node, change)
        free[node] -= change
    if enough:
        gpus_by_node.update(given)
    else:
        gpus_by_node.clear()


def _may_stay(
    pieces: Pieces, parts: GangParts, type_of_node: Sequence[int], scattered: bool
) -> bool:
    """True if a job holds what it is to have."""
    held: Counter[int] = Counter()
    for node, gpus in pieces:
        held[type_of_node[node]] += gpus
    needed: Counter[int] = Counter()
    for gpu_type, gpus in parts:
        needed[gpu_type] += gpus
    return held == needed and (scattered or len(pieces) <= len(parts))


def _pack(gpus_by_node: Counter[int], size: int, nodes: Sequence[int], free: list[int]) -> None:
    """Give a part to the fullest node with room for it, or spread it over the emptiest ones."""
    with_room = [node for node in nodes if free[node] >= size]
    if with_room:
        pieces: Pieces = ((min(with_room, key=free.__getitem__), size),)
    else:
        pieces = in_turn(sorted(nodes, key=lambda each: -free[each]), free, size)
    for node, part in pieces:
        gpus_by_node[node] += part
        free[node] -= part
