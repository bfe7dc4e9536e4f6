r"""Synergy's optimistic profiler: measure along CPUs with all memory, compute the rest.

Source: Mohan et al., OSDI'22, optimistic profiling; the sweep and the memory formula as in the
public code (github.com/msr-fiddle/synergy, src/profiler). With an application cache that does not
thrash (MinIO), a cache of a share q of the data has a hit rate of q in every epoch, so that

.. math:: t(c, q) = \max\{t(c, 1),\ q D / b_{memory}(c) + (1 - q) D / b_{disk}\}

needs measurements of t(c, 1) only. Measured for all the GPUs of a gang on one node; a gang shares
one cache, so that a GPU's memory is q D over the GPUs, beside that of the processes themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.speeds.sensitivity import Profile

SAME = 0.10
"""An epoch time that changed by less than this share counts as the same."""

CACHED_SHARES = tuple(tenths / 10.0 for tenths in range(11))
"""Shares q of the data for which the profile has a point."""

MOST_CPUS = 4096


@dataclass(frozen=True)
class Storage:
    """Storage that a job's data come from.

    Parameters
    ----------
    dataset_gb : float
        D, size of the data that an epoch reads [GB].
    disk_gb_per_s : float
        Bandwidth of the disk or the network they come from [GB/s].
    memory_gb_per_s_per_cpu : float
        Bandwidth of memory for each CPU [GB/s]; infinite if it is never what a job waits for.
    process_gb : float
        Memory that the job's processes need beside the cache [GB].

    Raises
    ------
    InputError
        If one is out of range, or memory is slower than the disk.
    """

    dataset_gb: float
    disk_gb_per_s: float
    memory_gb_per_s_per_cpu: float = math.inf
    process_gb: float = 0.0

    def __post_init__(self) -> None:
        for name in ("dataset_gb", "disk_gb_per_s"):
            if not 0 < getattr(self, name) < 1e12:
                raise InputError(f"{name} is {getattr(self, name)!r}, expected a number > 0")
        if not 0 <= self.process_gb < 1e12:
            raise InputError(f"process_gb is {self.process_gb!r}, expected a number >= 0")
        if not self.memory_gb_per_s_per_cpu >= self.disk_gb_per_s:
            raise InputError(
                f"memory_gb_per_s_per_cpu is {self.memory_gb_per_s_per_cpu!r}, expected at least "
                f"disk_gb_per_s, {self.disk_gb_per_s:g}: a cache slower than the disk is none"
            )

    def fetch_s(self, cpus: int, cached: float) -> float:
        """Time in which an epoch's data can be read with this share of them cached [s]."""
        from_memory = cached * self.dataset_gb / (self.memory_gb_per_s_per_cpu * cpus)
        return from_memory + (1.0 - cached) * self.dataset_gb / self.disk_gb_per_s


@dataclass(frozen=True)
class Measurement:
    """Result of the profiler.

    Parameters
    ----------
    profile : Profile
        Units of work a second by CPUs and memory for each GPU.
    points : tuple of (int, float)
        CPUs of the gang and measured units a second, in the order of the sweep.
    """

    profile: Profile
    points: tuple[tuple[int, float], ...]

    @property
    def cells(self) -> int:
        """Runs that measuring every cell would have taken at these CPUs, the first one repeated."""
        return len(self.points) * len(CACHED_SHARES) + 1


def measure_profile(
    throughput: Callable[[int], float],
    storage: Storage,
    *,
    max_cpus: int,
    gpus: int,
    units_per_epoch: float,
    name: str = "profile",
) -> Measurement:
    """Sweep CPUs, fill in memory.

    More CPUs never count as slower: what fewer of them reached stands for more as well, for a job
    may leave some idle and measurements have noise.

    Parameters
    ----------
    throughput
        Units of work a second with so many CPUs for the whole gang and all memory.
    max_cpus, gpus : int
        CPUs to start with, and GPUs of the gang.
    units_per_epoch : float
        Units of work in which all data are read once.

    Raises
    ------
    InputError
        If a parameter is out of range, or a measurement is not a number above 0.
    """
    _count("max_cpus", max_cpus, MOST_CPUS)
    _count("gpus", gpus, MOST_CPUS)
    if not 0 < units_per_epoch < math.inf:
        raise InputError(f"units_per_epoch is {units_per_epoch!r}, expected a number > 0")
    points = sweep(throughput, max_cpus, gpus)
    rising = sorted(points)
    fetch_s = np.array([[storage.fetch_s(cpus, q) for q in CACHED_SHARES] for cpus, _ in rising])
    with np.errstate(divide="ignore"):
        from_storage = units_per_epoch / fetch_s
    # The formula in units a second, so that what was measured comes out as it was.
    speed = np.minimum(np.array([[rate] for _, rate in rising]), from_storage)
    cache_gb = storage.dataset_gb * np.array(CACHED_SHARES)
    profile = Profile(
        np.array([cpus for cpus, _ in rising]) / gpus,
        (storage.process_gb + cache_gb) / gpus,
        np.maximum.accumulate(np.maximum.accumulate(speed, axis=0), axis=1),
        name,
    )
    return Measurement(profile, points)


def sweep(
    throughput: Callable[[int], float], max_cpus: int, gpus: int
) -> tuple[tuple[int, float], ...]:
    """CPU counts that are worth measuring, and what was measured.

    The first count is run twice, the first time to warm up caches. After a point whose epoch took
    about as long as that of the point before the CPUs are halved, after others one CPU for each GPU
    is taken away; below 1 the sweep ends. At most max_cpus / gpus + 1 points.

    Raises
    ------
    InputError
        If a measurement is not a number above 0.
    """
    throughput(max_cpus)
    points: list[tuple[int, float]] = []
    cpus = max_cpus
    while cpus >= 1:
        rate = throughput(cpus)
        if not 0 < rate < math.inf:
            raise InputError(f"throughput with {cpus} CPUs is {rate!r}, expected a number > 0")
        points.append((cpus, rate))
        # Epoch times are 1 / rate: |t' - t| / t, t being the time at the point before.
        same = len(points) > 1 and abs(points[-2][1] / rate - 1.0) < SAME
        cpus = cpus // 2 if same else cpus - gpus
    return tuple(points)


def _count(name: str, value: int, most: int) -> None:
    if type(value) is not int or not 1 <= value <= most:
        raise InputError(f"{name} is {value!r}, expected an integer from 1 to {most}")
