"""Expressions of index templates as arrays.

A rule traced by index templates is one expression for all its rows, or one for each case of them.
Walking it keeps, for every place in the expression, a :class:`Frame`: the rows of the constraint, or
their product with the members of the sums around the place. Each occurrence of a variable becomes
one array of columns and one of coefficients over its frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.core.base.param import IndexedParam, ParamData, ScalarParam
from pyomo.core.base.var import IndexedVar, ScalarVar, VarData
from pyomo.core.expr import numeric_expr, relational_expr
from pyomo.core.expr.template_expr import (
    GetAttrExpression,
    GetItemExpression,
    IndexTemplate,
    TemplateSumExpression,
)

from shadowprice.instances.names import NameCodes, is_named
from shadowprice.models.arrays import SubsetFamily
from shadowprice.models.rule_cases import (
    CasesSum,
    Condition,
    NameComparison,
    RuleCase,
    TemplateRange,
)
from shadowprice.solvers.programs.translation.affine import (
    MINUS_ONE,
    ONE,
    ZERO,
    Affine,
    Frame,
    LinearTerm,
    Number,
    Value,
)
from shadowprice.solvers.programs.translation.index_sets import (
    Column,
    Members,
    NotTraceable,
    factors_of,
)


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
        self.codes = NameCodes()
        self._columns = columns
        self._parameters = parameters
        self._members: dict[int, tuple[Any, Members]] = {}
        self._products: dict[tuple[int, ...], Members] = {}
        self._ragged: dict[int, tuple[list[Column], NDArray[np.int64]]] = {}

    def members(self, index_set: Any) -> Members:
        """Members of a set, made once; Pyomo makes a product anew for each component, of the same factors."""
        known = self._members.get(id(index_set))
        if known is None:
            factors = factors_of(index_set)
            product = tuple(id(factor) for factor in factors)
            made = self._products.get(product) if factors else None
            if made is None:
                made = Members(index_set, self.codes, [self.members(each) for each in factors])
                self._products[product] = made
            known = self._members[id(index_set)] = (index_set, made)
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
            if is_named(index):
                raise NotTraceable("an index that is no number is used as one")
            return Affine((), Value.constant(index.astype(np.float64)))
        if isinstance(expression, ScalarParam):
            array = self._values(expression)
            return Affine((), _of_param(expression, lambda: float(array[0])))
        if isinstance(expression, ParamData):
            component, where = self._member(expression)
            values, k = self._values(component), int(where[0])
            return Affine((), _of_param(component, lambda: float(values[k])))
        if isinstance(expression, ScalarVar):
            return self._variable(expression, np.zeros(frame.size, dtype=np.int64), frame)
        if isinstance(expression, VarData):
            return self._one(expression, frame)
        if isinstance(expression, GetItemExpression | GetAttrExpression):
            return self._item(expression, frame)
        if isinstance(expression, CasesSum):
            total = Affine((), ZERO)
            for case in expression.cases:
                if case.expression is not None:
                    total = total.plus(self._sum_of_case(case, frame))
            return total
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
        columns = position + self.first_column(variable)
        return Affine((LinearTerm(frame, columns, ONE),), ZERO)

    def first_column(self, variable: Any) -> int:
        """First column of a Var."""
        if id(variable) not in self._columns:
            raise NotTraceable(f"variable {variable.name} is not part of the model")
        return self._columns[id(variable)]

    def _one(self, variable: Any, frame: Frame) -> Affine:
        """One member of an indexed variable, the same for all entries."""
        component, where = self._member(variable)
        return self._variable(component, np.repeat(where, frame.size), frame)

    def _member(self, item: Any) -> tuple[Any, NDArray[np.int64]]:
        """The component of one of its members, and the member's position."""
        component, index = item.parent_component(), item.index()
        parts = index if isinstance(index, tuple) else (index,)
        where = self.members(component.index_set()).positions(
            [np.array([self.codes.code(part)]) for part in parts]
        )
        return component, where

    def _item(self, expression: Any, frame: Frame) -> Affine:
        component, *index = (
            (expression,) if isinstance(expression, GetAttrExpression) else expression.args
        )
        if isinstance(component, GetAttrExpression):
            if index and isinstance(index[0], tuple):  # As Pyomo keeps the index of an attribute.
                index = list(index[0])
            parts = self._by_block(component, frame)
            return _scattered(
                [
                    (where, self._member_of(own, index, frame.selected(where)))
                    for own, where in parts
                ],
                frame.size,
            )
        return self._member_of(component, index, frame)

    def _member_of(self, component: Any, index: Sequence[Any], frame: Frame) -> Affine:
        if not component.is_indexed():
            return self.walk(component, frame)
        position = self._position(component.index_set(), index, frame)
        if isinstance(component, IndexedVar):
            return self._variable(component, position, frame)
        if not isinstance(component, IndexedParam):
            raise NotTraceable(f"an item of {type(component).__name__} {component.name}")
        array = self._values(component)
        whole = len(position) == len(array) and bool(np.all(position == np.arange(len(array))))
        get = (lambda: array) if whole else (lambda: array[position])
        return Affine((), _of_param(component, get))

    def _by_block(self, expression: Any, frame: Frame) -> list[tuple[Any, NDArray[np.int64]]]:
        """The component of each block of ``blocks[index].name``, and the entries it is for."""
        item, name = expression.args
        if not isinstance(item, GetItemExpression):
            raise NotTraceable(f"an attribute {name} of {type(item).__name__}")
        blocks, *index = item.args
        position = self._position(blocks.index_set(), index, frame)
        keys = list(blocks.index_set())
        return [
            (getattr(blocks[keys[k]], name), np.flatnonzero(position == k))
            for k in np.unique(position).tolist()
        ]

    def _values(self, parameter: Any) -> NDArray[np.float64]:
        if id(parameter) not in self._parameters:
            raise NotTraceable(f"Param {parameter.name} is not part of the model")
        return self._parameters[id(parameter)]

    def _position(self, index_set: Any, index: Sequence[Any], frame: Frame) -> NDArray[np.int64]:
        members = self.members(index_set)
        if not all(isinstance(each, IndexTemplate) for each in index):
            return members.positions([self._index(each, frame) for each in index])
        templates = [each._id for each in index]  # noqa: SLF001
        key = (id(members), *templates)
        known = frame.positions.get(key)
        if known is None:
            known = frame.positions[key] = self._looked_up(members, templates, frame)
        return known

    def _looked_up(
        self, members: Members, templates: Sequence[int], frame: Frame
    ) -> NDArray[np.int64]:
        """Positions by indices alone: looked up where they are introduced, not for every entry."""
        home = frame.home(templates)
        if home is not frame and home.size <= frame.size:
            key = (id(members), *templates)
            try:
                if key not in home.positions:
                    home.positions[key] = members.positions([home.index(t) for t in templates])
                lift = frame.within(home)
                return home.positions[key] if lift is None else home.positions[key][lift]
            except NotTraceable:
                pass  # An entry without members of the sum may have an index that is not in the set.
        return members.positions([frame.index(template) for template in templates])

    def _index(self, index: Any, frame: Frame) -> Column:
        if isinstance(index, IndexTemplate):
            return frame.index(index._id)  # noqa: SLF001
        if isinstance(index, int | str):
            return np.full(frame.size, self.codes.constant(index))
        return self._whole(index, frame)

    def _whole(self, expression: Any, frame: Frame) -> NDArray[np.int64]:
        """Whole numbers, one for each entry, that no data can change."""
        return _rounded(self._constant(expression, frame))

    def _constant(self, expression: Any, frame: Frame) -> NDArray[np.float64]:
        affine = self.walk(expression, frame)
        if affine.terms or affine.constant.needs:
            raise NotTraceable("an index, range or comparison depends on a mutable Param")
        return np.broadcast_to(np.asarray(affine.constant.get(), dtype=np.float64), frame.size)

    def where(self, conditions: Sequence[Condition], frame: Frame) -> NDArray[np.int64] | None:
        """Positions of the entries for which all conditions hold; None if there are none to hold.

        Raises
        ------
        NotTraceable
            If one of them is of something that may change.
        """
        if not conditions:
            return None
        kept = np.arange(frame.size)
        for condition in conditions:
            # One after the other: what comes second may make sense only where the first holds.
            holds = self._holds(condition.expression, frame.selected(kept))
            kept = kept[holds == condition.holds]
        return kept

    def _holds(self, expression: Any, frame: Frame) -> NDArray[np.bool_]:
        if isinstance(expression, NameComparison):
            code = self.codes.compared(expression.name)
            return np.asarray((self._index(expression.template, frame) == code) == expression.equal)
        if not isinstance(expression, relational_expr.RelationalExpression):
            return np.asarray(self._constant(expression, frame) != 0.0)
        if all(isinstance(side, IndexTemplate) for side in expression.args) and isinstance(
            expression, relational_expr.EqualityExpression | relational_expr.NotEqualExpression
        ):
            # Names, too, are equal or not.
            sides: list[NDArray[Any]] = [self._index(side, frame) for side in expression.args]
        else:
            sides = [self._constant(side, frame) for side in expression.args]
        if isinstance(expression, relational_expr.EqualityExpression):
            return np.asarray(sides[0] == sides[1])
        if isinstance(expression, relational_expr.NotEqualExpression):
            return np.asarray(sides[0] != sides[1])
        if not isinstance(expression, relational_expr.InequalityExpression):
            raise NotTraceable(f"a comparison of type {type(expression).__name__}")
        return np.asarray(sides[0] < sides[1] if expression.strict else sides[0] <= sides[1])

    def _sum(self, expression: Any, frame: Frame) -> Affine:
        loops = tuple(expression.template_iters())
        return self._sum_of_case(RuleCase((), expression._local_args_[0], loops), frame)

    def _sum_of_case(self, case: RuleCase, frame: Frame) -> Affine:
        inner = frame
        for loops in range(len(case.templates) + 1):
            inner = self._over(case.templates[loops - 1], inner) if loops else inner
            kept = self.where([c for c in case.conditions if c.loops == loops], inner)
            inner = inner if kept is None else inner.selected(kept)
        if inner.size == 0:
            return Affine((), ZERO)
        summed = self.walk(case.expression, inner)
        if inner is frame:
            return summed
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
        elif isinstance(index_set, GetAttrExpression):
            columns, lift = self._members_by_block(index_set, len(templates), frame)
        elif isinstance(index_set, TemplateRange):
            columns, lift = self._ranges(index_set, frame)
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
            self._ragged[id(family)] = self._concatenated(family, dimensions)
        columns, ends = self._ragged[id(family)]
        position = self._position(family.index_set(), index, frame)
        lift, within = _ragged(ends[position + 1] - ends[position])
        chosen = ends[position][lift] + within
        return [column[chosen] for column in columns], lift

    def _concatenated(self, family: Any, dimensions: int) -> tuple[list[Column], NDArray[np.int64]]:
        """All members of a family of sets one after the other, and where each set ends."""
        if isinstance(family, SubsetFamily):
            return [self.codes.column(column) for column in family.columns], family.ends
        sets = [family[index] for index in family.index_set()]
        parts = [self.members(each) for each in sets if len(each)]
        ends = np.concatenate(([0], np.cumsum([len(each) for each in sets]))).astype(np.int64)
        if not parts:
            return [np.zeros(0, dtype=np.int64)] * dimensions, ends
        return [
            np.concatenate([part.columns[k] for part in parts]) for k in range(parts[0].dimensions)
        ], ends

    def _members_by_block(
        self, expression: Any, dimensions: int, frame: Frame
    ) -> tuple[list[Column], NDArray[np.int64]]:
        """Members of ``blocks[index].name``, a set, for every entry of a frame."""
        parts = self._by_block(expression, frame)
        made = [(self.members(each), where) for each, where in parts]
        lift = np.concatenate(
            [np.repeat(where, each.size) for each, where in made] + [np.zeros(0, dtype=np.int64)]
        )
        columns = [
            np.concatenate(
                [np.tile(each.columns[k], len(where)) for each, where in made]
                + [np.zeros(0, dtype=np.int64)]
            )
            for k in range(dimensions)
        ]
        return columns, lift

    def _ranges(
        self, bounds: TemplateRange, frame: Frame
    ) -> tuple[list[Column], NDArray[np.int64]]:
        """Members of ``range(first, stop, step)`` for every entry of a frame."""
        first, stop, step = (
            self._whole(each, frame) for each in (bounds.first, bounds.stop, bounds.step)
        )
        if not step.all():
            raise NotTraceable("a range has steps of 0")
        lift, within = _ragged(np.maximum(-((first - stop) // step), 0))
        return [first[lift] + within * step[lift]], lift


def _scattered(parts: Sequence[tuple[NDArray[np.int64], Affine]], size: int) -> Affine:
    """Expressions of some entries each as one of all."""
    needs = frozenset[int]().union(*(part.constant.needs for _, part in parts))

    def get() -> Number:
        found = np.zeros(size)
        for where, part in parts:
            found[where] = part.constant.get()
        return found

    terms = tuple(term for _, part in parts for term in part.terms)
    return Affine(terms, Value(needs, get) if needs else Value.constant(get()))


def _of_param(parameter: Any, get: Any) -> Value:
    """Values of a Param; constants if it cannot change."""
    if not parameter.mutable:
        return Value.constant(get())
    return Value(frozenset({id(parameter)}), get)


def _rounded(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    whole = numbers.astype(np.int64)
    if not np.array_equal(whole, numbers):
        raise NotTraceable("a fraction is used as an index")
    return whole


def _ragged(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Entry of each member, and its place in it, for so many members an entry."""
    lift = np.repeat(np.arange(len(counts)), counts)
    return lift, np.arange(len(lift)) - (np.cumsum(counts) - counts)[lift]
