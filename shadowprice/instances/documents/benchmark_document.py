"""Documents of benchmark sets: dataclasses whose fields are what a file has, in their order.

A file is one JSON object: ``format`` and the fields, a line each. Instances have the written form of
:mod:`shadowprice.instances.documents.written_instance` with their jobs, schedules are lists of runs, rationals text
such as ``"7/4"``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

import msgspec
import pandas as pd
from msgspec import Meta

from shadowprice.brief import Brief
from shadowprice.instances.documents.plain_data import plain, text_of
from shadowprice.instances.documents.schema import Line, Number, Whole, decode
from shadowprice.instances.documents.written_instance import InstanceWithJobs, written_with_jobs
from shadowprice.instances.features import Feature, require
from shadowprice.instances.files import parse_json, read_text
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule

FORMAT = 2

KNOWS: frozenset[Feature] = frozenset()
"""What reads these sets runs jobs alone, at one speed, on nodes that are there."""

RatioText = Annotated[
    str,
    Meta(pattern=r"\A[0-9]{1,400}(/[1-9][0-9]{0,399})?\Z", description="a fraction such as 7/4"),
]


class WitnessRun(msgspec.Struct, frozen=True):
    """A run of a job in a schedule, without charges."""

    job: Whole
    node: Whole
    gpus: Whole
    start_s: Number
    end_s: Number


class BenchmarkDocument(Brief):
    """Base of frozen dataclasses that are kept as files."""

    def to_json(self) -> str:
        """The file's text; the same object gives the same bytes.

        Raises
        ------
        InputError
            If an instance says more than these sets have.
        """
        named = {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]
        return text_of({"format": FORMAT, **{name: _written(each) for name, each in named.items()}})

    @classmethod
    def from_json(cls, text: str, source: str) -> Self:
        """Inverse of :meth:`to_json`.

        Raises
        ------
        InputError
            If it is not of the format; whether what it claims is true is for others to check.
        """
        document: Any = cls
        record = decode(_record(document), parse_json(text, source), source)
        named = {name: (kind, getattr(record, name)) for name, kind in _kinds(document).items()}
        return cls(**{name: _read(*each, source) for name, each in named.items()})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """One file; see :meth:`from_json`."""
        return cls.from_json(read_text(path), str(path))

    @classmethod
    def all_in(cls, folder: str) -> tuple[Self, ...]:
        """Those in a folder of the package, by name of file."""
        return tuple(cls.from_json(text, name) for text, name in _texts_in(folder))


_WRITTEN: Mapping[Any, Any] = {
    Instance: InstanceWithJobs,
    Schedule: list[WitnessRun],
    Fraction: RatioText,
    Fraction | None: RatioText | None,
    float: Number,
    str: Line,
    str | None: Line | None,
    Mapping[str, Any]: dict[str, Any],
}
"""Types of entries of files by those of fields, where they are others."""


@cache
def _kinds(document: Any) -> dict[str, Any]:
    """Types of fields by their names, in their order."""
    hints = get_type_hints(document, include_extras=True)
    return {each.name: hints[each.name] for each in fields(document)}


@cache
def _record(document: Any) -> Any:
    """Entries of a file of such documents."""
    number = Annotated[int, Meta(ge=FORMAT, le=FORMAT, description=str(FORMAT))]
    entries = [(name, _WRITTEN.get(kind, kind)) for name, kind in _kinds(document).items()]
    return msgspec.defstruct(document.__name__, [("format", number), *entries], frozen=True)


def _written(value: object) -> Any:
    """A field as files have it."""
    if isinstance(value, Instance):
        require(value, KNOWS, "benchmark instances")
        return written_with_jobs(value)
    if isinstance(value, Schedule):
        columns = (value.job, value.node, value.gpus, value.start_s, value.end_s)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [plain(WitnessRun(*row)) for row in rows]
    return str(value) if isinstance(value, Fraction) else plain(value)


def _read(kind: Any, value: Any, source: str) -> Any:
    """A field from what a file has."""
    if kind is Instance:
        found = value.whole(source)
        require(found, KNOWS, "benchmark instances")
        return found
    if kind is Schedule:
        columns = {
            name: [getattr(run, name) for run in value] for name in WitnessRun.__struct_fields__
        }
        return Schedule.from_frame(pd.DataFrame(columns).assign(overhead_s=0.0), source=source)
    is_ratio = kind in (Fraction, Fraction | None) and value is not None
    return Fraction(value) if is_ratio else value


def _texts_in(folder: str) -> Iterator[tuple[str, str]]:
    """Text and name of the documents in a folder of the package, by name."""
    found = files("shadowprice.instances").joinpath(folder).iterdir()
    named = {str(each.name): each for each in found if each.name.endswith(".json")}
    for name in sorted(named):
        yield named[name].read_text(encoding="utf-8"), name
