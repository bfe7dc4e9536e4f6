"""Modes of jobs that are GPU types: LB-typed, LB-price and LB-span.

Charges only restrict a schedule further, and are left out: which type a job holds while it pays is its
own choice. Where jobs may share GPUs, the time on a type is the service that the job needs on it and the
capacity of the type the most service at a moment: see
:meth:`shadowprice.instances.sharing_gain.SharingGain.by_type`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.sharing_gain import SharingGain
from shadowprice.solvers.offline.modes.job_modes import USE_UNIT, ModeTable

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,  # are the modes
        Feature.CHARGES,  # only restrict
        Feature.SHARING,  # by what pairs gain on each type
        Feature.GRAPHS,  # of all mappings the fastest counts; so with profiles and spreading
        Feature.PROFILES,
        Feature.SPREAD,
        Feature.WIDTHS,  # who holds more GPUs is faster by no more than in proportion
        Feature.FAILURES,  # what is lost is done again
        Feature.CORES,  # are GPUs of a type
        Feature.CPU_MEMORY,  # only restrict
        Feature.RESTART,  # only restricts
    }
)


def gpu_type_modes(instance: Instance) -> ModeTable:
    """The GPU types, those merged on which every job takes the same time; O(n types).

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "bounds by GPU type")
    gains, per_type = SharingGain.by_type(instance), instance.cluster.gpus_per_type
    if gains is None:
        times = instance.processing_s
        ticks = to_ticks(np.where(np.isfinite(times), times, 0.0))
    else:
        ticks = np.array([gain.service for gain in gains], dtype=np.int64).T
    columns, pool = np.unique(ticks, axis=1, return_inverse=True)
    capacity = np.bincount(pool.ravel(), per_type).astype(np.int64)
    if gains is not None:
        capacity = np.array([Fraction(0)] * len(capacity), dtype=object)
        for column, gain, gpus in zip(pool.ravel(), gains, per_type.tolist(), strict=True):
            capacity[column] += gain.kappa * gpus
    jobs = instance.workload
    return ModeTable.of_workload(jobs, columns, capacity, *gang_uses(jobs.gpus, len(capacity)))


def gang_uses(gpus: NDArray[np.int64], pools: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Kinds of jobs by their gangs, and what these use where mode r holds the gang of pool r.

    Parameters
    ----------
    gpus : ndarray of int, shape (n,)
        Gangs of the jobs.
    pools : int
    """
    gangs, kind = np.unique(gpus, return_inverse=True)
    use = (gangs.astype(np.int64) * USE_UNIT)[:, None, None] * np.eye(pools, dtype=np.int64)
    return kind.astype(np.int64), np.asarray(use)
