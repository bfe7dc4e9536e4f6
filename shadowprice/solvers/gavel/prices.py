"""A level of allocation, with the prices that prove it."""

from __future__ import annotations

from dataclasses import dataclass

from shadowprice.solvers.gavel.rates import FloatArray


@dataclass(frozen=True, eq=False)
class PricedLevel:
    """A level, an allocation that reaches it, and prices that prove that none is higher.

    Parameters
    ----------
    value, bound : float
        Level reached, and the bound the prices prove.
    x, y : ndarray
        Fractions of time of jobs, shape (jobs, types), and of pairs, shape (pairs, types).
    job_price : ndarray, shape (jobs,)
        y_m >= 0 with sum y_m r_m = 1: value of a step per second of each job.
    time_price : ndarray, shape (jobs,)
        Value of a unit of each job's own time.
    worker_price : ndarray, shape (accelerators,)
        Value of a GPU of each accelerator.
    method : str
        ``highs`` or ``block-arrow``.
    """

    value: float
    bound: float
    x: FloatArray
    y: FloatArray
    job_price: FloatArray
    time_price: FloatArray
    worker_price: FloatArray
    method: str
