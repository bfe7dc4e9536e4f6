"""The written form of an instance: one document with an entry for each feature, and its jobs as columns.

Run directories (``instance.json`` beside ``workload.parquet``), digests of instances and stored benchmark instances
have it. Certificates do not: their records are whole ticks, for checkers that share nothing with this package.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import MAX_NODES, Cluster, Node
from shadowprice.instances.columns import THROUGHPUT_PREFIX
from shadowprice.instances.documents.plain_data import (
    Document,
    or_endless,
    or_null,
    plain,
    settings_in,
)
from shadowprice.instances.documents.schema import Line, Name, Number, Whole, decode
from shadowprice.instances.features import DECLARED_KNOWS, Feature, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.registry import TERMS, DeclaredTerms
from shadowprice.instances.workload import COLUMNS, OPTIONAL, Workload

KNOWS = (
    frozenset(
        {
            Feature.RATES,  # columns of the jobs
            Feature.TYPES,
            Feature.CHARGES,
            Feature.SHARING,
            Feature.GRAPHS,
            Feature.PROFILES,
            Feature.SPREAD,
            Feature.WIDTHS,
            Feature.COPIES,
            Feature.FAILURES,
            Feature.QUOTAS,
            Feature.PARTS,
            Feature.CORES,
            Feature.CPU_MEMORY,
            Feature.WINDOW,
            Feature.STOPPED,
            Feature.RESTART,
        }
    )
    | DECLARED_KNOWS
)
"""Features that can be written; no file of one's own is run to read them."""

_USUAL: Mapping[str, object] = MappingProxyType(
    {"weight": 1.0, "deadline_s": math.inf, "tenant": "", "model": "", **OPTIONAL}
)
"""Values of columns that are left out where all jobs have them."""
_ENDLESS = ("deadline_s", "limit_s")
"""Columns that have null for infinity."""


@dataclass(frozen=True)
class NodeGroup(Node):
    """Equal nodes.

    Parameters
    ----------
    count : int
        How many; the rest is of one of them.
    """

    count: Annotated[int, Meta(ge=1, le=MAX_NODES)] = field(kw_only=True)


class InstanceEntries(msgspec.Struct, frozen=True, kw_only=True):
    """An instance but for its jobs: its nodes, and an entry of each term that it has."""

    cluster: Annotated[
        list[NodeGroup], Meta(min_length=1, description="a list of at least one group of nodes")
    ]
    declared: DeclaredTerms | UnsetType = UNSET

    def instance(self, workload: Workload, where: str) -> Instance:
        """The instance with jobs.

        Parameters
        ----------
        where : str
            File, for messages.

        Raises
        ------
        InputError
            If it is none.
        """
        try:
            so_far: dict[str, Any] = {"cluster": self._cluster(), "workload": workload}
            if self.declared is not UNSET:
                so_far["declared"] = tuple(self.declared)
            for term in _WITH_ENTRIES:
                if (record := getattr(self, term.entry)) is not UNSET:
                    so_far = term.read(record, so_far)
            return Instance(**so_far)
        except InputError as error:
            if str(error).startswith(workload.source):  # It is of the jobs, and says so.
                raise
            raise InputError(f"{where}: {error}") from error

    def _cluster(self) -> Cluster:
        nodes: list[Node] = []
        if (count := sum(group.count for group in self.cluster)) > MAX_NODES:
            raise InputError(f"cluster: {count} nodes, expected at most {MAX_NODES}")
        for group in self.cluster:
            one = {each.name: getattr(group, each.name) for each in fields(Node)}
            nodes += [Node(**one)] * group.count
        return Cluster(tuple(nodes))


_WITH_ENTRIES = tuple(term for term in TERMS if term.entry)


class WrittenJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of jobs as :class:`Workload` has them; null for infinity, those only where some job has another value."""

    id: list[Line | int]
    arrival_s: list[Number]
    gpus: list[Whole]
    work: list[Number]
    weight: list[Number] | UnsetType = UNSET
    deadline_s: list[Number | None] | UnsetType = UNSET
    tenant: list[Line] | UnsetType = UNSET
    model: list[Line] | UnsetType = UNSET
    group: list[Line] | UnsetType = UNSET
    name: list[Line] | UnsetType = UNSET
    job_class: list[Line] | UnsetType = UNSET
    outcome: list[Line] | UnsetType = UNSET
    limit_s: list[Number | None] | UnsetType = UNSET
    nodes: list[Whole] | UnsetType = UNSET
    allowed_types: list[Line] | UnsetType = UNSET
    gpu_milli: list[Whole] | UnsetType = UNSET
    cpus: list[Number] | UnsetType = UNSET
    memory_gb: list[Number] | UnsetType = UNSET
    batch_size: list[Whole] | UnsetType = UNSET
    throughput: dict[Name, list[Number]] | UnsetType = UNSET

    @classmethod
    def of(cls, workload: Workload) -> WrittenJobs:
        """Columns without loss."""
        columns = {name: getattr(workload, name) for name in COLUMNS}
        said: dict[str, Any] = {
            name: [or_null(value) for value in column.tolist()]
            for name, column in columns.items()
            if name not in _USUAL or not bool((column == _USUAL[name]).all())
        }
        if workload.throughput is not None:
            rows = workload.throughput.T.tolist()
            said["throughput"] = dict(zip(workload.gpu_types, rows, strict=True))
        return cls(**said)

    def workload(self, source: str) -> Workload:
        """Inverse of :meth:`of`.

        Raises
        ------
        InputError
            If columns are not of one length, or a value is not as expected.
        """
        table: dict[str, NDArray[Any]] = {}
        for name in COLUMNS:
            if (values := getattr(self, name)) is not UNSET:
                endless = name in _ENDLESS
                table[name] = np.array(
                    [or_endless(each) if endless else each for each in values], dtype=object
                )
        rates = {} if self.throughput is UNSET else self.throughput
        for kind, column in rates.items():
            table[THROUGHPUT_PREFIX + kind] = np.array(column, dtype=object)
        lengths = {name: len(column) for name, column in table.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(
                f"{source}: jobs: columns have {lengths} values, expected as many each"
            )
        return Workload.from_table(table, source=source)


class EntriesWithJobs(InstanceEntries, frozen=True, kw_only=True):
    """An instance in one document, with its jobs."""

    jobs: WrittenJobs

    def whole(self, where: str) -> Instance:
        """The instance.

        Raises
        ------
        InputError
            If it is none.
        """
        return self.instance(self.jobs.workload(where), where)


def _with_entries(name: str, base: type[msgspec.Struct]) -> Any:
    """A record with the entries of all terms."""
    entries = [(term.entry, term.record | UnsetType, UNSET) for term in _WITH_ENTRIES]
    return msgspec.defstruct(name, entries, bases=(base,), frozen=True, kw_only=True)


WrittenInstance: type[InstanceEntries] = _with_entries("WrittenInstance", InstanceEntries)
"""An instance but for its jobs, as it is read."""

InstanceWithJobs: type[EntriesWithJobs] = _with_entries("InstanceWithJobs", EntriesWithJobs)
"""An instance with its jobs, as it is read."""


def written(instance: Instance) -> Document:
    """Document of an instance without its jobs, of :class:`WrittenInstance`.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "run directories and stored instances")
    groups = [{"count": count, **settings_in(node)} for count, node in instance.cluster.groups()]
    entries = {
        term.entry: plain(term.written(term.of(instance)))
        for term in instance.present
        if term.entry
    }
    document = {"cluster": groups, **entries}
    if instance.declared:
        document["declared"] = {each.name: settings_in(each) for each in instance.declared}
    return document


def written_with_jobs(instance: Instance) -> Document:
    """Document of an instance with its jobs, of :class:`InstanceWithJobs`; see :func:`written`."""
    return {**written(instance), "jobs": plain(WrittenJobs.of(instance.workload))}


def read_written(document: object, where: str) -> InstanceEntries:
    """An instance without jobs, of which only the form has been looked at.

    Raises
    ------
    InputError
        If it is not of the form.
    """
    return decode(WrittenInstance, document, where)
