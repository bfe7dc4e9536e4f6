"""Best-case demands of jobs: the least CPUs and memory with which they are as fast as they can be."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.solvers.synergy.servers import ROUNDING, ResourceRequest


class ProfilesByJob(Protocol):
    """Interface of what knows the profiles of jobs: a state, or the profiles of an instance."""

    def profile_of(self, job: int) -> Profile:
        """Profile of a job."""


class Demands:
    """Demands of the jobs of one run; computed once for each profile and gang.

    The demand is the point of the profile's table with the largest speed, then the least CPUs,
    then the least memory, among those with which the gang still fits on as few empty servers as
    it needs for its GPUs alone. If there is none it is the GPU-proportional share. (Published: a
    demand beyond a server is cut to the server, its speed then read off a straight line.)

    Parameters
    ----------
    profiles : ProfilesByJob
    size : ndarray of int, shape (servers,)
        GPUs of every server.
    share : (float, float)
        CPUs and memory [GB] for each GPU.
    """

    def __init__(
        self, profiles: ProfilesByJob, size: NDArray[np.int64], share: tuple[float, float]
    ) -> None:
        self.profile_of, self.size, self.share = profiles.profile_of, size, share
        self._found: dict[tuple[Profile, int], tuple[float, float]] = {}
        self._gain: dict[Profile, float] = {}

    def ask(self, job: int, gpus: int) -> ResourceRequest:
        """Best-case demand of a job.

        Raises
        ------
        InputError
            If its profile has no speed with the GPU-proportional share.
        """
        key = (self.profile_of(job), gpus)
        if key not in self._found:
            self._found[key] = self._best(*key)
        return ResourceRequest(job, gpus, *self._found[key])

    def proportional(self, job: int, gpus: int) -> ResourceRequest:
        """The GPU-proportional share; checks the profile as :meth:`ask` does."""
        self.floor(job)
        return ResourceRequest(job, gpus, *self.share)

    def floor(self, job: int) -> float:
        """Speed of a job with its GPU-proportional share."""
        return share_speed(self.profile_of(job), self.share)

    def best_speed(self, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Largest speed of jobs against that with their GPU-proportional share."""
        profiles = [self.profile_of(job) for job in jobs.tolist()]
        for profile in profiles:
            if profile not in self._gain:
                self._gain[profile] = profile.best / share_speed(profile, self.share)
        return np.array([self._gain[profile] for profile in profiles])

    def _best(self, profile: Profile, gpus: int) -> tuple[float, float]:
        cpus, memory_gb = np.meshgrid(
            profile.cpus_per_gpu, profile.memory_gb_per_gpu, indexing="ij"
        )
        allowed = profile.speed >= share_speed(profile, self.share)
        allowed &= self._slots(cpus, memory_gb, gpus) >= gpus
        if not allowed.any():
            return self.share
        speed = np.where(allowed, profile.speed, -1.0)
        # Row by row, so least CPUs and then least memory come first.
        best = int(speed.argmax())
        return float(cpus.flat[best]), float(memory_gb.flat[best])

    def _slots(
        self, cpus: NDArray[np.float64], memory_gb: NDArray[np.float64], gpus: int
    ) -> NDArray[np.float64]:
        """GPUs with so much for each on as few of the largest servers as a gang needs, all empty."""
        largest = np.sort(self.size)[::-1]
        fewest = int(np.searchsorted(np.cumsum(largest), gpus)) + 1
        slots = np.zeros(cpus.shape)
        for size, servers in zip(*np.unique(largest[:fewest], return_counts=True), strict=True):
            room = np.full(cpus.shape, float(size))
            for share, need in zip(self.share, (cpus, memory_gb), strict=True):
                with np.errstate(divide="ignore"):
                    room = np.minimum(room, np.floor((size * share + ROUNDING) / need))
            slots += servers * room
        return slots


def share_speed(profile: Profile, share: tuple[float, float]) -> float:
    """Speed with the GPU-proportional share.

    Raises
    ------
    InputError
        If it is 0.
    """
    speed = profile.at(*share)
    if not speed > 0:
        raise InputError(
            f"{profile.name}: speed with the GPU-proportional share of {share[0]:g} CPUs and "
            f"{share[1]:g} GB for each GPU is 0, expected a positive one"
        )
    return speed
