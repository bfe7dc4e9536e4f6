"""Jobs in rounds: what Hadar's offline programme is about, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, up_to_grid
from shadowprice.instances.instance import Instance
from shadowprice.instances.names import Names
from shadowprice.instances.utility import UtilityTable

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,  # are left out: who pays them has less time
        Feature.SHARING,  # the gangs as they are alone
        Feature.CORES,  # are GPUs of a type
        Feature.CPU_MEMORY,  # are left out: they only restrict
        Feature.RESTART,  # is left out: it only restricts
    }
)

MAX_TYPES = 8
"""Capacity has a row for every set of GPU types."""


@dataclass(frozen=True)
class GangSpeed:
    """A speed at which a gang may run: that of its slowest type.

    Parameters
    ----------
    types : tuple of int
        Types that are at least as fast, any of which the gang's GPUs may be.
    slowest : int
        The first of those that are as slow.
    seconds : float
        Run time of the whole job at this speed [s].
    """

    types: tuple[int, ...]
    slowest: int
    seconds: float


@dataclass(frozen=True, eq=False)
class RoundJobs:
    """Jobs, GPUs and utilities by rounds.

    Parameters
    ----------
    gang : ndarray of int, shape (jobs,)
        GPUs a job holds in every round in which it runs.
    first : ndarray of int, shape (jobs,)
        First round that begins at or after the arrival.
    seconds : ndarray, shape (jobs, types)
        Run time [s] of the whole gang at the speed of a type, infinite where it cannot run.
    capacity : ndarray of int, shape (types,)
        GPUs of each type. Nodes do not matter: a gang may spread over the nodes of a type at no
        cost, so what fits the types fits the nodes.
    utility : UtilityTable
        By round of completion.
    job_names, type_names : sequence of str
        Names of jobs and types; ``job-0``, ... and ``type-0``, ... if there are none.
    """

    gang: NDArray[np.int64]
    first: NDArray[np.int64]
    seconds: NDArray[np.float64]
    capacity: NDArray[np.int64]
    utility: UtilityTable
    job_names: Sequence[str] | NDArray[np.object_] = ()
    type_names: Sequence[str] = ()

    @classmethod
    def of(cls, instance: Instance, utility: UtilityTable) -> RoundJobs:
        """The jobs of an instance; overheads are left out, so runs that pay them are worth less.

        Raises
        ------
        InputError
            If the instance has features that are not in ``KNOWS``, more than 8 GPU types, or utilities of other jobs.
        """
        require(instance, KNOWS, "plans of rounds")
        jobs, types = instance.workload, instance.cluster.gpu_types
        if utility.jobs != len(jobs):
            raise InputError(f"utility: has {utility.jobs} jobs, expected {len(jobs)}")
        if len(types) > MAX_TYPES:
            raise InputError(
                f"cluster {instance.cluster}: {len(types)} GPU types, expected at most {MAX_TYPES}"
            )
        first = np.ceil(jobs.arrival_s / utility.round_s).astype(np.int64)
        return cls(
            jobs.gpus,
            first,
            gang_seconds(instance),
            instance.cluster.gpus_per_type,
            utility,
            jobs.id,
            types,
        )

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return len(self.gang)

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return self.utility.rounds

    @property
    def types(self) -> int:
        """Number of GPU types."""
        return len(self.capacity)

    @cached_property
    def id(self) -> Names:
        """Name of each job."""
        return Names.known(self.job_names, "job", self.jobs)

    @cached_property
    def gpu_types(self) -> tuple[str, ...]:
        """Name of each GPU type."""
        return tuple(Names.known(self.type_names, "type", self.types))

    @cached_property
    def speeds(self) -> tuple[tuple[GangSpeed, ...], ...]:
        """Speeds of every job, fastest first, at which there are GPUs for the gang."""
        return tuple(self._speeds_of(job) for job in range(self.jobs))

    def _speeds_of(self, job: int) -> tuple[GangSpeed, ...]:
        found = []
        for seconds in sorted(set(self.seconds[job][np.isfinite(self.seconds[job])].tolist())):
            admitted = np.flatnonzero(self.seconds[job] <= seconds)
            if self.capacity[admitted].sum() >= self.gang[job]:
                slowest = int(np.flatnonzero(self.seconds[job] == seconds)[0])
                found.append(GangSpeed(tuple(admitted.tolist()), slowest, seconds))
        return tuple(found)


def gang_seconds(instance: Instance) -> NDArray[np.float64]:
    """Run time [s] of every job at the speed of each type, shape (jobs, types).

    Unlike ``Instance.processing_s`` finite also where the type alone has too few GPUs for the
    gang: the others may be of faster types.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "run times by GPU type alone")
    jobs, types = instance.workload, instance.cluster.gpu_types
    if jobs.throughput is None:
        return np.repeat(jobs.work[:, None], len(types), axis=1)
    speed = jobs.throughput[:, [jobs.gpu_types.index(name) for name in types]]
    with np.errstate(divide="ignore", over="ignore"):
        times = np.maximum(up_to_grid(jobs.work[:, None] / speed).reshape(speed.shape), TICK_S)
    return np.where(times <= MAX_TIME_S, times, np.inf)
