r"""The programme that the pricing knows, compiled, and how a model that is given differs from it.

Source: ``models/hadar.py``, whose time-indexed form, compiled, is what column generation knows: of the file
as published (:mod:`shadowprice.solvers.programs.published`). If the file itself was edited nothing is known,
and the compiled rows are all there is. Any other model is compared with the published one row by row, by
the columns and coefficients that they have, whatever their order and names.

A model *keeps* the programme if every point of it is one of the programme, of the same value: it has
all its rows, as narrow or narrower, its objective and its bounds, and perhaps more. Bounds of the
programme are then bounds of the model.

A row that it has more can be *priced* if it is no harder to hold when jobs run less and are complete
earlier: as :math:`a x \le b` it has no negative coefficient of y and w, and no positive one of z. Then
(derived) a best plan stops every job with its completion, never runs one that does not complete, and has
z = 1 from the completion on: if a plan does not, changing it so keeps all rows and loses no utility. Those
schedules are the ones that the pricing knows, so column generation over them is exact for the model.

Complexity: linear in the entries of the rows; nothing is compared if the model is the published one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from shadowprice.entry_points import MODELS, named_object
from shadowprice.errors import InputError
from shadowprice.models.hadar import time_indexed
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.models.tracing import traced
from shadowprice.solvers.programs.compile import CompiledModel, compile_model
from shadowprice.solvers.programs.linear_program import LinearProgram
from shadowprice.solvers.programs.published import is_published
from shadowprice.user_code import sentence

ModelBuilder = Callable[[RoundJobs], pyo.ConcreteModel]
"""What makes a model of jobs in rounds, as :func:`shadowprice.models.hadar.time_indexed` does."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_INFINITE = float("inf")
_NAMES = 3
"""Constraints named in a message."""


@dataclass(frozen=True, eq=False)
class LinearRows:
    """Rows over the columns of the programme: lower <= matrix x <= upper.

    Parameters
    ----------
    matrix : csr_array, shape (rows, columns)
    lower, upper : ndarray, shape (rows,)
    """

    matrix: Any
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def none(cls, columns: int) -> LinearRows:
        """No rows over some columns."""
        return cls(csr_array((0, columns)), np.zeros(0), np.zeros(0))

    @classmethod
    def of(cls, program: LinearProgram, position: IntArray) -> LinearRows:
        """All rows of a programme, with the new position of each of its columns."""
        by_row = (program.value.copy(), position[program.index], program.start.copy())
        matrix = csr_array(by_row, shape=(program.rows, program.columns))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return cls(matrix, program.row_lower, program.row_upper)

    def __len__(self) -> int:
        return len(self.lower)

    def where(self, chosen: NDArray[Any]) -> LinearRows:
        """Some of the rows, by mask or position."""
        return LinearRows(self.matrix[chosen], self.lower[chosen], self.upper[chosen])

    def and_(self, other: LinearRows) -> LinearRows:
        """These rows, then others."""
        return LinearRows(
            csr_array(vstack([self.matrix, other.matrix])),
            np.concatenate((self.lower, other.lower)),
            np.concatenate((self.upper, other.upper)),
        )


@dataclass(frozen=True, eq=False)
class TimeIndexed:
    """Columns and rows of the published time-indexed form, with a pool for every type.

    Parameters
    ----------
    jobs : RoundJobs
    model : ConcreteModel
    compiled : CompiledModel
        A maximisation, all columns of which are whole.
    y : ndarray of int, shape (jobs, speeds, rounds)
        Columns; -1 where a job does not have the speed.
    z : ndarray of int, shape (jobs, rounds)
    w : ndarray of int, shape (jobs, pools, rounds)
    """

    jobs: RoundJobs
    model: Any
    compiled: CompiledModel
    y: IntArray
    z: IntArray
    w: IntArray

    @classmethod
    def of(cls, jobs: RoundJobs) -> TimeIndexed:
        """The programme of some jobs; O(entries)."""
        model = time_indexed(jobs)
        compiled = compile_model(model)
        count = np.array([len(speeds) for speeds in jobs.speeds], dtype=np.int64)
        has = np.arange(count.max(initial=0)) < count[:, None]
        y = np.full((*has.shape, jobs.rounds), -1, dtype=np.int64)
        y[has] = compiled.column_of(model.y).reshape(-1, jobs.rounds)
        return cls(jobs, model, compiled, y, *map(compiled.column_of, (model.z, model.w)))

    @property
    def program(self) -> LinearProgram:
        """The compiled rows."""
        return self.compiled.program

    @property
    def columns(self) -> int:
        """Number of columns."""
        return self.program.columns

    @cached_property
    def rows(self) -> LinearRows:
        """All rows."""
        return LinearRows.of(self.program, np.arange(self.columns))

    def joins(self, rounds: NDArray[np.bool_]) -> LinearRows:
        """Rows that say which GPUs jobs hold in some rounds: room, gang and speed."""
        by_round = (
            self.compiled.place(constraint).reshape(-1, self.jobs.rounds)
            for constraint in (self.model.room, self.model.gang, self.model.speed)
        )
        return self.rows.where(np.concatenate([row[:, rounds].ravel() for row in by_round]))


# A model that is given


@dataclass(frozen=True, eq=False)
class PricedModel:
    """A compiled model, and the programme that the pricing knows if the model keeps that.

    Parameters
    ----------
    jobs : RoundJobs
    model : ConcreteModel
    compiled : CompiledModel
    edits : tuple of str
        How it differs from the published model, a clause each; empty if it is that.
    unpriced : tuple of str
        Those of the edits that the pricing cannot take account of.
    known : TimeIndexed or None
        The programme, if every point of the model is one of it, of the same value.
    column : ndarray of int, shape (known.columns,)
        Position in the model of each column of the programme.
    more : LinearRows
        Rows beside the programme, over its columns, that can be priced.
    """

    jobs: RoundJobs
    model: Any
    compiled: CompiledModel
    edits: tuple[str, ...]
    unpriced: tuple[str, ...]
    known: TimeIndexed | None
    column: IntArray
    more: LinearRows

    @classmethod
    def published(cls, known: TimeIndexed) -> PricedModel:
        """The published model itself."""
        column, more = np.arange(known.columns), LinearRows.none(known.columns)
        return cls(known.jobs, known.model, known.compiled, (), (), known, column, more)

    @classmethod
    def unknown(
        cls, jobs: RoundJobs, model: Any, compiled: CompiledModel, edits: tuple[str, ...]
    ) -> PricedModel:
        """A model of which the pricing knows nothing."""
        none = np.zeros(0, dtype=np.int64)
        return cls(jobs, model, compiled, edits, edits, None, none, LinearRows.none(0))

    @property
    def program(self) -> LinearProgram:
        """The compiled rows."""
        return self.compiled.program

    @property
    def edits_in_words(self) -> str:
        """All edits in words."""
        return "; ".join(self.edits)


def read_model(build: ModelBuilder | str, jobs: RoundJobs) -> PricedModel:
    """Build a model, compile it, and compare it with what the pricing knows.

    Parameters
    ----------
    build : callable or str
        A function of the jobs, or ``FILE.py:NAME`` of one.

    Raises
    ------
    InputError
        If there is no such function, it fails, or gives no Pyomo model.
    SolverError
        If it is not linear.
    """
    published = is_published(time_indexed)
    if published and build is time_indexed:
        return PricedModel.published(TimeIndexed.of(jobs))
    with traced():
        model = _own_model(build, jobs) if isinstance(build, str) else build(jobs)
    if not isinstance(model, pyo.ConcreteModel):
        raise InputError(f"model: got {type(model).__name__}, expected a Pyomo ConcreteModel")
    compiled = compile_model(model)
    if not published:
        return PricedModel.unknown(jobs, model, compiled, ("the file models/hadar.py was edited",))
    known = TimeIndexed.of(jobs)
    column = _columns(model, compiled, known)
    if isinstance(column, str):
        return PricedModel.unknown(jobs, model, compiled, (column,))
    return _Comparison(model, compiled, known, column).result()


def _own_model(text: str, jobs: RoundJobs) -> Any:
    """Model of a function in a user's file."""
    build = named_object(text, MODELS)
    if not callable(build):
        raise InputError(f"model {text!r}: expected a function that builds a model of RoundJobs")
    try:
        return build(jobs)
    except Exception as error:
        raise InputError(f"model {text!r}: {sentence(error)}") from error


def _columns(model: Any, compiled: CompiledModel, known: TimeIndexed) -> IntArray | str:
    """Position in the model of each column of the programme, or what is missing."""
    columns = []
    for name in ("y", "z", "w"):
        variable = model.find_component(name)
        if variable is None or variable.ctype is not pyo.Var:
            return f"it has no variable {name}"
        if list(variable.index_set()) != list(known.model.component(name).index_set()):
            return f"its variable {name} has other indices"
        column = compiled.column_of(variable).ravel()
        if (column < 0).any():
            return f"some of its variables {name} are fixed or in no row"
        columns.append(column)
    return np.concatenate(columns)


class _Comparison:
    """Differences between a model and the programme."""

    def __init__(
        self, model: Any, compiled: CompiledModel, known: TimeIndexed, column: IntArray
    ) -> None:
        self.model, self.compiled, self.known, self.column = model, compiled, known, column
        self.looser: list[str] = []
        self.narrower: list[tuple[str, bool]] = []
        p = compiled.program
        # Columns that the programme does not have come after those that it has.
        self.new = np.setdiff1d(np.arange(p.columns), column)
        position = np.empty(p.columns, dtype=np.int64)
        position[column] = np.arange(known.columns)
        position[self.new] = known.columns + np.arange(len(self.new))
        self.rows = LinearRows.of(p, position)

    def result(self) -> PricedModel:
        """The comparison."""
        self._objective()
        more = [self._bounds(), *self._different_rows()]
        if len(self.new):
            self.narrower.append((f"it has new variables, {self._variable(self.new[0])}", False))
        edits = (*self.looser, *(clause for clause, _ in self.narrower))
        jobs = self.known.jobs
        if self.looser:
            return PricedModel.unknown(jobs, self.model, self.compiled, edits)
        unpriced = tuple(clause for clause, priced in self.narrower if not priced)
        rows = reduce(LinearRows.and_, more)
        return PricedModel(
            jobs, self.model, self.compiled, edits, unpriced, self.known, self.column, rows
        )

    def _variable(self, column: int) -> str:
        name = self.compiled.column_name(int(column))
        return name if len(self.new) == 1 else f"{name}, ..."

    def _objective(self) -> None:
        p, known = self.compiled.program, self.known
        same = p.maximise and p.offset == 0.0 and not p.cost[self.new].any()
        if not (same and np.array_equal(p.cost[self.column], known.program.cost)):
            self.looser.append("its objective is another")

    def _bounds(self) -> LinearRows:
        """Bounds of columns that are narrower than the programme's, as rows."""
        p, known, column = self.compiled.program, self.known, self.column
        lower, upper = p.lower[column], p.upper[column]
        wider = (lower < known.program.lower) | (upper > known.program.upper) | ~p.integer[column]
        if wider.any():
            name = self.compiled.column_name(int(column[np.argmax(wider)]))
            self.looser.append(f"its variable {name} has other bounds, or need not be whole")
        above, below = lower > known.program.lower, upper < known.program.upper
        changed = np.flatnonzero(above | below)
        unit = csr_array(
            (np.ones(len(changed)), (np.arange(len(changed)), changed)),
            shape=(len(changed), known.columns),
        )
        rows = LinearRows(
            unit,
            np.where(above, lower, -_INFINITE)[changed],
            np.where(below, upper, _INFINITE)[changed],
        )
        return self._noted(
            "bounds of", rows, lambda k: self.compiled.column_name(int(column[changed[k]]))
        )

    def _different_rows(self) -> Iterator[LinearRows]:
        """Rows that the programme does not have; notes those of it that the model does not imply."""
        mine, theirs = self.rows, self.known.rows
        if (
            len(mine) == len(theirs)
            and np.array_equal(mine.matrix.indptr, theirs.matrix.indptr)
            and np.array_equal(mine.matrix.indices, theirs.matrix.indices)
            and np.array_equal(mine.matrix.data, theirs.matrix.data)
            and np.array_equal(mine.lower, theirs.lower)
            and np.array_equal(mine.upper, theirs.upper)
        ):
            return
        had, has = _sides(theirs), _sides(mine)
        anything = (-_INFINITE, _INFINITE)
        more = []
        for row in _each(mine):
            lower, upper = had.get(row.key, anything)
            if row.lower > lower or row.upper < upper:
                more.append(row.number)
        missing = []
        for row in _each(theirs):
            lower, upper = has.get(row.key, anything)
            if row.lower > lower or row.upper < upper:
                missing.append(row.number)
        if missing:
            names = [self.known.compiled.row_name(k) for k in missing[:_NAMES]]
            self.looser.append(f"it has no constraints {_listed(names, len(missing))} as they were")
        if more:
            yield self._priced(np.array(more))

    def _priced(self, numbers: IntArray) -> LinearRows:
        """Of rows that the programme does not have, those over its columns that can be priced."""
        rows = self.rows.where(numbers)
        own = np.diff(rows.matrix[:, self.known.columns :].tocsr().indptr) == 0
        if not own.all():
            clause = "it has constraints {} on new variables"
            self._note(clause, numbers[~own], self.compiled.row_name, priced=False)
        rest, mine = rows.where(np.flatnonzero(own)), numbers[own]
        return self._noted(
            "constraints",
            LinearRows(csr_array(rest.matrix[:, : self.known.columns]), rest.lower, rest.upper),
            lambda k: self.compiled.row_name(int(mine[k])),
        )

    def _noted(self, what: str, rows: LinearRows, name: Callable[[int], str]) -> LinearRows:
        """Rows that can be priced; all are noted, under the names of the first."""
        priced = _priceable(self.known, rows)
        for mask, can in ((priced, True), (~priced, False)):
            self._note(f"it has more {what} {{}}", np.flatnonzero(mask), name, priced=can)
        return rows.where(np.flatnonzero(priced))

    def _note(
        self, clause: str, numbers: IntArray, name: Callable[[int], str], *, priced: bool
    ) -> None:
        if len(numbers):
            names = [name(int(k)) for k in numbers[:_NAMES].tolist()]
            self.narrower.append((clause.format(_listed(names, len(numbers))), priced))


def _priceable(known: TimeIndexed, rows: LinearRows) -> NDArray[np.bool_]:
    """Mask of rows that are no harder to hold when jobs run less and are complete earlier."""
    sign = np.ones(known.columns)
    sign[known.z] = -1.0
    harder = rows.matrix.multiply(sign[None, :]).tocsr()
    negative = np.asarray((harder < 0).sum(axis=1)).ravel() > 0
    positive = np.asarray((harder > 0).sum(axis=1)).ravel() > 0
    return ~((np.isfinite(rows.upper) & negative) | (np.isfinite(rows.lower) & positive))


def _listed(names: list[str], count: int) -> str:
    return ", ".join(names) + (f" and {count - len(names)} more" if count > len(names) else "")


@dataclass(frozen=True)
class _Row:
    """A row: its number, a key of its columns and coefficients up to sign, and its sides."""

    number: int
    key: tuple[bytes, bytes]
    lower: float
    upper: float


def _sides(rows: LinearRows) -> dict[tuple[bytes, bytes], tuple[float, float]]:
    """Sides by the columns and coefficients of rows; several rows with the same give the narrowest."""
    sides: dict[tuple[bytes, bytes], tuple[float, float]] = {}
    for row in _each(rows):
        lower, upper = sides.get(row.key, (-_INFINITE, _INFINITE))
        sides[row.key] = max(lower, row.lower), min(upper, row.upper)
    return sides


def _each(rows: LinearRows) -> Iterator[_Row]:
    start, index, data = rows.matrix.indptr.tolist(), rows.matrix.indices, rows.matrix.data
    index = index.astype(np.int64)
    for k, (low, high) in enumerate(zip(rows.lower.tolist(), rows.upper.tolist(), strict=True)):
        part = slice(start[k], start[k + 1])
        values = data[part]
        if len(values) and values[0] < 0:
            values, low, high = -values, -high, -low
        yield _Row(k, (index[part].tobytes(), values.tobytes()), low, high)
