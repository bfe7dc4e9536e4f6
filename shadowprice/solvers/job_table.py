"""Rows of jobs in order of arrival: the engine has all of them, and a state those that have arrived.

The two are objects of one class. Jobs arrive when :meth:`JobTable.extend` copies their rows from the
engine's table into the state's, which holds no reference to the other: what has not been copied
cannot be read, whatever a policy does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph
from shadowprice.instances.graphs.workload_graphs import IterationTimes
from shadowprice.instances.instance import Instance, Pools, pool_throughput
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.instances.speeds.sharing import SharedRuns, SharingRates
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.declared import CourseTerm

TEXTS = ("id", "tenant", "model", "group", "name", "job_class")
"""Columns of a workload that are text and known when a job arrives: not its outcome."""

_FIRST_ROWS = 64
"""Rows that a new table has room for; says nothing of the jobs to come."""


@dataclass(frozen=True, eq=False)
class Environment:
    """Knowledge before any job arrives: cluster, charges, and on what speeds depend.

    Parameters
    ----------
    cluster : Cluster
        Nodes, their GPUs, CPUs and memory.
    pools : Pools
        Pools of GPUs that are alike to the jobs: names, GPUs, prices.
    overheads : Overheads
        Charges of starts, restarts and migrations.
    typed : bool
        Whether speeds depend on GPU types.
    network : Network or None
        Bandwidths that the iterations of job graphs depend on; None if jobs have no graphs.
    times : IterationTimes or None
        Times of iterations that somebody has asked for; None if jobs have no graphs.
    pair_rates : SharingRates or None
        Rates of models that share GPUs; None if no jobs may.
    profiled, elastic : bool
        Whether jobs have profiles by CPUs and memory; whether some may hold more GPUs than their
        gang.
    checkpoints : Checkpointing or None
        What runs save of their progress, and how long that takes; None if no node fails.
    course : CourseTerm or None
        How jobs go through their work, where that follows from no run time.
    """

    cluster: Cluster
    pools: Pools
    overheads: Overheads
    typed: bool
    network: Network | None
    times: IterationTimes | None
    pair_rates: SharingRates | None
    profiled: bool
    elastic: bool
    checkpoints: Checkpointing | None = None
    course: CourseTerm | None = None

    @classmethod
    def of(cls, instance: Instance) -> Environment:
        """All that an instance says beside its jobs."""
        graphs = instance.graphs
        return cls(
            cluster=instance.cluster,
            pools=instance.pools,
            overheads=instance.overheads,
            typed=instance.workload.throughput is not None,
            network=None if graphs is None else graphs.network,
            times=None if graphs is None else graphs.times,
            pair_rates=None if instance.sharing_rates is None else instance.pair_rates,
            profiled=instance.sensitivity is not None,
            elastic=instance.elasticity is not None,
            checkpoints=None if instance.failures is None else instance.failures.checkpoints,
            course=instance.course,
        )

    def progress_s(self, elapsed_s: ArrayLike) -> NDArray[np.float64]:
        """Progress of runs after some time without overheads [s]: all but their checkpoints."""
        elapsed = np.asarray(elapsed_s, dtype=np.float64)
        return elapsed if self.checkpoints is None else self.checkpoints.progress_s(elapsed)

    def elapsed_s(self, progress_s: ArrayLike) -> NDArray[np.float64]:
        """Time without overheads that runs take for some progress [s]: with the checkpoints on the way."""
        progress = np.asarray(progress_s, dtype=np.float64)
        return progress if self.checkpoints is None else self.checkpoints.elapsed_s(progress)


def _numbers(environment: Environment) -> list[tuple[object, ...]]:
    """Fields of a row that are numbers, as NumPy names them: what is given, then what a run changes."""
    given = [("gpus", "i8")]
    given += [(name, "f8") for name in ("arrival_s", "weight", "deadline_s", "work", "shortest_s")]
    given += [("limit_s", "f8"), ("nodes", "i8"), ("gpu_milli", "i8"), ("batch_size", "i8")]
    if environment.network is not None:
        given += [("graph", "i8"), ("alpha_min_s", "f8"), ("alpha_max_s", "f8")]
    if environment.elastic:
        given += [("widest", "i8"), ("efficiency", "f8")]
    tables: list[tuple[object, ...]] = []
    if environment.typed:
        tables += [("throughput", "f8", (len(environment.pools.names),))]
    if environment.pair_rates is not None:
        types = len(environment.cluster.gpu_types)
        tables += [("kind", "i8"), ("alone_s", "f8", (types,))]
    return [*given, *tables, *((name, "f8") for name in PROGRESS)]


PROGRESS = (
    "left_s",
    "attained_s",
    "owed_s",
    "relative_speed",
    "progress_from_s",
    "first_start_s",
    "waiting_since_s",
)
"""Columns that change while jobs run; the first values of a job are in its row as well."""


class JobTable:
    """Rows of jobs.

    Attributes
    ----------
    gang : list of int
        Gang sizes [GPUs].
    pools : list of tuple of int
        Pools of GPUs each job may use, fastest first.
    texts : list of tuple of str
        :data:`TEXTS` of each job.
    graphs : list of JobGraph
        Graph of each job, empty where jobs have none.
    profiles : list of Profile
        Profile of each job by CPUs and memory, empty where jobs have none.
    numbers : ndarray
        A structured array; more rows than there are jobs.
    raw : memoryview
        The bytes of ``numbers``.
    left_s, attained_s, owed_s, relative_speed, progress_from_s, first_start_s, waiting_since_s : memoryview
        Columns of ``numbers`` that change during a run, for single entries: NumPy takes three times
        as long for one.
    """

    __slots__ = (
        "_columns",
        "_room",
        "_text",
        "_width",
        "attained_s",
        "first_start_s",
        "gang",
        "graphs",
        "left_s",
        "numbers",
        "owed_s",
        "pools",
        "profiles",
        "progress_from_s",
        "raw",
        "relative_speed",
        "texts",
        "waiting_since_s",
    )

    def __init__(self, environment: Environment, rows: int = _FIRST_ROWS) -> None:
        self.gang: list[int] = []
        self.pools: list[tuple[int, ...]] = []
        self.texts: list[tuple[str, ...]] = []
        self._text: dict[str, tuple[NDArray[np.object_], int]] = {}
        self.graphs: list[JobGraph] = []
        self.profiles: list[Profile] = []
        self._hold(np.zeros(rows, dtype=_numbers(environment)))

    @classmethod
    def of(cls, instance: Instance, environment: Environment) -> JobTable:
        """All rows of an instance; O(n)."""
        jobs, n = instance.workload, len(instance.workload)
        table = cls(environment, max(n, 1))
        for name, column in _number_columns(instance).items():
            table.numbers[name][:n] = column
        table.numbers["left_s"][:n] = instance.shortest_s
        table.numbers["waiting_since_s"][:n] = jobs.arrival_s
        table.numbers["first_start_s"][:n] = np.inf
        table.gang = jobs.gpus.tolist()
        table.pools = _pools(instance)
        table.texts = list(zip(*(getattr(jobs, name).tolist() for name in TEXTS), strict=True))
        graphs, profiles = instance.graphs, instance.sensitivity
        if graphs is not None:
            table.graphs = [graphs.graph[number] for number in graphs.of.tolist()]
        if profiles is not None:
            table.profiles = [profiles.profiles[number] for number in profiles.of.tolist()]
        return table

    def extend(self, other: JobTable, end: int) -> None:
        """Take over the rows of another table up to one, exclusively; O(rows), amortised."""
        gang, pools, texts = self.gang, self.pools, self.texts
        first, width = len(gang), self._width
        if end > self._room:
            self._grow(end)
        # Bytes, since assigning a row field by field takes longer than all else at an arrival.
        rows = slice(first * width, end * width)
        self.raw[rows] = other.raw[rows]
        for row in range(first, end):
            gang.append(other.gang[row])
            pools.append(other.pools[row])
            texts.append(other.texts[row])
        if other.graphs:
            self.graphs += other.graphs[first:end]
        if other.profiles:
            self.profiles += other.profiles[first:end]

    def add(
        self,
        numbers: Mapping[str, object],
        gang: int,
        pools: tuple[int, ...],
        texts: tuple[str, ...],
    ) -> None:
        """Add a row whose other numbers are 0; O(columns), amortised."""
        row = len(self.gang)
        if row >= self._room:
            self._grow(row + 1)
        for name, value in numbers.items():
            self.numbers[name][row] = value
        self.gang.append(gang)
        self.pools.append(pools)
        self.texts.append(texts)

    def relearn(self, other: JobTable) -> None:
        """Take over what is given of the rows there are from better estimates; progress stays."""
        count = len(self.gang)
        before_s, after_s = self.column("shortest_s")[:count], other.column("shortest_s")[:count]
        self.column("left_s")[:count] *= after_s / before_s
        for name in self._columns:
            if name not in PROGRESS:
                self.numbers[name][:count] = other.numbers[name][:count]
        self.pools[:] = other.pools[:count]
        if other.graphs:
            self.graphs[:] = other.graphs[:count]

    def column(self, name: str) -> NDArray[np.float64]:
        """A column of numbers; rows beyond the jobs there are mean nothing."""
        return self._columns[name]

    def counts(self, name: str) -> NDArray[np.int64]:
        """A column of whole numbers; rows beyond the jobs there are mean nothing."""
        return self._columns[name]

    def text(self, name: str, jobs: Sequence[int] | NDArray[np.int64]) -> NDArray[np.object_]:
        """A column of text of some jobs; O(them), and of each job once."""
        at, rows = TEXTS.index(name), len(self.texts)
        column, made = self._text.get(name, (np.empty(0, dtype=object), 0))
        if made < rows:
            if rows > len(column):
                column = np.resize(column, 2 * rows) if made else np.empty(rows, dtype=object)
            column[made:rows] = [texts[at] for texts in self.texts[made:rows]]
            self._text[name] = (column, rows)
        found: NDArray[np.object_] = column[np.asarray(jobs, dtype=np.int64)]
        return found

    def shared_runs(self, rates: SharingRates) -> SharedRuns:
        """Run times of the jobs there are beside each other."""
        kind, gpus = self.counts("kind"), self.counts("gpus")
        work = self.column("shortest_s" if self.graphs else "work")
        return SharedRuns(rates, kind, gpus, work, self.column("alone_s"))

    def _grow(self, rows: int) -> None:
        before = self.raw
        self._hold(np.zeros(max(rows, 2 * self._room), dtype=self.numbers.dtype))
        self.raw[: len(before)] = before

    def _hold(self, numbers: NDArray[np.void]) -> None:
        self.numbers = numbers
        self._room, self._width = len(numbers), numbers.dtype.itemsize
        self.raw = numbers.view(np.uint8).data
        self._columns: dict[str, NDArray[Any]] = {
            name: numbers[name] for name in numbers.dtype.names or ()
        }
        for name in PROGRESS:
            setattr(self, name, numbers[name].data)

    # Set by name above.
    left_s: memoryview[float]
    attained_s: memoryview[float]
    owed_s: memoryview[float]
    relative_speed: memoryview[float]
    progress_from_s: memoryview[float]
    first_start_s: memoryview[float]
    waiting_since_s: memoryview[float]


def _number_columns(instance: Instance) -> dict[str, NDArray[np.float64] | NDArray[np.int64]]:
    """Columns of numbers that are given, by name."""
    jobs, graphs, grown = instance.workload, instance.graphs, instance.elasticity
    columns: dict[str, NDArray[np.float64] | NDArray[np.int64]] = {
        "gpus": jobs.gpus,
        "arrival_s": jobs.arrival_s,
        "weight": jobs.weight,
        "deadline_s": jobs.deadline_s,
        "work": jobs.work,
        "shortest_s": instance.shortest_s,
        "limit_s": jobs.limit_s,
        "nodes": jobs.nodes,
        "gpu_milli": jobs.gpu_milli,
        "batch_size": jobs.batch_size,
    }
    if graphs is not None:
        columns["graph"] = graphs.of
        columns["alpha_min_s"] = graphs.shortest_iteration_s[graphs.of]
        columns["alpha_max_s"] = graphs.longest_iteration_s[graphs.of]
    if grown is not None:
        columns["widest"] = grown.widest
        columns["efficiency"] = grown.efficiency
    if jobs.throughput is not None:
        columns["throughput"] = pool_throughput(instance, np.arange(len(jobs)))
    if instance.sharing_rates is not None:
        columns["kind"] = instance.shared_runs.kind
        columns["alone_s"] = instance.processing_s
    return columns


def _pools(instance: Instance) -> list[tuple[int, ...]]:
    """Pools of GPUs each job may use, fastest first.

    Without a throughput table all GPUs are one pool; with one, a pool is a GPU type.
    """
    if instance.workload.throughput is None:
        return [(0,)] * len(instance.workload)
    order = np.argsort(instance.processing_s, axis=1, kind="stable")
    usable = np.isfinite(instance.processing_s).sum(axis=1)
    return [tuple(row[:k]) for row, k in zip(order.tolist(), usable.tolist(), strict=True)]
