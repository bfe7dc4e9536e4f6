"""An instance: what is given to a scheduler, and to whoever checks it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InfeasibleJobError, InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import MAX_TIME_S, TICKS_PER_S
from shadowprice.instances.workload import Workload


@dataclass(frozen=True, slots=True)
class Overheads:
    """Time a gang holds its GPUs without progress, owed when a run begins and paid first.

    A job that is preempted before it has paid still owes the rest: what is owed adds up, so that
    the run time of a job is exactly its processing time plus all that was charged.

    Parameters
    ----------
    start_s : float
        Charged for every run of a job, the first included [s].
    restart_s : float
        Charged in addition when a job resumes after a preemption [s]: checkpoint and restore.
    migration_s : float
        Charged in addition when it resumes on other GPUs than it had before, counted by node [s].
    restart_by_gpus : tuple of (int, float)
        Restart charges by gang size instead of ``restart_s``: pairs (largest gang, seconds) in
        increasing order; a gang larger than all pays the last.
    """

    start_s: float = 0.0
    restart_s: float = 0.0
    migration_s: float = 0.0
    restart_by_gpus: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        steps = [(f"restart_by_gpus up to {gpus}", cost) for gpus, cost in self.restart_by_gpus]
        for name, value in [
            ("start_s", self.start_s),
            ("restart_s", self.restart_s),
            ("migration_s", self.migration_s),
            *steps,
        ]:
            if not 0 <= value <= MAX_TIME_S or value * TICKS_PER_S != int(value * TICKS_PER_S):
                raise InputError(
                    f"overheads: {name} is {value!r}, expected seconds >= 0, a multiple of 2**-20"
                )
        limits = [gpus for gpus, _ in self.restart_by_gpus]
        if limits != sorted(set(limits)):
            raise InputError(
                f"overheads: restart_by_gpus has limits {limits}, expected increasing ones"
            )

    @property
    def free(self) -> bool:
        """Whether nothing is ever charged."""
        return self == Overheads()

    def restart_charge_s(self, gpus: int) -> float:
        """Charge for resuming a gang [s], without start and migration."""
        for limit, cost in self.restart_by_gpus:
            if gpus <= limit:
                return cost
        return self.restart_by_gpus[-1][1] if self.restart_by_gpus else self.restart_s


@dataclass(frozen=True)
class Instance:
    """A cluster, a workload and the overheads of moving jobs about.

    Raises
    ------
    InfeasibleJobError
        If a job fits no GPU type of the cluster; see :meth:`feasible` for dropping such jobs.
    """

    cluster: Cluster
    workload: Workload
    overheads: Overheads = field(default_factory=Overheads)

    def __post_init__(self) -> None:
        bad = np.flatnonzero(~_can_run(self.cluster, self.workload))
        if len(bad):
            job = int(bad[0])
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            raise InfeasibleJobError(
                f"{self.workload.source}: job {self.workload.id[job]!r} needs {self.workload.gpus[job]} GPUs "
                f"of one type on which it can run, cluster {self.cluster} has no such type{more}; "
                "use a larger cluster or drop infeasible jobs"
            )

    @classmethod
    def feasible(
        cls, cluster: Cluster, workload: Workload, overheads: Overheads | None = None
    ) -> tuple[Instance, NDArray[np.object_]]:
        """The instance without the jobs that can never run, and their ids."""
        can_run = _can_run(cluster, workload)
        kept = workload if can_run.all() else workload.select(can_run)
        return cls(cluster, kept, overheads or Overheads()), workload.id[~can_run]

    @cached_property
    def processing_s(self) -> NDArray[np.float64]:
        """Run time [s] of every job on every GPU type, shape (n, types), infinite where impossible."""
        times = self.workload.processing_s(self.cluster)
        times.flags.writeable = False
        return times

    @cached_property
    def shortest_s(self) -> NDArray[np.float64]:
        """Run time [s] of every job on its fastest GPU type, shape (n,)."""
        times: NDArray[np.float64] = self.processing_s.min(axis=1)
        times.flags.writeable = False
        return times

    @cached_property
    def equal_speeds(self) -> bool:
        """Whether every job takes the same time on every GPU type of the cluster."""
        return bool(np.all(self.processing_s == self.processing_s[:, :1]))


def _can_run(cluster: Cluster, workload: Workload) -> NDArray[np.bool_]:
    finite: NDArray[np.bool_] = np.isfinite(workload.processing_s(cluster))
    able: NDArray[np.bool_] = np.logical_or.reduce(finite, axis=1)
    return able
