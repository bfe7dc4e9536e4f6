"""Small instances that an adversary may choose from: whole units of time, one pool of GPUs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.features import Feature
from shadowprice.instances.grid import check_seconds
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.solvers.predictors.oracle import specification

MAX_JOBS = 200

KNOWS: frozenset[Feature] = frozenset()
"""Instances of families, and those that searches are asked about, are of nodes and jobs alone."""


@dataclass(frozen=True, order=True)
class FamilyJob:
    """One job, in units of the family; ``error`` says its prediction is 2**error times the truth."""

    arrival: int
    work: int
    gpus: int
    error: int = 0


@dataclass(frozen=True)
class InstanceFamily:
    """Instances an adversary may choose.

    Parameters
    ----------
    jobs : int
        Most jobs.
    gpus : int
        GPUs, all of one node.
    max_arrival, max_work : int
        Latest arrival and longest job [units].
    largest_gang : int
        Widest job [GPUs]; 0 for all GPUs.
    max_error : int
        Predictions are off by at most this power of two, either way; 0 for exact ones.
    unit_s : float
        Length of a unit [s].
    """

    jobs: int = 5
    gpus: int = 4
    max_arrival: int = 10
    max_work: int = 10
    largest_gang: int = 0
    max_error: int = 0
    unit_s: float = 1.0

    def __post_init__(self) -> None:
        limits = {
            "jobs": (1, MAX_JOBS),
            "gpus": (1, 10_000),
            "max_arrival": (0, 10**6),
            "max_work": (1, 10**6),
            "largest_gang": (0, self.gpus),
            "max_error": (0, 16),
        }
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise InputError(f"adversary: {name} is {value!r}, expected {least} to {most}")
        check_seconds("adversary: unit_s", self.unit_s, most_s=10**6)

    @property
    def widest(self) -> int:
        """Widest gang allowed [GPUs]."""
        return self.largest_gang or self.gpus

    def instance(self, case: FamilyInstance) -> Instance:
        """The instance of a case; jobs are named a, b, c, ... in order of arrival."""
        jobs, n = case.jobs, len(case.jobs)
        # Not from_columns: checking what is valid by construction would take most of a search.
        none, text = np.full(n, np.inf), np.full(n, "", dtype=object)
        workload = Workload(
            id=np.array(names(n), dtype=object),
            arrival_s=np.array([job.arrival for job in jobs]) * self.unit_s,
            gpus=np.array([job.gpus for job in jobs]),
            work=np.array([job.work for job in jobs]) * self.unit_s,
            weight=np.ones(n),
            deadline_s=none,
            tenant=text,
            model=text,
            group=text,
            name=text,
            source="adversary",
        )
        return Instance(Cluster.parse(f"1x{self.gpus}"), workload)

    def predictor(self, case: FamilyInstance) -> str | None:
        """Specification of the predictor that makes the errors of a case; None for a family without."""
        if not self.max_error:
            return None
        named = zip(names(len(case.jobs)), case.jobs, strict=True)
        return specification({name: 2.0**job.error for name, job in named})


@dataclass(frozen=True)
class FamilyInstance:
    """Instance that an adversary chose: jobs in order of arrival."""

    jobs: tuple[FamilyJob, ...]

    @classmethod
    def of(cls, jobs: list[FamilyJob]) -> FamilyInstance:
        """Jobs in any order; those that arrive together stay in the order given."""
        return cls(tuple(sorted(jobs, key=lambda job: job.arrival)))


def names(count: int) -> list[str]:
    """Names of jobs: letters as long as they last."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return list(letters[:count]) if count <= len(letters) else [f"j{k}" for k in range(count)]


FAMILIES = (
    InstanceFamily(jobs=5, gpus=2, max_arrival=4, max_work=4),
    InstanceFamily(jobs=6, gpus=4, max_arrival=4, max_work=4),
    InstanceFamily(jobs=5, gpus=1, max_arrival=4, max_work=6),
    InstanceFamily(jobs=7, gpus=4, max_arrival=6, max_work=6),
    InstanceFamily(jobs=6, gpus=8, max_arrival=3, max_work=4),
    InstanceFamily(jobs=6, gpus=3, max_arrival=3, max_work=8),
    InstanceFamily(jobs=7, gpus=2, max_arrival=3, max_work=3),
)
"""Families of searches that take several, in turns; no more jobs than are enumerated while searching."""
