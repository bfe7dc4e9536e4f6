"""Families of instances for the ratio study: a law of jobs on a cluster, by number of jobs and seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.generators import generate
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload

TYPES = ("v100", "p100", "k80")
SPEEDS = (
    (17.995, 11.675, 1.807),
    (2.497, 1.584, 0.347),
    (64.74, 58.17, 17.14),
    (4.426, 2.403, 0.505),
    (8.618, 5.092, 1.752),
    (7.176, 5.681, 3.439),
)
"""Steps a second on one V100, P100 and K80: rows of the table that Gavel (OSDI'20) published."""

Law = Callable[[int, int], Workload]


@dataclass(frozen=True)
class StudyFamily:
    """Instances of one kind.

    Parameters
    ----------
    name : str
    cluster : str
    law : callable
        Workload of a number of jobs and a seed.
    mixed : bool
        Whether each job gets speeds by GPU type; its work is then as long on a V100 as the law says.
    """

    name: str
    cluster: str
    law: Law
    mixed: bool = False

    def instance(self, jobs: int, seed: int) -> Instance:
        """An instance of this many jobs, the same for the same seed.

        Gangs are cut to what the cluster has, of one type where types differ.
        """
        cluster = Cluster.parse(self.cluster)
        workload = self.law(jobs, seed)
        room = int(cluster.gpus_per_type.max()) if self.mixed else cluster.total_gpus
        workload = replace(workload, gpus=np.minimum(workload.gpus, room))
        return Instance(cluster, _with_speeds(workload, seed) if self.mixed else workload)


def _with_speeds(jobs: Workload, seed: int) -> Workload:
    """The jobs with rates by type relative to a V100, each of a model drawn at random."""
    rng = np.random.default_rng([seed, 1])
    table = np.array(SPEEDS) / np.array(SPEEDS)[:, :1]
    return Workload.from_columns(
        id=jobs.id,
        arrival_s=jobs.arrival_s,
        gpus=jobs.gpus,
        work=jobs.work,
        weight=jobs.weight,
        throughput=table[rng.integers(len(table), size=len(jobs))],
        gpu_types=TYPES,
        source=jobs.source,
    )


def _generated(name: str, jobs: int, seed: int, **given: float) -> Workload:
    return generate(name, jobs=jobs, seed=seed, **given)


def _first_of_testbed(jobs: int, seed: int) -> Workload:
    """The first jobs of the 480 of the testbed mix."""
    drawn = generate("tiresias", seed=seed)
    if jobs > len(drawn):
        raise InputError(f"family 'tiresias': {jobs} jobs, expected at most {len(drawn)}")
    return drawn.select(np.arange(jobs))


def _uniform(jobs: int, seed: int) -> Workload:
    """Gangs of 1 to 4, units of 10 minutes, all uniform, on a cluster that is always behind."""
    rng = np.random.default_rng(seed)
    return Workload.from_columns(
        arrival_s=600 * rng.integers(0, 10 * jobs, jobs),
        gpus=rng.integers(1, 5, jobs),
        work=600 * rng.integers(1, 41, jobs),
        source="uniform",
    )


def _burst(jobs: int, seed: int) -> Workload:
    """Lognormal lengths, all there from the beginning."""
    drawn = generate("lognormal", jobs=jobs, seed=seed, load=1.0, gpus_total=16)
    return Workload.from_columns(
        arrival_s=np.zeros(jobs), gpus=drawn.gpus, work=drawn.work, source="burst"
    )


_MIXED = "2x4:v100,2x4:p100,2x4:k80"
_ALL = (
    StudyFamily("lognormal", "4x4", partial(_generated, "lognormal", load=0.9, gpus_total=16)),
    StudyFamily("recurrent", "4x4", partial(_generated, "recurrent", load=0.9, gpus_total=16)),
    StudyFamily("tiresias", "15x4", _first_of_testbed),
    StudyFamily("uniform", "1x4", _uniform),
    StudyFamily("burst", "4x4", _burst),
    StudyFamily(
        "lognormal-mixed", _MIXED, partial(_generated, "lognormal", load=0.9, gpus_total=12), True
    ),
    StudyFamily("burst-mixed", _MIXED, _burst, True),
)
FAMILIES = {family.name: family for family in _ALL}
"""All families by name."""


def family(name: str) -> StudyFamily:
    """A family by name.

    Raises
    ------
    InputError
        If there is none of this name.
    """
    if name not in FAMILIES:
        raise InputError(f"family {name!r}: expected one of {', '.join(FAMILIES)}")
    return FAMILIES[name]
