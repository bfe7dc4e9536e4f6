"""The ratio study: how far every policy is from what was possible, over families and sizes.

A cell is one drawn instance: a family, a number of jobs and the number of the draw. Its seed depends
on these and the study's seed alone, and its bound on nothing that looks at a clock, so that a row is
the same whoever computes it and when, in one process or many.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.compare import by_name
from shadowprice.analysis.points.on_cores import ends_on_cores
from shadowprice.analysis.simulate import simulate
from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.generators import generate
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective, rounded_up
from shadowprice.instances.workload import Workload
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.registry import name_with_parameters, policies
from shadowprice.solvers.registry import policy as policy_by_name
from shadowprice.user_code import MODULE_PREFIX

# Families of instances for the ratio study: a law of jobs on a cluster, by number of jobs and seed.


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


@dataclass(frozen=True, repr=False)
class StudyFamily(Brief):
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


OBJECTIVES = (Objective.COMPLETION, Objective.FLOW)


@dataclass(frozen=True, repr=False)
class RatioStudy(Brief):
    """Parameters of a study.

    Parameters
    ----------
    families : tuple of str
        Names in :data:`shadowprice.analysis.ratio_study.ratios.FAMILIES`.
    sizes : tuple of int
        Numbers of jobs.
    draws : int
        Instances of each family and size.
    policies : tuple of str or Policy
        Names, as on the command line, or policies of your own; all there are if empty.
    seed : int
    columns : int
        Size of the interval LPs behind the bounds.

    Raises
    ------
    InputError
        If a name is unknown or given twice, or a number is out of range.
    """

    families: tuple[str, ...] = tuple(FAMILIES)
    sizes: tuple[int, ...] = (30, 100)
    draws: int = 10
    policies: tuple[str | Policy, ...] = ()
    seed: int = 0
    columns: int = 20_000

    def __post_init__(self) -> None:
        for name in self.families:
            family(name)
        if not self.policies:
            object.__setattr__(self, "policies", tuple(policies()))
        for policy in self.by_name.values():
            if isinstance(policy, str):
                policy_by_name(policy)
        for what in ("families", "sizes"):
            given = getattr(self, what)
            if not given or len(set(given)) < len(given):
                raise InputError(f"study: {what} are {given!r}, expected some, each once")
        limits = {"draws": self.draws, "columns": self.columns, "sizes": min(self.sizes)}
        for what, value in limits.items():
            if value < 1:
                raise InputError(f"study: {what} has {value!r}, expected at least 1")
        if not 0 <= self.seed < 2**32:
            raise InputError(f"study: seed is {self.seed!r}, expected 0 to 2^32 - 1")

    @property
    def by_name(self) -> Mapping[str, str | Policy]:
        """The policies by the names that they have in the table."""
        return by_name(self.policies)

    def cells(self) -> Iterator[Cell]:
        """All cells, in the order of the table."""
        for name in self.families:
            for jobs in self.sizes:
                for draw in range(self.draws):
                    yield Cell(name, jobs, draw)


@dataclass(frozen=True)
class Cell:
    """One drawn instance."""

    family: str
    jobs: int
    draw: int

    def seed(self, seed: int) -> int:
        """Seed of its instance: a child of the study's, by what the cell is and not by its place."""
        named = int.from_bytes(hashlib.sha256(self.family.encode()).digest()[:4], "big")
        child = np.random.SeedSequence(seed, spawn_key=(named, self.jobs, self.draw))
        return int(child.generate_state(1)[0])


@dataclass(frozen=True)
class RatioRow:
    """One policy on one instance, in one objective; costs and bounds in seconds, ratios rounded up.

    Bounds are of preemptive schedules of rigid gangs.
    """

    family: str
    jobs: int
    draw: int
    policy: str
    objective: str
    cost_s: float
    bound_s: float
    bound_kind: str
    ratio: float
    seed: int
    columns: int


def run_cell(cell: Cell, study: RatioStudy, chosen: tuple[str, ...]) -> list[RatioRow]:
    """Rows of some policies on one instance; every schedule is verified, every bound exact."""
    instance = family(cell.family).instance(cell.jobs, cell.seed(study.seed))
    bounds = certified_bounds(instance, OBJECTIVES, BoundEffort.of_size(study.columns))
    rows = []
    for name in chosen:
        outcome = simulate(instance.workload, instance.cluster, study.by_name[name])
        for goal, bound in bounds.items():
            cost_s = goal.cost_s(instance.workload, outcome.end_s)
            ratio = exact_cost(instance, goal, outcome.end_s) / bound.ticks
            rows.append(
                RatioRow(
                    **asdict(cell),
                    policy=name,
                    objective=str(goal),
                    cost_s=cost_s,
                    bound_s=bound.value_s,
                    bound_kind=bound.kind,
                    ratio=rounded_up(ratio),
                    seed=study.seed,
                    columns=study.columns,
                )
            )
    return rows


def ratio_table(study: RatioStudy, *, processes: int = 1) -> pd.DataFrame:
    """All rows of a study, in the order of its cells.

    Nothing is kept on disk: figures (``paper_figs/ratio_study.py``) keep the rows of every cell as it ends.

    Raises
    ------
    InputError
        If a policy cannot be sent to other processes.
    """
    if processes != 1:
        _expect_portable(study)
    cells = list(study.cells())
    run = partial(run_cell, study=study, chosen=tuple(study.by_name))
    found = dict(ends_on_cores(cells, run, processes))
    return pd.DataFrame([asdict(row) for cell in cells for row in found[cell]])


def _expect_portable(study: RatioStudy) -> None:
    """Refuse objects of classes that another process cannot import."""
    for policy in study.policies:
        if type(policy).__module__.startswith(MODULE_PREFIX):
            raise InputError(
                f"study: policy {name_with_parameters(policy)!r} is an object of a file that was run by its "
                "path, expected FILE.py:NAME, by which every process finds it"
            )
