"""The written form of an instance: one document with an entry for each feature, and its jobs as columns.

Run directories (``instance.json`` beside ``workload.parquet``), digests of instances and stored benchmark instances
have it. Certificates do not: their records are whole ticks, for checkers that share nothing with this package.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import MAX_NODES, Cluster, Node
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.columns import THROUGHPUT_PREFIX
from shadowprice.instances.copies import CopyRules
from shadowprice.instances.documents.schema import Amount, Line, Name, Number, Whole, decode
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.features import DECLARED_KNOWS, Feature, require
from shadowprice.instances.graphs.job_graph import JobGraph
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance, Overheads
from shadowprice.instances.speeds.conditions import Conditions
from shadowprice.instances.speeds.throughputs import Kind, Throughputs
from shadowprice.instances.steady_state.job_window import JobWindow
from shadowprice.instances.terms.registry import DeclaredTerms
from shadowprice.instances.workload import COLUMNS, OPTIONAL, Workload

Document = dict[str, Any]
"""An object of JSON."""

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
            Feature.AMOUNTS,
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


class WrittenRates(msgspec.Struct, frozen=True):
    """Rates of jobs that share GPUs: rows of model, gang and rates by type; of type, two such jobs and their rates."""

    source: Line
    gpu_types: tuple[Name, ...]
    alone: list[tuple[Line, Whole, list[Amount]]]
    together: list[tuple[Line, Line, Whole, Line, Whole, Amount, Amount]]

    @classmethod
    def of(cls, table: Throughputs) -> WrittenRates:
        """A table without loss."""
        alone = [(*kind, list(rates)) for kind, rates in table.alone.items()]
        together = [(kind, *a, *b, *rates) for (kind, a, b), rates in table.pairs.items()]
        return cls(table.source, table.gpu_types, alone, together)

    def table(self) -> Throughputs:
        """Inverse of :meth:`of`.

        Raises
        ------
        InputError
            If a row has not one rate for each type.
        """
        alone: dict[Kind, tuple[float, ...]] = {}
        for model, gpus, rates in self.alone:
            if len(rates) != len(self.gpu_types):
                raise InputError(
                    f"alone: {model!r} on {gpus} GPUs has {len(rates)} rates, expected {len(self.gpu_types)}"
                )
            alone[model, gpus] = tuple(rates)
        pairs = {
            (kind, (one, gpus), (other, theirs)): (rate, beside)
            for kind, one, gpus, other, theirs, rate, beside in self.together
        }
        return Throughputs(self.gpu_types, alone, pairs, self.source)


class WrittenGraphs(msgspec.Struct, frozen=True):
    """The network, the different graphs, and which of them each job has."""

    network: Network
    graphs: tuple[JobGraph, ...]
    of: NDArray[np.int64]


class WrittenFailures(msgspec.Struct, frozen=True):
    """Faults as rows of node, beginning and end [s], and checkpoints; null stands for infinity."""

    source: Line
    known_until_s: Amount | None
    checkpoint_interval_s: Amount | None
    checkpoint_cost_s: Amount
    faults: list[tuple[Whole, Number, Number | None]]

    @classmethod
    def of(cls, failures: NodeFailures) -> WrittenFailures:
        """Failures without their law, which may know more."""
        columns = (failures.node.tolist(), failures.down_s.tolist(), failures.up_s.tolist())
        rule = failures.checkpoints
        return cls(
            failures.source,
            _or_null(failures.known_until_s),
            _or_null(rule.interval_s),
            rule.cost_s,
            [(node, down, _or_null(up)) for node, down, up in zip(*columns, strict=True)],
        )

    def failures(self) -> NodeFailures:
        """Inverse of :meth:`of`."""
        return NodeFailures(
            np.array([node for node, _, _ in self.faults], dtype=np.int64),
            np.array([down for _, down, _ in self.faults], dtype=np.float64),
            np.array([_or_endless(up) for _, _, up in self.faults], dtype=np.float64),
            _or_endless(self.known_until_s),
            Checkpointing(_or_endless(self.checkpoint_interval_s), self.checkpoint_cost_s),
            self.source,
        )


class WrittenInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance but for its jobs; all but the nodes only where there is such a thing."""

    cluster: Annotated[
        list[NodeGroup], Meta(min_length=1, description="a list of at least one group of nodes")
    ]
    quotas: Quotas | UnsetType = UNSET
    overheads: Overheads | UnsetType = UNSET
    pair_throughputs: WrittenRates | UnsetType = UNSET
    graphs: WrittenGraphs | UnsetType = UNSET
    conditions: Conditions | UnsetType = UNSET
    copies: CopyRules | UnsetType = UNSET
    until_complete: Line | UnsetType = UNSET
    failures: WrittenFailures | UnsetType = UNSET
    stopped_s: Amount | UnsetType = UNSET
    preemption: Preemption | UnsetType = UNSET
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
            return Instance(
                self._cluster(),
                workload,
                Overheads() if self.overheads is UNSET else self.overheads,
                None if self.pair_throughputs is UNSET else self.pair_throughputs.table(),
                None if self.graphs is UNSET else _graphs(self.graphs),
                None if self.conditions is UNSET else self.conditions,
                None if self.copies is UNSET else self.copies,
                None if self.until_complete is UNSET else JobWindow.parse(self.until_complete),
                None if self.failures is UNSET else self.failures.failures(),
                None if self.stopped_s is UNSET else self.stopped_s,
                Preemption.RESUME if self.preemption is UNSET else self.preemption,
                () if self.declared is UNSET else tuple(self.declared),
            )
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
        return Cluster(tuple(nodes), None if self.quotas is UNSET else self.quotas)


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
    throughput: dict[Name, list[Number]] | UnsetType = UNSET

    @classmethod
    def of(cls, workload: Workload) -> WrittenJobs:
        """Columns without loss."""
        columns = {name: getattr(workload, name) for name in COLUMNS}
        said: dict[str, Any] = {
            name: [_or_null(value) for value in column.tolist()]
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
                    [_or_endless(each) if endless else each for each in values], dtype=object
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


class InstanceWithJobs(WrittenInstance, frozen=True, kw_only=True):
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


def written(instance: Instance) -> Document:
    """Document of an instance without its jobs, of :class:`WrittenInstance`.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "run directories and stored instances")
    entries = {name: of for each, (name, of) in _ENTRIES.items() if each in instance.features}
    said = {name: plain(of(instance)) for name, of in entries.items()}
    groups = [{"count": count, **settings_in(node)} for count, node in instance.cluster.groups()]
    found = {"cluster": groups, **said}
    if instance.declared:
        found["declared"] = {each.name: settings_in(each) for each in instance.declared}
    return found


def written_with_jobs(instance: Instance) -> Document:
    """Document of an instance with its jobs, of :class:`InstanceWithJobs`; see :func:`written`."""
    return {**written(instance), "jobs": plain(WrittenJobs.of(instance.workload))}


def read_written(document: object, where: str) -> WrittenInstance:
    """An instance without jobs, of which only the form has been looked at.

    Raises
    ------
    InputError
        If it is not of the form.
    """
    return decode(WrittenInstance, document, where)


def text_of(document: Mapping[str, Any]) -> str:
    """Text of an object of JSON: a line an entry, equal objects in equal bytes.

    Raises
    ------
    TypeError, ValueError
        If it cannot be written as JSON.
    """
    lines = [
        f" {json.dumps(key)}: {json.dumps(document[key], allow_nan=False)}" for key in document
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def settings_in(record: Any) -> Document:
    """Fields of a dataclass that are not as usual, as plain data."""
    usual = {each.name: each.default for each in fields(record)}
    found = {name: each for name, each in asdict(record).items() if each != usual[name]}
    return dict(plain(found))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    return msgspec.to_builtins(
        asdict(value) if is_dataclass(type(value)) else value, enc_hook=_numbers, str_keys=True
    )


def _numbers(value: Any) -> Any:
    """Numbers of numpy as those of Python."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no value of JSON")


_ENTRIES: Mapping[Feature, tuple[str, Callable[[Any], object]]] = MappingProxyType(
    {
        Feature.QUOTAS: ("quotas", lambda i: i.cluster.quotas),
        Feature.CHARGES: ("overheads", lambda i: settings_in(i.overheads)),
        Feature.SHARING: ("pair_throughputs", lambda i: WrittenRates.of(i.pair_throughputs)),
        Feature.GRAPHS: ("graphs", lambda i: _written_graphs(i.graphs)),
        Feature.PROFILES: ("conditions", lambda i: _conditions(i.conditions)),
        Feature.SPREAD: ("conditions", lambda i: _conditions(i.conditions)),
        Feature.WIDTHS: ("conditions", lambda i: _conditions(i.conditions)),
        Feature.COPIES: ("copies", lambda i: i.copies),
        Feature.WINDOW: ("until_complete", lambda i: str(i.until_complete)),
        Feature.FAILURES: ("failures", lambda i: WrittenFailures.of(i.failures)),
        Feature.STOPPED: ("stopped_s", lambda i: i.stopped_s),
        Feature.RESTART: ("preemption", lambda i: str(i.preemption)),
    }
)
"""Entries on what an instance has beside jobs and nodes; each is there only where its feature is."""


def _conditions(conditions: Any) -> Document:
    return {name: each for name, each in asdict(conditions).items() if each is not None}


def _written_graphs(graphs: Any) -> Document:
    of_each = [asdict(graph) for graph in graphs.graph]
    return {"network": asdict(graphs.network), "graphs": of_each, "of": graphs.of}


def _graphs(saved: WrittenGraphs) -> JobGraphs:
    return JobGraphs(saved.graphs, saved.of, saved.network)


def _or_null(value: Any) -> Any:
    return None if value == math.inf else value


def _or_endless(value: Any) -> Any:
    return math.inf if value is None else value
