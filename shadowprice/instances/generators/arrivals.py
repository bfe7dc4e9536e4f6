"""Poisson arrivals, by mean gap or by offered load."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError


def poisson_arrivals(
    rng: np.random.Generator, gpu_seconds: NDArray[np.float64], *, load: float, gpus_total: int
) -> NDArray[np.float64]:
    """Arrival times [s] at which jobs of these services [GPU-s] offer a load to a number of GPUs.

    Load is the long-run share of GPU time asked for: mean service / (mean gap x GPUs).
    """
    if not 0 < load < 1e3:
        raise InputError(f"load is {load!r}, expected a number > 0")
    if gpus_total < 1:
        raise InputError(f"gpus_total is {gpus_total!r}, expected an integer >= 1")
    mean_gap_s = float(gpu_seconds.mean()) / (load * gpus_total) if len(gpu_seconds) else 0.0
    return np.floor(np.cumsum(rng.exponential(mean_gap_s, len(gpu_seconds))))


def check_jobs(jobs: int) -> None:
    """Refuse numbers of jobs that make no workload."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or not 1 <= jobs <= 100_000_000:
        raise InputError(f"jobs is {jobs!r}, expected an integer from 1 to 100000000")
