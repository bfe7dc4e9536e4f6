r"""Least times of jobs with goodput by the GPUs that they hold, for lower bounds.

The proof that every schedule does as much is in :mod:`shadowprice.proofs.lower_bounds.goodput`. In epoch e of a job let
t_e(w) be its time at the best of all placements of w GPUs or fewer, and at the best of all batches that it may have.
With any shares :math:`\mu_e` that add up to 1 the whole of the job takes no less than

.. math:: T(w) = \min_e t_e(w) / \mu_e

of time on w GPUs, in the sense that a run of length :math:`\tau` does no more than :math:`\tau / T(w)` of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.goodput.application import Application, lowest_rotation
from shadowprice.instances.grid import TICK_S, TICKS_PER_S
from shadowprice.instances.terms.widths import MeasuredWidths

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.workload import Workload

Floats = NDArray[np.float64]

_LESS = 1 - 2.0**-40
"""Factor on least times, for sums and quotients of doubles were rounded."""


class Aim(Enum):
    """Purposes for which shares of epochs are chosen."""

    GPU_TIME = "gpu-time"
    TIME = "time"


def relaxed_fields(
    applications: Mapping[str, Application],
    cluster: Cluster,
    jobs: Workload,
    aim: Aim,
    *,
    whole_seconds: bool = False,
) -> dict[str, Any]:
    """Jobs of one GPU with linear speed-up at most, each as fast at every width as it is there at best, or faster.

    Parameters
    ----------
    applications : mapping of str to Application
        By the models of the jobs.
    whole_seconds : bool
        Whether an epoch may end half a second before its progress is made.
    """
    known: dict[tuple[str, int], tuple[float, tuple[float, ...]]] = {}
    for model, batch in dict.fromkeys(
        zip(jobs.model.tolist(), jobs.batch_size.tolist(), strict=True)
    ):
        whole_s = least_times(applications[model], batch, cluster, aim, whole_seconds=whole_seconds)
        known[model, batch] = float(whole_s[0]), tuple((whole_s[0] / whole_s).tolist())
    rows = [known[key] for key in zip(jobs.model.tolist(), jobs.batch_size.tolist(), strict=True)]
    work = np.array([whole for whole, _ in rows])
    ones = np.ones(len(jobs), dtype=np.int64)
    none = np.zeros(len(jobs))
    # CPUs and memory are asked for with the gang, of which nothing is left.
    lighter = replace(jobs, cpus=none, memory_gb=none)
    relaxed = replace(lighter, gpus=ones, work=work, batch_size=np.zeros_like(ones))
    return {"workload": relaxed, "elasticity": MeasuredWidths.of([speeds for _, speeds in rows])}


def least_times(
    application: Application,
    batch: int,
    cluster: Cluster,
    aim: Aim = Aim.GPU_TIME,
    *,
    whole_seconds: bool = False,
) -> Floats:
    """Least time [s] of a whole job on one GPU, on two at most, and so on: whole ticks, never increasing.

    The first is no more than the least GPU time on any number, so that nobody gains more than in proportion.
    """
    sizes = cluster.gpus_per_node
    shape = batch, len(sizes), int(sizes.max()), int(sizes.sum())
    best = best_rates(application, *shape)
    lengths = np.diff(np.array((0.0, *application.ends)))
    return weighed(lengths, best, aim, whole_seconds=whole_seconds)


def weighed(
    lengths: Floats, best: Floats, aim: Aim = Aim.GPU_TIME, *, whole_seconds: bool = False
) -> Floats:
    """T(w) [s] at the best of some shares of epochs.

    Parameters
    ----------
    lengths : ndarray, shape (epochs,)
        Progress of each epoch.
    best : ndarray, shape (epochs, widths)
        Largest goodput in each epoch on so many GPUs or fewer.
    whole_seconds : bool
        Whether an epoch may end half a second before its progress is made.
    """
    some = lengths > 0
    with np.errstate(divide="ignore"):
        times = lengths[some, None] / best[some]
    if whole_seconds:
        times *= np.maximum(1 - 0.5 / times[:, -1:], 0.0)
    sums = times.sum(axis=0)
    width = np.arange(1, times.shape[1] + 1)
    candidates = []
    for at in np.flatnonzero(np.isfinite(sums) & (sums > 0)).tolist():
        share = times[:, at] / sums[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = np.where(share[:, None] > 0, times / share[:, None], np.inf).min(axis=0)
        worth = (whole * width).min(), whole.min()
        candidates.append((worth if aim is Aim.GPU_TIME else worth[::-1], whole))
    whole = max(candidates, key=lambda each: each[0])[1] if candidates else np.zeros(len(width))
    ticks = np.floor(np.minimum(whole * _LESS, 2.0**31) * TICKS_PER_S)
    ticks = np.maximum(ticks, 1)
    # Whoever is served on one GPU for its least GPU time holds no more than that, and gains at most in proportion.
    ticks[0] = max(np.floor((ticks * width).min() * _LESS), 1)
    return np.asarray(np.minimum.accumulate(ticks) * TICK_S)


@lru_cache(maxsize=256)
def best_rates(
    application: Application, batch: int, nodes: int, node_gpus: int, gpus: int
) -> Floats:
    """Largest goodput in each epoch on one GPU, on two at most, and so on; shape (epochs, widths)."""
    widest = min(application.widest(batch), gpus)
    epochs = len(application.ends)
    rates = np.zeros((epochs, widest))
    for width in range(1, widest + 1):
        rings = list(_rings(application, width, nodes, node_gpus))
        of_width = _fixed_batch if batch else _any_batch
        rates[:, width - 1] = of_width(application, batch, width, rings)
    return np.maximum.accumulate(rates, axis=1)


Shape = tuple[int, ...] | int
"""A placement that was measured, in its smallest rotation; or a number of nodes, of one that was not."""


def _rings(application: Application, width: int, nodes: int, node_gpus: int) -> Iterator[Shape]:
    """All that step times on so many GPUs can depend on."""
    measured = {each.placement for each in application.placed}
    longest = max(map(len, measured))
    for count in range(-(-width // node_gpus), min(nodes, width) + 1):
        if count > longest:
            yield count
            continue
        rings = {
            lowest_rotation(parts)
            for parts in product(range(1, node_gpus + 1), repeat=count)
            if sum(parts) == width
        }
        yield from sorted(rings & measured)
        if rings - measured:
            yield count


def _fixed_batch(
    application: Application, batch: int, width: int, rings: Sequence[Shape]
) -> Floats:
    """Largest goodput in each epoch of a job that keeps its batch."""
    batching = application.batching(batch, width)
    local = np.array([batching.local])
    steps = [_steps(application, ring, width, local) for ring in rings]
    whole = [batching.whole_step_s(float(step[0]), float(sync[0])) for step, sync in steps]
    least = min((each for each in whole if np.isfinite(each)), default=np.inf)
    gains = _gains(application, np.array([batching.total(width)]))[:, 0]
    return np.asarray(gains / least) if least > 0 else np.zeros(len(gains))


def _any_batch(application: Application, _: int, width: int, rings: Sequence[Shape]) -> Floats:
    """Largest goodput in each epoch at any batch; where it is accumulated, at least that."""
    most = application.most_batch // width
    each = np.arange(1, most + 1)  # Samples of a replica, accumulated or not.
    local = each[application.least_local - 1 :]
    whole = np.full(len(each), np.inf)
    for ring in rings:
        step, sync = _steps(application, ring, width, local)
        able = np.isfinite(step)
        if not able.any():
            continue
        alone = np.full(len(each), np.inf)
        alone[local[able] - 1] = step[able]
        # Accumulated at least once a local batch is half of it at most, and gradients are exchanged once.
        compute = np.full(len(each), np.inf)
        compute[local[able] - 1] = np.maximum(step - sync, 0.0)[able] / local[able]
        efficient = np.minimum.accumulate(compute)
        half = np.concatenate(([np.inf], efficient))[each // 2]
        again = float(sync[able].min()) + each * half
        whole = np.minimum(whole, np.minimum(alone, again))
    total = each * width
    fine = np.isfinite(whole) & (total >= application.init_batch) & (whole > 0)
    if not fine.any():
        return np.zeros(len(application.ends))
    gains = _gains(application, total[fine])
    return np.asarray((gains / whole[fine]).max(axis=1))


def _steps(
    application: Application, ring: Shape, width: int, local: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Steps and exchanges at local batches [s]; infinite where nothing was measured."""
    if isinstance(ring, int):
        return application.steps_between(ring, width, local)
    known = [application.step_s(ring, each) for each in local.tolist()]
    pairs = np.array([(np.inf, 0.0) if each is None else each for each in known])
    return pairs[:, 0], pairs[:, 1]


def _gains(application: Application, batches: NDArray[np.int64]) -> Floats:
    """Gain at batches, shape (epochs, batches)."""
    records, init = application.records, application.init_batch
    of = np.array([each.batch for each in records], dtype=np.float64)
    high = np.searchsorted(of, batches)
    low = np.where(of[high] == batches, high, np.maximum(high - 1, 0))
    epochs = len(application.ends)
    sqr = np.array([each.grad_sqr[:epochs] for each in records]).T
    var = np.array([each.grad_var[:epochs] for each in records]).T
    span = np.where(high == low, 1.0, of[high] - of[low])
    up = np.where(high == low, 1.0, batches - of[low])
    down = np.where(high == low, 0.0, of[high] - batches)
    mean_sqr = (up * sqr[:, high] + down * sqr[:, low]) / span
    mean_var = (up * var[:, high] + down * var[:, low]) / span
    below = mean_var / (batches / init) + mean_sqr
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, (mean_var + mean_sqr) / below, 0.0)
