"""Building Pyomo models so that each rule is called a few times, for all its indices together.

Inside :func:`traced`, the rule of a constraint or objective is called with index templates instead
of once for every index; :func:`shadowprice.solvers.programs.compile.compile_model` expands the
resulting expression with NumPy. Rules are ordinary Pyomo rules. What they may do with an index:

* take members of Vars, Params and sets by it, and calculate with it;
* sum over sets, over sets by index such as ``m.slots_of[j]``, and over ``range(t + 1)``;
* branch on comparisons of indices, of Params that are not mutable, and of numbers: skip a row,
  return another expression, leave out members of a sum (``for p in m.P if p <= q``). The rule is
  then called once for each way that the comparisons can turn out.

What they may not do is look an index up in a Python container, or loop over a set outside ``sum``.
Such a rule is called for every index as usual, and the model keeps a note of why. Data go into
Params, sparse sets into Sets; see :mod:`shadowprice.models.arrays`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyomo.environ as pyo
from pyomo.core.base.constraint import (
    Constraint,
    ConstraintData,
    IndexedConstraint,
    ScalarConstraint,
)
from pyomo.core.base.initializer import ConstantInitializer
from pyomo.core.base.objective import Objective, ScalarObjective
from pyomo.core.expr.relational_expr import RelationalExpression, tuple_to_relational_expr

from shadowprice.models.rule_cases import RuleCase, trace_rule

_NOTE = "_why_not_traced"


class Trace:
    """The cases of a rule. A copy of a model has none: its rows are copied as expressions.

    Parameters
    ----------
    cases : tuple of RuleCase
    """

    def __init__(self, cases: tuple[RuleCase, ...]) -> None:
        self.cases = cases

    def __deepcopy__(self, memo: dict[int, Any]) -> Trace:
        return Trace(())


class _TracedRow:
    """A row whose expression is made only where somebody reads it."""

    __slots__ = ()

    @property
    def expr(self) -> Any:
        """Expression of this row, by its rule."""
        self._expand()
        return self._expr  # type: ignore[attr-defined]

    def to_bounded_expression(self, evaluate_bounds: bool = False) -> Any:
        """As of any row."""
        self._expand()
        return super().to_bounded_expression(evaluate_bounds)  # type: ignore[misc]

    def _expand(self: Any) -> None:
        if self._expr is None:
            rule = self.parent_component().rule
            ConstraintData.set_value(self, rule(self.parent_block(), self.index()))


class TracedConstraintData(_TracedRow, ConstraintData):  # type: ignore[misc]
    """Row of a traced constraint over a set."""

    __slots__ = ()

    def set_value(self, expr: Any) -> Any:
        """Another expression: the row is no longer what the rule says."""
        self.__class__ = ConstraintData
        return self.set_value(expr)


class TracedScalarConstraint(_TracedRow, ScalarConstraint):  # type: ignore[misc]
    """Traced constraint of one row.

    Attributes
    ----------
    trace : Trace
    """

    trace: Trace

    def set_value(self, expr: Any) -> Any:
        """Another expression: the row is no longer what the rule says."""
        self.__class__ = ScalarConstraint
        return self.set_value(expr)

    def _create_objects_for_deepcopy(self, memo: Any, component_list: Any) -> Any:
        self._expand()
        _copy_new_members(self.model(), memo, component_list)
        return super()._create_objects_for_deepcopy(memo, component_list)


class TracedConstraint(IndexedConstraint):  # type: ignore[misc]
    """Traced constraint over a set; its rows are made when somebody first reads one.

    Attributes
    ----------
    trace : Trace
    """

    trace: Trace
    _rows: dict[Any, Any] | None

    @property
    def untouched(self) -> bool:
        """True if nobody has read or changed a row, so that all are what the rule says."""
        return self._rows is None

    @property
    def _data(self) -> dict[Any, Any]:
        if self._rows is None:
            rule, block = self.rule, self.parent_block()
            skips = any(is_skipped(case.expression) for case in self.trace.cases)
            self._rows = {}
            for index in self.index_set():
                if not skips or not is_skipped(rule(block, index)):
                    row = self._rows[index] = TracedConstraintData(component=self)
                    row._index = index
        return self._rows

    @_data.setter
    def _data(self, rows: dict[Any, Any]) -> None:
        self._rows = rows

    def _create_objects_for_deepcopy(self, memo: Any, component_list: Any) -> Any:
        for row in self._data.values():
            _ = row.expr
        _copy_new_members(self.model(), memo, component_list)
        return super()._create_objects_for_deepcopy(memo, component_list)


class TracedObjective(ScalarObjective):  # type: ignore[misc]
    """Traced objective; its expression is made when somebody first reads it.

    Attributes
    ----------
    trace : Trace
        Of one case.
    """

    trace: Trace

    @property
    def args(self) -> Any:
        """Expression of the objective, by its rule, as the one argument."""
        if self._args_[0] is None:
            ScalarObjective.set_value(self, self.rule(self.parent_block(), self.index()))
        return self._args_

    def _create_objects_for_deepcopy(self, memo: Any, component_list: Any) -> Any:
        _ = self.args
        _copy_new_members(self.model(), memo, component_list)
        return super()._create_objects_for_deepcopy(memo, component_list)

    def set_value(self, expr: Any) -> Any:
        """Another expression: the objective is no longer what the rule says."""
        self.__class__ = ScalarObjective
        return self.set_value(expr)


def _copy_new_members(model: Any, memo: dict[int, Any], component_list: Any) -> None:
    """Members of Vars and Params that rows made while their model is being copied are copied too."""
    for component in model.component_objects((pyo.Var, pyo.Param)):
        copy = memo.get(id(component))
        if copy is None or not component.is_indexed():
            continue
        for index, member in component._data.items():
            if index not in copy._data and hasattr(member, "_create_objects_for_deepcopy"):
                made = member._create_objects_for_deepcopy(memo, component_list)
                copy._data[index] = made


def is_skipped(expression: Any) -> bool:
    """True for what a rule returns to say that there is no such row."""
    return expression is pyo.Constraint.Skip or expression is pyo.Constraint.Feasible


@contextmanager
def traced() -> Iterator[None]:
    """Trace the rules of constraints and objectives constructed inside; not for several threads."""
    Constraint.construct, Objective.construct = _construct_constraint, _construct_objective
    try:
        yield
    finally:
        Constraint.construct, Objective.construct = _plain_constraint, _plain_objective


def why_not_traced(model: pyo.ConcreteModel) -> dict[str, str]:
    """Reasons, by component name, why rules of a model built inside :func:`traced` were not."""
    notes: dict[str, str] = getattr(model, _NOTE, {})
    return notes


_plain_constraint, _plain_objective = Constraint.construct, Objective.construct


def _construct_constraint(self: Any, data: Any = None) -> None:
    cases = _cases_of(self)
    if cases is None:
        _plain_constraint(self, data)
        return
    self._constructed = True
    if self.is_indexed():
        del self.__dict__["_data"]
        self.__class__, self._rows = TracedConstraint, None
    else:
        self.__class__, self._data = TracedScalarConstraint, {None: self}
    self.trace = Trace(cases)


def _construct_objective(self: Any, data: Any = None) -> None:
    cases = None if self.is_indexed() else _cases_of(self)
    if cases is None:
        _plain_objective(self, data)
        return
    self._constructed = True
    self.__class__, self._data, self._args_ = TracedObjective, {None: self}, (None,)
    self.trace = Trace(cases)
    self.set_sense(self._init_sense(self, self.index()))


def _cases_of(component: Any) -> tuple[RuleCase, ...] | None:
    """The trace of a component's rule; None if there is none, which is noted where it should be."""
    rule = component.rule
    # An expression that is given, not made by a rule, or a table of them.
    known = rule is None or isinstance(rule, ConstantInitializer) or rule.contains_indices()
    if component._constructed or known or not component.index_set().isfinite():
        return None
    for each in component._anonymous_sets or ():
        each.construct()
    try:
        found = trace_rule(component.parent_block(), rule, component.index_set())
        if component.ctype is not pyo.Constraint:
            return found
        if not component.is_indexed() and any(is_skipped(case.expression) for case in found):
            return None
        return tuple(_with_relation(case) for case in found)
    except Exception as error:
        model = component.model()
        if not hasattr(model, _NOTE):
            object.__setattr__(model, _NOTE, {})
        words = (str(error) or type(error).__name__).splitlines()[0]
        getattr(model, _NOTE)[component.name] = words
        return None


def _with_relation(case: RuleCase) -> RuleCase:
    expression = case.expression
    if expression.__class__ is tuple:
        expression = tuple_to_relational_expr(expression)
    if not is_skipped(expression) and not isinstance(expression, RelationalExpression):
        raise TypeError(f"the rule returns {type(expression).__name__}, expected a relation")
    return RuleCase(case.conditions, expression, case.templates)
