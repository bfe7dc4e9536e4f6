r"""Pollux' model of a job: its step time, fitted to what was observed, its efficiency, and the batch that suits both.

Source: Qiao et al., Pollux, OSDI 2021, sec. 3 (recalled); priors, bounds and samples as its artifact has them
(petuum/adaptdl, branch osdi21-artifact, ``simulator/goodput.py``; read). With local batch b on r replicas, a of them
added up before a step,

.. math::

    T_g = \alpha_c + \beta_c b, \quad T_s = \alpha_x + \beta_x \max(r - 2, 0), \quad
    T = a T_g + (T_g^\gamma + T_s^\gamma)^{1 / \gamma}

with x = n where the replicas are on several nodes, r where several are on one, and T_s = 0 for one replica. Goodput is
examples a second, r b (a + 1) / T, times the efficiency (v + q) / (v / s + q) / s, where s is the batch over the
initial one, and q and v are the squared norm and the variance of the gradient. Times in s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SAMPLES = 50
"""Batch sizes looked at, in equal steps of their logarithm."""

_ROUNDING = 1e-8
"""Rounding of a quotient of batch sizes that is a whole number."""

_ALMOST_0 = 1e-8
"""Least of each parameter; the time [s] that one replica waits for others."""


class StepTime(NamedTuple):
    """Parameters of the step time: alpha_c, beta_c, alpha_n, beta_n, alpha_r, beta_r [s], gamma."""

    start_s: float
    example_s: float
    across_nodes_s: float
    across_nodes_each_s: float
    on_node_s: float
    on_node_each_s: float
    overlap: float


@dataclass(frozen=True)
class BatchLimits:
    """Batch sizes that a job can have [examples].

    Parameters
    ----------
    initial, largest : int
        Of all replicas together.
    local_least, local_largest : int
        Of one replica, between two additions.
    fixed : int
        The one batch that the job keeps; 0 if it may have any.
    """

    initial: int
    largest: int
    local_least: int
    local_largest: int
    fixed: int = 0


class Observed(NamedTuple):
    """A configuration in which a job ran, and how long its steps took."""

    nodes: int
    replicas: int
    local_batch: int
    step_s: float
    sync_s: float


class BestBatch(NamedTuple):
    """Goodput [examples/s], local batch and additions before the step, each an array."""

    goodput: Floats
    local: Ints
    accumulated: Ints


def best_batch(
    theta: StepTime,
    noise: tuple[float, float],
    limits: BatchLimits,
    across: NDArray[np.bool_],
    replicas: Ints,
) -> BestBatch:
    """Batch of the largest goodput of each configuration, of :data:`SAMPLES` between the least and the largest.

    Parameters
    ----------
    noise : tuple of (float, float)
        Squared norm q and variance v of the gradient.
    across : ndarray of bool, shape (configurations,)
        Whether the replicas are on several nodes.
    replicas : ndarray of int, shape (configurations,)

    Returns
    -------
    BestBatch
        Of goodput 0 where no sample has a local batch within its limits.
    """
    if limits.fixed:
        local = np.full((1, len(replicas)), float(limits.fixed)) / replicas
    else:
        least = np.maximum(limits.initial, limits.local_least * replicas)
        local = np.geomspace(least, limits.largest, SAMPLES) / replicas
    added = np.ceil(local / limits.local_largest - _ROUNDING) - 1
    # One replica has no variance between replicas to measure, so that it adds up where its batch has grown.
    alone = (replicas == 1) & (local > limits.initial + _ROUNDING)
    accumulated = np.where(alone, np.maximum(added, 1), added).astype(np.int64)
    atomic = np.ceil(local / (accumulated + 1) - _ROUNDING).astype(np.int64)
    gradient_s = theta.start_s + theta.example_s * atomic
    sync_s = _sync_s(theta, across, replicas)
    together_s = np.exp(np.log(gradient_s**theta.overlap + sync_s**theta.overlap) / theta.overlap)
    batch = replicas * atomic * (accumulated + 1)
    scale, (sqr, var) = batch / limits.initial, noise
    denominator = var / scale + sqr
    gain = np.ones_like(denominator)
    np.divide(var + sqr, denominator, out=gain, where=denominator > 0)
    goodput = batch / (accumulated * gradient_s + together_s) * gain / scale
    within = (limits.local_least <= atomic) & (atomic <= limits.local_largest)
    goodput = np.where(within, goodput, 0.0)
    best = goodput.argmax(axis=0), np.arange(len(replicas))
    return BestBatch(goodput[best], atomic[best], accumulated[best])


def _sync_s(theta: StepTime, across: NDArray[np.bool_], replicas: Ints) -> Floats:
    one = np.where(replicas > 1, theta.on_node_s, _ALMOST_0)
    each = np.where(replicas > 1, theta.on_node_each_s, _ALMOST_0)
    start = np.where(across, theta.across_nodes_s, one)
    more = np.where(across, theta.across_nodes_each_s, each)
    return np.asarray(start + more * np.maximum(replicas - 2, _ALMOST_0))


def fitted(observed: Sequence[Observed]) -> StepTime:
    """Parameters of least error of the logarithms, of what has not been observed the most hopeful ones.

    Parameters
    ----------
    observed : sequence of Observed
        At least one.
    """
    nodes, replicas, local, step_s, sync_s = (
        np.array(each, float) for each in zip(*observed, strict=True)
    )
    start = np.array([0.1, 0.01] * 3 + [1.001])
    lower, upper = np.array([_ALMOST_0] * 6 + [1.0]), np.array([np.inf] * 6 + [10.0])
    if len(np.unique(local)) == 1:
        start[0] = lower[0] = upper[0] = np.mean(step_s - sync_s) / 2
    unseen = []
    if not np.any(nodes > 1):
        unseen += [2, 3]
    if not np.any((nodes == 1) & (replicas > 1)):
        unseen += [4, 5]
    if not np.any(replicas > 2):
        unseen += [3, 5]
    start[unseen] = upper[unseen] = lower[unseen]
    data = (nodes > 1, replicas, local, np.log(step_s - sync_s), np.log(step_s))
    answer = minimize(
        _error, start, args=data, jac=True, bounds=Bounds(lower, upper, keep_feasible=True)
    )
    theta = answer.x
    if not np.any(nodes > 1):
        theta[2:4] = np.maximum(theta[2:4], theta[4:6] * 1.1)
    return StepTime(*theta.tolist())


@njit(cache=True)
def _error(
    theta: Floats,
    across: NDArray[np.bool_],
    replicas: Floats,
    local: Floats,
    log_gradient_s: Floats,
    log_step_s: Floats,
) -> tuple[float, Floats]:
    """Root mean squares of both errors, with weights towards little overlap and little growth; and the gradient."""
    overlap, count = theta[6], len(local)
    squares = np.zeros(2)
    slopes = np.zeros((2, 7))
    for k in range(count):
        gradient_s = theta[0] + theta[1] * local[k]
        kind = 2 if across[k] else 4
        shared = across[k] or replicas[k] > 1
        more = max(replicas[k] - 2, _ALMOST_0)
        sync_s = theta[kind] + theta[kind + 1] * more if shared else _ALMOST_0 * (1 + more)
        powers = gradient_s**overlap, sync_s**overlap
        total = powers[0] + powers[1]
        log_total = np.log(total)
        miss = np.log(gradient_s) - log_gradient_s[k]
        squares[0] += miss * miss
        slopes[0, 0] += miss / gradient_s
        slopes[0, 1] += miss * local[k] / gradient_s
        miss = log_total / overlap - log_step_s[k]
        squares[1] += miss * miss
        by_gradient = miss * powers[0] / total / gradient_s
        slopes[1, 0] += by_gradient
        slopes[1, 1] += by_gradient * local[k]
        if shared:
            by_sync = miss * powers[1] / total / sync_s
            slopes[1, kind] += by_sync
            slopes[1, kind + 1] += by_sync * more
        mean = (powers[0] * np.log(gradient_s) + powers[1] * np.log(sync_s)) / total
        slopes[1, 6] += miss * (mean - log_total / overlap) / overlap
    value = 1e-3 * (overlap - 1) ** 2
    slope = np.zeros(7)
    slope[6] = 2e-3 * (overlap - 1)
    for part in range(2):
        error = np.sqrt(squares[part] / count)
        value += error
        if error > 0:
            slope += slopes[part] / (count * error)
    for kind in (2, 4):
        growth = theta[kind + 1] / theta[kind]
        value += 1e-2 * growth * growth
        slope[kind + 1] += 2e-2 * growth / theta[kind]
        slope[kind] -= 2e-2 * growth * growth / theta[kind]
    return value, slope
