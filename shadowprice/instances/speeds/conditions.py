"""Conditions that change the speed of a run beyond its GPUs: CPUs and memory, spreading, width."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.speeds.elasticity import Elasticity
from shadowprice.instances.speeds.locality import Locality, fewest_nodes
from shadowprice.instances.speeds.sensitivity import Amounts, Sensitivity
from shadowprice.instances.workload import Workload


@dataclass(frozen=True)
class Conditions:
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
            self.elasticity.check(workload.gpus)

    def best(self, workload: Workload) -> NDArray[np.float64]:
        """Speed of every job under the best of conditions, shape (n,)."""
        speed = np.ones(len(workload))
        if self.sensitivity is not None:
            speed = speed * self.sensitivity.best
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


class RunSpeeds:
    """Speeds of single runs; keeps what depends on the cluster only."""

    def __init__(self, conditions: Conditions, cluster: Cluster, workload: Workload) -> None:
        self._conditions = conditions
        self._gang: list[int] = workload.gpus.tolist()
        self._fewest: list[int] = fewest_nodes(cluster).tolist()
        locality = conditions.locality
        self._spread = [] if locality is None else locality.spread_speed.tolist()

    def of(self, job: int, pieces: tuple[tuple[int, int], ...], amounts: Amounts | None) -> float:
        """Speed of a job on these nodes, with these CPUs and this memory if it has a profile.

        Raises
        ------
        InputError
            If there are profiles and no amounts, or the width is none the job may have.
        """
        parts, speed = self._conditions, 1.0
        if parts.sensitivity is not None:
            if amounts is None:
                raise InputError(f"job {job}: no CPUs and memory are given, expected them")
            speed *= parts.sensitivity.speed(job, pieces, amounts)
        width = sum(gpus for _, gpus in pieces)
        if self._spread and len(pieces) > self._fewest[width]:
            speed *= self._spread[job]
        if width != self._gang[job]:
            speed *= self._of_width(job, width)
        return speed

    def _of_width(self, job: int, width: int) -> float:
        elasticity, gang = self._conditions.elasticity, self._gang[job]
        if elasticity is None or not gang <= width <= elasticity.widest[job]:
            widest = gang if elasticity is None else int(elasticity.widest[job])
            raise InputError(f"job {job}: holds {width} GPUs, expected {gang} to {widest}")
        one = np.array([job]), np.array([gang]), np.array([width])
        return float(elasticity.speed(*one)[0])
