"""A lower bound of the sum of completion times of a few jobs that are all there, over all orders of completion."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.models import afs
from shadowprice.solvers.programs.compile import compile_model

MOST_JOBS = 6


def least_total_s(speed: NDArray[np.float64], gpus: int) -> float:
    """Sum of completion times [s] below which no elastic shares are; O(n!) programmes for n jobs.

    Parameters
    ----------
    speed : ndarray, shape (jobs, gpus + 1)
        Share of each job that is done in a second, by GPUs from 0 on.

    Raises
    ------
    InputError
        If there are no jobs or more than :data:`MOST_JOBS`, or one of them can run nowhere.
    """
    if speed.ndim != 2 or not 1 <= len(speed) <= MOST_JOBS or speed.shape[1] != gpus + 1:
        raise InputError(
            f"speeds of shape {speed.shape} on {gpus} GPUs, expected 1 to {MOST_JOBS} jobs and {gpus + 1} widths"
        )
    if not (speed.max(axis=1) > 0).all():
        raise InputError("speeds: a job can run on no number of GPUs, expected a speed above 0")
    orders = permutations(range(len(speed)))
    return min(_bound_s(speed[list(order)], gpus) for order in orders)


def _bound_s(speed: NDArray[np.float64], gpus: int) -> float:
    return compile_model(afs.build(speed, gpus)).solve().bound
