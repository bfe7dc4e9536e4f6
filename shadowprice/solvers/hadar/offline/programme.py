r"""The programme that the pricing knows, as arrays, and how a model that is given differs from it.

Source: ``models/hadar.py``, whose time-indexed form is written here a second time, without Pyomo. The
model is the programme: what was edited in it is found by comparing its compiled rows with these, by
the columns and coefficients that they have, whatever their order and names.

A model *keeps* the programme if every point of it is one of the programme, of the same value: it has
all its rows, as narrow or narrower, its objective and its bounds, and perhaps more. Bounds of the
programme are then bounds of the model.

A row that it has more can be *priced* if it is no harder to hold when jobs run less and are complete
earlier: as :math:`a x \le b` it has no negative coefficient of y and w, and no positive one of z. Then
(derived) a best plan stops every job with its completion, never runs one that does not complete, and has
z = 1 from the completion on: if a plan does not, changing it so keeps all rows and loses no utility. Those
schedules are the ones that the pricing knows, so column generation over them is exact for the model.

Complexity: linear in the entries of the rows, vectorised if nothing was edited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from shadowprice.entry_points import MODELS, named_object
from shadowprice.errors import InputError
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.models.tracing import traced
from shadowprice.solvers.programs.compile import CompiledModel, compile_model
from shadowprice.solvers.programs.linear_program import LinearProgram
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
    """Columns and rows of the time-indexed form, with a pool for every type.

    Parameters
    ----------
    jobs : RoundJobs
    y : ndarray of int, shape (jobs, speeds, rounds)
        Columns; -1 where a job does not have the speed.
    z : ndarray of int, shape (jobs, rounds)
    w : ndarray of int, shape (jobs, pools, rounds)
    cost, lower, upper : ndarray, shape (columns,)
        Of a maximisation; all columns are whole.
    rows : LinearRows
    labels : tuple of (str, IntArray)
        Names of the constraints and the indices of their rows, in the order of the rows.
    """

    jobs: RoundJobs
    y: IntArray
    z: IntArray
    w: IntArray
    cost: FloatArray
    lower: FloatArray
    upper: FloatArray
    rows: LinearRows
    labels: tuple[tuple[str, IntArray], ...]

    @classmethod
    def of(cls, jobs: RoundJobs) -> TimeIndexed:
        """The programme of some jobs; O(entries)."""
        n, rounds, pools = jobs.jobs, jobs.rounds, jobs.types
        count = np.array([len(speeds) for speeds in jobs.speeds], dtype=np.int64)
        widest = int(count.max(initial=0))
        has = np.arange(widest)[None, :] < count[:, None]
        y = np.full((n, widest, rounds), -1, dtype=np.int64)
        y[has] = np.arange(has.sum() * rounds).reshape(-1, rounds)
        first = int(has.sum()) * rounds
        z = first + np.arange(n * rounds).reshape(n, rounds)
        w = first + n * rounds + np.arange(n * pools * rounds).reshape(n, pools, rounds)
        columns = first + n * rounds * (1 + pools)
        cost, lower, upper = np.zeros(columns), np.zeros(columns), np.full(columns, _INFINITE)
        cost[z] = jobs.utility.values[:, :-1] - jobs.utility.values[:, 1:]
        upper[z] = 1.0
        arrived = np.arange(rounds)[None, :] >= jobs.first[:, None]
        upper[y[has]] = np.repeat(arrived, count, axis=0)
        blocks = _Blocks(columns)
        for name, block in _constraints(jobs, y, z, w, has):
            blocks.add(name, **block)
        return cls(jobs, y, z, w, cost, lower, upper, blocks.rows(), tuple(blocks.labels))

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.cost)

    def row_name(self, row: int) -> str:
        """Name of a row as the model has it."""
        for name, index in self.labels:
            if row < len(index):
                return f"{name}[{','.join(map(str, index[row].tolist()))}]"
            row -= len(index)
        raise IndexError(row)

    def no_rows(self) -> LinearRows:
        """No rows over these columns."""
        return self.rows.where(np.zeros(0, dtype=np.int64))

    def joins(self, rounds: NDArray[np.bool_]) -> LinearRows:
        """Rows that say which GPUs jobs hold in some rounds: room, gang and speed."""
        chosen = [
            np.isin(name, ("room", "gang", "speed")) & rounds[index[:, -1]]
            for name, index in self.labels
        ]
        return self.rows.where(np.flatnonzero(np.concatenate(chosen)))


class _Blocks:
    """Rows of constraints, one constraint after the other."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self.labels: list[tuple[str, IntArray]] = []
        self._parts: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._lower: list[FloatArray] = []
        self._upper: list[FloatArray] = []
        self._rows = 0

    def add(
        self,
        name: str,
        index: IntArray,
        terms: list[tuple[IntArray, IntArray, FloatArray]],
        upper: FloatArray,
        lower: FloatArray | None = None,
    ) -> None:
        """Add a constraint: indices of its rows, and terms as rows, columns and coefficients."""
        for row, column, value in terms:
            shape = np.broadcast_shapes(row.shape, column.shape, np.shape(value))
            rows = np.broadcast_to(row, shape).ravel()
            columns = np.broadcast_to(column, shape).ravel()
            there = columns >= 0
            values = np.broadcast_to(value, shape).ravel()[there]
            self._parts.append((self._rows + rows[there], columns[there], values))
        self.labels.append((name, index))
        self._upper.append(upper)
        self._lower.append(np.full(len(index), -_INFINITE) if lower is None else lower)
        self._rows += len(index)

    def rows(self) -> LinearRows:
        """All rows."""
        row, column, value = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        matrix = csr_array((value, (row, column)), shape=(self._rows, self._columns))
        return LinearRows(
            _canonical(matrix), np.concatenate(self._lower), np.concatenate(self._upper)
        )


def _constraints(
    jobs: RoundJobs, y: IntArray, z: IntArray, w: IntArray, has: NDArray[np.bool_]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Constraints in the order of the model: indices of rows, terms and sides."""
    (n, widest), rounds, pools = has.shape, jobs.rounds, jobs.types
    share = np.zeros((n, widest))
    fast = np.zeros((n, widest, pools))
    for j, speeds in enumerate(jobs.speeds):
        for k, speed in enumerate(speeds):
            share[j, k] = jobs.utility.round_s / speed.seconds
            fast[j, k, list(speed.types)] = 1.0
    one = np.ones(1)
    terms: list[tuple[IntArray, IntArray, FloatArray]]
    jt = np.arange(n * rounds).reshape(n, rounds)
    indices = np.indices((n, rounds)).reshape(2, -1).T
    until = np.tri(rounds, dtype=bool)
    before = np.where(until[None, None], y[:, :, None, :], -1)
    done = (jt[:, None, :, None], before, -share[:, :, None, None])
    yield "work", {"index": indices, "terms": [(jt, z, one), done], "upper": np.zeros(n * rounds)}
    later = np.arange(n * (rounds - 1)).reshape(n, -1)
    terms = [(later, z[:, :-1], one), (later, z[:, 1:], -one)]
    index = indices[indices[:, 1] > 0]
    yield "stays", {"index": index, "terms": terms, "upper": np.zeros(len(index))}
    ht = np.arange(pools * rounds).reshape(pools, rounds)
    index = np.indices((pools, rounds)).reshape(2, -1).T
    upper = np.repeat(jobs.capacity.astype(np.float64), rounds)
    yield "room", {"index": index, "terms": [(ht[None], w, one)], "upper": upper}
    asked = (jt[:, None], y, -jobs.gang.astype(np.float64)[:, None, None])
    terms, zero = [(jt[:, None], w, one), asked], np.zeros(n * rounds)
    yield "gang", {"index": indices, "terms": terms, "upper": zero, "lower": zero}
    yield "once", {"index": indices, "terms": [(jt[:, None], y, one)], "upper": np.ones(n * rounds)}
    most = np.minimum(jobs.gang[:, None], jobs.capacity[None, :])
    jht = np.arange(n * pools * rounds).reshape(n, pools, rounds)
    value = -(fast * most[:, None, :])[:, :, :, None]
    terms = [(jht, w, one), (jht[:, None], y[:, :, None, :], value)]
    index = np.indices((n, pools, rounds)).reshape(3, -1).T
    yield "speed", {"index": index, "terms": terms, "upper": np.zeros(len(index))}


def _canonical(matrix: Any) -> Any:
    """The matrix with every entry once, none of them 0, in the order of the columns."""
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


# A model that is given


@dataclass(frozen=True, eq=False)
class GivenModel:
    """A compiled model beside the programme that the pricing knows.

    Parameters
    ----------
    model : ConcreteModel
    compiled : CompiledModel
    known : TimeIndexed
    column : ndarray of int, shape (known.columns,)
        Position in the model of each column of the programme; empty if it does not have them all.
    keeps : bool
        Whether every point of the model is one of the programme, of the same value.
    more : LinearRows
        If it keeps the programme: rows beside it, over its columns, that can be priced.
    edits : tuple of str
        How it differs, a clause each; empty if it is the programme.
    unpriced : tuple of str
        Those of the edits that the pricing cannot take account of.
    """

    model: Any
    compiled: CompiledModel
    known: TimeIndexed
    column: IntArray
    keeps: bool
    more: LinearRows
    edits: tuple[str, ...]
    unpriced: tuple[str, ...]

    @property
    def program(self) -> LinearProgram:
        """The compiled rows."""
        return self.compiled.program

    @property
    def said(self) -> str:
        """All edits in words."""
        return "; ".join(self.edits)


def read_model(build: ModelBuilder | str, jobs: RoundJobs) -> GivenModel:
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
    with traced():
        model = _own_model(build, jobs) if isinstance(build, str) else build(jobs)
    if not isinstance(model, pyo.ConcreteModel):
        raise InputError(f"model: got {type(model).__name__}, expected a Pyomo ConcreteModel")
    compiled = compile_model(model)
    known = TimeIndexed.of(jobs)
    column = _columns(model, compiled, known)
    if isinstance(column, str):
        none = np.zeros(0, dtype=np.int64)
        return GivenModel(
            model, compiled, known, none, False, known.no_rows(), (column,), (column,)
        )
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
    there = np.argwhere(known.y >= 0)
    indices = {"y": there, "z": np.argwhere(known.z >= 0), "w": np.argwhere(known.w >= 0)}
    found = []
    for name, index in indices.items():
        variable = model.find_component(name)
        if variable is None or variable.ctype is not pyo.Var:
            return f"it has no variable {name}"
        if list(variable.index_set()) != list(map(tuple, index.tolist())):
            return f"its variable {name} has other indices"
        column = compiled.column_of(variable).ravel()
        if (column < 0).any():
            return f"some of its variables {name} are fixed or in no row"
        found.append(column)
    return np.concatenate(found)


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
        matrix = csr_array((p.value, position[p.index], p.start), shape=(p.rows, p.columns))
        self.rows = LinearRows(_canonical(matrix.copy()), p.row_lower, p.row_upper)

    def result(self) -> GivenModel:
        """The comparison."""
        self._objective()
        more = [self._bounds(), *self._different_rows()]
        if len(self.new):
            self.narrower.append((f"it has new variables, {self._variable(self.new[0])}", False))
        keeps = not self.looser
        edits = (*self.looser, *(clause for clause, _ in self.narrower))
        unpriced = (*self.looser, *(clause for clause, priced in self.narrower if not priced))
        rows = self.known.no_rows()
        for each in more if keeps else ():
            rows = rows.and_(each)
        return GivenModel(
            self.model, self.compiled, self.known, self.column, keeps, rows, edits, unpriced
        )

    def _variable(self, column: int) -> str:
        name = self.compiled.column_name(int(column))
        return name if len(self.new) == 1 else f"{name}, ..."

    def _objective(self) -> None:
        p, known = self.compiled.program, self.known
        same = p.maximise and p.offset == 0.0 and not p.cost[self.new].any()
        if not (same and np.array_equal(p.cost[self.column], known.cost)):
            self.looser.append("its objective is another")

    def _bounds(self) -> LinearRows:
        """Bounds of columns that are narrower than the programme's, as rows."""
        p, known, column = self.compiled.program, self.known, self.column
        lower, upper = p.lower[column], p.upper[column]
        wider = (lower < known.lower) | (upper > known.upper) | ~p.integer[column]
        if wider.any():
            name = self.compiled.column_name(int(column[np.argmax(wider)]))
            self.looser.append(f"its variable {name} has other bounds, or need not be whole")
        above, below = lower > known.lower, upper < known.upper
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
            names = [self.known.row_name(k) for k in missing[:_NAMES]]
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
