"""Walking the expression of a traced rule: affine in the variables, one entry for every index.

A rule traced by Pyomo's index templates is one expression for all its rows. Walking it keeps, for
every place in the expression, a :class:`Frame`: the rows of the constraint, or their product with
the members of the sums around the place. Each occurrence of a variable becomes one array of
columns and one of coefficients over its frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.core.base.param import IndexedParam, ParamData, ScalarParam
from pyomo.core.base.var import IndexedVar, ScalarVar, VarData
from pyomo.core.expr import numeric_expr
from pyomo.core.expr.template_expr import (
    GetItemExpression,
    IndexTemplate,
    TemplateSumExpression,
)

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
            index = frame.index(expression._id)
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
        key = (id(index_set), *(each._id for each in index)) if templates else None
        if key is None or key not in frame.positions:
            columns = [self._index(each, frame) for each in index]
            position = self.members(index_set).positions(columns)
            if key is None:
                return position
            frame.positions[key] = position
        return frame.positions[key]

    def _index(self, index: Any, frame: Frame) -> Column:
        if isinstance(index, IndexTemplate):
            return frame.index(index._id)
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
        index_set = templates[0]._set
        if isinstance(index_set, GetItemExpression):
            columns, lift = self._ragged_members(index_set, len(templates), frame)
        else:
            members = self.members(index_set)
            lift = np.repeat(np.arange(frame.size), members.size)
            columns = [np.tile(column, frame.size) for column in members.columns]
        indices = {t._id: column for t, column in zip(templates, columns, strict=True)}
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
