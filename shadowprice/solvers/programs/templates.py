"""A model built inside ``traced()`` as arrays, filled again in place when its data change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray
from pyomo.core.base.constraint import TemplateDataMixin
from pyomo.core.expr import relational_expr
from scipy.sparse import csr_array

from shadowprice.errors import InputError, SolverError
from shadowprice.models.tracing import why_not_traced
from shadowprice.solvers.programs.affine import Affine, Frame, Term, Value
from shadowprice.solvers.programs.index_sets import NotTraceable
from shadowprice.solvers.programs.linear_program import LinearProgram
from shadowprice.solvers.programs.model_data import INFINITY, column_bounds, shaped, stored
from shadowprice.solvers.programs.template_walk import Walker

_ACTIVE = attrgetter("_active")


@dataclass(frozen=True)
class _Block:
    """Rows of one constraint: lower <= terms <= upper, either of them None for no bound."""

    component: Any
    first: int
    size: int
    terms: tuple[Term, ...]
    lower: Value | None
    upper: Value | None


class TracedModel:
    """Arrays of a traced model.

    Parameters
    ----------
    model : ConcreteModel
        Its active constraints and objective must have been traced.
    data : mapping of str to array_like
        Values of its Params, in the order and shape of their index sets.

    Raises
    ------
    NotTraceable
        If a component is not traced, or its expression is not affine.
    InputError
        If a Param has no values, or an array has the wrong shape.
    """

    def __init__(self, model: pyo.ConcreteModel, data: Mapping[str, ArrayLike]) -> None:
        self.model = model
        self._parameters: dict[int, NDArray[np.float64]] = {}
        self._names: dict[str, tuple[int, Any]] = {}
        self._first: dict[int, int] = {}
        self._walker = Walker(self._first, self._parameters)
        self._add_parameters(data)
        lower, upper, integer = self._add_variables()
        self.blocks = self._add_constraints()
        self._objective, maximise = self._add_objective(len(lower))
        rows = sum(block.size for block in self.blocks)
        self._terms = [(term, block.first) for block in self.blocks for term in block.terms]
        start, index = self._pattern(rows, len(lower))
        self.program = LinearProgram(
            np.zeros(len(lower)), 0.0, maximise, lower, upper,
            np.full(rows, -INFINITY), np.full(rows, INFINITY),
            start, index, np.zeros(len(index)), integer,
        )  # fmt: skip
        self._fill(None)

    def _add_parameters(self, data: Mapping[str, ArrayLike]) -> None:
        unknown = dict(data)
        for parameter in self.model.component_objects(pyo.Param):
            name = parameter.name
            members = (
                self._walker.members(parameter.index_set()) if parameter.is_indexed() else None
            )
            shape = members.shape if members else ()
            self._names[name] = (id(parameter), shape)
            given = name in unknown
            self._parameters[id(parameter)] = (
                shaped(name, unknown.pop(name), shape) if given else stored(parameter)
            )
        if unknown:
            raise InputError(f"model {self.model.name!r} has no Param {next(iter(unknown))!r}")

    def _add_variables(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        lowers, uppers, integers, first = [], [], [], 0
        self.variables = list(self.model.component_objects(pyo.Var))
        for variable in self.variables:
            size = self._walker.members(variable.index_set()).size if variable.is_indexed() else 1
            self._first[id(variable)] = first
            first += size
            lower, upper, integer = column_bounds(variable, size)
            lowers.append(lower)
            uppers.append(upper)
            integers.append(integer)
        if not lowers:
            raise NotTraceable("the model has no variables")
        return np.concatenate(lowers), np.concatenate(uppers), np.concatenate(integers)

    def _add_constraints(self) -> list[_Block]:
        blocks: list[_Block] = []
        first = 0
        for component in self.model.component_objects(pyo.Constraint, active=True):
            frame, expression = self._frame(component)
            if frame.size == 0:
                continue
            try:
                block = self._block(component, expression, frame, first)
            except NotTraceable as error:
                raise NotTraceable(f"constraint {component.name}: {error}") from None
            blocks.append(block)
            first += frame.size
        return blocks

    def _frame(self, component: Any) -> tuple[Frame, Any]:
        """Entries of the rows of a constraint, and the expression for all of them."""
        if len(component) == 0:
            return Frame(0, {}), None
        some = next(iter(component.values()))
        if not isinstance(some, TemplateDataMixin):
            why = why_not_traced(self.model).get(component.name, "it was built outside traced()")
            raise NotTraceable(f"constraint {component.name}: {why}")
        expression, indices = some.template_expr()
        if not component.is_indexed():
            return Frame(1, {}), expression
        members = self._walker.members(component.index_set())
        if len(component) != members.size or not all(map(_ACTIVE, component._data.values())):
            raise NotTraceable(f"constraint {component.name}: rows were taken out of it")
        columns = {t._id: column for t, column in zip(indices, members.columns, strict=True)}
        return Frame(members.size, columns), expression

    def _block(self, component: Any, expression: Any, frame: Frame, first: int) -> _Block:
        kinds = relational_expr
        if isinstance(expression, kinds.RangedExpression):
            low, body, high = (self._walker.walk(side, frame) for side in expression.args)
            if low.terms or high.terms:
                raise NotTraceable("a variable bound of a range")
            minus = body.constant
            return _Block(
                component, first, frame.size, body.terms,
                low.constant.with_(minus, np.subtract), high.constant.with_(minus, np.subtract),
            )  # fmt: skip
        equality = isinstance(expression, kinds.EqualityExpression)
        if not equality and not isinstance(expression, kinds.InequalityExpression):
            raise NotTraceable(f"a relation of type {type(expression).__name__}")
        left, right = (self._walker.walk(side, frame) for side in expression.args)
        # As Pyomo does: variables on both sides go to the left; a constant left side is a lower bound.
        flipped = not left.terms and bool(right.terms)
        body, other = (right, left) if flipped else (left, right)
        rest = body.plus(other, -1.0)
        bound = rest.constant.then(np.negative)
        lower = bound if equality or flipped else None
        upper = bound if equality or not flipped else None
        return _Block(component, first, frame.size, rest.terms, lower, upper)

    def _add_objective(self, columns: int) -> tuple[Affine, bool]:
        objectives = list(self.model.component_data_objects(pyo.Objective, active=True))
        if len(objectives) != 1:
            raise SolverError(
                f"model {self.model.name!r} has {len(objectives)} active objectives, expected one"
            )
        objective = objectives[0]
        traced = hasattr(objective, "template_expr")
        expression = objective.template_expr()[0] if traced else objective.expr
        affine = self._walker.walk(expression, Frame(1, {}))
        return affine, objective.sense == pyo.maximize

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
        number = np.arange(len(rows_), dtype=np.float64)
        matrix = csr_array((number, (rows_, columns_)), shape=(rows, columns))
        self._summed: NDArray[np.int64] | None = None
        if matrix.nnz == len(number):
            self._from = matrix.data.astype(np.int64)
        else:  # One row names a column twice: entries add up.
            key = rows_ * columns + columns_
            distinct, self._summed = np.unique(key, return_inverse=True)
            starts = np.searchsorted(distinct // columns, np.arange(rows + 1))
            return starts.astype(np.int32), (distinct % columns).astype(np.int32)
        return matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)

    def fill(self, data: Mapping[str, ArrayLike]) -> None:
        """New values of some Params; the arrays of :attr:`program` are filled again in place."""
        changed = {}
        for name, values in data.items():
            if name not in self._names:
                raise InputError(f"model {self.model.name!r} has no Param {name!r}")
            identity, shape = self._names[name]
            changed[identity] = shaped(name, values, shape)
        for identity, array in changed.items():
            self._parameters[identity][:] = array
        self._fill(set(changed))

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
        for block in self.blocks:
            rows = slice(block.first, block.first + block.size)
            for value, array in (
                (block.lower, program.row_lower),
                (block.upper, program.row_upper),
            ):
                if value is not None and (changed is None or value.needs & changed):
                    array[rows] = value.get()
        self._fill_objective(changed)

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

    def place(self, component: Any) -> tuple[slice, tuple[int, ...]]:
        """Columns of a Var, or rows of a Constraint, and the shape of its index set."""
        members = self._walker.members(component.index_set()) if component.is_indexed() else None
        shape = members.shape if members else ()
        if id(component) in self._first:
            first = self._first[id(component)]
            return slice(first, first + (members.size if members else 1)), shape
        for block in self.blocks:
            if block.component is component:
                return slice(block.first, block.first + block.size), shape
        if component.model() is self.model and len(component) == 0:
            return slice(0, 0), shape
        raise InputError(f"{component.name} has no rows or columns in model {self.model.name!r}")

    def row(self, number: int) -> Any:
        """The Pyomo constraint of a row."""
        block = next(b for b in reversed(self.blocks) if b.first <= number)
        return list(block.component.values())[number - block.first]

    def column(self, number: int) -> Any:
        """The Pyomo variable of a column."""
        variable = next(v for v in reversed(self.variables) if self._first[id(v)] <= number)
        if not variable.is_indexed():
            return variable
        return variable[list(variable.index_set())[number - self._first[id(variable)]]]
