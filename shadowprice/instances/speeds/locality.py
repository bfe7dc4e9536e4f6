"""Slowdown of a job that is spread over more nodes than it needs.

Tiresias (NSDI'19), sec. 2.2 and 3.4, and Gandiva (OSDI'18), sec. 2.2: models with a few large
tensors lose most. One number a job is a simplification of both (derived).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster


@dataclass(frozen=True, eq=False)
class Locality:
    """Speeds of spread jobs.

    A run is spread if it has GPUs on more nodes than the fewest of the cluster, its largest ones,
    that could hold as many.

    Parameters
    ----------
    spread_speed : ndarray, shape (n,)
        Speed of every job when spread, against that when it is not; 0 < s <= 1.
    """

    spread_speed: NDArray[np.float64]

    def __post_init__(self) -> None:
        speed = np.array(self.spread_speed, dtype=np.float64)
        bad = ~((speed > 0) & (speed <= 1))
        if bad.any():
            job = int(bad.argmax())
            raise InputError(
                f"locality: the speed of job {job} when spread is {speed[job]!r}, expected 0 < s <= 1"
            )
        speed.flags.writeable = False
        object.__setattr__(self, "spread_speed", speed)

    def select(self, keep: NDArray[np.bool_]) -> Locality:
        """The same for some of the jobs."""
        return Locality(self.spread_speed[keep])


def fewest_nodes(cluster: Cluster) -> NDArray[np.int64]:
    """Fewest nodes that hold k GPUs, for k from 0 to all of the cluster's."""
    size = np.sort(cluster.gpus_per_node)[::-1]
    return np.searchsorted(np.cumsum(size), np.arange(size.sum() + 1)).astype(np.int64) + (
        np.arange(size.sum() + 1) > 0
    )
