"""Conditions that change the speed of a run beyond its GPUs: CPUs and memory, spreading, width."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import CORES, Cluster
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.instances.workload import Workload

# Slowdown of a job that is spread over more nodes than it needs.
#
# Tiresias (NSDI'19), sec. 2.2 and 3.4, and Gandiva (OSDI'18), sec. 2.2: models with a few large
# tensors lose most. One number a job is a simplification of both (derived).


@dataclass(frozen=True, eq=False, repr=False)
class Locality(Brief):
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

    def of(self, workload: Workload) -> NDArray[np.float64]:
        """Speeds of the jobs of a workload when spread, shape (n,): 1 of those on cores, which never are."""
        return np.where(workload.on_cores, 1.0, self.spread_speed)

    def select(self, keep: NDArray[np.bool_]) -> Locality:
        """The same for some of the jobs."""
        return Locality(self.spread_speed[keep])


def fewest_nodes(cluster: Cluster, *, cores: bool = False) -> NDArray[np.int64]:
    """Fewest nodes that hold k GPUs, or k cores, for k from 0 to all of the cluster's."""
    size = np.sort(_sizes(cluster, cores=cores))[::-1]
    return np.searchsorted(np.cumsum(size), np.arange(size.sum() + 1)).astype(np.int64) + (
        np.arange(size.sum() + 1) > 0
    )


def fits_a_node(cluster: Cluster, workload: Workload) -> NDArray[np.bool_]:
    """True for gangs that one node holds: of GPUs, or of cores for jobs on these; shape (n,)."""
    gpus, cores = (_sizes(cluster, cores=which).max(initial=0) for which in (False, True))
    return np.asarray(workload.gpus <= np.where(workload.on_cores, cores, gpus))


def _sizes(cluster: Cluster, *, cores: bool) -> NDArray[np.int64]:
    """GPUs of the nodes that have some, or cores of those that have these instead."""
    mine = [node.gpus for node in cluster.nodes if (node.gpu_type == CORES) == cores]
    return np.array(mine, dtype=np.int64)


# Jobs that can use more GPUs than they asked for. Gandiva (OSDI'18), grow-shrink.


@dataclass(frozen=True)
class Growth:
    """One rule for all jobs: how far they may grow within a node.

    Parameters
    ----------
    widest : int
        Most GPUs of a job whose gang is smaller, and no more than the largest node has.
    efficiency : float
        As in :class:`Elasticity`.
    """

    widest: int
    efficiency: float = 0.9

    def of(self, workload: Workload, cluster: Cluster) -> Elasticity:
        """Widths of the jobs of a workload; those with a part of a GPU, or on cores, do not grow; O(n)."""
        within = min(self.widest, int(cluster.gpus_per_node.max()))
        every = np.full(len(workload), self.efficiency)
        widest = np.maximum(workload.gpus, within)
        return Elasticity(np.where(on_whole_gpus(workload), widest, workload.gpus), every)


def on_whole_gpus(workload: Workload) -> NDArray[np.bool_]:
    """True for jobs that hold whole GPUs."""
    return ~workload.fractional & ~workload.on_cores


@dataclass(frozen=True, eq=False, repr=False)
class Elasticity(Brief):
    r"""Largest width of each job, and its efficiency when wider.

    A gang of g GPUs that holds w is :math:`(w / g)^{\log_2 (2 e)}` times as fast, rounded to the nearest
    double on every machine: every doubling multiplies its speed by 2 e. Derived; the paper has no formula.

    Parameters
    ----------
    widest : ndarray of int, shape (n,)
        Most GPUs of each job; its gang if it did not opt in.
    efficiency : ndarray, shape (n,)
        e, from above 1/2 to 1.
    """

    widest: NDArray[np.int64]
    efficiency: NDArray[np.float64]

    def __post_init__(self) -> None:
        widest = np.array(self.widest, dtype=np.int64)
        efficiency = np.array(self.efficiency, dtype=np.float64)
        if widest.shape != efficiency.shape:
            raise InputError(
                f"elasticity: {len(widest)} widths and {len(efficiency)} efficiencies, expected as many"
            )
        bad = ~((efficiency > 0.5) & (efficiency <= 1.0))
        if bad.any():
            job = int(bad.argmax())
            raise InputError(
                f"elasticity: the efficiency of job {job} is {efficiency[job]!r}, expected 1/2 < e <= 1"
            )
        for name, values in (("widest", widest), ("efficiency", efficiency)):
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def check(self, workload: Workload) -> None:
        """Raise :class:`InputError` if a job's widest is less than its gang, or it grows from a part of a GPU."""
        bad = self.widest < workload.gpus
        if bad.any():
            job = int(bad.argmax())
            raise InputError(
                f"elasticity: job {job} has a gang of {workload.gpus[job]} GPUs and may hold at most "
                f"{self.widest[job]}, expected no less than its gang"
            )
        bad = ~on_whole_gpus(workload) & (self.widest > workload.gpus)
        if bad.any():
            job = int(bad.argmax())
            holds = "cores" if workload.on_cores[job] else "a part of a GPU"
            raise InputError(
                f"elasticity: job {job} holds {holds} and may hold {self.widest[job]}, expected at most "
                f"{workload.gpus[job]}: it does not grow by GPUs"
            )

    def speed(
        self, job: NDArray[np.int64], gpus: NDArray[np.int64], width: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Speed of jobs with these gangs on so many GPUs."""
        shape = np.broadcast_shapes(np.shape(job), np.shape(gpus), np.shape(width))
        columns = (self.efficiency[job], gpus, width)
        rows = zip(
            *(np.broadcast_to(each, shape).ravel().tolist() for each in columns), strict=True
        )
        return np.array([speed_up(*row) for row in rows], dtype=np.float64).reshape(shape)

    def select(self, keep: NDArray[np.bool_]) -> Elasticity:
        """The same for some of the jobs."""
        return Elasticity(self.widest[keep], self.efficiency[keep])


@lru_cache(maxsize=4096)
def speed_up(efficiency: float, gpus: int, width: int) -> float:
    """Speed of a gang on so many GPUs, over that on its own, rounded to the nearest double on every machine."""
    # Powers of floats differ from machine to machine in the last place, which a run would show.
    with localcontext(prec=60):
        exponent = 1 + Decimal(efficiency).ln() / Decimal(2).ln()
        return float((Decimal(width) / Decimal(gpus)) ** exponent)


@dataclass(frozen=True, repr=False)
class Conditions(Brief):
    """Conditions of runs; the speeds under each are multiplied.

    Parameters
    ----------
    sensitivity : Sensitivity, optional
        Profiles by CPUs and memory, which are then handed out beside GPUs.
    locality : Locality, optional
        Speeds of gangs that are spread.
    elasticity : Elasticity, optional
        Jobs that may hold more GPUs than their gang.

    Raises
    ------
    InputError
        If none is given.
    """

    sensitivity: Sensitivity | None = None
    locality: Locality | None = None
    elasticity: Elasticity | None = None

    def __post_init__(self) -> None:
        if (self.sensitivity, self.locality, self.elasticity) == (None, None, None):
            raise InputError("conditions: none is given, expected at least one")

    def check(self, cluster: Cluster, workload: Workload) -> None:
        """Raise :class:`InputError` unless they are of these jobs and this cluster."""
        sizes = {
            "profiles": None if self.sensitivity is None else len(self.sensitivity.of),
            "speeds of spread gangs": (
                None if self.locality is None else len(self.locality.spread_speed)
            ),
            "widths": None if self.elasticity is None else len(self.elasticity.widest),
        }
        for what, size in sizes.items():
            if size not in (None, len(workload)):
                raise InputError(f"{workload.source}: has {len(workload)} jobs, but {size} {what}")
        if self.sensitivity is not None:
            self.sensitivity.check(cluster)
        if self.elasticity is not None:
            self.elasticity.check(workload)

    def best(self, workload: Workload) -> NDArray[np.float64]:
        """Speed of every job under the best of conditions, shape (n,)."""
        speed = np.ones(len(workload))
        if self.sensitivity is not None:
            speed = speed * np.where(workload.on_cores, 1.0, self.sensitivity.best)
        if self.elasticity is not None:
            rows = np.arange(len(workload))
            speed = speed * self.elasticity.speed(rows, workload.gpus, self.elasticity.widest)
        return speed

    def select(self, keep: NDArray[np.bool_]) -> Conditions:
        """The same for some of the jobs."""
        return replace(
            self,
            **{
                name: part.select(keep)
                for name in ("sensitivity", "locality", "elasticity")
                if (part := getattr(self, name)) is not None
            },
        )
