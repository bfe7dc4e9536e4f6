r"""An interior-point method for max-min allocations that uses their structure.

The programme of :func:`shadowprice.models.gavel.max_min` without space sharing, with a_mj = T_mj / r_m:

.. math::

    \max t, \quad \sum_j a_{mj} x_{mj} - f_m = t, \quad \sum_j x_{mj} + u_m = 1, \quad
    \sum_m l_m x_{mj} + w_j = W_j, \qquad x, f, u, w \ge 0

Each job has two rows of its own and is tied to the others by t and the few rows of workers only,
so the normal equations are one 2 x 2 block a job bordered by types + 1 rows: a Newton step is
O(jobs x types^2) (derived; the arrow structure is textbook, e.g. Wright, Primal-Dual
Interior-Point Methods, 1997, ch. 11). Strictly feasible points of primal and dual are at hand, and
slacks are recomputed from their definitions in every iteration, so that both stay feasible and
the complementarity gap is the true gap: primal value and dual value are certificates by
themselves, checked again in :func:`solve` from x and the prices alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.gavel.newton import Iterate
from shadowprice.solvers.threads import one_blas_thread

Numbers = NDArray[np.float64]

MAX_ITERATIONS = 60


@dataclass(frozen=True)
class Point:
    """What the method found; both sides are feasible.

    Parameters
    ----------
    value, bound : float
        min_m sum_j a_mj x_mj, and the value of the dual prices: no allocation has a higher minimum.
    x : ndarray, shape (jobs, types)
    job_price : ndarray, shape (jobs,)
        y_m >= 0, sum 1: what a unit of normalised throughput of the job is worth.
    worker_price : ndarray, shape (types,)
        What a unit of worker time is worth.
    iterations : int
    """

    value: float
    bound: float
    x: Numbers
    job_price: Numbers
    worker_price: Numbers
    iterations: int


@one_blas_thread
def solve(a: Numbers, load: Numbers, workers: Numbers, tolerance: float = 1e-9) -> Point:
    """Maximise the smallest normalised throughput; O(jobs x types^2) an iteration, 10 to 40 of them.

    Parameters
    ----------
    a : ndarray, shape (jobs, types)
        Throughput over need; every job positive somewhere.
    load : ndarray, shape (jobs,)
        GPUs a unit of the job's time takes: its gang, times the number of equal jobs of the row.
    workers : ndarray, shape (types,)
        GPUs of each type, positive.
    tolerance : float
        Relative gap at which to stop.

    Returns
    -------
    Point
        Its gap may exceed the tolerance when numbers are extreme: compare value and bound.
    """
    scale, size = float(a.max(axis=1).mean()), float(load.mean())
    state = Iterate(np.ascontiguousarray(a.T) / scale, load / size, workers / size)
    iterations = 0
    with np.errstate(all="ignore"):
        while iterations < MAX_ITERATIONS and state.gap() > tolerance * state.t:
            if not state.step(tolerance):
                break
            iterations += 1
    x = _cleaned(state.best_x.T, load, workers)
    y = state.best_y / state.best_y.sum()
    prices = state.best_prices * scale / size
    value = float((a * x).sum(axis=1).min())
    return Point(value, bound(a, load, workers, y, prices), x, y, prices, iterations)


def bound(
    a: Numbers, load: Numbers, workers: Numbers, job_price: Numbers, worker_price: Numbers
) -> float:
    """Value of a dual point, sum_j W_j p_j + sum_m max(0, max_j a_mj y_m - l_m p_j).

    For any y >= 0 with sum 1 and any p >= 0 no allocation has a higher minimum (weak duality).
    """
    surplus = a * job_price[:, None] - load[:, None] * worker_price[None, :]
    return float(workers @ worker_price + np.maximum(surplus.max(axis=1), 0.0).sum())


def _cleaned(x: Numbers, load: Numbers, workers: Numbers) -> Numbers:
    """Exactly feasible after rounding: clipped, and scaled to time and workers."""
    x = np.maximum(x, 0.0)
    x = x / np.maximum(x.sum(axis=1), 1.0)[:, None]
    used = load @ x
    return np.asarray(x * np.minimum(1.0, workers / np.maximum(used, 1e-300))[None, :])
