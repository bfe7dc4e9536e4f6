"""Rounds of jobs that may have any GPUs, and all matrices that they allow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from shadowprice.instances.goodput.allocation_costs import AllocationCosts, Matrix


def drawn_round(
    jobs: int, nodes: int, draw: np.random.Generator, *, gpus: int = 2, avoid: bool = True
) -> AllocationCosts:
    """Concave speeds, slower across nodes; some jobs hold GPUs already."""
    total = gpus * nodes
    exponent, across = draw.uniform(0.3, 1.0, jobs), draw.uniform(0.6, 1.0, jobs)
    speed = np.arange(total + 1)[None, :] ** exponent[:, None]
    speeds = np.stack([speed, across[:, None] * speed], axis=1)
    factor = draw.uniform(0.2, 1.0, jobs)
    held = np.zeros((jobs, nodes), dtype=np.int8)
    free, taken = np.full(nodes, gpus), np.zeros(nodes, dtype=bool)
    for job in range(jobs):
        if draw.random() < 0.6:
            row = np.minimum(draw.integers(0, gpus + 1, nodes), free)
            if np.count_nonzero(row) > 1:
                row[taken] = 0
            taken |= (row > 0) & (np.count_nonzero(row) > 1)
            held[job], free = row, free - row
    width, several = held.sum(axis=1), (np.count_nonzero(held, axis=1) > 1).astype(int)
    unchanged = 1 / (speeds[np.arange(jobs), several, width] + 1e-3)
    by_width = 1 / (speeds * factor[:, None, None] + 1e-3)
    most = np.maximum(draw.integers(1, total + 1, jobs), width)
    return AllocationCosts(by_width, unchanged, held, most, np.full(nodes, gpus), avoid)


def matrices(costs: AllocationCosts) -> Iterator[Matrix]:
    """All matrices that a round allows."""
    jobs, nodes = costs.held.shape
    most = int(costs.capacity.max())
    for cells in product(range(most + 1), repeat=jobs * nodes):
        matrix = np.array(cells, dtype=np.int8).reshape(jobs, nodes)
        if costs.allows(matrix):
            yield matrix


def least_cost(costs: AllocationCosts) -> float:
    """Least cost of all matrices, by trying them."""
    return min(costs.of(matrix) for matrix in matrices(costs))
