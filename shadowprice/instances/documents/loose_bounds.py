"""Loose bounds: an instance on which a lower bound is far below the optimum, with a schedule that attains it.

On this instance the bound says no more than ``bound_s``, and no preemptive schedule costs less than ``optimum_s``.
Both can be checked, see :func:`shadowprice.analysis.adversary.loosest.recheck`.

Files of the package are a benchmark set, in the form of :mod:`shadowprice.instances.documents.benchmark_document`:
:func:`loose_bounds` reads them.
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
