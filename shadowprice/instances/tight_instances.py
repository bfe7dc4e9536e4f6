"""Tight instances: an instance on which what a theorem bounds comes close to what it allows.

Instances of different theorems are of different kinds: jobs on a cluster, gains of pairs, fractions of time. All are
stored as tables of whole numbers, whose columns the theorem's entry in
:mod:`shadowprice.analysis.adversary.tightest` names and builds the instance from.

The format, one JSON object a file::

    format, theorem  1, and the theorem's file in proofs, as in asrpt.conversion; also the name of the file
    says             what is attained, and what is allowed
    columns, rows    names, and whole numbers
    attained         a rational
    allowed          a rational; null where the theorem states no factor of it
    provenance       seed, evaluations and the version that found it

Files of the package are a benchmark set: :func:`tight_instances` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import Line, Whole, decode
from shadowprice.instances.documents.witnesses import RatioText, documents_in
from shadowprice.instances.files import parse_json

FORMAT = 1

Rows = tuple[tuple[int, ...], ...]
"""A table of whole numbers."""


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of a file, in their order."""

    format: Annotated[int, Meta(ge=FORMAT, le=FORMAT, description=str(FORMAT))]
    theorem: Line
    says: Line
    columns: list[Line]
    rows: list[list[Whole]]
    attained: RatioText
    allowed: RatioText | None
    provenance: dict[str, Any]


@dataclass(frozen=True, repr=False)
class TightInstance(Brief):
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
    columns: tuple[str, ...]
    rows: Rows
    attained: Fraction
    allowed: Fraction | None
    provenance: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of its file, without the suffix."""
        return self.theorem

    def to_json(self) -> str:
        """The file's text; the same instance gives the same bytes."""
        record = _Record(
            format=FORMAT,
            theorem=self.theorem,
            says=self.says,
            columns=list(self.columns),
            rows=[list(row) for row in self.rows],
            attained=str(self.attained),
            allowed=None if self.allowed is None else str(self.allowed),
            provenance=dict(self.provenance),
        )
        return json.dumps(msgspec.to_builtins(record), indent=1) + "\n"


def parse_tight(text: str, source: str) -> TightInstance:
    """Read a file's text.

    Raises
    ------
    InputError
        If it is not of the format; whether what it claims is true is for others to check.
    """
    record = decode(_Record, parse_json(text, source), source)
    for number, row in enumerate(record.rows):
        if len(row) != len(record.columns):
            raise InputError(
                f"{source}: row {number} has {len(row)} numbers, expected {len(record.columns)}"
            )
    return TightInstance(
        theorem=record.theorem,
        says=record.says,
        columns=tuple(record.columns),
        rows=tuple(tuple(row) for row in record.rows),
        attained=Fraction(record.attained),
        allowed=None if record.allowed is None else Fraction(record.allowed),
        provenance=record.provenance,
    )


def tight_instances() -> tuple[TightInstance, ...]:
    """The tight instances that come with the package, by theorem."""
    return tuple(parse_tight(text, name) for text, name in documents_in("tight"))
