"""Sensitivity of jobs to CPUs and memory. Synergy (OSDI'22), resource sensitivity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import CORES, Cluster
from shadowprice.instances.clusters.cpu_memory import CpuMemory, RunCpuMemory

# The speed of a job by the CPUs and the memory it has for each of its GPUs.


SLACK = 1e-9
"""CPUs and memory that fall short of a measured point by no more than this share still reach it."""


@dataclass(frozen=True, eq=False, repr=False)
class Profile(Brief):
    """Measured speeds on a grid; between its points that of the point below counts.

    Parameters
    ----------
    cpus_per_gpu : ndarray, shape (a,)
        CPUs for each GPU, increasing.
    memory_gb_per_gpu : ndarray, shape (b,)
        Memory for each GPU [GB], increasing.
    speed : ndarray, shape (a, b)
        Speed relative to some common unit: 1 stands for the speed in which the job's work is
        counted, by convention that with a GPU-proportional share. Less CPUs or memory
        than the smallest is no speed at all.
    name : str
        For messages.

    Raises
    ------
    InputError
        If an axis does not increase, a cell is missing, negative or smaller than the one with
        less CPUs or memory, or no cell is positive; it names the cell.
    """

    cpus_per_gpu: NDArray[np.float64]
    memory_gb_per_gpu: NDArray[np.float64]
    speed: NDArray[np.float64]
    name: str = "profile"

    def __post_init__(self) -> None:
        for axis in ("cpus_per_gpu", "memory_gb_per_gpu"):
            values = np.array(getattr(self, axis), dtype=np.float64)
            increasing = values.ndim == 1 and len(values) and np.all(np.diff(values) > 0)
            if not (increasing and np.all(np.isfinite(values)) and values[0] >= 0):
                raise InputError(
                    f"{self.name}: {axis} is {values.tolist()}, expected increasing numbers >= 0"
                )
            self._keep(axis, values)
        speed = np.array(self.speed, dtype=np.float64)
        shape = (len(self.cpus_per_gpu), len(self.memory_gb_per_gpu))
        if speed.shape != shape:
            raise InputError(f"{self.name}: speeds have shape {speed.shape}, expected {shape}")
        self._keep("speed", speed)
        self._refuse(~np.isfinite(speed) | (speed < 0), "a number >= 0 (is the cell missing?)")
        less = np.zeros(shape, dtype=bool)
        less[1:] |= speed[1:] < speed[:-1]
        less[:, 1:] |= speed[:, 1:] < speed[:, :-1]
        self._refuse(less, "no less than with fewer CPUs or less memory")
        if not speed.max() > 0:
            raise InputError(f"{self.name}: every speed is 0, expected a positive one")

    @property
    def best(self) -> float:
        """Largest speed."""
        return float(self.speed[-1, -1])

    def demand(self) -> CpuMemory:
        """Least CPUs, then least memory [GB], for each GPU with which the speed is the largest."""
        rows, columns = np.nonzero(self.speed == self.best)
        row = int(rows.min())
        column = int(columns[rows == row].min())
        return float(self.cpus_per_gpu[row]), float(self.memory_gb_per_gpu[column])

    def at(self, cpus_per_gpu: float, memory_gb_per_gpu: float) -> float:
        """Speed with so much for each GPU; O(log a + log b)."""
        row = int(np.searchsorted(self.cpus_per_gpu, cpus_per_gpu * (1 + SLACK), "right")) - 1
        column = (
            int(np.searchsorted(self.memory_gb_per_gpu, memory_gb_per_gpu * (1 + SLACK), "right"))
            - 1
        )
        return float(self.speed[row, column]) if row >= 0 and column >= 0 else 0.0

    def of(self, pieces: tuple[tuple[int, int], ...], held: RunCpuMemory) -> float:
        """Speed of a gang on its nodes, pairs (node, GPUs): that of its slowest worker."""
        return min(
            self.at(cpus / gpus, memory_gb / gpus)
            for (_, gpus), (cpus, memory_gb) in zip(pieces, held, strict=True)
        )

    def _keep(self, name: str, values: NDArray[np.float64]) -> None:
        values.flags.writeable = False
        object.__setattr__(self, name, values)

    def _refuse(self, bad: NDArray[np.bool_], expected: str) -> None:
        if bad.any():
            row, column = (int(k) for k in np.argwhere(bad)[0])
            raise InputError(
                f"{self.name}: speed with {self.cpus_per_gpu[row]:g} CPUs and "
                f"{self.memory_gb_per_gpu[column]:g} GB for each GPU is {float(self.speed[row, column])!r}, "
                f"expected {expected}"
            )


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(Brief):
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
        """Raise :class:`InputError` unless all nodes with GPUs have as many CPUs and as much memory for each."""
        shares = {
            (node.cpus / node.gpus, node.memory_gb / node.gpus)
            for node in cluster.nodes
            if node.gpu_type != CORES
        }
        if len(shares) != 1 or min(min(share) for share in shares) <= 0:
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

    def speed(self, job: int, pieces: tuple[tuple[int, int], ...], held: RunCpuMemory) -> float:
        """Speed of a job that holds these GPUs with these CPUs and this memory."""
        return self.profile_of(job).of(pieces, held)

    def select(self, keep: NDArray[np.bool_]) -> Sensitivity:
        """The same for some of the jobs."""
        return Sensitivity(self.profiles, self.of[keep])
