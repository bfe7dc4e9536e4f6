"""Workloads: jobs as columns, validated on entry and immutable after."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.brief import SHOWN_COLUMNS, SHOWN_ROWS, cut
from shadowprice.errors import InputError
from shadowprice.instances.cluster import ANY_TYPE, CORES, Cluster
from shadowprice.instances.columns import THROUGHPUT_PREFIX, ColumnChecks
from shadowprice.instances.grid import MAX_TIME_S, MAX_TOTAL_S, TICK_S, to_grid, up_to_grid

if TYPE_CHECKING:
    import pandas as pd


MAX_GANG = 10_000_000
MAX_ITERATIONS = 1e18
MAX_AMOUNT = 1e9
"""Most CPUs, and most memory [GB], that a job can ask for."""
MAX_BATCH = 2**40
WHOLE_GPU = 1000
"""A GPU in thousandths, as Kubernetes' device plugins and Alibaba's openb count shares of one."""

TEXT_COLUMNS = ("id", "tenant", "model", "group", "name", "job_class")
OUTCOMES = ("", "completed", "failed", "cancelled")
"""Ends of a job that a log may tell; empty where it does not."""

OPTIONAL: Mapping[str, object] = {
    "group": "",
    "name": "",
    "job_class": "",
    "outcome": "",
    "limit_s": np.inf,
    "nodes": 0,
    "allowed_types": "",
    "gpu_milli": WHOLE_GPU,
    "cpus": 0.0,
    "memory_gb": 0.0,
    "batch_size": 0,
}
"""Columns that are in frames and files only where some job has another value than this one."""

COLUMNS = ("id", "arrival_s", "gpus", "work", "weight", "deadline_s", "tenant", "model", *OPTIONAL)
"""Columns of every workload, in the order of frames and files."""


def _absent() -> NDArray[Any]:
    """Stands for a column that was not given; replaced when the number of jobs is known."""
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs, one row each, in order of arrival (equal arrivals in the order given).

    Use :meth:`from_columns` or :meth:`from_frame`, which convert, validate and sort.

    Parameters
    ----------
    id : ndarray of str, shape (n,)
        Name of each job, unique.
    arrival_s : ndarray, shape (n,)
        Release date [s].
    gpus : ndarray of int, shape (n,)
        Gang size: GPUs the job holds together whenever it runs.
    work : ndarray, shape (n,)
        Iterations to do; seconds of run time where ``throughput`` is None.
    weight : ndarray, shape (n,)
        Weight in weighted objectives.
    deadline_s : ndarray, shape (n,)
        Absolute deadline [s], infinity for none. Not a release date nor a limit that is enforced.
    tenant, model : ndarray of str, shape (n,)
        Owner and kind of model, empty where unknown.
    group, name : ndarray of str, shape (n,)
        What recurs: the group of jobs that run the same program with the same arguments and
        inputs, and the name under which the job was submitted. Empty where unknown.
    job_class : ndarray of str, shape (n,)
        Class of the job at its submission, as a log calls it: kind of work, priority, quality of
        service. Empty where unknown.
    outcome : ndarray of str, shape (n,)
        End of the job in its log, one of :data:`OUTCOMES`. No policy sees it.
    limit_s : ndarray, shape (n,)
        Limit of run time that was submitted with the job [s], infinity for none: an estimate that
        policies may read. Nothing ends a job at its limit.
    nodes : ndarray of int, shape (n,)
        Nodes that were asked for, 0 where unknown. Placements decide by themselves.
    allowed_types : ndarray of str, shape (n,)
        GPU types the job may run on, with bars between them (``V100M16|V100M32``); empty for all
        GPUs. ``cores`` alone of a job that holds cores of CPUs, as many as its gang, and no GPU.
    gpu_milli : ndarray of int, shape (n,)
        Thousandths of each of its GPUs that the job holds; below 1000 only of one GPU, which others
        may then share.
    cpus, memory_gb : ndarray, shape (n,)
        CPU cores and memory [GB] that the whole gang holds beside its GPUs, in proportion to its GPUs on
        each node; 0 where it does not say. Its speed does not depend on them: it runs where they are free.
    batch_size : ndarray of int, shape (n,)
        Samples of a step of the whole job, of jobs whose speed depends on it; 0 where any will do.
    throughput : ndarray, shape (n, types), optional
        Iterations per second of the whole gang on each type of ``gpu_types``; 0 where the job
        cannot run. A gang does not run on a type of which a cluster has fewer GPUs than it, whatever its
        throughput there. None: one unit of work a second on every type.
    gpu_types : tuple of str
        Column names of ``throughput``.
    source : str
        Where the jobs come from, for messages.
    """

    id: NDArray[np.object_]
    arrival_s: NDArray[np.float64]
    gpus: NDArray[np.int64]
    work: NDArray[np.float64]
    weight: NDArray[np.float64]
    deadline_s: NDArray[np.float64]
    tenant: NDArray[np.object_]
    model: NDArray[np.object_]
    group: NDArray[np.object_]
    name: NDArray[np.object_]
    job_class: NDArray[np.object_] = field(default_factory=_absent)
    outcome: NDArray[np.object_] = field(default_factory=_absent)
    limit_s: NDArray[np.float64] = field(default_factory=_absent)
    nodes: NDArray[np.int64] = field(default_factory=_absent)
    allowed_types: NDArray[np.object_] = field(default_factory=_absent)
    gpu_milli: NDArray[np.int64] = field(default_factory=_absent)
    cpus: NDArray[np.float64] = field(default_factory=_absent)
    memory_gb: NDArray[np.float64] = field(default_factory=_absent)
    batch_size: NDArray[np.int64] = field(default_factory=_absent)
    throughput: NDArray[np.float64] | None = None
    gpu_types: tuple[str, ...] = ()
    source: str = field(default="workload")

    def __post_init__(self) -> None:
        for name, usual in OPTIONAL.items():
            if not len(getattr(self, name)):
                kind = object if isinstance(usual, str) else None
                object.__setattr__(self, name, np.full(len(self.id), usual, dtype=kind))
        for name, column in self._columns().items():
            if len(column) != len(self.id):
                raise InputError(
                    f"{self.source}: column {name!r} has {len(column)} rows, expected {len(self.id)}"
                )
            column.flags.writeable = False
        if np.any(np.diff(self.arrival_s) < 0):
            raise InputError(f"{self.source}: jobs are not in order of arrival")

    @classmethod
    def from_columns(
        cls,
        *,
        arrival_s: ArrayLike,
        gpus: ArrayLike,
        work: ArrayLike,
        id: ArrayLike | None = None,
        weight: ArrayLike = 1.0,
        deadline_s: ArrayLike = np.inf,
        tenant: ArrayLike = "",
        model: ArrayLike = "",
        group: ArrayLike = "",
        name: ArrayLike = "",
        job_class: ArrayLike = "",
        outcome: ArrayLike = "",
        limit_s: ArrayLike = np.inf,
        nodes: ArrayLike = 0,
        allowed_types: ArrayLike = "",
        gpu_milli: ArrayLike = WHOLE_GPU,
        cpus: ArrayLike = 0.0,
        memory_gb: ArrayLike = 0.0,
        batch_size: ArrayLike = 0,
        throughput: ArrayLike | None = None,
        gpu_types: Sequence[str] = (),
        source: str = "workload",
        rows: ArrayLike | None = None,
        names: Mapping[str, str] | None = None,
    ) -> Workload:
        """Build a workload from columns in any order.

        A column is one value a row, or a single value for all rows. Numbers may be text, which is
        read exactly; truth values are no numbers. Times are rounded to the grid, and a job takes
        at least one tick. O(n log n).

        Parameters
        ----------
        rows : array_like of int, optional
            Row number of each job in its source, for messages; counted from 1 by default.
        names : mapping of str to str, optional
            What our columns are called in the source, for messages.

        Raises
        ------
        InputError
            Naming source, row, column, value and expectation of the first bad value.
        """
        given = np.asarray(arrival_s, dtype=object)
        if given.ndim == 0:
            raise InputError(f"{source}: arrival_s is {arrival_s!r}, expected one number a job")
        n = len(given)
        numbers = np.arange(1, n + 1) if rows is None else np.asarray(rows)
        check = ColumnChecks(source, numbers, names or {})
        seconds = f"a number of seconds >= 0, at most {MAX_TIME_S:.10g}"
        # Adding 0 turns -0 into 0.
        arrival = to_grid(check.numbers("arrival_s", arrival_s, 0.0, MAX_TIME_S, seconds)) + 0.0
        gang = check.integers("gpus", gpus, 1, MAX_GANG)
        amount = check.positive("work", work, MAX_TIME_S if throughput is None else MAX_ITERATIONS)
        if throughput is None:
            amount = np.maximum(to_grid(amount), TICK_S)
            total = np.cumsum(gang * amount) <= MAX_TOTAL_S
            expected = f"at most {MAX_TOTAL_S:.10g} GPU-seconds of all jobs together"
            check.holds("work", amount, total, expected)
        ids = check.texts("id", np.arange(n) if id is None else id, required=True)
        check.unique("id", ids)
        amounts = f"a number >= 0, at most {MAX_AMOUNT:g}"
        columns: dict[str, NDArray[Any]] = {
            "id": ids,
            "arrival_s": arrival,
            "gpus": gang,
            "work": amount,
            "weight": check.numbers("weight", weight, 0.0, 1e18, "a number >= 0"),
            "deadline_s": check.numbers(
                "deadline_s", deadline_s, 0.0, np.inf, "seconds >= 0, or inf for none"
            ),
            "limit_s": check.numbers(
                "limit_s", limit_s, TICK_S, np.inf, "seconds > 0, or inf for none"
            ),
            "nodes": check.integers("nodes", nodes, 0, MAX_GANG),
            "gpu_milli": check.integers("gpu_milli", gpu_milli, 1, WHOLE_GPU),
            "cpus": check.numbers("cpus", cpus, 0.0, MAX_AMOUNT, amounts) + 0.0,
            "memory_gb": check.numbers("memory_gb", memory_gb, 0.0, MAX_AMOUNT, amounts) + 0.0,
            "batch_size": check.integers("batch_size", batch_size, 0, MAX_BATCH),
        }
        texts = {"tenant": tenant, "model": model, "group": group, "name": name}
        texts |= {"job_class": job_class, "outcome": outcome, "allowed_types": allowed_types}
        for column, given_texts in texts.items():
            columns[column] = check.texts(column, given_texts, required=False)
        _check_submitted(check, columns)
        if throughput is not None:
            columns["throughput"] = check.table(throughput, gpu_types)
        elif len(gpu_types):
            raise InputError(f"{source}: gpu_types {gpu_types!r} without throughputs")
        order = np.argsort(arrival, kind="stable")
        sorted_columns: dict[str, Any] = {key: column[order] for key, column in columns.items()}
        return cls(**sorted_columns, gpu_types=tuple(gpu_types), source=source)

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, *, source: str = "frame", rows: ArrayLike | None = None
    ) -> Workload:
        """Inverse of :meth:`to_frame`; missing optional columns take their defaults."""
        _require(list(frame.columns), source)
        repeated = frame.columns[frame.columns.duplicated()]
        if len(repeated):
            raise InputError(f"{source}: column {repeated[0]!r} appears twice")
        named = {str(name): column.to_numpy() for name, column in frame.items()}
        return cls.from_table(named, source=source, rows=rows)

    @classmethod
    def from_table(
        cls,
        table: Mapping[str, NDArray[Any]],
        *,
        source: str = "table",
        rows: ArrayLike | None = None,
    ) -> Workload:
        """As :meth:`from_frame`, from columns by name."""
        _require(list(table), source)
        columns: dict[str, Any] = {name: table[name] for name in COLUMNS if name in table}
        speeds = [name for name in table if name.startswith(THROUGHPUT_PREFIX)]
        if speeds:
            columns["throughput"] = np.column_stack([table[name].astype(object) for name in speeds])
        types = tuple(name.removeprefix(THROUGHPUT_PREFIX) for name in speeds)
        return cls.from_columns(**columns, gpu_types=types, source=source, rows=rows)

    def to_frame(self) -> pd.DataFrame:
        """One row a job; throughputs as columns ``throughput:TYPE``.

        Those of :data:`OPTIONAL` are columns only where some job has another value: most sources
        know few of them.
        """
        import pandas as pd

        unknown = {
            name for name, usual in OPTIONAL.items() if bool((getattr(self, name) == usual).all())
        }
        columns = self._columns().items()
        frame = pd.DataFrame(
            {name: c for name, c in columns if name not in unknown | {"throughput"}}
        )
        if self.throughput is not None:
            for k, name in enumerate(self.gpu_types):
                frame[THROUGHPUT_PREFIX + name] = self.throughput[:, k]
        return frame

    def processing_s(self, cluster: Cluster) -> NDArray[np.float64]:
        """Uninterrupted run time [s] of every job on every GPU type of a cluster.

        Returns
        -------
        ndarray, shape (n, types of the cluster)
            Infinity where the job cannot run: it has no throughput on the type, or the type has
            fewer GPUs than the gang. Without a throughput table all GPUs are alike, a gang may
            span types, and only the size of the whole cluster limits it.

        Raises
        ------
        InputError
            If the workload has a throughput table that lacks a type of the cluster.
        """
        n, types = len(self), cluster.gpu_types
        if self.throughput is None:
            times = np.repeat(self.work[:, None], len(types), axis=1)
        else:
            missing = [name for name in types if name not in self.gpu_types]
            if missing:
                raise InputError(
                    f"{self.source}: no throughput for GPU type {missing[0]!r} of the cluster, "
                    f"expected one of {', '.join(self.gpu_types)}"
                )
            speed = self.throughput[:, [self.gpu_types.index(name) for name in types]]
            with np.errstate(divide="ignore", over="ignore"):
                times = up_to_grid(self.work[:, None] / speed).reshape(n, len(types))
            times = np.maximum(times, TICK_S)  # Work so small that the quotient is 0 takes a tick.
            times[~(times <= MAX_TIME_S)] = np.inf
        room = cluster.gpus_per_type if self.throughput is not None else cluster.total_gpus
        return np.where(self.gpus[:, None] <= room, times, np.inf)

    def on_allowed_types(self, cluster: Cluster) -> Workload:
        """The workload with a throughput table that is 0 on types a job may not run on.

        Where there was no table all other rates are 1. Nodes whose type was not given
        (:data:`~shadowprice.instances.cluster.ANY_TYPE`) are allowed to every job that asks for GPUs, nodes
        of cores to the other jobs alone; a table need not have these. The same workload where every job may
        run on all types.
        """
        types = cluster.gpu_types if self.throughput is None else self.gpu_types
        if CORES in cluster.gpu_types and CORES not in types:
            types = (*types, CORES)
        able = {
            text: [_is_allowed(text, name) for name in types]
            for text in set(self.allowed_types.tolist())
        }
        if all(map(all, able.values())):
            return self
        rates = np.ones((len(self), len(types)))
        if self.throughput is not None:
            rates[:, : len(self.gpu_types)] = self.throughput
        mask = np.array([able[text] for text in self.allowed_types.tolist()], dtype=np.bool_)
        return replace(self, throughput=np.where(mask, rates, 0.0), gpu_types=types)

    @cached_property
    def fractional(self) -> NDArray[np.bool_]:
        """True for jobs that hold a part of one GPU, shape (n,)."""
        return self.gpu_milli < WHOLE_GPU

    @cached_property
    def asking(self) -> NDArray[np.bool_]:
        """True for jobs that ask for an amount of CPUs or memory, shape (n,)."""
        return np.asarray((self.cpus > 0) | (self.memory_gb > 0), dtype=np.bool_)

    @cached_property
    def on_cores(self) -> NDArray[np.bool_]:
        """True for jobs that hold cores of CPUs instead of GPUs, shape (n,)."""
        return np.asarray(self.allowed_types == CORES, dtype=np.bool_)

    @cached_property
    def on_whole_gpus(self) -> NDArray[np.bool_]:
        """True for jobs that hold whole GPUs: no part of one, and no cores; shape (n,)."""
        return ~self.fractional & ~self.on_cores

    @cached_property
    def held_gpus(self) -> NDArray[np.float64]:
        """GPUs that each job holds while it runs, parts of one included, shape (n,); 0 of one on cores."""
        return np.where(self.on_cores, 0.0, self.gpus * (self.gpu_milli / WHOLE_GPU))

    def select(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> Workload:
        """The jobs of a mask, or of increasing row numbers."""
        chosen: dict[str, Any] = {name: column[keep] for name, column in self._columns().items()}
        return replace(self, **chosen)

    def with_rows(self, more: Workload) -> Workload:
        """The jobs of two workloads, of which those of the other arrive no earlier; O(jobs).

        Raises
        ------
        InputError
            If they arrive earlier, or have throughputs on other types.
        """
        if self.gpu_types != more.gpu_types:
            raise InputError(
                f"{more.source}: has throughputs on {more.gpu_types}, expected {self.gpu_types}"
            )
        mine, theirs = self._columns(), more._columns()
        joined: dict[str, Any] = {name: np.concatenate([mine[name], theirs[name]]) for name in mine}
        return replace(self, **joined)

    def _columns(self) -> dict[str, NDArray[Any]]:
        columns = {name: getattr(self, name) for name in COLUMNS}
        return columns if self.throughput is None else {**columns, "throughput": self.throughput}

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """Row of each job by its id."""
        return {name: row for row, name in enumerate(self.id.tolist())}

    def __len__(self) -> int:
        return len(self.id)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Workload):
            return NotImplemented
        mine, theirs = self._columns(), other._columns()
        same_shape = self.gpu_types == other.gpu_types and mine.keys() == theirs.keys()
        return same_shape and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Workload({len(self)} jobs from {cut(self.source, 60)})"

    def _repr_html_(self) -> str:
        """Show the first jobs as a table in a notebook."""
        some = self.select(np.arange(min(len(self), SHOWN_ROWS))).to_frame()
        return f"<p>{escape(repr(self))}</p>{some.to_html(index=False, max_cols=SHOWN_COLUMNS)}"


def _is_allowed(allowed: str, gpu_type: str) -> bool:
    """True if a job with these allowed types may run on nodes of a type."""
    if CORES in (allowed, gpu_type):
        return allowed == gpu_type
    return not allowed or gpu_type in (ANY_TYPE, *allowed.split("|"))


def _check_submitted(check: ColumnChecks, columns: Mapping[str, NDArray[Any]]) -> None:
    outcomes, types, milli = (columns[name] for name in ("outcome", "allowed_types", "gpu_milli"))
    _check_each(check, "outcome", outcomes, OUTCOMES, f"{', '.join(OUTCOMES[1:])}, or nothing")
    apart = [
        text
        for text in set(types.tolist())
        if text in ("", CORES) or not {"", CORES} & set(text.split("|"))
    ]
    expected = f"names of GPU types with bars between them, or {CORES} alone"
    _check_each(check, "allowed_types", types, apart, expected)
    alone = (milli == WHOLE_GPU) | ((columns["gpus"] == 1) & (types != CORES))
    check.holds("gpu_milli", milli, alone, "1000, or a job of one GPU")


def _check_each(
    check: ColumnChecks, name: str, values: NDArray[Any], good: Collection[str], expected: str
) -> None:
    """Refuse the first value that is none of the good ones; a column has few different values."""
    if not set(values.tolist()) <= set(good):
        fine = [value in good for value in values.tolist()]
        check.holds(name, values, np.array(fine, dtype=np.bool_), expected)


def _require(names: Sequence[object], source: str) -> None:
    """Refuse a table that lacks a column of every workload."""
    missing = [name for name in ("arrival_s", "gpus", "work") if name not in names]
    if missing:
        raise InputError(
            f"{source}: column {missing[0]!r} is missing, found {', '.join(map(str, names))}"
        )
