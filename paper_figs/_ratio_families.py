"""Families of instances of the ratio study: a law of jobs on a cluster, drawn by number of jobs and seed.

The seed of a cell depends on what the cell is and on nothing else that is drawn: more families, sizes and draws change
no row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from _gavel import FAMILIES as SPEEDS
from _gavel import TYPES

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.instances.instance import Instance

MODELS = ("ResNet-18", "ResNet-50", "LM", "CycleGAN", "Transformer", "Recommendation")
"""Models of jobs with speeds by type."""


@dataclass(frozen=True)
class Family:
    """Instances of one kind.

    Parameters
    ----------
    cluster : str
    law : callable
        Workload of a number of jobs and a seed.
    mixed : bool
        Whether each job gets speeds by GPU type; its work is then as long on a V100 as the law says.
    """

    cluster: str
    law: Callable[[int, int], sp.Workload]
    mixed: bool = False

    def instance(self, jobs: int, seed: int) -> Instance:
        """An instance of this many jobs, the same for the same seed.

        Gangs are cut to what the cluster has, of one type where types differ.
        """
        cluster = sp.Cluster.parse(self.cluster)
        workload = self.law(jobs, seed)
        room = int(cluster.gpus_per_type.max()) if self.mixed else cluster.total_gpus
        workload = replace(workload, gpus=np.minimum(workload.gpus, room))
        return Instance(cluster, _with_speeds(workload, seed) if self.mixed else workload)


@dataclass(frozen=True)
class Cell:
    """One drawn instance."""

    family: str
    jobs: int
    draw: int

    def instance(self, seed: int = 0) -> Instance:
        """The instance, by a child of the seed."""
        named = int.from_bytes(hashlib.sha256(self.family.encode()).digest()[:4], "big")
        child = np.random.SeedSequence(seed, spawn_key=(named, self.jobs, self.draw))
        return FAMILIES[self.family].instance(self.jobs, int(child.generate_state(1)[0]))


def _with_speeds(jobs: sp.Workload, seed: int) -> sp.Workload:
    """The jobs with rates by type relative to a V100, each of a model drawn at random."""
    rng = np.random.default_rng([seed, 1])
    table = np.array([SPEEDS[model] for model in MODELS])
    table /= table[:, :1]
    return sp.Workload.from_columns(
        id=jobs.id,
        arrival_s=jobs.arrival_s,
        gpus=jobs.gpus,
        work=jobs.work,
        weight=jobs.weight,
        throughput=table[rng.integers(len(table), size=len(jobs))],
        gpu_types=TYPES,
        source=jobs.source,
    )


def _generated(name: str, gpus: int, jobs: int, seed: int) -> sp.Workload:
    return sp.generate(name, jobs=jobs, seed=seed, load=0.9, gpus_total=gpus)


def _first_of_testbed(jobs: int, seed: int) -> sp.Workload:
    """The first jobs of the 480 of the testbed mix."""
    drawn = sp.generate("tiresias", seed=seed)
    if jobs > len(drawn):
        raise InputError(f"family 'tiresias': {jobs} jobs, expected at most {len(drawn)}")
    return drawn.select(np.arange(jobs))


def _uniform(jobs: int, seed: int) -> sp.Workload:
    """Gangs of 1 to 4, units of 10 minutes, all uniform, on a cluster that is always behind."""
    rng = np.random.default_rng(seed)
    return sp.Workload.from_columns(
        arrival_s=600 * rng.integers(0, 10 * jobs, jobs),
        gpus=rng.integers(1, 5, jobs),
        work=600 * rng.integers(1, 41, jobs),
        source="uniform",
    )


def _burst(jobs: int, seed: int) -> sp.Workload:
    """Lognormal lengths, all there from the beginning."""
    drawn = sp.generate("lognormal", jobs=jobs, seed=seed, load=1.0, gpus_total=16)
    return sp.Workload.from_columns(
        arrival_s=np.zeros(jobs), gpus=drawn.gpus, work=drawn.work, source="burst"
    )


_MIXED = "2x4:v100,2x4:p100,2x4:k80"
FAMILIES = {
    "lognormal": Family("4x4", partial(_generated, "lognormal", 16)),
    "recurrent": Family("4x4", partial(_generated, "recurrent", 16)),
    "tiresias": Family("15x4", _first_of_testbed),
    "uniform": Family("1x4", _uniform),
    "burst": Family("4x4", _burst),
    "lognormal-mixed": Family(_MIXED, partial(_generated, "lognormal", 12), mixed=True),
    "burst-mixed": Family(_MIXED, _burst, mixed=True),
}
