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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.documents.schema import Line, Number, Whole, decode
from shadowprice.instances.files import parse_json, read_text
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload import Workload

T = TypeVar("T")
FORMAT = 1


class _Job(msgspec.Struct, frozen=True):
    id: Line | int
    arrival_s: Number
    gpus: Whole
    work_s: Number


class _Run(msgspec.Struct, frozen=True):
    job: Whole
    node: Whole
    gpus: Whole
    start_s: Number
    end_s: Number


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of a file, in their order."""

    format: Annotated[int, Meta(ge=FORMAT, le=FORMAT, description=str(FORMAT))]
    name: Line
    policy: Line
    predictor: Line | None
    objective: Objective
    cluster: Line
    jobs: list[_Job]
    witness: list[_Run]
    policy_cost_s: Number
    witness_cost_s: Number
    ratio: Annotated[
        str,
        Meta(
            pattern=r"\A[0-9]{1,400}(/[1-9][0-9]{0,399})?\Z", description="a fraction such as 7/4"
        ),
    ]
    witness_is: Line
    provenance: dict[str, Any]


@dataclass(frozen=True, eq=False)
class HardInstance:
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
        jobs, runs = self.instance.workload, self.witness
        record = _Record(
            format=FORMAT,
            name=self.name,
            policy=self.policy,
            predictor=self.predictor,
            objective=self.objective,
            cluster=str(self.instance.cluster),
            jobs=_rows(_Job, jobs.id, jobs.arrival_s, jobs.gpus, jobs.work),
            witness=_rows(_Run, runs.job, runs.node, runs.gpus, runs.start_s, runs.end_s),
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
    jobs = Workload.from_columns(
        id=[job.id for job in record.jobs],
        arrival_s=[job.arrival_s for job in record.jobs],
        gpus=[job.gpus for job in record.jobs],
        work=[job.work_s for job in record.jobs],
        source=source,
    )
    columns = {key: [getattr(run, key) for run in record.witness] for key in _Run.__struct_fields__}
    runs = pd.DataFrame(columns).assign(overhead_s=0.0)
    try:
        instance = Instance(Cluster.parse(record.cluster), jobs)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error
    return HardInstance(
        name=record.name,
        policy=record.policy,
        predictor=record.predictor,
        objective=record.objective,
        instance=instance,
        witness=Schedule.from_frame(runs, source=source),
        policy_cost_s=record.policy_cost_s,
        witness_cost_s=record.witness_cost_s,
        ratio=Fraction(record.ratio),
        witness_is=record.witness_is,
        provenance=record.provenance,
    )


def read_hard(path: str | Path) -> HardInstance:
    """Read one file; see :func:`parse_hard`."""
    return parse_hard(read_text(path), str(path))


def hard_instances() -> tuple[HardInstance, ...]:
    """The hard instances that come with the package, by name."""
    folder = files("shadowprice.instances").joinpath("hard")
    found = sorted((each for each in folder.iterdir() if each.name.endswith(".json")), key=_name)
    return tuple(parse_hard(each.read_text(encoding="utf-8"), each.name) for each in found)


def _name(file: Any) -> str:
    return str(file.name)


def _rows(kind: Callable[..., T], *columns: NDArray[Any]) -> list[T]:
    """One record for each row."""
    return [kind(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
