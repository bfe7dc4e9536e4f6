"""Best-case demands of jobs: the least CPUs and memory with which they are as fast as they can be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.speeds.profile import Profile
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.solvers.synergy.servers import ROUNDING, ResourceRequest


class Demands:
    """Demands of the jobs of one run; computed once for each profile and gang.

    The demand is the point of the profile's table with the largest speed, then the least CPUs,
    then the least memory, among those with which the gang still fits on as few empty servers as
    it needs for its GPUs alone. If there is none it is the GPU-proportional share. (Published: a
    demand beyond a server is cut to the server, its speed then read off a straight line.)

    Parameters
    ----------
    sensitivity : Sensitivity
    size : ndarray of int, shape (servers,)
        GPUs of every server.
    share : (float, float)
        CPUs and memory [GB] for each GPU.
    """

    def __init__(
        self, sensitivity: Sensitivity, size: NDArray[np.int64], share: tuple[float, float]
    ) -> None:
        self._sensitivity, self.size, self.share = sensitivity, size, share
        self._found: dict[tuple[int, int], tuple[float, float]] = {}

    def ask(self, job: int, gpus: int) -> ResourceRequest:
        """Best-case demand of a job.

        Raises
        ------
        InputError
            If its profile has no speed with the GPU-proportional share.
        """
        key = (int(self._sensitivity.of[job]), gpus)
        if key not in self._found:
            self._found[key] = self._best(self._sensitivity.profiles[key[0]], gpus)
        return ResourceRequest(job, gpus, *self._found[key])

    def proportional(self, job: int, gpus: int) -> ResourceRequest:
        """The GPU-proportional share; checks the profile as :meth:`ask` does."""
        self.floor(job)
        return ResourceRequest(job, gpus, *self.share)

    def profile_of(self, job: int) -> int:
        """Number of a job's profile."""
        return int(self._sensitivity.of[job])

    def profile(self, number: int) -> Profile:
        """A profile by number."""
        return self._sensitivity.profiles[number]

    def floor(self, job: int) -> float:
        """Speed of a job with its GPU-proportional share."""
        return share_speed(self._sensitivity.profile_of(job), self.share)

    def best_speed(self, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Largest speed of jobs against that with their GPU-proportional share."""
        profiles = self._sensitivity.profiles
        gain = np.array([p.best / share_speed(p, self.share) for p in profiles])
        found: NDArray[np.float64] = gain[self._sensitivity.of[jobs]]
        return found

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
