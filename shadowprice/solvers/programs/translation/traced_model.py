"""Models built inside ``traced()`` as arrays, filled again in place when their data change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray
from pyomo.core.expr import relational_expr

from shadowprice.errors import InputError, SolverError
from shadowprice.models.tracing import (
    TracedConstraint,
    TracedConstraintData,
    TracedObjective,
    TracedScalarConstraint,
    is_skipped,
    why_not_traced,
)
from shadowprice.solvers.programs.linear_program import LinearProgram
from shadowprice.solvers.programs.translation.affine import Affine, Frame, LinearTerm, Value
from shadowprice.solvers.programs.translation.columns import VarColumns, columns_of
from shadowprice.solvers.programs.translation.index_sets import NotTraceable
from shadowprice.solvers.programs.translation.model_data import INFINITY, shaped, stored
from shadowprice.solvers.programs.translation.row_by_row import RowReader
from shadowprice.solvers.programs.translation.templates import Walker

CHANGED = "rows of it were changed by themselves"
OUTSIDE = "it was built outside traced()"


@dataclass(frozen=True)
class _Block:
    """Rows of one constraint, or of one case of them: lower <= terms <= upper.

    Parameters
    ----------
    first : int
        First row of the constraint.
    where : slice or ndarray of int
        Rows of the programme.
    lower, upper : Value, optional
        None for no bound.
    """

    first: int
    where: Any
    terms: tuple[LinearTerm, ...]
    lower: Value | None
    upper: Value | None


@dataclass(frozen=True)
class _Rows:
    """Rows of a constraint: the first of them, how many, and for which members if not for all."""

    component: Any
    first: int
    size: int
    members: NDArray[np.int64] | None


class TracedModel:
    """Arrays of a model.

    What was not traced is read row by row, with the same result; :attr:`untraced` says why.

    Parameters
    ----------
    model : ConcreteModel
    data : mapping of str to array_like
        Values of its Params, in the order and shape of their index sets.

    Attributes
    ----------
    untraced : dict of str to (str, int)
        Reason, and number of rows, by name of each constraint that was read row by row; of the
        objective as well.

    Raises
    ------
    NotTraceable
        If an expression is not affine, or is made of something unknown.
    InputError
        If a Param has no values, or an array has the wrong shape.
    """

    def __init__(self, model: pyo.ConcreteModel, data: Mapping[str, ArrayLike]) -> None:
        self.model = model
        self.untraced: dict[str, tuple[str, int]] = {}
        self._members: dict[int, list[Any]] = {}
        self._parameters: dict[int, NDArray[np.float64]] = {}
        self._names: dict[str, tuple[Any, Any]] = {}
        self._first: dict[int, int] = {}
        self._walker = Walker(self._first, self._parameters)
        self._reader = RowReader(self._walker, self._parameters)
        self._add_parameters(data)
        lower, upper, integer = self._add_variables()
        self.rows_of: dict[int, _Rows] = {}
        self._blocks: list[_Block] = []
        rows = self._add_constraints()
        self._objective, maximise = self._add_objective()
        self._terms = [(term, block.first) for block in self._blocks for term in block.terms]
        start, index = self._pattern(rows, len(lower))
        self.program = LinearProgram(
            np.zeros(len(lower)),
            0.0,
            maximise,
            lower,
            upper,
            np.full(rows, -INFINITY),
            np.full(rows, INFINITY),
            start,
            index,
            np.zeros(len(index)),
            integer,
        )
        self._fill(None)

    # From components to arrays over their index sets.

    def _add_parameters(self, data: Mapping[str, ArrayLike]) -> None:
        unknown = dict(data)
        for parameter in self.model.component_objects(pyo.Param):
            name = parameter.name
            members = (
                self._walker.members(parameter.index_set()) if parameter.is_indexed() else None
            )
            shape = members.shape if members else ()
            self._names[name] = (parameter, shape)
            if name in unknown:
                _refuse_constant(parameter)
                self._parameters[id(parameter)] = shaped(name, unknown.pop(name), shape)
            else:
                self._parameters[id(parameter)] = stored(parameter)
        if unknown:
            raise InputError(f"model {self.model.name!r} has no Param {next(iter(unknown))!r}")

    def _add_variables(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        first = 0
        self.variables = list(self.model.component_objects(pyo.Var))
        if not self.variables:
            raise NotTraceable("the model has no variables")
        sizes = []
        for variable in self.variables:
            sizes.append(
                self._walker.members(variable.index_set()).size if variable.is_indexed() else 1
            )
            self._first[id(variable)] = first
            first += sizes[-1]
        self._columns: list[VarColumns] = []
        for variable, size in zip(self.variables, sizes, strict=True):
            try:
                self._columns.append(columns_of(variable, size, self._walker))
            except NotTraceable as error:
                raise NotTraceable(f"variable {variable.name}: {error}") from None
        parts = [(part.lower, part.upper, part.integer) for part in self._columns]
        lowers, uppers, integers = zip(*parts, strict=True)
        return np.concatenate(lowers), np.concatenate(uppers), np.concatenate(integers)

    def _add_constraints(self) -> int:
        first = 0
        for component in self.model.component_objects(pyo.Constraint, active=True):
            try:
                size, members = self._add_constraint(component, first)
            except NotTraceable as error:
                raise NotTraceable(f"constraint {component.name}: {error}") from None
            self.rows_of[id(component)] = _Rows(component, first, size, members)
            first += size
        return first

    def _add_constraint(self, component: Any, first: int) -> tuple[int, NDArray[np.int64] | None]:
        """Its number of rows, and for which members of its set they are if not for all."""
        why = why_not_traced(self.model).get(component.name, OUTSIDE)
        if isinstance(component, TracedScalarConstraint) and component.trace.cases:
            self._add_case(
                component.trace.cases[0].expression, Frame(1, {}), first, slice(first, first + 1)
            )
            return 1, None
        if isinstance(component, TracedConstraint) and component.trace.cases:
            before = len(self._blocks)
            try:
                return self._add_traced(component, first)
            except NotTraceable as error:
                del self._blocks[before:]
                why = str(error)
        return self._add_row_by_row(component, first, why)

    def _add_traced(
        self, component: TracedConstraint, first: int
    ) -> tuple[int, NDArray[np.int64] | None]:
        members = self._walker.members(component.index_set())
        ids = [template._id for template in component.trace.cases[0].templates]  # noqa: SLF001
        every = Frame(members.size, dict(zip(ids, members.columns, strict=True)))
        there = self._rows_there(component)
        wheres = [self._walker.where(case.conditions, every) for case in component.trace.cases]
        if there is not None or any(is_skipped(case.expression) for case in component.trace.cases):
            kept = np.zeros(members.size, dtype=np.bool_)
            for case, where in zip(component.trace.cases, wheres, strict=True):
                if not is_skipped(case.expression):
                    kept[slice(None) if where is None else where] = True
            kept = kept if there is None else kept & there
            positions = np.flatnonzero(kept)
            every = Frame(
                len(positions),
                {i: column[positions] for i, column in zip(ids, members.columns, strict=True)},
            )
            wheres = [self._walker.where(case.conditions, every) for case in component.trace.cases]
        else:
            positions = None
        for case, where in zip(component.trace.cases, wheres, strict=True):
            frame = every if where is None else every.selected(where)
            if frame.size and not is_skipped(case.expression):
                rows = slice(first, first + every.size) if where is None else first + where
                self._add_case(case.expression, frame, first, rows)
        return every.size, positions

    def _rows_there(self, component: TracedConstraint) -> NDArray[np.bool_] | None:
        """Members whose row is there and active; None if nobody has touched any."""
        if component.untouched:
            return None
        rows, found = component._data, []  # noqa: SLF001
        for index in component.index_set():
            row = rows.get(index)
            if row is not None and not isinstance(row, TracedConstraintData):
                raise NotTraceable(CHANGED)
            found.append(row is not None and row.active)
        return np.array(found, dtype=np.bool_)

    def _add_case(self, expression: Any, frame: Frame, first: int, where: Any) -> None:
        kinds = relational_expr
        walk = self._walker.walk
        if isinstance(expression, kinds.RangedExpression):
            low, body, high = (walk(side, frame) for side in expression.args)
            if low.terms or high.terms:
                raise NotTraceable("a variable bound of a range")
            bounds = [each.constant.with_(body.constant, np.subtract) for each in (low, high)]
            self._blocks.append(_Block(first, where, body.terms, *bounds))
            return
        equality = isinstance(expression, kinds.EqualityExpression)
        if not equality and not isinstance(expression, kinds.InequalityExpression):
            raise NotTraceable(f"a relation of type {type(expression).__name__}")
        left, right = (walk(side, frame) for side in expression.args)
        # As Pyomo does: variables on both sides go to the left; a constant left side is a lower bound.
        flipped = not left.terms and bool(right.terms)
        body, other = (right, left) if flipped else (left, right)
        rest = body.plus(other, -1.0)
        bound = rest.constant.then(np.negative)
        lower = bound if equality or flipped else None
        upper = bound if equality or not flipped else None
        self._blocks.append(_Block(first, where, rest.terms, lower, upper))

    def _add_row_by_row(
        self, component: Any, first: int, why: str
    ) -> tuple[int, NDArray[np.int64] | None]:
        rows = [row for row in component.values() if row.active]
        bounded = [row.to_bounded_expression() for row in rows]
        if component.is_indexed() or component.name in why_not_traced(self.model):
            self.untraced[component.name] = (why, len(rows))
        body = self._reader.affine([expression for _, expression, _ in bounded])
        bounds = [
            self._reader.values([each[side] for each in bounded], missing).with_(
                body.constant, np.subtract
            )
            for side, missing in ((0, -INFINITY), (2, INFINITY))
        ]
        where = slice(first, first + len(rows))
        self._blocks.append(_Block(first, where, body.terms, *bounds))
        if not component.is_indexed():
            return len(rows), None
        place = {index: k for k, index in enumerate(component.index_set())}
        return len(rows), np.array([place[row.index()] for row in rows], dtype=np.int64)

    def _add_objective(self) -> tuple[Affine, bool]:
        objectives = list(self.model.component_data_objects(pyo.Objective, active=True))
        if len(objectives) != 1:
            raise SolverError(
                f"model {self.model.name!r} has {len(objectives)} active objectives, expected one"
            )
        objective = objectives[0]
        maximise = objective.sense == pyo.maximize
        if isinstance(objective, TracedObjective) and objective.trace.cases:
            return self._walker.walk(objective.trace.cases[0].expression, Frame(1, {})), maximise
        affine = self._reader.affine([objective.expr])
        names = why_not_traced(self.model)
        if objective.name in names:
            self.untraced[objective.name] = (names[objective.name], 1)
        return affine, maximise

    def _pattern(self, rows: int, columns: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Rows and columns of the matrix, and which entry of which term goes where."""
        row = [term.frame.rows() + first for term, first in self._terms]
        column = [term.columns for term, _ in self._terms]
        bounds = np.concatenate(([0], np.cumsum([len(part) for part in column]))).astype(np.int64)
        self._entries = np.zeros(bounds[-1])
        self._slices = [slice(a, b) for a, b in pairwise(bounds.tolist())]
        rows_, columns_ = (
            np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
            for parts in (row, column)
        )
        key = rows_ * columns + columns_
        # Terms are in order of their rows: what is merged is a few runs.
        self._from = np.argsort(key, kind="stable")
        ordered, index = key[self._from], columns_[self._from]
        self._summed: NDArray[np.int64] | None = None
        if (ordered[1:] == ordered[:-1]).any():  # One row names a column twice: entries add up.
            distinct, self._summed = np.unique(key, return_inverse=True)
            rows_, index = np.divmod(distinct, columns)
        start = np.concatenate(([0], np.cumsum(np.bincount(rows_, minlength=rows))))
        return start.astype(np.int32), index.astype(np.int32)

    # Numbers, once and whenever data change.

    def fill(self, data: Mapping[str, ArrayLike]) -> None:
        """New values of some Params; the arrays of :attr:`program` are filled again in place."""
        changed = {}
        for name, values in data.items():
            parameter, shape = self.parameter(name)
            _refuse_constant(parameter)
            changed[id(parameter)] = shaped(name, values, shape)
        for identity, array in changed.items():
            self._parameters[identity][:] = array
        self._fill(set(changed))

    def parameter(self, name: str) -> tuple[Any, tuple[int, ...]]:
        """A Param, and the sizes of the factors of its index set.

        Raises
        ------
        InputError
            If there is none of this name.
        """
        if name not in self._names:
            raise InputError(f"model {self.model.name!r} has no Param {name!r}")
        return self._names[name]

    def _fill(self, changed: set[int] | None) -> None:
        program, stale = self.program, False
        for (term, _), where in zip(self._terms, self._slices, strict=True):
            if changed is None or term.coefficient.needs & changed:
                self._entries[where] = term.coefficient.get()
                stale = True
        if stale:
            program.value[:] = (
                self._entries[self._from]
                if self._summed is None
                else np.bincount(self._summed, self._entries, len(program.value))
            )
            if not np.isfinite(program.value).all():
                raise SolverError(f"model {self.model.name!r}: a coefficient is not finite")
        for block in self._blocks:
            for value, array in (
                (block.lower, program.row_lower),
                (block.upper, program.row_upper),
            ):
                if value is not None and (changed is None or value.needs & changed):
                    array[block.where] = value.get()
        if changed is not None:
            self._fill_bounds(changed)
        self._fill_objective(changed)

    def _fill_bounds(self, changed: set[int]) -> None:
        for variable, part in zip(self.variables, self._columns, strict=True):
            if part.fill(changed):
                first = self._first[id(variable)]
                self.program.lower[first : first + len(part.lower)] = part.lower
                self.program.upper[first : first + len(part.upper)] = part.upper

    def _fill_objective(self, changed: set[int] | None) -> None:
        objective, program = self._objective, self.program
        needs = frozenset(
            chain(objective.constant.needs, *(t.coefficient.needs for t in objective.terms))
        )
        if changed is not None and not needs & changed:
            return
        program.offset = float(np.sum(objective.constant.get()))
        program.cost[:] = 0.0
        for term in objective.terms:
            weights = np.broadcast_to(term.coefficient.get(), len(term.columns))
            program.cost += np.bincount(term.columns, weights, len(program.cost))

    # From arrays back to components.

    def place(self, component: Any) -> NDArray[np.int64]:
        """Columns of a Var or rows of a Constraint, in the order of its index set.

        Raises
        ------
        InputError
            If it is none of this model.
        """
        if id(component) in self._first:
            first = self._first[id(component)]
            size = self._walker.members(component.index_set()).size if component.is_indexed() else 1
            return np.arange(first, first + size)
        rows = self.rows_of.get(id(component))
        if rows is not None:
            return np.arange(rows.first, rows.first + rows.size)
        if component.model() is self.model:
            return np.zeros(0, dtype=np.int64)
        raise InputError(f"{component.name} has no rows or columns in model {self.model.name!r}")

    def part(self, array: NDArray[Any], component: Any) -> NDArray[Any]:
        """Entries of a Var or a Constraint in the shape of its index set; 0 where it has no row.

        Raises
        ------
        InputError
            If it is none of this model.
        """
        own = array[self.place(component)]
        members = self._walker.members(component.index_set()) if component.is_indexed() else None
        rows = self.rows_of.get(id(component))
        if members and len(own) < members.size:
            whole = np.zeros(members.size, dtype=array.dtype)
            if rows is not None and rows.members is not None:
                whole[rows.members] = own
            own = whole
        return own.reshape(members.shape if members else ())

    def first(self, component: Any, index_set: Any, size: int) -> tuple[slice, ...]:
        """Part of an array over the index set of a component, of the first members of one of its factors.

        Factors are told by identity: of another set with equal members all stay.
        """
        if not component.is_indexed():
            return ()
        one, members = self._walker.members(index_set), self._walker.members(component.index_set())
        return tuple(slice(size if each is one else None) for each in members.factors or [members])

    def row(self, number: int) -> Any:
        """The Pyomo constraint of a row."""
        rows = next(r for r in reversed(self.rows_of.values()) if r.size and r.first <= number)
        return self._rows_in_order(rows)[number - rows.first]

    def column(self, number: int) -> Any:
        """The Pyomo variable of a column."""
        variable = next(v for v in reversed(self.variables) if self._first[id(v)] <= number)
        if not variable.is_indexed():
            return variable
        return variable[self._keys(variable)[number - self._first[id(variable)]]]

    @property
    def columns(self) -> list[Any]:
        """The Pyomo variable of every column."""
        return [
            each
            for variable in self.variables
            for each in (
                [variable[key] for key in self._keys(variable)]
                if variable.is_indexed()
                else [variable]
            )
        ]

    @property
    def rows(self) -> list[Any]:
        """The Pyomo constraint of every row."""
        return [row for each in self.rows_of.values() for row in self._rows_in_order(each)]

    def _rows_in_order(self, rows: _Rows) -> list[Any]:
        component = rows.component
        if not component.is_indexed():
            return [component] * rows.size
        return [row for row in component.values() if row.active]

    def _keys(self, variable: Any) -> list[Any]:
        """Members of the index set of a Var."""
        if id(variable) not in self._members:
            self._members[id(variable)] = list(variable.index_set())
        return self._members[id(variable)]


def _refuse_constant(parameter: Any) -> None:
    if not parameter.mutable:
        raise InputError(f"Param {parameter.name!r} is constant, expected one that is mutable")
