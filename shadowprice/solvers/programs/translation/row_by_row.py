"""Rows that were not traced as arrays, from their own expressions one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.core.base.param import ParamData
from pyomo.core.expr.visitor import identify_variables
from pyomo.repn import generate_standard_repn

from shadowprice.solvers.programs.translation.affine import (
    ZERO,
    Affine,
    Frame,
    LinearTerm,
    Number,
    Value,
)
from shadowprice.solvers.programs.translation.columns import positions_of
from shadowprice.solvers.programs.translation.index_sets import NotTraceable
from shadowprice.solvers.programs.translation.templates import Walker

_NUMBERS = (int, float, np.integer, np.floating)


class RowReader:
    """Reads linear expressions of members of Vars and Params.

    Parameters
    ----------
    walker : Walker
        Of the model.
    parameters : mapping of int to ndarray
        Values of each Param in the order of its set, by identity; may change in place.
    """

    def __init__(self, walker: Walker, parameters: Mapping[int, NDArray[np.float64]]) -> None:
        self._walker = walker
        self._parameters = parameters
        self._places: dict[int, int] = {}
        self._known: list[Any] = []

    def affine(self, expressions: Sequence[Any]) -> Affine:
        """The affine expression over a frame with one entry for each of the expressions.

        Raises
        ------
        NotTraceable
            If one of them is not linear.
        """
        rows: list[int] = []
        columns: list[int] = []
        numbers: list[Any] = []
        constants: list[Any] = []
        for row, expression in enumerate(expressions):
            form = generate_standard_repn(expression, compute_values=False, quadratic=False)
            if not form.is_linear():
                raise NotTraceable("an expression is not linear")
            # Fixed members of a Var are columns as well, with equal bounds; Pyomo has them in the
            # constant, and in coefficients if they are multiplied by others.
            fixed, constant = self._without_fixed(form.constant)
            constants.append(constant)
            for variable, number in chain(
                zip(form.linear_vars, form.linear_coefs, strict=True), fixed
            ):
                rows.append(row)
                columns.append(self._place(variable))
                numbers.append(number)
        base = Frame(len(expressions), {})
        inner = Frame(len(rows), {}, base, np.array(rows, dtype=np.int64))
        term = LinearTerm(inner, np.array(columns, dtype=np.int64), self.values(numbers))
        return Affine((term,) if rows else (), self.values(constants))

    def values(self, expressions: Sequence[Any], missing: float = 0.0) -> Value:
        """Values of expressions of Params, one for each; ``missing`` for None.

        Raises
        ------
        NotTraceable
            If one depends on a variable.
        """
        if not expressions:
            return ZERO
        plain = np.array(
            [
                float(each) if isinstance(each, _NUMBERS) else missing if each is None else 0.0
                for each in expressions
            ]
        )
        other = [
            (k, each)
            for k, each in enumerate(expressions)
            if each is not None and not isinstance(each, _NUMBERS)
        ]
        needs: set[int] = set()
        for _, each in other:
            self._needs(each, needs)

        def get() -> Number:
            found = plain.copy()
            for k, each in other:
                found[k] = self._evaluate(each)
            return found

        return Value(frozenset(needs), get) if needs else Value.constant(get())

    def _without_fixed(self, constant: Any) -> tuple[list[tuple[Any, Any]], Any]:
        """Fixed members of Vars and their coefficients, and what is left of a constant."""
        if isinstance(constant, _NUMBERS):
            return [], constant
        fixed = list(identify_variables(constant, include_fixed=True))
        if not fixed:
            return [], constant
        values = [each.value for each in fixed]
        for each in fixed:
            each.unfix()
        try:
            form = generate_standard_repn(constant, compute_values=False, quadratic=False)
        finally:
            for each, value in zip(fixed, values, strict=True):
                each.fix(value)
        if not form.is_linear():
            raise NotTraceable("fixed variables are multiplied")
        return list(zip(form.linear_vars, form.linear_coefs, strict=True)), form.constant

    def _needs(self, expression: Any, params: set[int]) -> None:
        """Collect the Params that a value depends on."""
        if isinstance(expression, ParamData):
            component = expression.parent_component()
            if id(component) not in self._parameters:
                raise NotTraceable(f"Param {component.name} is not part of the model")
            self._place(expression)
            params.add(id(component))
        elif not isinstance(expression, _NUMBERS):
            if not expression.is_expression_type():
                raise NotTraceable("a coefficient or bound depends on a variable")
            for argument in expression.args:
                self._needs(argument, params)

    def _evaluate(self, expression: Any) -> float:
        if isinstance(expression, _NUMBERS):
            return float(expression)
        if isinstance(expression, ParamData):
            values = self._parameters[id(expression.parent_component())]
            return float(values[self._places[id(expression)]])
        parts = [self._evaluate(argument) for argument in expression.args]
        return float(expression._apply_operation(parts))  # noqa: SLF001

    def _place(self, member: Any) -> int:
        """Column of a member of a Var, position of a member of a Param; looked up all at once."""
        if id(member) not in self._places:
            component = member.parent_component()
            members = component._data  # noqa: SLF001
            positions = positions_of(component, list(members), self._walker)
            first = 0 if isinstance(member, ParamData) else self._walker.first_column(component)
            for each, position in zip(members.values(), positions, strict=True):
                self._places[id(each)] = first + position
            self._known.append(list(members.values()))  # So that no other gets their identities.
        return self._places[id(member)]
