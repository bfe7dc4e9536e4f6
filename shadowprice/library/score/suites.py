"""Suites: fixed instances of the library, and laws from which two more are drawn by a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from types import MappingProxyType

from shadowprice.analysis.adversary.family import FAMILIES, InstanceFamily
from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.entries import expected_name
from shadowprice.instances.features import require
from shadowprice.instances.generators import generate
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.terms.charges import Overheads
from shadowprice.library.entries.stored_bound import StoredBound
from shadowprice.library.score.measures import KNOWS

OBJECTIVE = Objective.FLOW
"""Cost that is scored: the sum of job completion times."""

PLANS_S = 2.0
"""Effort for the bound of an instance that is drawn, in seconds of a common machine [s]."""


@dataclass(frozen=True, eq=False)
class ScoredInstance:
    """An instance of a suite, and what is known of its optimum.

    Parameters
    ----------
    name : str
    instance : Instance
    drawn : bool
        Whether it was drawn; else it is the library's.
    certificate : StoredBound
        Bound of all preemptive schedules, which becomes a certificate with each run.
    best : Fraction or None
        Cost of the best schedule that the library has [ticks].
    """

    name: str
    instance: Instance
    drawn: bool
    certificate: StoredBound
    best: Fraction | None = None

    def __post_init__(self) -> None:
        require(self.instance, KNOWS, "scores")
        if self.bound <= 0:
            raise InputError(f"instance {self.name!r}: its bound is {self.bound}, expected above 0")

    @property
    def bound(self) -> Fraction:
        """No preemptive schedule costs less [ticks]."""
        return self.certificate.ticks


@dataclass(frozen=True)
class DrawnLaw:
    """A law from which an instance is drawn: the generator's, on a cluster and at a load that are drawn as well.

    Parameters
    ----------
    name : str
    generator : str
    jobs : int
    clusters : tuple of str
    loads : tuple of float
    overheads : Overheads
        Charges of starts, restarts and migrations.
    """

    name: str
    generator: str
    jobs: int
    clusters: tuple[str, ...]
    loads: tuple[float, ...]
    overheads: Overheads = field(default_factory=Overheads)

    def draw(self, seed: int) -> ScoredInstance:
        """The instance of a seed, and its certified bound, which takes the same steps on every machine."""
        random = Random(f"{self.name}/{seed}")
        cluster = Cluster.parse(random.choice(self.clusters))
        jobs = generate(
            self.generator,
            jobs=self.jobs,
            seed=random.randrange(2**31),
            gpus_total=cluster.total_gpus,
            load=random.choice(self.loads),
        )
        instance = Instance(cluster, jobs, self.overheads)
        found = certified_bounds(instance, [OBJECTIVE], BoundEffort.of_plans(PLANS_S))[OBJECTIVE]
        return ScoredInstance(f"{self.name}-{seed}", instance, True, StoredBound.of_bound(found))


@dataclass(frozen=True)
class Suite:
    """A suite of instances, and how long an adversary looks for a worse one.

    Parameters
    ----------
    name : str
    fixed : tuple of str
        Names of the library's instances.
    drawn : tuple of DrawnLaw
    families : tuple of InstanceFamily
        Small instances among which the adversary looks; none for a suite without one.
    evaluations : int
        Instances of each family that it looks at.
    law_examples : int
        Examples that are tried of each law; 0 for none.
    """

    name: str
    fixed: tuple[str, ...]
    drawn: tuple[DrawnLaw, ...]
    families: tuple[InstanceFamily, ...] = ()
    evaluations: int = 0
    law_examples: int = 0


_LAWS = (
    DrawnLaw("drawn-gangs", "lognormal", 200, ("4x4", "8x4", "4x8"), (0.7, 0.9, 1.1)),
    DrawnLaw(
        "drawn-charges",
        "lognormal",
        200,
        ("4x4", "8x4", "4x8"),
        (0.7, 0.9, 1.1),
        overheads=Overheads(start_s=10.0, restart_s=30.0, migration_s=20.0),
    ),
)

SUITES: Mapping[str, Suite] = MappingProxyType(
    {
        each.name: each
        for each in (
            Suite(
                "v1-online",
                (
                    "gangs-10-lognormal-1",
                    "gangs-100-lognormal-1",
                    "gangs-1000-lognormal-1",
                    "types-10-recurrent-1",
                    "types-100-recurrent-1",
                    "types-1000-recurrent-1",
                    "failures-10-lognormal-2",
                    "failures-100-lognormal-1",
                    "failures-1000-lognormal-1",
                ),
                _LAWS,
                FAMILIES[:5],
                2000,
                20,
            ),
            Suite(
                "v1-quick",
                ("gangs-100-lognormal-1", "types-100-recurrent-1", "failures-100-lognormal-1"),
                _LAWS,
            ),
        )
    }
)
"""All suites by name: the second is for programs that write many policies, and has neither adversary nor laws."""


def suite_named(name: str) -> Suite:
    """A suite by its name.

    Raises
    ------
    InputError
        If there is none.
    """
    if name not in SUITES:
        raise InputError(f"suite {name!r}: {expected_name(name, SUITES, 'docs/score.md')}")
    return SUITES[name]
