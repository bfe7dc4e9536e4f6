"""Instances and schedules of them in documents: what files of hard instances and of loose bounds have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
import pandas as pd
from msgspec import Meta
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.documents.schema import Number, Whole
from shadowprice.instances.features import Feature, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.workload import Workload

T = TypeVar("T")

KNOWS: frozenset[Feature] = frozenset()
"""A document has the notation of a cluster, and of each job arrival, GPUs and run time."""

RatioText = Annotated[
    str,
    Meta(pattern=r"\A[0-9]{1,400}(/[1-9][0-9]{0,399})?\Z", description="a fraction such as 7/4"),
]


class WitnessRun(msgspec.Struct, frozen=True):
    """A run of a job in a schedule."""

    job: Whole
    node: Whole
    gpus: Whole
    start_s: Number
    end_s: Number


class WrittenJob(Protocol):
    """A job in a document; the documents differ in what an id may be."""

    @property
    def id(self) -> str | int:
        """Name."""

    @property
    def arrival_s(self) -> float:
        """Arrival [s]."""

    @property
    def gpus(self) -> int:
        """Gang."""

    @property
    def work_s(self) -> float:
        """Run time [s]."""


def written_jobs(kind: Callable[..., T], instance: Instance) -> list[T]:
    """One record for each job.

    Raises
    ------
    InputError
        If the instance says more than a document has.
    """
    require(instance, KNOWS, "documents of instances with schedules")
    jobs = instance.workload
    return _rows(kind, jobs.id, jobs.arrival_s, jobs.gpus, jobs.work)


def written_runs(runs: Schedule) -> list[WitnessRun]:
    """One record for each row."""
    return _rows(WitnessRun, runs.job, runs.node, runs.gpus, runs.start_s, runs.end_s)


def read_instance(cluster: str, jobs: Sequence[WrittenJob], source: str) -> Instance:
    """The instance of a document.

    Raises
    ------
    InputError
        If the cluster or a job is none.
    """
    workload = Workload.from_columns(
        id=[job.id for job in jobs],
        arrival_s=[job.arrival_s for job in jobs],
        gpus=[job.gpus for job in jobs],
        work=[job.work_s for job in jobs],
        source=source,
    )
    try:
        return Instance(Cluster.parse(cluster), workload)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def read_witness(runs: Sequence[WitnessRun], source: str) -> Schedule:
    """The schedule of a document, without charges."""
    columns = {key: [getattr(run, key) for run in runs] for key in WitnessRun.__struct_fields__}
    return Schedule.from_frame(pd.DataFrame(columns).assign(overhead_s=0.0), source=source)


def documents_in(folder: str) -> Iterator[tuple[str, str]]:
    """Text and name of the documents in a folder of the package, by name."""
    found = files("shadowprice.instances").joinpath(folder).iterdir()
    named = {str(each.name): each for each in found if each.name.endswith(".json")}
    for name in sorted(named):
        yield named[name].read_text(encoding="utf-8"), name


def _rows(kind: Callable[..., T], *columns: NDArray[Any]) -> list[T]:
    """One record for each row."""
    return [kind(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
