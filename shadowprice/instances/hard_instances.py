"""Hard instances: a policy, an instance and a schedule that shows how much better one can do.

A witness certifies a ratio from below. Whatever the offline optimum is, it costs no more than
any feasible schedule; so a policy that costs r times a feasible schedule costs at least r times the
optimum, on this instance, and nobody has to believe a solver. The witness is stored with the
instance; checking both is running the policy, verifying two schedules and one division of
rationals.

The format, one JSON object a file::

    format, name     1, and the name of the file
    policy           as `--policy` takes it
    predictor        as `--predictor` takes it, or null
    objective        completion, flow or makespan
    cluster          in short notation
    jobs             id, arrival_s, gpus, work_s of every job, in order of arrival
    witness          job, node, gpus, start_s, end_s of every run
    policy_cost_s, witness_cost_s, ratio    the last as a rational, policy over witness
    witness_is       what is known of it: feasible, or optimal among which schedules
    provenance       method, seed, evaluations, family and the version that found it

Files of the package are a benchmark set: :func:`hard_instances` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
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
from shadowprice.instances.files import parse_json, read_text
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule

FORMAT = 1


class _Job(msgspec.Struct, frozen=True):
    id: Line | int
    arrival_s: Number
    gpus: Whole
    work_s: Number


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of a file, in their order."""

    format: Annotated[int, Meta(ge=FORMAT, le=FORMAT, description=str(FORMAT))]
    name: Line
    policy: Line
    predictor: Line | None
    objective: Objective
    cluster: Line
    jobs: list[_Job]
    witness: list[WitnessRun]
    policy_cost_s: Number
    witness_cost_s: Number
    ratio: RatioText
    witness_is: Line
    provenance: dict[str, Any]


@dataclass(frozen=True, eq=False, repr=False)
class HardInstance(Brief):
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

    def to_json(self) -> str:
        """The file's text; the same instance gives the same bytes."""
        record = _Record(
            format=FORMAT,
            name=self.name,
            policy=self.policy,
            predictor=self.predictor,
            objective=self.objective,
            cluster=str(self.instance.cluster),
            jobs=written_jobs(_Job, self.instance),
            witness=written_runs(self.witness),
            policy_cost_s=self.policy_cost_s,
            witness_cost_s=self.witness_cost_s,
            ratio=str(self.ratio),
            witness_is=self.witness_is,
            provenance=dict(self.provenance),
        )
        return json.dumps(msgspec.to_builtins(record), indent=1) + "\n"


def parse_hard(text: str, source: str) -> HardInstance:
    """Read a file's text.

    Raises
    ------
    InputError
        If it is not of the format; whether what it claims is true is for others to check.
    """
    record = decode(_Record, parse_json(text, source), source)
    return HardInstance(
        name=record.name,
        policy=record.policy,
        predictor=record.predictor,
        objective=record.objective,
        instance=read_instance(record.cluster, record.jobs, source),
        witness=read_witness(record.witness, source),
        policy_cost_s=record.policy_cost_s,
        witness_cost_s=record.witness_cost_s,
        ratio=Fraction(record.ratio),
        witness_is=record.witness_is,
        provenance=record.provenance,
    )


def read_hard(path: str | Path) -> HardInstance:
    """Read one file; see :func:`parse_hard`."""
    return parse_hard(read_text(path), str(path))


def hunted_instances() -> tuple[HardInstance, ...]:
    """The worst instances that hunts found, one of each hunt, by name; provenance says how long a hunt was."""
    return tuple(parse_hard(text, name) for text, name in documents_in("hunted"))


def hard_instances() -> tuple[HardInstance, ...]:
    """The hard instances that come with the package, by name."""
    return tuple(parse_hard(text, name) for text, name in documents_in("hard"))
