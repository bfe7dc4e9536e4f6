"""Tight instances: an instance on which what a theorem bounds comes close to what it allows.

Instances of different theorems are of different kinds: jobs on a cluster, gains of pairs, fractions of time. All are
stored as tables of whole numbers, whose columns the theorem's entry in
:mod:`shadowprice.analysis.adversary.tightest` names and builds the instance from.

Files of the package are a benchmark set, in the form of :mod:`shadowprice.instances.documents.benchmark_document`:
:func:`tight_instances` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shadowprice.errors import InputError
from shadowprice.instances.documents.benchmark_document import BenchmarkDocument
from shadowprice.instances.documents.schema import Line, Whole

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
