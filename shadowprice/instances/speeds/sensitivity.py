"""Sensitivity of jobs to CPUs and memory. Synergy (OSDI'22), resource sensitivity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.speeds.profile import Profile

Amounts = tuple[tuple[float, float], ...]
"""CPUs and memory [GB] of a gang on its nodes, one pair for each of its pieces."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """A profile for every job.

    A run is as fast as its slowest worker: the profile's speed with what the run has for each GPU
    on the node where that is least. Work is counted at speed 1.

    Parameters
    ----------
    profiles : tuple of Profile
    of : ndarray of int, shape (n,)
        Profile of every job.
    """

    profiles: tuple[Profile, ...]
    of: NDArray[np.int64]

    def __post_init__(self) -> None:
        of = np.array(self.of, dtype=np.int64)
        if len(of) and not (of.min() >= 0 and of.max() < len(self.profiles)):
            raise InputError(
                f"sensitivity: a job has profile {int(of.max())}, expected 0 to {len(self.profiles) - 1}"
            )
        of.flags.writeable = False
        object.__setattr__(self, "of", of)

    def check(self, cluster: Cluster) -> None:
        """Raise :class:`InputError` unless all nodes have as many CPUs and as much memory for a GPU."""
        shares = {(node.cpus / node.gpus, node.memory_gb / node.gpus) for node in cluster.nodes}
        if len(shares) > 1 or min(min(share) for share in shares) <= 0:
            found = ", ".join(f"{cpus:g} and {memory:g} GB" for cpus, memory in sorted(shares))
            raise InputError(
                f"cluster {cluster}: CPUs and memory for each GPU of a node are {found}; profiles "
                "need both, the same on all nodes"
            )

    @property
    def best(self) -> NDArray[np.float64]:
        """Largest speed of every job, shape (n,)."""
        return np.array([profile.best for profile in self.profiles])[self.of]

    def profile_of(self, job: int) -> Profile:
        """Profile of a job."""
        return self.profiles[int(self.of[job])]

    def speed(self, job: int, pieces: tuple[tuple[int, int], ...], amounts: Amounts) -> float:
        """Speed of a job that holds these GPUs with these CPUs and this memory."""
        profile = self.profile_of(job)
        return min(
            profile.at(cpus / gpus, memory_gb / gpus)
            for (_, gpus), (cpus, memory_gb) in zip(pieces, amounts, strict=True)
        )

    def select(self, keep: NDArray[np.bool_]) -> Sensitivity:
        """The same for some of the jobs."""
        return Sensitivity(self.profiles, self.of[keep])


def proportional_share(cluster: Cluster) -> tuple[float, float]:
    """CPUs and memory [GB] for each GPU when both are divided by GPUs; of checked clusters."""
    node = cluster.nodes[0]
    return node.cpus / node.gpus, node.memory_gb / node.gpus
