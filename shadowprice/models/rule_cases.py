"""The cases of a rule: what it returns, or sums up, for which of its indices.

A rule is called with index templates, once for each way in which the comparisons that it makes can turn
out. See :mod:`shadowprice.models.tracing` for what it may do.
"""

from __future__ import annotations

import builtins
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pyomo.core.expr.template_expr as template_module
import pyomo.environ as pyo
from pyomo.core.base.indexed_component import IndexedComponent
from pyomo.core.base.param import ParamData
from pyomo.core.expr.numeric_expr import NumericValue
from pyomo.core.expr.relational_expr import RelationalExpression
from pyomo.core.expr.template_expr import (
    GetItemExpression,
    IndexTemplate,
    NPV_Numeric_GetItemExpression,
    Numeric_GetItemExpression,
    TemplateSumExpression,
    templatize_rule,
)

_LOG = logging.getLogger("pyomo.core.expr.template_expr")
MOST_CALLS = 256
"""Calls of one rule, after which it is called row by row instead."""


# What a trace is made of.


@dataclass(frozen=True)
class Condition:
    """A comparison that a rule has made, and how it is to turn out.

    Parameters
    ----------
    expression : relational or numeric expression, or NameComparison
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


@dataclass(frozen=True, eq=False)
class NameComparison:
    """Comparison of an index with a name that a rule has written, such as ``j == "v100"``.

    Parameters
    ----------
    template : IndexTemplate
    name : str
    equal : bool
        False for ``!=``.
    """

    template: Any
    name: str
    equal: bool

    def __bool__(self) -> bool:
        run = _Run.current
        if run is None:
            raise TypeError("a comparison of an index is used outside its rule")
        return run.decide(self)


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
    probes: int = 0
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


_plain_reduce = template_module._reduce_template_to_component


def _reduce(expression: Any) -> Any:
    """Replaces Pyomo's search for any members for which an expression of templates has a value."""
    run = _Run.current
    assert run is not None
    run.probes += 1
    try:
        return _plain_reduce(expression)
    finally:
        run.probes -= 1


def is_probing() -> bool:
    """True while Pyomo looks at any members of sets, on which nothing depends."""
    return _Run.current is not None and _Run.current.probes > 0


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


_plain_equal, _plain_unequal = IndexTemplate.__eq__, IndexTemplate.__ne__


def _equal(self: Any, other: Any) -> Any:
    # Pyomo's own would be quietly False for all indices.
    return (
        NameComparison(self, other, True) if isinstance(other, str) else _plain_equal(self, other)
    )


def _unequal(self: Any, other: Any) -> Any:
    return (
        NameComparison(self, other, False)
        if isinstance(other, str)
        else _plain_unequal(self, other)
    )


def _no_text(self: Any, *form: Any) -> str:
    raise TypeError("the text of an index depends on the index")


# A template stands for every index: it is in no set, is no key of a dictionary and has no text in an f-string.
# Without this, ``if j in jobs`` would quietly be false for all of them.
_TEMPLATE_METHODS: dict[str, Any] = {
    "__hash__": None,
    "__eq__": _equal,
    "__ne__": _unequal,
    "__format__": _no_text,
}


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
    methods = {name: getattr(IndexTemplate, name) for name in _TEMPLATE_METHODS}
    context = template_module._template_iter_context
    logged, outer = _LOG.disabled, _Run.current
    _Run.current, _LOG.disabled = run, True
    for name, method in _TEMPLATE_METHODS.items():
        setattr(IndexTemplate, name, method)
    template_module._template_iter_context = _Context
    template_module._reduce_template_to_component = _reduce
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
        template_module._reduce_template_to_component = _plain_reduce
        for name, method in methods.items():
            setattr(IndexTemplate, name, method)
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
            # A sum around the one that the run stops at has no node yet; its cases are its own.
            inside = decision.inside
            if inside is not None and inside.number != stop and inside.number in run.nodes:
                answers = (*run.until(number), False)
                cases = self._cases_of_sum(answers, inside.number)
                run.nodes[inside.number].cases.extend(cases)

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
