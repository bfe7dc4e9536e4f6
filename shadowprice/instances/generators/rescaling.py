"""Traces with other arrivals: at another load, the jobs in another order, or as a Poisson process."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.generators.arrivals import check_number, random_generator
from shadowprice.instances.grid import MAX_TIME_S, to_grid
from shadowprice.instances.workload import COLUMNS, Workload


def offered_load(
    workload: Workload, gpus_total: int, run_s: NDArray[np.float64] | None = None
) -> float:
    r"""Load that jobs offer to a number of GPUs: mean GPU time of a job over (mean gap x GPUs).

    .. math:: \frac{\frac{1}{n} \sum_j g_j p_j}{\frac{r_n - r_1}{n - 1} \, G}

    Jobs that hold cores instead of GPUs have :math:`g_j = 0`.

    Parameters
    ----------
    run_s : ndarray, shape (n,), optional
        Run time of each job [s]; its work if not given.

    Raises
    ------
    InputError
        If fewer than two jobs, or jobs of one moment, leave no gap.
    """
    service_gpu_s = workload.held_gpus * (workload.work if run_s is None else run_s)
    return float(service_gpu_s.mean()) / (_mean_gap_s(workload) * gpus_total)


def at_load(
    workload: Workload,
    load: float,
    gpus_total: int,
    run_s: NDArray[np.float64] | None = None,
) -> Workload:
    """The same jobs with all gaps multiplied by one number, so that they offer this load.

    Arrivals are rounded to the time grid; the first stays where it is.

    Raises
    ------
    InputError
        If the load is no number above 0, there is no gap, or arrivals would be beyond all times.
    """
    load = check_number("load", load, 0.0, 1e6)
    factor = _known_load(workload, gpus_total, run_s) / load
    first_s = workload.arrival_s[:1]
    return _arriving(workload, first_s + (workload.arrival_s - first_s) * factor)


def shuffled(workload: Workload, seed: int = 0) -> Workload:
    """The same arrivals, at which the jobs come in another order, all orders alike likely.

    What hangs together in time (bursts of equal jobs, busy hours of long ones) no longer does.
    """
    order = random_generator(seed, 51).permutation(len(workload))
    columns = {name: getattr(workload, name)[order] for name in COLUMNS if name != "arrival_s"}
    # A deadline is as far from the arrival as it was.
    slack_s = (workload.deadline_s - workload.arrival_s)[order]
    columns["deadline_s"] = workload.arrival_s + slack_s
    if workload.throughput is not None:
        columns["throughput"] = workload.throughput[order]
    return replace(workload, **columns)


def poisson_arrivals_of(
    workload: Workload,
    seed: int = 0,
    *,
    load: float | None = None,
    gpus_total: int | None = None,
    run_s: NDArray[np.float64] | None = None,
) -> Workload:
    """The same jobs in the same order, whose gaps are exponential with the mean of theirs.

    Parameters
    ----------
    load : float, optional
        The mean gap is that at which the jobs offer this load to ``gpus_total`` GPUs; of one sample the
        load differs from it as chance has it.

    Raises
    ------
    InputError
        If there is no gap, or the load is no number above 0.
    """
    mean_gap_s = _mean_gap_s(workload)
    if load is not None:
        if gpus_total is None:
            raise InputError("a load is of a number of GPUs: expected gpus_total")
        load = check_number("load", load, 0.0, 1e6)
        mean_gap_s *= _known_load(workload, gpus_total, run_s) / load
    gaps_s = random_generator(seed, 52).exponential(mean_gap_s, len(workload) - 1)
    first_s = workload.arrival_s[:1]
    return _arriving(workload, np.concatenate((first_s, first_s + np.cumsum(gaps_s))))


def _known_load(workload: Workload, gpus_total: int, run_s: NDArray[np.float64] | None) -> float:
    """Load that is offered now, which another is a multiple of."""
    if not gpus_total:
        raise InputError("a load is offered to GPUs: expected a cluster with some")
    if not workload.held_gpus.any():
        raise InputError(f"{workload.source}: no job holds GPUs, expected some that offer a load")
    return offered_load(workload, gpus_total, run_s)


def _mean_gap_s(workload: Workload) -> float:
    """Mean time between arrivals [s]."""
    gaps = len(workload) - 1
    span_s = float(workload.arrival_s[-1] - workload.arrival_s[0]) if gaps > 0 else 0.0
    if span_s == 0:
        raise InputError(
            f"{workload.source}: its {len(workload)} jobs arrive at one moment, expected a time between "
            "the first and the last"
        )
    return span_s / gaps


def _arriving(workload: Workload, arrival_s: NDArray[np.float64]) -> Workload:
    if arrival_s[-1] > MAX_TIME_S:
        raise InputError(
            f"{workload.source}: the last job would arrive after {arrival_s[-1]:.4g} s, expected at most "
            f"{MAX_TIME_S:.10g}"
        )
    on_grid = to_grid(arrival_s)
    slack_s = workload.deadline_s - workload.arrival_s
    return replace(workload, arrival_s=on_grid, deadline_s=on_grid + slack_s)
