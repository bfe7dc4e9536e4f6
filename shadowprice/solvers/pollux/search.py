"""Pollux' genetic search for a matrix of GPUs by job and node, compiled.

Source: Qiao et al., Pollux, OSDI 2021, sec. 4.2.1 (recalled); operators and sizes as its artifact has them
(petuum/adaptdl, branch osdi21-artifact, ``simulator/pollux.py``; read). A population of matrices, each generation as
many again: parents by tournament, one-point crossover over the jobs, mutation, repair; the best that differ stay.

The artifact hands its operators to pymoo, which sorts by two values, the second of which counts only where nodes are
added to the cluster. All operators are the paper's own, and all that a library would do is the sorting, while calling
them as functions of Python; so the search is written here. Costs are added over jobs (:class:`AllocationCosts`): less
is better.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shadowprice.instances.goodput.allocation_costs import AllocationCosts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Matrices = NDArray[np.int8]
"""GPUs, shape (matrices, jobs, nodes)."""
Programme = tuple[Matrices, Floats, Floats, Ints, Ints, bool]
"""Fields of :class:`AllocationCosts`: held, by width, unchanged, most, capacity, avoid; for numba no class of ours."""

RESET, EMPTY_ROW, EMPTY = 0.1, 0.1, 0.1
"""Probabilities that a job is set back to what it holds, that it loses GPUs, and with which it does on a node."""


def searched(
    costs: AllocationCosts,
    population: Matrices,
    draw: np.random.Generator,
    *,
    size: int = 100,
    generations: int = 100,
) -> Matrices:
    """The population after some generations, the best matrix first.

    O(generations x size x jobs x nodes).

    Parameters
    ----------
    population : ndarray of int8, shape (matrices, jobs, nodes)
        At least one, at most ``size``; what the constraints do not allow is repaired.
    draw : Generator
        Of all that is random.
    """
    jobs, nodes = costs.held.shape
    room = np.zeros((2 * size, jobs, nodes), dtype=np.int8)
    room[: len(population)] = population
    cost = np.full(2 * size, np.inf)
    programme = (
        costs.held,
        costs.by_width,
        costs.unchanged,
        costs.most,
        costs.capacity,
        costs.avoid,
    )
    # The compiled loop has a generator of its own.
    seed = np.uint64(draw.integers(1, 2**63))
    alive = _evolve(room, cost, len(population), generations, seed, programme)
    return room[:alive].copy()


@njit(cache=True)
def _next(state: NDArray[np.uint64]) -> np.uint64:
    """64 random bits (xorshift64*: Marsaglia 2003, Vigna 2016)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(2685821657736338717)


@njit(cache=True)
def _uniform(state: NDArray[np.uint64]) -> float:
    return np.float64(_next(state) >> np.uint64(11)) * 2.0**-53


@njit(cache=True)
def _below(state: NDArray[np.uint64], end: int) -> int:
    """A whole number from 0 to below an end."""
    return int(_uniform(state) * end)


@njit(cache=True)
def _cost(matrix: Matrices, programme: Programme) -> float:
    held, by_width, unchanged, _, _, _ = programme
    jobs, nodes = held.shape
    total = 0.0
    for j in range(jobs):
        width = used = 0
        same = True
        for n in range(nodes):
            width += matrix[j, n]
            used += matrix[j, n] > 0
            same = same and matrix[j, n] == held[j, n]
        total += unchanged[j] if same else by_width[j, np.int64(used > 1), width]
    return total


@njit(cache=True)
def _mutate(matrix: Matrices, programme: Programme, free: Ints, state: NDArray[np.uint64]) -> None:
    """Set jobs back, take GPUs away, and give more where a node has some free, in place."""
    held, capacity = programme[0], programme[4]
    jobs, nodes = held.shape
    for n in range(nodes):
        free[n] = capacity[n]
    for j in range(jobs):
        if _uniform(state) < RESET:
            matrix[j] = held[j]
        if _uniform(state) < EMPTY_ROW:
            for n in range(nodes):
                if _uniform(state) < EMPTY:
                    matrix[j, n] = 0
        for n in range(nodes):
            free[n] -= matrix[j, n]
    for n in range(nodes):
        if free[n] <= 0:
            continue
        holders = 0
        for j in range(jobs):
            holders += matrix[j, n] > 0
        # About one job of all and one of those that are there already.
        any_job, holder = 1.0 / jobs, 1.0 / max(holders, 1)
        both = any_job + holder - any_job * holder
        for j in range(jobs):
            if _uniform(state) < (both if matrix[j, n] else any_job):
                matrix[j, n] += _below(state, capacity[n] + 1 - matrix[j, n])


@njit(cache=True)
def _keep_apart(matrix: Matrices, taken: Ints) -> None:
    """Leave of the jobs on several nodes the first on each node, in place."""
    jobs, nodes = matrix.shape
    taken[:] = 0
    for j in range(jobs):
        used = 0
        for n in range(nodes):
            used += matrix[j, n] > 0
        if used > 1:
            for n in range(nodes):
                if matrix[j, n] > 0:
                    if taken[n]:
                        matrix[j, n] = 0
                    taken[n] = 1


@njit(cache=True)
def _repair(
    matrix: Matrices,
    programme: Programme,
    free: Ints,
    order: Ints,
    state: NDArray[np.uint64],
) -> None:
    """Make a matrix one that the constraints allow, in place; earlier jobs keep what they have."""
    jobs, nodes = matrix.shape
    _, _, _, most, capacity, avoid = programme
    if avoid:
        _keep_apart(matrix, free)
    for n in range(nodes):
        order[n] = n
        free[n] = capacity[n]
    for j in range(jobs):
        width = 0
        for n in range(nodes):
            width += matrix[j, n]
        if width > most[j]:
            # Which nodes lose GPUs is drawn.
            for n in range(nodes - 1, 0, -1):
                k = _below(state, n + 1)
                order[n], order[k] = order[k], order[n]
            left = most[j]
            for n in order:
                matrix[j, n] = min(np.int64(matrix[j, n]), left)
                left -= matrix[j, n]
        for n in range(nodes):
            if matrix[j, n]:
                matrix[j, n] = min(np.int64(matrix[j, n]), free[n])
                free[n] -= matrix[j, n]


@njit(cache=True)
def _parent(cost: Floats, alive: int, state: NDArray[np.uint64]) -> int:
    one, other = _below(state, alive), _below(state, alive)
    return one if cost[one] <= cost[other] else other


@njit(cache=True)
def _same(one: Matrices, other: Matrices) -> bool:
    jobs, nodes = one.shape
    for j in range(jobs):
        for n in range(nodes):
            if one[j, n] != other[j, n]:
                return False
    return True


@njit(cache=True)
def _survivors(room: Matrices, cost: Floats, count: int, size: int) -> int:
    """The best matrices that differ come first, in order of cost; how many there are."""
    order = np.argsort(cost[:count], kind="mergesort")
    picked = np.empty(size, dtype=np.int64)
    alive = 0
    for k in order:
        if alive == size:
            break
        twin = False
        # Equal matrices have equal costs.
        for back in range(alive - 1, -1, -1):
            if cost[picked[back]] != cost[k]:
                break
            if _same(room[picked[back]], room[k]):
                twin = True
                break
        if not twin:
            picked[alive] = k
            alive += 1
    best, least = room[picked[:alive]].copy(), cost[picked[:alive]].copy()
    room[:alive] = best
    cost[:alive] = least
    return alive


@njit(cache=True)
def _evolve(
    room: Matrices,
    cost: Floats,
    count: int,
    generations: int,
    seed: np.uint64,
    programme: Programme,
) -> int:
    """Generations in place, in the first half of the room; the second is for those that come."""
    size, (jobs, nodes) = len(room) // 2, programme[0].shape
    state = np.full(1, seed)
    free, order = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    for k in range(count):
        _repair(room[k], programme, free, order, state)
        cost[k] = _cost(room[k], programme)
    alive = _survivors(room, cost, count, size)
    for _ in range(generations):
        end = alive
        while end < alive + size:
            one, other = _parent(cost, alive, state), _parent(cost, alive, state)
            point = _below(state, jobs)
            for first, second in ((one, other), (other, one)):
                if end == alive + size:
                    break
                child = room[end]
                child[:point] = room[first, :point]
                child[point:] = room[second, point:]
                _mutate(child, programme, free, state)
                _repair(child, programme, free, order, state)
                cost[end] = _cost(child, programme)
                end += 1
        alive = _survivors(room, cost, end, size)
    return alive
