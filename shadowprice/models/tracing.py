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

import builtins
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyomo.core.expr.template_expr as template_module
import pyomo.environ as pyo
from pyomo.core.base.constraint import (
    Constraint,
    ConstraintData,
    IndexedConstraint,
    ScalarConstraint,
)
from pyomo.core.base.indexed_component import IndexedComponent
from pyomo.core.base.initializer import ConstantInitializer
from pyomo.core.base.objective import Objective, ScalarObjective
from pyomo.core.base.param import ParamData
from pyomo.core.expr.numeric_expr import NumericValue
from pyomo.core.expr.relational_expr import RelationalExpression, tuple_to_relational_expr
from pyomo.core.expr.template_expr import (
    GetItemExpression,
    IndexTemplate,
    NPV_Numeric_GetItemExpression,
    Numeric_GetItemExpression,
    TemplateSumExpression,
    templatize_rule,
)

_NOTE = "_why_not_traced"
_LOG = logging.getLogger("pyomo.core.expr.template_expr")
MOST_CALLS = 256
"""Calls of one rule, after which it is called row by row instead."""


# What a trace is made of.


@dataclass(frozen=True)
class Condition:
    """A comparison that a rule has made, and how it is to turn out.

    Parameters
    ----------
    expression : relational or numeric expression
        Of index templates and constant Params; a number is true unless it is 0.
    holds : bool
    loops : int
        Sums over sets that were under way in the innermost ``sum(...)``; 0 outside of any.
    """

    expression: Any
    holds: bool
    loops: int


@dataclass(frozen=True)
class RuleCase:
    """The expression a rule returns, or sums up, where all conditions hold.

    Parameters
    ----------
    conditions : tuple of Condition
    expression : expression
        None for a member that a sum leaves out.
    templates : tuple
        Index templates of the rule; for a sum one tuple of them for each of its loops.
    """

    conditions: tuple[Condition, ...]
    expression: Any
    templates: tuple[Any, ...]


class CasesSum(TemplateSumExpression):  # type: ignore[misc]
    """Sum over sets, of another expression for each case that a member can be."""

    __slots__ = ("cases",)

    def __init__(self, cases: list[RuleCase]) -> None:
        super().__init__((cases[0].expression,), list(cases[0].templates))
        self.cases = cases

    def is_potentially_variable(self) -> bool:
        """True, as one case or another may have variables."""
        return True


class TemplateRange:
    """``range`` between expressions of index templates, to be summed over."""

    dimen = 1
    name = "range"

    def __init__(self, bounds: Sequence[Any]) -> None:
        first, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        self.first, self.stop = first, stop
        self.step = bounds[2] if len(bounds) > 2 else 1

    def is_expression_type(self) -> bool:
        """False; Pyomo asks."""
        return False

    def __iter__(self) -> Iterator[Any]:
        run = _Run.current
        if run is None or run.context is None:
            raise TypeError("a range between index templates is used outside its rule")
        found: Iterator[Any] = run.context.get_iter(self)
        return found

    def __str__(self) -> str:
        return f"range({self.first}, {self.stop}, {self.step})"


# Calling a rule once, with some of its comparisons answered in advance.


class _Stopped(BaseException):
    """The sum whose case was asked for is over; no ``except Exception`` of a rule may catch it."""

    def __init__(self, case: RuleCase) -> None:
        super().__init__()
        self.case = case


@dataclass(eq=False)
class _Sum:
    """A ``sum(...)`` of a rule, by its place among all, and how many loops were under way before."""

    number: int
    loops_before: int


@dataclass
class _Decision:
    expression: Any
    holds: bool
    inside: _Sum | None
    loops: int

    @property
    def condition(self) -> Condition:
        return Condition(self.expression, self.holds, self.loops)


@dataclass
class _Run:
    """One call of a rule.

    Parameters
    ----------
    answers : tuple of bool
        How the first comparisons turn out; all after them turn out true.
    stop : int, optional
        Number of the sum whose case alone is wanted.
    """

    answers: tuple[bool, ...]
    stop: int | None
    context: Any = None
    sums: int = 0
    under_way: list[_Sum] = field(default_factory=list)
    decisions: list[_Decision] = field(default_factory=list)
    nodes: dict[int, CasesSum] = field(default_factory=dict)

    # The run under way; rules are not traced in several threads.
    current: ClassVar[_Run | None] = None

    def decide(self, expression: Any) -> bool:
        """Answer a comparison: true, unless this call is about what follows if it is false."""
        number = len(self.decisions)
        holds = self.answers[number] if number < len(self.answers) else True
        inside = self.under_way[-1] if self.under_way else None
        loops = len(self.context.cache) - inside.loops_before if inside else 0
        self.decisions.append(_Decision(expression, holds, inside, loops))
        return holds

    def until(self, number: int) -> tuple[bool, ...]:
        """Answers of the decisions before one."""
        return tuple(decision.holds for decision in self.decisions[:number])


class _Context(template_module._template_iter_context):  # type: ignore[misc]
    """Pyomo's context of a call, whose sums keep the comparisons made inside them."""

    def __init__(self) -> None:
        super().__init__()
        run = _Run.current
        assert run is not None
        run.context = self
        self._run: _Run = run

    def sum_template(self, terms: Any, start: Any = 0) -> Any:
        """Replaces ``sum`` while a rule is called."""
        plain_sum = template_module._TemplateIterManager.builtin_sum
        validate = template_module.generator_validators.get(terms.__class__)
        if validate is None:
            return plain_sum(terms, start)
        run = self._run
        here = _Sum(run.sums, len(self.cache))
        run.sums += 1
        run.under_way.append(here)
        before = len(run.decisions)
        expression = next(terms, None)
        run.under_way.pop()
        own = [each for each in run.decisions[before:] if each.inside is here]
        loops = tuple(self.cache[here.loops_before :])
        del self.cache[here.loops_before :]
        if expression is not None and not (loops and validate(terms)):
            if own:
                raise TypeError("a sum over a Python container depends on a comparison of indices")
            return plain_sum(terms, start + expression)
        if expression is None and not own:
            return start
        case = RuleCase(tuple(each.condition for each in own), expression, loops)
        if run.stop == here.number:
            self.cache.clear()
            raise _Stopped(case)
        if not own:
            found: Any = TemplateSumExpression((expression,), list(loops))
        else:
            found = run.nodes[here.number] = CasesSum([case])
        return found if isinstance(start, int) and start == 0 else start + found


class _RangeType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _range)


_range = builtins.range


class _Range(metaclass=_RangeType):
    """Replaces ``range`` while a rule is called."""

    def __new__(cls, *bounds: Any) -> Any:
        if any(isinstance(bound, NumericValue) for bound in bounds):
            return TemplateRange(bounds)
        return _range(*bounds)


_relation_truth = RelationalExpression.__bool__
_number_truth = NumericValue.__bool__


def _relation_bool(self: Any) -> bool:
    if _Run.current is not None and _of_indices(self):
        return _Run.current.decide(self)
    return bool(_relation_truth(self))


def _number_bool(self: Any) -> bool:
    if _Run.current is not None and _of_indices(self):
        return _Run.current.decide(self)
    return bool(_number_truth(self))


def _of_indices(expression: Any) -> bool:
    """True if the value depends on index templates and, apart from them, on constants alone."""
    leaves, found = [expression], False
    while leaves:
        leaf = leaves.pop()
        if isinstance(leaf, IndexTemplate):
            found = True
        elif isinstance(leaf, GetItemExpression):
            component, *index = leaf.args
            if not isinstance(component, pyo.Param) or component.mutable:
                return False
            leaves += index
        elif isinstance(leaf, TemplateSumExpression | ParamData | pyo.Var):
            return False
        elif hasattr(leaf, "is_expression_type"):
            if not leaf.is_expression_type():
                return False
            leaves += leaf.args
    return found


_plain_item = IndexedComponent._processUnhashableIndex


def _item(self: Any, index: Any) -> Any:
    """Replaces the look-up by an index that is no key, while a rule is called.

    Pyomo finds out by evaluating the index that it is a template; here that is known.
    """
    parts = index if isinstance(index, tuple) else (index,)
    kind = _ITEMS.get(self.ctype)
    if kind is None or not all(isinstance(part, IndexTemplate | int | str) for part in parts):
        return _plain_item(self, index)
    return kind((self, *parts))


_ITEMS = {pyo.Var: Numeric_GetItemExpression, pyo.Param: NPV_Numeric_GetItemExpression}


def _call(block: Any, rule: Any, index_set: Any, run: _Run) -> Any:
    """Call a rule with templates; the expression and its templates, or the case of one sum."""
    # A template stands for every index: it is in no set and is no key of a dictionary. Without
    # this, ``if j in jobs`` would quietly be false for all of them.
    hashed, context = IndexTemplate.__hash__, template_module._template_iter_context
    logged, outer = _LOG.disabled, _Run.current
    _Run.current, _LOG.disabled = run, True
    IndexTemplate.__hash__ = None
    template_module._template_iter_context = _Context
    RelationalExpression.__bool__ = _relation_bool
    NumericValue.__bool__ = _number_bool
    IndexedComponent._processUnhashableIndex = _item
    builtins.range = _Range  # type: ignore[misc]
    try:
        return templatize_rule(block, rule, index_set)
    except _Stopped as stopped:
        return stopped.case
    finally:
        builtins.range = _range  # type: ignore[misc]
        IndexedComponent._processUnhashableIndex = _plain_item
        NumericValue.__bool__ = _number_truth
        RelationalExpression.__bool__ = _relation_truth
        template_module._template_iter_context = context
        IndexTemplate.__hash__ = hashed
        _Run.current, _LOG.disabled = outer, logged


class _Tracer:
    """Calls a rule for all the ways in which its comparisons can turn out."""

    def __init__(self, block: Any, rule: Any, index_set: Any) -> None:
        self._rule = (block, rule, index_set)
        self._calls = 0

    def cases(self) -> tuple[RuleCase, ...]:
        """Cases of the rows; the conditions of exactly one of them hold for any row."""
        found: list[RuleCase] = []
        left: list[tuple[bool, ...]] = [()]
        while left:
            answers = left.pop()
            run, (expression, templates) = self._called(answers, None)
            for number, decision in enumerate(run.decisions):
                if decision.inside is None and number >= len(answers):
                    left.append((*run.until(number), False))
            self._fill_sums(run, None)
            rows = tuple(each.condition for each in run.decisions if each.inside is None)
            found.append(RuleCase(rows, expression, tuple(templates)))
        return tuple(found)

    def _called(self, answers: tuple[bool, ...], stop: int | None) -> tuple[_Run, Any]:
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise TypeError(f"its comparisons of indices can turn out in over {MOST_CALLS} ways")
        run = _Run(answers, stop)
        return run, _call(*self._rule, run)

    def _fill_sums(self, run: _Run, stop: int | None) -> None:
        """Add to every sum of a run the cases in which a comparison inside turns out false."""
        for number, decision in enumerate(run.decisions):
            if decision.inside is not None and decision.inside.number != stop:
                answers = (*run.until(number), False)
                cases = self._cases_of_sum(answers, decision.inside.number)
                run.nodes[decision.inside.number].cases.extend(cases)

    def _cases_of_sum(self, answers: tuple[bool, ...], stop: int) -> list[RuleCase]:
        run, case = self._called(answers, stop)
        found = [case]
        for number, decision in enumerate(run.decisions):
            own = decision.inside is not None and decision.inside.number == stop
            if own and number >= len(answers):
                found += self._cases_of_sum((*run.until(number), False), stop)
        self._fill_sums(run, stop)
        return found


def trace_rule(block: Any, rule: Any, index_set: Any) -> tuple[RuleCase, ...]:
    """The results of a rule for all members of an index set, by cases.

    Parameters
    ----------
    rule : callable
        Pyomo's ``Initializer`` of the rule: called with the block and an index.
    index_set : pyomo set
        Of a scalar component its set of the one index None.

    Raises
    ------
    Exception
        Whatever the rule raises when it is given index templates.
    """
    return _Tracer(block, rule, index_set).cases()


# Constraints and objectives that keep the trace of their rule.


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
