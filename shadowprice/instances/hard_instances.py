"""Hard instances: a policy, an instance and a schedule that shows how much better one can do.

A witness certifies a ratio from below. Whatever the offline optimum is, it costs no more than
any feasible schedule; so a policy that costs r times a feasible schedule costs at least r times the
optimum, on this instance, and nobody has to believe a solver. The witness is stored with the
instance; checking both is running the policy, verifying two schedules and one division of
rationals.

Files of the package are a benchmark set, in the form of :mod:`shadowprice.instances.documents.benchmark_document`:
:func:`hard_instances` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shadowprice.instances.documents.benchmark_document import BenchmarkDocument
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
