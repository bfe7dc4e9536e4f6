"""Common parts of generators: Poisson arrivals, by offered load or rate, checks of parameters."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError

MAX_JOBS = 100_000_000
DEFAULT_LOAD = 0.9


def poisson_arrivals(
    rng: np.random.Generator,
    gpu_seconds: NDArray[np.float64],
    *,
    load: float | None = None,
    gpus_total: int,
    jobs_per_hour: float | None = None,
) -> NDArray[np.float64]:
    """Arrival times [s], whole seconds, of jobs with these services [GPU-s].

    Parameters
    ----------
    load : float, optional
        Long-run share asked for of the time of ``gpus_total`` GPUs: mean service of these jobs /
        (mean gap x GPUs). 0.9 if neither load nor rate is given.
    jobs_per_hour : float, optional
        Rate of arrivals instead of a load.
    """
    if load is not None and jobs_per_hour is not None:
        raise InputError(
            f"load is {load!r} and jobs_per_hour {jobs_per_hour!r}, expected one of them"
        )
    if jobs_per_hour is not None:
        mean_gap_s = 3600.0 / check_number("jobs_per_hour", jobs_per_hour, 0.0, 1e9)
    else:
        load = check_number("load", DEFAULT_LOAD if load is None else load, 0.0, 1e3)
        mean_gap_s = float(gpu_seconds.mean()) / (load * check_count("gpus_total", gpus_total))
    return poisson(rng, len(gpu_seconds), mean_gap_s)


def poisson(rng: np.random.Generator, jobs: int, mean_gap_s: float) -> NDArray[np.float64]:
    """Arrival times [s] of a Poisson process with a mean gap, rounded down to seconds."""
    return np.floor(np.cumsum(rng.exponential(mean_gap_s, jobs)))


def random_generator(seed: int, stream: int) -> np.random.Generator:
    """Generator of a seed; the stream keeps generators of one seed apart."""
    return np.random.default_rng([check_count("seed", seed, least=0, most=2**128), stream])


def draw_gangs(
    rng: np.random.Generator, jobs: int, shares: Mapping[int, float]
) -> NDArray[np.int64]:
    """Gang sizes [GPUs], independent, with shares in proportion to the values given."""
    gangs = [check_count("gang size", gang) for gang in shares]
    parts = np.array(
        [check_number("share of a gang size", p, -1e-300, 1e9) for p in shares.values()]
    )
    if not gangs or parts.sum() <= 0:
        raise InputError(f"gang_shares is {dict(shares)!r}, expected gang sizes with shares > 0")
    return rng.choice(gangs, jobs, p=parts / parts.sum())


def check_count(name: str, value: Any, *, least: int = 1, most: int = MAX_JOBS) -> int:
    """An integer within bounds, of Python's or NumPy's types.

    Raises
    ------
    InputError
        Naming the parameter, its value and the bounds.
    """
    try:
        count = -1 if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        count = -1
    if not least <= count <= most:
        raise InputError(f"{name} is {value!r}, expected an integer from {least} to {most}")
    return count


def check_number(name: str, value: Any, above: float, most: float) -> float:
    """A number greater than one bound and at most the other.

    Raises
    ------
    InputError
        Naming the parameter, its value and the bounds.
    """
    real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not (real and above < value <= most):
        least = ">= 0" if above < 0 else f"> {above:g}"
        raise InputError(f"{name} is {value!r}, expected a number {least}, at most {most:g}")
    return float(value)


def check_jobs(jobs: Any) -> int:
    """Refuse numbers of jobs that make no workload."""
    return check_count("jobs", jobs)
