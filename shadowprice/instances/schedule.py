"""Schedules: who ran where, when. Plain columns, produced by the engine and checked by proofs."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields, replace
from functools import cached_property
from html import escape
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import SHOWN_COLUMNS, SHOWN_ROWS
from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.entries import MAX_WHOLE
from shadowprice.instances.grid import on_grid

if TYPE_CHECKING:
    import pandas as pd


ALONE = -1
"""Partner of a run that shares its GPUs with nobody."""

_TIMES = ("start_s", "end_s", "overhead_s")
_REAL = (*_TIMES, "cpus", "memory_gb")


def first_of_each(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """Places in sorted columns at which one has another entry than before, the first among them."""
    new = np.ones(len(columns[0]), dtype=np.bool_)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(new)


def _nobody() -> NDArray[np.int64]:
    """Stands for a column that was not given; replaced when the other columns are known."""
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Schedule:
    """Rows (job, node, gpus, start, end, overhead, and what some instances add).

    A gang that spans nodes has one row for each, with equal times. The partner in a row never
    changes: when a second job joins on the same GPUs, leaves or ends, the row ends and the run goes
    on in another at the same moment; so it does when its CPUs or memory change. A run is a beginning and
    all rows that go on from it. A job that runs as
    several copies has one row for each copy in a round: they begin together, and each ends with its
    last step. Nothing here has been checked: :func:`shadowprice.proofs.certificate.verify` does that.

    Parameters
    ----------
    job : ndarray of int
        Row of the job in the workload.
    node : ndarray of int
        Position of the node in the cluster.
    gpus : ndarray of int
        GPUs held there.
    start_s, end_s : ndarray
        The run holds its GPUs in [start, end) [s].
    overhead_s : ndarray
        Part of the run without progress, at its beginning [s].
    partner : ndarray of int, optional
        Row of the job with which this run shares its GPUs, -1 for none; nobody shares if not given.
    stages : ndarray of tuple of int, optional
        Replicas of each stage of the job's graph on the node; only where jobs have graphs.
    cpus, memory_gb : ndarray, optional
        CPUs and memory [GB] held there; only where jobs have profiles of them.
    copy, steps : ndarray of int, optional
        Number of the job's copy, from 0, and steps that it does in this round, in the unit of
        :func:`shadowprice.instances.copies.total_steps`; only where jobs run as copies. A copy
        holds its node whole and uses ``gpus`` of it.
    shared_gpu : ndarray of int, optional
        Number of the GPU of its node that a job holds a part of, from 0, and -1 for whole GPUs;
        only where jobs hold parts of GPUs. Jobs that hold parts of one GPU at one time have one number.
    local_batch, accumulated : ndarray of int, optional
        Samples of a step of each GPU, and how often they are accumulated beyond once; only of jobs with goodput,
        whose nodes are a ring in the order of the rows of a run.
    slowed : ndarray of int, optional
        1 where gangs on the same nodes slow a run, else 0; only where they may.
    goes_on : ndarray of bool, optional
        True where a row goes on from the job's row before it, False where a run begins. Given where some row
        goes on, or could be taken for one that does. In schedules without it, as they once were, those go on
        that begin the moment a row of their job ends, on the same nodes and as many GPUs of each, if one of the two
        is shared, CPUs and memory are held, or a batch is made up.
    """

    job: NDArray[np.int64]
    node: NDArray[np.int64]
    gpus: NDArray[np.int64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    overhead_s: NDArray[np.float64]
    partner: NDArray[np.int64] = field(default_factory=_nobody, kw_only=True)
    stages: NDArray[np.object_] | None = field(default=None, kw_only=True)
    cpus: NDArray[np.float64] | None = field(default=None, kw_only=True)
    memory_gb: NDArray[np.float64] | None = field(default=None, kw_only=True)
    copy: NDArray[np.int64] | None = field(default=None, kw_only=True)
    steps: NDArray[np.int64] | None = field(default=None, kw_only=True)
    shared_gpu: NDArray[np.int64] | None = field(default=None, kw_only=True)
    local_batch: NDArray[np.int64] | None = field(default=None, kw_only=True)
    accumulated: NDArray[np.int64] | None = field(default=None, kw_only=True)
    slowed: NDArray[np.int64] | None = field(default=None, kw_only=True)
    goes_on: NDArray[np.bool_] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not len(self.partner):
            object.__setattr__(self, "partner", np.full(self.job.shape, ALONE))
        for column in self._columns_present():
            values = getattr(self, column.name)
            if values.shape != self.job.shape:
                raise InputError(
                    f"schedule: column {column.name!r} has {len(values)} rows, expected {len(self.job)}"
                )
            values.flags.writeable = False

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, *, source: str = "schedule") -> Schedule:
        """Inverse of :meth:`to_frame`; without a column ``partner`` nobody shares.

        Raises
        ------
        InputError
            If a column is missing or not numeric, a number of GPUs, job, node or partner is not whole,
            or a time is not a whole number of ticks; it names the row.
        """
        check = ColumnChecks(source, np.arange(len(frame)))
        columns: dict[str, NDArray[Any]] = {}
        if "stages" in frame:
            columns["stages"] = _tuples(frame["stages"], source)
        for column in fields(cls):
            if column.name == "stages":
                continue
            if column.name not in frame:
                if column.kw_only:
                    continue
                raise InputError(f"{source}: column {column.name!r} is missing")
            columns[column.name] = _numbers(check, column.name, frame[column.name].to_numpy())
        return cls(**columns)

    def to_frame(self) -> pd.DataFrame:
        """The rows as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(
            {column.name: getattr(self, column.name) for column in self._columns_present()}
        )

    def _columns_present(self) -> list[Field[Any]]:
        """All columns, without those that there are not."""
        return [column for column in fields(self) if getattr(self, column.name) is not None]

    def which_goes_on(self, rows: NDArray[np.bool_]) -> Schedule:
        """The same schedule, which says that these rows go on and the others begin, where that is not plain."""
        plain = not rows.any() and not self._may_go_on.any()
        return replace(self, goes_on=None if plain else rows)

    @cached_property
    def runs(self) -> NDArray[np.int64]:
        """One row index for each uninterrupted run of a gang, ordered by job and start.

        Of copies, one for each round of a job: the row of the copy that ends last.
        """
        order, first = self._by_run
        return order[first]

    @cached_property
    def pieces(self) -> NDArray[np.int64]:
        """Number of rows of each of :attr:`runs`: nodes of a gang, or copies in a round."""
        order, first = self._by_run
        return np.diff(np.append(first, len(order)))

    @cached_property
    def _by_run(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows by job and start, of a run the longest first; and where each run begins among them."""
        order = np.lexsort((-self.end_s, self.start_s, self.job))
        return order, first_of_each(self.job[order], self.start_s[order])

    @property
    def continues(self) -> NDArray[np.bool_]:
        """True for each row that goes on from the one before, as when a partner changes; such a row is no restart."""
        return self._may_go_on if self.goes_on is None else self.goes_on

    @property
    def begins_again(self) -> NDArray[np.bool_]:
        """True for each row with which a run begins, though it could go on from the job's row before."""
        return self._may_go_on & ~self.continues

    @cached_property
    def _may_go_on(self) -> NDArray[np.bool_]:
        """True for each row that begins the moment the job's other row ends, on the same nodes and GPUs.

        One of the two is shared, or CPUs and memory are held or a batch is made up, which may change. O(R log R).
        """
        order = np.lexsort((self.node, self.start_s, self.job))
        first = first_of_each(self.job[order], self.start_s[order])
        pieces = np.diff(np.append(first, len(order)))
        run = np.repeat(np.arange(len(first)), pieces)
        before = np.arange(len(order)) - pieces[run]
        # Where the run before has as many pieces, piece k of this one faces piece k of that one.
        row, old = order, order[np.maximum(before, 0)]
        fits = (before >= 0) & (self.job[row] == self.job[old])
        fits &= (self.node[row] == self.node[old]) & (self.gpus[row] == self.gpus[old])
        fits &= self.start_s[row] == self.end_s[old]
        if self.cpus is None and self.local_batch is None:
            fits &= (self.partner[row] >= 0) | (self.partner[old] >= 0)
        agree = np.bincount(run[fits], minlength=len(first)) == pieces
        agree[1:] &= pieces[1:] == pieces[:-1]
        carried = np.zeros(len(order), dtype=bool)
        carried[order] = agree[run]
        return carried

    def __len__(self) -> int:
        return len(self.job)

    def __repr__(self) -> str:
        return f"Schedule({len(self)} rows, {len(self.runs)} runs)"

    def _repr_html_(self) -> str:
        """Show the first rows as a table in a notebook."""
        some = self.to_frame().head(SHOWN_ROWS)
        return f"<p>{escape(repr(self))}</p>{some.to_html(max_cols=SHOWN_COLUMNS)}"


def _numbers(check: ColumnChecks, name: str, values: NDArray[Any]) -> NDArray[Any]:
    """A column as floats or, where they are counts or rows, as whole numbers; nothing is rounded."""
    if name == "goes_on":
        flags = values.astype(np.bool_)
        check.holds(name, values, flags == values, "True or False")
        return flags
    if name not in _REAL:
        return check.integers(name, values, -MAX_WHOLE, MAX_WHOLE).copy()
    numbers = check.reals(name, values).copy()
    if name in _TIMES:
        # What is not finite the verifier names.
        on_ticks = on_grid(np.where(np.isfinite(numbers), numbers, 0.0))
        check.holds(name, values, on_ticks, "seconds that are a multiple of 2**-20")
    return numbers


def _tuples(stages: pd.Series, source: str) -> NDArray[np.object_]:
    """Cells that are lists of whole numbers, as tuples of int."""
    cells = np.empty(len(stages), dtype=object)
    for row, cell in enumerate(stages):
        listed = cell.tolist() if isinstance(cell, np.ndarray) else cell
        fine = isinstance(listed, list | tuple)
        if not fine or not all(isinstance(count, Integral) for count in listed):
            raise InputError(
                f"{source}: row {row}, column 'stages': got {cell!r:.80}, expected whole numbers"
            )
        cells[row] = tuple(int(count) for count in listed)
    return cells
