"""Costs of what jobs may hold, from the speed-ups that Pollux expects.

Source: Qiao et al., Pollux, OSDI 2021, sec. 4.2 (recalled); what is scaled by what as in its artifact
(petuum/adaptdl, branch osdi21-artifact, ``simulator/pollux.py``; read).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.goodput.allocation_costs import AllocationCosts, Matrix
from shadowprice.solvers.pollux.speed_model import BatchLimits, StepTime, best_batch

Floats = NDArray[np.float64]

WITHOUT = 1e-3
"""Added to a speed-up, so that the mean of some that are 0 is not 0."""


@dataclass(frozen=True)
class ElasticJob:
    """A job as the programme sees it.

    Parameters
    ----------
    theta : StepTime or None
        None as long as it has not run: its speed is then taken to grow with its GPUs.
    noise : tuple of (float, float)
        Squared norm and variance of its gradient, of no meaning where ``theta`` is None.
    limits : BatchLimits
    most : int
        The most GPUs that it may have now.
    age_s : float
        Time since its arrival [s].
    restarts : int
        How often it has been started again.
    """

    theta: StepTime | None
    noise: tuple[float, float]
    limits: BatchLimits
    most: int
    age_s: float
    restarts: int


def costs(
    jobs: Sequence[ElasticJob],
    held: Matrix,
    capacity: NDArray[np.int64],
    *,
    restart_s: float,
    avoid: bool = True,
) -> AllocationCosts:
    """Costs of all jobs of a round; O(jobs x GPUs x samples of the batch).

    Parameters
    ----------
    held : ndarray of int8, shape (jobs, nodes)
    capacity : ndarray of int, shape (nodes,)
    restart_s : float
        Time without progress after a start [s].
    avoid : bool
        Whether at most one job that is on several nodes may hold GPUs of a node.
    """
    gpus = int(capacity.sum())
    fair = -(-gpus // len(jobs))
    most = np.array([min(job.most, gpus) for job in jobs], dtype=np.int64)
    width = held.sum(axis=1, dtype=np.int64)
    widths = int(max(most.max(), width.max())) + 1
    scale = len(capacity) / gpus
    speed = np.zeros((len(jobs), 2, widths))
    for j, job in enumerate(jobs):
        end = int(max(most[j], width[j])) + 1
        speed[j, :, :end] = _speed_ups(job, end, fair) * scale
    row = np.arange(len(jobs))
    unchanged = speed[row, (np.count_nonzero(held, axis=1) > 1).astype(int), width]
    factor = np.array([restart_factor(job, restart_s) for job in jobs])
    by_width = 1.0 / (speed * factor[:, None, None] + WITHOUT)
    return AllocationCosts(by_width, 1.0 / (unchanged + WITHOUT), held, most, capacity, avoid)


def restart_factor(job: ElasticJob, restart_s: float) -> float:
    """Part of a job's time that it would have made progress if it were started again as often as until now."""
    return max(job.age_s - job.restarts * restart_s, 0.0) / (job.age_s + restart_s)


def _speed_ups(job: ElasticJob, end: int, fair: int) -> Floats:
    """Goodput on one node and on several over that of the fair share on one, shape (2, end)."""
    theta, table = job.theta, np.zeros((2, end))
    if theta is None:
        table[:] = np.arange(end) / fair
        return table
    replicas = np.arange(1, end)
    asked = np.concatenate((replicas, replicas[1:], [fair]))
    across = np.repeat([False, True, False], [end - 1, max(end - 2, 0), 1])
    goodput = best_batch(theta, job.noise, job.limits, across, asked).goodput
    if goodput[-1] > 0:
        table[0, 1:], table[1, 2:] = (
            part / goodput[-1] for part in (goodput[: end - 1], goodput[end - 1 : -1])
        )
    return table
