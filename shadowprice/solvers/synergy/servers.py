"""GPUs, CPUs and memory of servers while a round of Synergy is planned: who holds what, what is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.clusters.cpu_memory import CpuMemory, RunCpuMemory, per_node
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.solvers.placement.protocol import Pieces

ROUNDING = 1e-6
"""CPUs and GB by which sums of floats may be off."""


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """Request of a job: GPUs, and CPUs and memory [GB] for each of them.

    Parameters
    ----------
    job : int
    gpus : int
        Its gang.
    cpus, memory_gb : float
        CPUs and memory [GB] for each GPU.
    """

    job: int
    gpus: int
    cpus: float
    memory_gb: float

    def with_cpu_memory(self, cpus: float, memory_gb: float) -> ResourceRequest:
        """The same gang with other CPUs and memory for each GPU."""
        return ResourceRequest(self.job, self.gpus, cpus, memory_gb)


@dataclass(frozen=True, slots=True)
class ServerGrant:
    """Grant of a job: GPUs by server, and CPUs and memory [GB] for each of them."""

    pieces: Pieces
    cpus: float
    memory_gb: float

    @property
    def cpu_memory(self) -> RunCpuMemory:
        """CPUs and memory [GB] on each of its servers."""
        return per_node((self.cpus, self.memory_gb), self.pieces)


class Servers:
    """Servers with one share of CPUs and memory for each GPU.

    Attributes
    ----------
    size : ndarray of int, shape (servers,)
        GPUs of every server.
    share : (float, float)
        CPUs and memory [GB] for each GPU.
    gpus : ndarray of int, shape (servers,)
        Free GPUs.
    cpus, memory_gb : ndarray, shape (servers,)
        Free CPUs and memory [GB]; below 0 only while room is being made.
    held : dict of int to ServerGrant
        By job.
    """

    def __init__(self, size: NDArray[np.int64], share: CpuMemory) -> None:
        self.size, self.share = size, share
        self.gpus = size.copy()
        self.cpus = size * share[0]
        self.memory_gb = size * share[1]
        self.held: dict[int, ServerGrant] = {}
        self._on: list[set[int]] = [set() for _ in range(len(size))]

    @classmethod
    def holding(
        cls, size: NDArray[np.int64], share: CpuMemory, held: Mapping[int, ServerGrant]
    ) -> Servers:
        """Servers on which jobs hold something already; O(servers + pieces)."""
        servers = cls(size, share)
        for job, grant in held.items():
            servers.hold(job, grant)
        return servers

    def hold(self, job: int, grant: ServerGrant) -> None:
        """Take what a grant says, free or not."""
        self._change(grant, -1)
        self.held[job] = grant
        for server, _ in grant.pieces:
            self._on[server].add(job)

    def regrant(self, job: int, cpus: float, memory_gb: float) -> None:
        """Give a job other CPUs and memory for each of its GPUs, free or not."""
        before = self.held[job]
        self._change(before, 1)
        self.held[job] = ServerGrant(before.pieces, cpus, memory_gb)
        self._change(self.held[job], -1)

    def jobs_on(self, server: int) -> Iterable[int]:
        """Jobs that hold GPUs of a server."""
        return self._on[server]

    def slots(self, server: int, cpus: float, memory_gb: float) -> int:
        """Number of GPUs of a server that can still be given with so much for each."""
        room = float(self.gpus[server])
        for free, need in ((self.cpus[server], cpus), (self.memory_gb[server], memory_gb)):
            if need > 0:
                room = min(room, (float(free) + ROUNDING) // need)
        return max(int(room), 0)

    def fits(self, ask: ResourceRequest) -> NDArray[np.bool_]:
        """On which servers all of an ask fits, shape (servers,)."""
        fits: NDArray[np.bool_] = (
            (self.gpus >= ask.gpus)
            & (self.cpus >= ask.cpus * ask.gpus - ROUNDING)
            & (self.memory_gb >= ask.memory_gb * ask.gpus - ROUNDING)
        )
        return fits

    def _change(self, grant: ServerGrant, sign: int) -> None:
        for server, gpus in grant.pieces:
            self.gpus[server] += sign * gpus
            self.cpus[server] += sign * gpus * grant.cpus
            self.memory_gb[server] += sign * gpus * grant.memory_gb


def fewest_free_first(servers: Servers) -> list[int]:
    """Servers with free GPUs, those with the fewest first, ties in order; O(s log s)."""
    free = np.flatnonzero(servers.gpus)
    found: list[int] = free[np.argsort(servers.gpus[free], kind="stable")].tolist()
    return found


def first_first(servers: Servers) -> list[int]:
    """Servers with free GPUs, in order."""
    found: list[int] = np.flatnonzero(servers.gpus).tolist()
    return found


def split(servers: Servers, ask: ResourceRequest, order: list[int]) -> Pieces | None:
    """Give a gang GPU by GPU, as many on each server in turn as fit; None if they do not all fit."""
    left, pieces = ask.gpus, []
    for server in order:
        part = min(left, servers.slots(server, ask.cpus, ask.memory_gb))
        if part:
            pieces.append((server, part))
            left -= part
            if not left:
                return tuple(pieces)
    return None


def place_best_fit(servers: Servers, ask: ResourceRequest) -> bool:
    """PLACE: the server with the fewest free GPUs on which all fits, else split over several.

    Servers with the fewest free GPUs are split over first; a gang of one GPU is never split.
    False, and nothing held, if it does not fit. O(s) whole, O(s log s) split.
    """
    fits = servers.fits(ask)
    if fits.any():
        server = int(np.where(fits, servers.gpus, np.iinfo(np.int64).max).argmin())
        pieces: Pieces | None = ((server, ask.gpus),)
    else:
        pieces = None if ask.gpus == 1 else split(servers, ask, fewest_free_first(servers))
    return _held(servers, ask, pieces)


def place_first_fit(servers: Servers, ask: ResourceRequest) -> bool:
    """The first server on which all fits, else, for several GPUs, split in order of servers."""
    fits = servers.fits(ask)
    if fits.any():
        pieces: Pieces | None = ((int(fits.argmax()), ask.gpus),)
    else:
        pieces = None if ask.gpus == 1 else split(servers, ask, first_first(servers))
    return _held(servers, ask, pieces)


def place_by_gpu(servers: Servers, ask: ResourceRequest) -> bool:
    """GPU by GPU on the first servers where one fits, whether one server could take all or not."""
    return _held(servers, ask, split(servers, ask, first_first(servers)))


def _held(servers: Servers, ask: ResourceRequest, pieces: Pieces | None) -> bool:
    if pieces is None:
        return False
    servers.hold(ask.job, ServerGrant(pieces, ask.cpus, ask.memory_gb))
    return True


# Best-case demands of jobs: the least CPUs and memory with which they are as fast as they can be.


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

    def __init__(self, profiles: ProfilesByJob, size: NDArray[np.int64], share: CpuMemory) -> None:
        self.profile_of, self.size, self.share = profiles.profile_of, size, share
        self._best_of: dict[tuple[Profile, int], CpuMemory] = {}
        self._gain: dict[Profile, float] = {}

    def ask(self, job: int, gpus: int) -> ResourceRequest:
        """Best-case demand of a job.

        Raises
        ------
        InputError
            If its profile has no speed with the GPU-proportional share.
        """
        key = (self.profile_of(job), gpus)
        if key not in self._best_of:
            self._best_of[key] = self._best(*key)
        return ResourceRequest(job, gpus, *self._best_of[key])

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

    def _best(self, profile: Profile, gpus: int) -> CpuMemory:
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


def share_speed(profile: Profile, share: CpuMemory) -> float:
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
