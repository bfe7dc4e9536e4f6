"""Building Pyomo models so that each rule is called once, for all its indices together.

Inside :func:`traced`, Pyomo calls the rule of a constraint or objective once with index templates
instead of once for every index; :func:`shadowprice.solvers.programs.compile.compile_model` expands the
resulting expression with NumPy. A rule that cannot be traced, because it branches on its index or
looks a value up in a Python container, is called for every index as usual, and the model keeps a
note of why.

Rules are ordinary Pyomo rules. Data that change between solves are mutable ``Param`` without
values, given as arrays when the model is compiled.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyomo.core.base.constraint as constraint_module
import pyomo.core.base.objective as objective_module
import pyomo.environ as pyo
from pyomo.core.expr.template_expr import IndexTemplate, TemplateExpressionError

_NOTE = "_why_not_traced"
_LOGS = ("pyomo.core", "pyomo.core.expr.template_expr")


@contextmanager
def traced() -> Iterator[None]:
    """Trace the rules of constraints and objectives constructed inside; not for several threads."""
    constraints, objectives = constraint_module, objective_module
    saved = (
        constraints.TEMPLATIZE_CONSTRAINTS,
        constraints.templatize_constraint,
        objectives.TEMPLATIZE_OBJECTIVES,
        objectives.templatize_rule,
        IndexTemplate.__hash__,
    )
    logs = [logging.getLogger(name) for name in _LOGS]
    quiet = [log.disabled for log in logs]
    for log in logs:
        log.disabled = True
    constraints.TEMPLATIZE_CONSTRAINTS = objectives.TEMPLATIZE_OBJECTIVES = True
    constraints.templatize_constraint = _templatize_constraint
    objectives.templatize_rule = _templatize_rule
    # A template stands for every index: it is in no set and is no key of a dictionary. Without
    # this, ``if j in jobs`` would quietly be false for all of them.
    IndexTemplate.__hash__ = None
    try:
        yield
    finally:
        for log, was in zip(logs, quiet, strict=True):
            log.disabled = was
        (
            constraints.TEMPLATIZE_CONSTRAINTS,
            constraints.templatize_constraint,
            objectives.TEMPLATIZE_OBJECTIVES,
            objectives.templatize_rule,
            IndexTemplate.__hash__,
        ) = saved


def why_not_traced(model: pyo.ConcreteModel) -> dict[str, str]:
    """Reasons, by component name, why rules of a model built inside :func:`traced` were not."""
    notes: dict[str, str] = getattr(model, _NOTE, {})
    return notes


_constraint = constraint_module.templatize_constraint
_rule = objective_module.templatize_rule


def _templatize_constraint(component: Any) -> Any:
    try:
        expression, indices = _constraint(component)
    except Exception as error:
        raise _noted(component.parent_block(), component.local_name, error) from None
    if expression is pyo.Constraint.Skip or isinstance(expression, bool):
        why = TypeError("the rule skips or decides rows by their index")
        raise _noted(component.parent_block(), component.local_name, why)
    return expression, indices


def _templatize_rule(block: Any, rule: Any, index_set: Any) -> Any:
    try:
        return _rule(block, rule, index_set)
    except Exception as error:
        raise _noted(block, "objective", error) from None


def _noted(block: Any, name: str, error: Exception) -> TemplateExpressionError:
    """Remember the reason on the model, and tell Pyomo to call the rule index by index."""
    model = block.model()
    if not hasattr(model, _NOTE):
        object.__setattr__(model, _NOTE, {})
    getattr(model, _NOTE)[name] = (str(error) or type(error).__name__).splitlines()[0]
    return TemplateExpressionError(None, str(error))
