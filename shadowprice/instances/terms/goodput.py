"""Goodput: jobs that run at any width and batch, and go through their epochs at what was measured there.

Work is a job's epochs, of each so much progress (:mod:`shadowprice.instances.goodput.course`). A run makes progress by
the application that its ``model`` names, its GPUs by node in the order of its rows, its local batch and how often that
is accumulated, and the epoch. Jobs hold one GPU up to as many as their batch can be divided by; ``gpus`` is what they
ask for. One with a ``batch_size`` keeps it, others may be told another at every decision.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.features import Feature
from shadowprice.instances.goodput.application import Application, Batching
from shadowprice.instances.goodput.course import Course, Position, lengths_of, per_tick
from shadowprice.instances.terms.declared import CourseTerm, DeclaredRun
from shadowprice.instances.terms.effect import Effect, Pieces, RecordedRun
from shadowprice.instances.terms.settings import TermContext, TermSettings

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.workload import Workload

Interference = Annotated[float, Meta(ge=0, lt=1, description="a number from 0, below 1")]


class BatchField(NamedTuple):
    """Field of a run: how it makes up its batch, and whether others slow it."""

    batching: Batching
    slowed: bool = False


@dataclass(frozen=True)
class GoodputSettings(TermSettings):
    """Jobs run at any width and batch, by profile tables of the applications that their models name.

    Parameters
    ----------
    tables : str
        Folder with a folder of CSV files for each application, or a JSON file of all of them.
    interference : float
        Part by which gangs on several nodes are slower that share a node with another such gang.
    """

    feature: ClassVar[Feature] = Feature.GOODPUT
    sets: ClassVar[tuple[str, ...]] = ("declared",)
    example: ClassVar[str] = (
        "simulate elastic.csv --cluster 4x4 --policy optimus --with goodput:tables=profiles.json"
    )

    tables: FileName
    interference: Interference = 0.0

    def on(self, run: TermContext) -> TermContext:
        """The run with the term, its tables read."""
        from shadowprice.instances.goodput.tables import load_applications

        term = Goodput(load_applications(self.tables), self.interference)
        return run.with_options(declared=(*run.options.get("declared", ()), term))


@dataclass(frozen=True)
class Goodput(CourseTerm):
    """Goodput of jobs by the applications that their models name.

    Parameters
    ----------
    applications : tuple of Application
    interference : float
        Part by which a gang on several nodes is slower from a decision after which some node of it has another such
        gang, until one after which none has.
    whole_seconds : bool
        Whether epochs end at the nearest whole second.

    Raises
    ------
    InputError
        If two applications have one name.
    """

    name: ClassVar[str] = "goodput"
    feature: ClassVar[Feature] = Feature.GOODPUT

    applications: tuple[Application, ...]
    interference: Interference = 0.0
    whole_seconds: bool = False

    def __post_init__(self) -> None:
        names = [each.name for each in self.applications]
        if len(set(names)) < len(names):
            raise InputError(f"applications: {', '.join(names)}, expected each name once")

    def __repr__(self) -> str:
        names = ", ".join(each.name for each in self.applications)
        return f"Goodput({names}; interference {self.interference:g}, whole_seconds {self.whole_seconds})"

    @cached_property
    def by_name(self) -> Mapping[str, Application]:
        """Applications by name."""
        return {each.name: each for each in self.applications}

    def check(self, cluster: Cluster, jobs: Workload) -> None:
        """Refuse jobs of other applications, GPUs of several types, and batches and widths that were not measured."""
        if len(cluster.gpu_types) > 1:
            raise InputError(
                f"{jobs.source}: the cluster has GPUs of types {', '.join(cluster.gpu_types)}, expected one of jobs "
                "with goodput"
            )
        columns = jobs.id.tolist(), jobs.model.tolist(), jobs.batch_size.tolist()
        for job, model, batch in zip(*columns, strict=True):
            if model not in self.by_name:
                raise InputError(
                    f"{jobs.source}: job {job!r}: model is {model!r}, expected an application of which there are "
                    f"tables: {', '.join(self.by_name)}"
                )
            known = self.by_name[model]
            if batch and not known.init_batch <= batch <= known.most_batch:
                raise InputError(
                    f"{jobs.source}: job {job!r}: batch_size is {batch}, expected {known.init_batch} to "
                    f"{known.most_batch}, or 0 for any"
                )

    def begin(self) -> Position:
        """First epoch, nothing done."""
        return Position()

    def proceeding(self, run: DeclaredRun, field: BatchField) -> Course | None:
        """A run at its batch; None if its width or batch was not measured, or is not one of the job's."""
        application = self.by_name[run.jobs.model[run.job]]
        batch = int(run.jobs.batch_size[run.job])
        if run.gpus > application.widest(batch):
            return None
        if batch and field.batching != application.batching(batch, run.gpus):
            return None
        placement = tuple(gpus for _, gpus in run.pieces)
        return self.run(application, placement, field)

    def run(
        self, application: Application, placement: tuple[int, ...], field: BatchField
    ) -> Course | None:
        """A run of an application; None if it makes no progress in some epoch."""
        key = application.name, placement, field
        known = self._runs
        if key not in known:
            less = self.interference if field.slowed else 0.0
            rates = [
                per_tick(application.rate(placement, field.batching, epoch) * (1.0 - less))
                for epoch in range(len(application.ends))
            ]
            lengths = self._lengths[application.name]
            course = Course(lengths, tuple(rates), self.whole_seconds)
            able = all(rate > 0 or not length for rate, length in zip(rates, lengths, strict=True))
            known[key] = course if able else None
        return known[key]

    def effect(self, cluster: Cluster, jobs: Workload) -> Batches:
        """The batch of runs, and whether others slow them."""
        return Batches(self, jobs)

    def slowed_by_others(self, running: Mapping[int, Pieces]) -> Collection[int]:
        """Gangs on several nodes of which one has another such gang; none without interference."""
        if not self.interference:
            return ()
        spread = {job: pieces for job, pieces in running.items() if len(pieces) > 1}
        gangs: dict[int, int] = {}
        for pieces in spread.values():
            for node, _ in pieces:
                gangs[node] = gangs.get(node, 0) + 1
        return {job for job, pieces in spread.items() if any(gangs[node] > 1 for node, _ in pieces)}

    def when_slowed(self, field: BatchField, slowed: bool) -> BatchField:
        """The field with another mark, the same object where it is the same."""
        return field if field.slowed == slowed else field._replace(slowed=slowed)

    def relaxed(self, cluster: Cluster, jobs: Workload) -> tuple[dict[str, Any], ...]:
        """Jobs of one GPU that may grow, as fast at each width as their best placement and batches are.

        The first are best for the GPU time that jobs take, the second for their times; one where both are the same.
        """
        from shadowprice.instances.goodput.relaxation import Aim, relaxed_fields

        by_area, by_time = (
            relaxed_fields(self.by_name, cluster, jobs, aim, whole_seconds=self.whole_seconds)
            for aim in (Aim.GPU_TIME, Aim.TIME)
        )
        same = by_area["elasticity"].speeds == by_time["elasticity"].speeds
        return (by_area,) if same else (by_area, by_time)

    @cached_property
    def _lengths(self) -> dict[str, tuple[int, ...]]:
        return {each.name: lengths_of(each.ends) for each in self.applications}

    @cached_property
    def _runs(self) -> dict[tuple[str, tuple[int, ...], BatchField], Course | None]:
        return {}


class Batches(Effect):
    """Batches of runs; one left open is that of the job, or the smallest that its GPUs can make.

    Parameters
    ----------
    term : Goodput
    jobs : Workload
    """

    feature: ClassVar[Feature] = Feature.GOODPUT
    in_place: ClassVar[bool] = True

    def __init__(self, term: Goodput, jobs: Workload) -> None:
        self._applications = [term.by_name[model] for model in jobs.model.tolist()]
        self._batch = jobs.batch_size.tolist()
        self._interferes = term.interference > 0

    def complete(self, job: int, pieces: Pieces, fields: dict[Feature, Any]) -> None:
        """Make up the batch on so many GPUs."""
        if Feature.GOODPUT not in fields:
            width = sum(gpus for _, gpus in pieces)
            batching = self._applications[job].batching(self._batch[job], width)
            fields[Feature.GOODPUT] = BatchField(batching)

    def columns(self, rows: int, runs: Sequence[RecordedRun]) -> Mapping[str, NDArray[Any]]:
        """Local batch, accumulations, and whether others slow it, of each row."""
        local, accumulated, slowed = (np.zeros(rows, dtype=np.int64) for _ in range(3))
        for first, pieces, fields in runs:
            field: BatchField = fields[Feature.GOODPUT]
            here = slice(first, first + len(pieces))
            local[here], accumulated[here] = field.batching
            slowed[here] = field.slowed
        columns = {"local_batch": local, "accumulated": accumulated}
        return {**columns, "slowed": slowed} if self._interferes else columns
