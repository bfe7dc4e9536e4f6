"""Loose bounds: an instance on which a lower bound is far below the optimum, with a schedule that attains it.

On this instance the bound says no more than ``bound_s``, and no preemptive schedule costs less than ``optimum_s``.
Both can be checked, see :func:`shadowprice.analysis.adversary.loosest.recheck`.

The format, one JSON object a file::

    format, name     1, and the name of the file
    bound            kind of the bound
    objective        completion or flow
    cluster          in short notation
    jobs             id, arrival_s, gpus, work_s of every job, in order of arrival
    witness          job, node, gpus, start_s, end_s of every run of an optimal preemptive schedule
    optimum_s, bound_s, ratio    the last as a rational, optimum over bound
    provenance       family, seed, evaluations and the version that found it

Files of the package are a benchmark set: :func:`loose_bounds` reads them.
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
from shadowprice.instances.documents.schema import Line, Number, Whole, decode
from shadowprice.instances.documents.witnesses import (
    RatioText,
    WitnessRun,
    documents_in,
    read_instance,
    read_witness,
    written_jobs,
    written_runs,
)
from shadowprice.instances.files import parse_json
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule

FORMAT = 1


class _Job(msgspec.Struct, frozen=True):
    id: Line
    arrival_s: Number
    gpus: Whole
    work_s: Number


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of a file, in their order."""

    format: Annotated[int, Meta(ge=FORMAT, le=FORMAT, description=str(FORMAT))]
    name: Line
    bound: Line
    objective: Objective
    cluster: Line
    jobs: list[_Job]
    witness: list[WitnessRun]
    optimum_s: Number
    bound_s: Number
    ratio: RatioText
    provenance: dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class LooseBound(Brief):
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

    def to_json(self) -> str:
        """The file's text; the same instance gives the same bytes."""
        record = _Record(
            format=FORMAT,
            name=self.name,
            bound=self.bound,
            objective=self.objective,
            cluster=str(self.instance.cluster),
            jobs=written_jobs(_Job, self.instance),
            witness=written_runs(self.witness),
            optimum_s=self.optimum_s,
            bound_s=self.bound_s,
            ratio=str(self.ratio),
            provenance=dict(self.provenance),
        )
        return json.dumps(msgspec.to_builtins(record), indent=1) + "\n"


def parse_loose(text: str, source: str) -> LooseBound:
    """Read a file's text.

    Raises
    ------
    InputError
        If it is not of the format; whether what it claims is true is for others to check.
    """
    record = decode(_Record, parse_json(text, source), source)
    return LooseBound(
        name=record.name,
        bound=record.bound,
        objective=record.objective,
        instance=read_instance(record.cluster, record.jobs, source),
        witness=read_witness(record.witness, source),
        optimum_s=record.optimum_s,
        bound_s=record.bound_s,
        ratio=Fraction(record.ratio),
        provenance=record.provenance,
    )


def loose_bounds() -> tuple[LooseBound, ...]:
    """The loose bounds that come with the package, by name."""
    return tuple(parse_loose(text, name) for text, name in documents_in("loose"))
