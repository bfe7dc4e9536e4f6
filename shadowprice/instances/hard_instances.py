"""Benchmark sets of the package: hard instances, loose bounds and tight instances.

A *hard instance* is a policy, an instance and a schedule that shows how much better one can do. A witness certifies a
ratio from below. Whatever the offline optimum is, it costs no more than any feasible schedule; so a policy that costs
r times a feasible schedule costs at least r times the optimum, on this instance, and nobody has to believe a solver.
The witness is stored with the instance; checking both is running the policy, verifying two schedules and one division
of rationals.

A *loose bound* is an instance on which a lower bound is far below the optimum, with a schedule that attains it: the
bound says no more than ``bound_s``, and no preemptive schedule costs less than ``optimum_s``. Both can be checked, see
`benchmarks/loose_bounds.py`.

A *tight instance* is one on which what a theorem bounds comes close to what it allows. Instances of different theorems
are of different kinds: jobs on a cluster, gains of pairs, fractions of time. All are stored as tables of whole numbers,
whose columns the theorem's entry in :mod:`shadowprice.analysis.adversary.tightest` names and builds the instance from.

Files have the form of :mod:`shadowprice.instances.documents.benchmark_document`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shadowprice.errors import InputError
from shadowprice.instances.documents.benchmark_document import BenchmarkDocument
from shadowprice.instances.documents.schema import Line, Whole
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule


@dataclass(frozen=True, eq=False, repr=False)
class HardInstance(BenchmarkDocument):
    """An instance on which a policy is bad, with the schedule that proves it.

    Parameters
    ----------
    name : str
        Name of its file.
    policy, predictor : str
        As on the command line; None for a policy that predicts nothing.
    objective : Objective
        What is compared.
    instance, witness
        What was given, and a feasible schedule.
    policy_cost_s, witness_cost_s : float
        Costs [s].
    ratio : Fraction
        Policy over witness: at most the ratio of the policy to the optimum.
    witness_is : str
        ``feasible``, or among which schedules it is optimal.
    provenance : mapping
        How it was found.
    """

    name: str
    policy: str
    predictor: str | None
    objective: Objective
    instance: Instance
    witness: Schedule
    policy_cost_s: float
    witness_cost_s: float
    ratio: Fraction
    witness_is: str
    provenance: Mapping[str, Any]


def hunted_instances() -> tuple[HardInstance, ...]:
    """The worst instances that hunts found, one of each hunt, by name; provenance says how long a hunt was."""
    return HardInstance.all_in("hunted")


def hard_instances() -> tuple[HardInstance, ...]:
    """The hard instances that come with the package, by name."""
    return HardInstance.all_in("hard")


@dataclass(frozen=True, eq=False, repr=False)
class LooseBound(BenchmarkDocument):
    """An instance on which a bound is far from the optimum.

    Parameters
    ----------
    name : str
        Name of its file.
    bound : str
        Kind of the bound.
    objective : Objective
    instance : Instance
    witness : Schedule
        An optimal preemptive schedule.
    optimum_s, bound_s : float
    ratio : Fraction
        Optimum over bound.
    provenance : mapping
        How it was found.
    """

    name: str
    bound: str
    objective: Objective
    instance: Instance
    witness: Schedule
    optimum_s: float
    bound_s: float
    ratio: Fraction
    provenance: Mapping[str, Any]


def loose_bounds() -> tuple[LooseBound, ...]:
    """The loose bounds that come with the package, by name."""
    return LooseBound.all_in("loose")


Rows = tuple[tuple[Whole, ...], ...]
"""A table of whole numbers."""


@dataclass(frozen=True, repr=False)
class TightInstance(BenchmarkDocument):
    """An instance that comes close to what a theorem allows.

    Parameters
    ----------
    theorem : str
        The theorem's file in :mod:`shadowprice.proofs`, as in ``asrpt.conversion``.
    says : str
        What is attained, and what is allowed, in words.
    columns : tuple of str
        Names of the columns.
    rows : tuple of tuple of int
        The instance.
    attained : Fraction
        What the instance attains.
    allowed : Fraction or None
        What the theorem allows on it; None where it states no factor.
    provenance : mapping
        How it was found.
    """

    theorem: str
    says: str
    columns: tuple[Line, ...]
    rows: Rows
    attained: Fraction
    allowed: Fraction | None
    provenance: Mapping[str, Any]

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise InputError(
                    f"{self.theorem}: row {number} has {len(row)} numbers, expected {len(self.columns)}"
                )

    @property
    def name(self) -> str:
        """Name of its file, without the suffix."""
        return self.theorem


def tight_instances() -> tuple[TightInstance, ...]:
    """The tight instances that come with the package, by theorem."""
    return TightInstance.all_in("tight")
