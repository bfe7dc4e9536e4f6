"""Models built inside ``traced()`` as arrays, filled again in place when their data change.

A rule traced by Pyomo's index templates is one expression for all its rows. Walking it keeps, for
every place in the expression, a :class:`Frame`: the rows of the constraint, or their product with
the members of the sums around the place. Each occurrence of a variable becomes one array of
columns and one of coefficients over its frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray
from pyomo.core.base.constraint import TemplateDataMixin
from pyomo.core.base.param import IndexedParam, ParamData, ScalarParam
from pyomo.core.base.var import IndexedVar, ScalarVar, VarData
from pyomo.core.expr import numeric_expr, relational_expr
from pyomo.core.expr.template_expr import (
    GetItemExpression,
    IndexTemplate,
    TemplateSumExpression,
)
from scipy.sparse import csr_array

from shadowprice.errors import InputError, SolverError
from shadowprice.models.tracing import why_not_traced
from shadowprice.solvers.programs.affine import (
    MINUS_ONE,
    ONE,
    ZERO,
    Affine,
    Frame,
    Number,
    Term,
    Value,
)
from shadowprice.solvers.programs.index_sets import Column, Members, NotTraceable
from shadowprice.solvers.programs.linear_program import LinearProgram
from shadowprice.solvers.programs.model_data import INFINITY, column_bounds, shaped, stored

# Walking the expression of a traced rule.


class Walker:
    """Walks expressions of one model.

    Parameters
    ----------
    columns : mapping of int to int
        First column of each Var, by identity.
    parameters : mapping of int to ndarray
        Values of each Param in the order of its set, by identity; may change in place.
    """

    def __init__(self, columns: dict[int, int], parameters: dict[int, NDArray[np.float64]]) -> None:
        self._columns = columns
        self._parameters = parameters
        self._members: dict[int, tuple[Any, Members]] = {}
        self._ragged: dict[int, tuple[list[Column], NDArray[np.int64]]] = {}

    def members(self, index_set: Any) -> Members:
        """Members of a set, made once."""
        known = self._members.get(id(index_set))
        if known is None:
            known = self._members[id(index_set)] = (index_set, Members(index_set))
        return known[1]

    def walk(self, expression: Any, frame: Frame) -> Affine:
        """The affine expression over a frame.

        Raises
        ------
        NotTraceable
            If it is not affine, or is made of something unknown.
        """
        if isinstance(expression, bool | int | float | np.integer | np.floating):
            return Affine((), Value.constant(float(expression)))
        if isinstance(expression, IndexTemplate):
            index = frame.index(expression._id)  # noqa: SLF001
            if index.dtype.kind != "i":
                raise NotTraceable("an index that is no number is used as one")
            return Affine((), Value.constant(index.astype(np.float64)))
        if isinstance(expression, ScalarParam):
            array = self._parameters[id(expression)]
            return Affine((), Value(frozenset({id(expression)}), lambda: float(array[0])))
        if isinstance(expression, ParamData):
            component, where = self._member(expression)
            values, k = self._parameters[id(component)], int(where[0])
            return Affine((), Value(frozenset({id(component)}), lambda: float(values[k])))
        if isinstance(expression, ScalarVar):
            return self._variable(expression, np.zeros(frame.size, dtype=np.int64), frame)
        if isinstance(expression, VarData):
            return self._one(expression, frame)
        if isinstance(expression, GetItemExpression):
            return self._item(expression, frame)
        if isinstance(expression, TemplateSumExpression):
            return self._sum(expression, frame)
        return self._operation(expression, frame)

    def _operation(self, expression: Any, frame: Frame) -> Affine:
        if isinstance(expression, numeric_expr.LinearExpression | numeric_expr.SumExpression):
            total = Affine((), ZERO)
            for argument in expression.args:
                total = total.plus(self.walk(argument, frame))
            return total
        if isinstance(expression, numeric_expr.NegationExpression):
            return self.walk(expression.args[0], frame).scaled(MINUS_ONE, frame)
        if isinstance(expression, numeric_expr.ProductExpression):
            left, right = (self.walk(argument, frame) for argument in expression.args)
            if left.terms and right.terms:
                raise NotTraceable("a product of two variables")
            return (
                left.scaled(right.constant, frame)
                if not right.terms
                else right.scaled(left.constant, frame)
            )
        if isinstance(expression, numeric_expr.DivisionExpression):
            left, right = (self.walk(argument, frame) for argument in expression.args)
            if right.terms:
                raise NotTraceable("a division by a variable")
            return left.scaled(right.constant, frame, divide=True)
        raise NotTraceable(f"an expression of type {type(expression).__name__}")

    def _variable(self, variable: Any, position: NDArray[np.int64], frame: Frame) -> Affine:
        if id(variable) not in self._columns:
            raise NotTraceable(f"variable {variable.name} is not part of the model")
        columns = position + self._columns[id(variable)]
        return Affine((Term(frame, columns, ONE),), ZERO)

    def _one(self, variable: Any, frame: Frame) -> Affine:
        """One member of an indexed variable, the same for all entries."""
        component, where = self._member(variable)
        return self._variable(component, np.repeat(where, frame.size), frame)

    def _member(self, item: Any) -> tuple[Any, NDArray[np.int64]]:
        """The component of one of its members, and the member's position."""
        component, index = item.parent_component(), item.index()
        parts = index if isinstance(index, tuple) else (index,)
        where = self.members(component.index_set()).positions([np.array([part]) for part in parts])
        return component, where

    def _item(self, expression: Any, frame: Frame) -> Affine:
        component, *index = expression.args
        position = self._position(component.index_set(), index, frame)
        if isinstance(component, IndexedVar):
            return self._variable(component, position, frame)
        if not isinstance(component, IndexedParam):
            raise NotTraceable(f"an item of {type(component).__name__} {component.name}")
        array = self._parameters[id(component)]
        whole = len(position) == len(array) and bool(np.all(position == np.arange(len(array))))
        get = (lambda: array) if whole else (lambda: array[position])
        return Affine((), Value(frozenset({id(component)}), get))

    def _position(self, index_set: Any, index: Sequence[Any], frame: Frame) -> NDArray[np.int64]:
        templates = all(isinstance(each, IndexTemplate) for each in index)
        key = (id(index_set), *(each._id for each in index)) if templates else None  # noqa: SLF001
        if key is None or key not in frame.positions:
            columns = [self._index(each, frame) for each in index]
            position = self.members(index_set).positions(columns)
            if key is None:
                return position
            frame.positions[key] = position
        return frame.positions[key]

    def _index(self, index: Any, frame: Frame) -> Column:
        if isinstance(index, IndexTemplate):
            return frame.index(index._id)  # noqa: SLF001
        if isinstance(index, int | str):
            column = np.empty(frame.size, dtype=np.int64 if isinstance(index, int) else object)
            column[:] = index
            return column
        whole = np.asarray(np.broadcast_to(self.walk(index, frame).constant.get(), frame.size))
        return whole.astype(np.int64)

    def _sum(self, expression: Any, frame: Frame) -> Affine:
        inner = frame
        for templates in expression.template_iters():
            inner = self._over(templates, inner)
        if inner.size == 0:
            return Affine((), ZERO)
        summed = self.walk(expression._local_args_[0], inner)
        if not summed.constant.needs and np.all(summed.constant.get() == 0.0):
            return Affine(summed.terms, ZERO)
        position, size, parts = inner.within(frame), frame.size, inner.size
        assert position is not None

        def added(number: Number) -> Number:
            weights = np.broadcast_to(np.asarray(number, dtype=np.float64), parts)
            return np.asarray(np.bincount(position, weights, size), dtype=np.float64)

        total = summed.constant.then(added)
        return Affine(summed.terms, total)

    def _over(self, templates: Sequence[Any], frame: Frame) -> Frame:
        """The product of a frame with the members of the set of a sum."""
        index_set = templates[0]._set  # noqa: SLF001
        if isinstance(index_set, GetItemExpression):
            columns, lift = self._ragged_members(index_set, len(templates), frame)
        else:
            members = self.members(index_set)
            lift = np.repeat(np.arange(frame.size), members.size)
            columns = [np.tile(column, frame.size) for column in members.columns]
        indices = {t._id: column for t, column in zip(templates, columns, strict=True)}  # noqa: SLF001
        return Frame(len(lift), indices, frame, lift)

    def _ragged_members(
        self, item: Any, dimensions: int, frame: Frame
    ) -> tuple[list[Column], NDArray[np.int64]]:
        """Members of ``sets[index]`` for every entry of a frame."""
        family, *index = item.args
        if id(family) not in self._ragged:
            self._ragged[id(family)] = _concatenated(family, dimensions)
        columns, ends = self._ragged[id(family)]
        position = self._position(family.index_set(), index, frame)
        first, last = ends[position], ends[position + 1]
        counts = last - first
        lift = np.repeat(np.arange(frame.size), counts)
        within = np.arange(len(lift)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = np.repeat(first, counts) + within
        return [column[chosen] for column in columns], lift


def _concatenated(family: Any, dimensions: int) -> tuple[list[Column], NDArray[np.int64]]:
    """All members of a family of sets one after the other, and where each set ends."""
    sets = [family[index] for index in family.index_set()]
    parts = [Members(each) for each in sets if len(each)]
    ends = np.concatenate(([0], np.cumsum([len(each) for each in sets]))).astype(np.int64)
    if not parts:
        return [np.zeros(0, dtype=np.int64)] * dimensions, ends
    return [
        np.concatenate([part.columns[k] for part in parts]) for k in range(parts[0].dimensions)
    ], ends


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
            if not component.is_indexed():
                return Frame(1, {}), some.expr
            why = why_not_traced(self.model).get(component.name, "it was built outside traced()")
            raise NotTraceable(f"constraint {component.name}: {why}")
        expression, indices = some.template_expr()
        if not component.is_indexed():
            return Frame(1, {}), expression
        members = self._walker.members(component.index_set())
        if len(component) != members.size or not all(map(_ACTIVE, component._data.values())):  # noqa: SLF001
            raise NotTraceable(f"constraint {component.name}: rows were taken out of it")
        columns = {t._id: column for t, column in zip(indices, members.columns, strict=True)}  # noqa: SLF001
        return Frame(members.size, columns), expression

    def _block(self, component: Any, expression: Any, frame: Frame, first: int) -> _Block:
        kinds = relational_expr
        if isinstance(expression, kinds.RangedExpression):
            low, body, high = (self._walker.walk(side, frame) for side in expression.args)
            if low.terms or high.terms:
                raise NotTraceable("a variable bound of a range")
            minus = body.constant
            return _Block(
                component,
                first,
                frame.size,
                body.terms,
                low.constant.with_(minus, np.subtract),
                high.constant.with_(minus, np.subtract),
            )
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
