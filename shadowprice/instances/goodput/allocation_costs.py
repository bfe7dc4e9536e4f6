"""Costs of matrices of GPUs by job and node: the data of a round of Pollux."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError

MOST_GPUS = 127
"""The most GPUs of a node."""

Matrix = NDArray[np.int8]
"""GPUs, shape (jobs, nodes)."""


@dataclass(frozen=True, eq=False)
class AllocationCosts:
    """Costs of what jobs may hold: 1 / (speed-up + 1e-3), whose least sum is the largest power mean of exponent -1.

    Parameters
    ----------
    by_width : ndarray, shape (jobs, 2, widths)
        On one node, and on several, by GPUs from 0 on, where the job has to restart for it.
    unchanged : ndarray, shape (jobs,)
        Of what the job holds now; no more than what a restart with the same would cost.
    held : ndarray of int8, shape (jobs, nodes)
        What that is [GPUs].
    most : ndarray of int, shape (jobs,)
        The most GPUs of each job, below ``widths``.
    capacity : ndarray of int, shape (nodes,)
        GPUs of each node.
    avoid : bool
        Whether at most one job that is on several nodes may hold GPUs of a node.
    job_names : sequence of str
        ``job-0``, ... if there are none.
    """

    by_width: NDArray[np.float64]
    unchanged: NDArray[np.float64]
    held: Matrix
    most: NDArray[np.int64]
    capacity: NDArray[np.int64]
    avoid: bool = True
    job_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        jobs, nodes = self.held.shape
        shapes = (self.by_width.shape[:2], len(self.unchanged), len(self.most), len(self.capacity))
        if shapes != ((jobs, 2), jobs, jobs, nodes):
            raise InputError(
                f"costs of allocations: arrays are for {shapes} jobs and nodes, expected {jobs} jobs and {nodes} nodes"
            )

        if self.capacity.max(initial=0) > MOST_GPUS:
            raise InputError(
                f"costs of allocations: a node has {self.capacity.max()} GPUs, expected at most {MOST_GPUS}"
            )

    def of(self, matrix: Matrix) -> float:
        """Cost of a matrix."""
        row, width = np.arange(len(matrix)), matrix.sum(axis=1, dtype=np.int64)
        across = (np.count_nonzero(matrix, axis=1) > 1).astype(np.int64)
        same = (matrix == self.held).all(axis=1)
        return float(np.where(same, self.unchanged, self.by_width[row, across, width]).sum())

    def allows(self, matrix: Matrix) -> bool:
        """True if nodes have the GPUs, no job has too many, and jobs on several nodes keep apart if they have to."""
        across = (matrix > 0) & (np.count_nonzero(matrix, axis=1) > 1)[:, None]
        fits = bool(
            (matrix >= 0).all() and (matrix.sum(axis=0, dtype=np.int64) <= self.capacity).all()
        )
        changed = (matrix != self.held).any(axis=1)
        within = bool((matrix.sum(axis=1, dtype=np.int64) <= self.most)[changed].all())
        return fits and within and not (self.avoid and bool((across.sum(axis=0) > 1).any()))
