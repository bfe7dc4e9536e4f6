"""Models as text: size, rows under their names, and files for other solvers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.collections import ComponentMap
from pyomo.core.base.label import LPFileLabeler

from shadowprice.errors import InputError
from shadowprice.solvers.programs.compile import CompiledModel

ENDINGS = (".lp", ".mps")
"""Formats that are written, by the ending of the file."""


@dataclass(frozen=True)
class ModelSize:
    """Size of a compiled model.

    Parameters
    ----------
    rows, columns, nonzeros : int
    whole : int
        Columns that are integer or binary.
    """

    rows: int
    columns: int
    nonzeros: int
    whole: int


def size_of(compiled: CompiledModel) -> ModelSize:
    """Rows, columns and entries of the arrays that a solver is handed."""
    p = compiled.program
    return ModelSize(p.rows, p.columns, len(p.value), int(p.integer.sum()))


@dataclass(frozen=True)
class ModelRow:
    """A row in the model's own names.

    Parameters
    ----------
    name : str
        Constraint and index, such as ``work[job-3,5]``.
    text : str
        Terms and side, such as ``z[job-3,5] - 0.5 y[job-3,v100,5] <= 0``.
    says : str
        The constraint's own words.
    """

    name: str
    text: str
    says: str


def objective_of(model: pyo.ConcreteModel, compiled: CompiledModel) -> ModelRow:
    """The objective."""
    p = compiled.program
    (objective,) = model.component_data_objects(pyo.Objective, active=True)
    paid = np.flatnonzero(p.cost)
    names = compiled.columns
    text = _terms([(p.cost[k], names[k].name) for k in paid.tolist()])
    if p.offset:
        text += f" {'-' if p.offset < 0 else '+'} {abs(p.offset):g}"
    sense = "max" if p.maximise else "min"
    return ModelRow(f"{sense} {objective.name}", text, objective.parent_component().doc or "")


def rows_of(compiled: CompiledModel, each: int | None = None) -> list[ModelRow]:
    """Rows in order; of every constraint only the first ``each``, if that is given."""
    p = compiled.program
    names, constraints = [column.name for column in compiled.columns], compiled.rows
    seen: ComponentMap[Any, int] = ComponentMap()
    found = []
    for k, row in enumerate(constraints):
        component = row.parent_component()
        seen[component] = seen.get(component, 0) + 1
        if each is not None and seen[component] > each:
            continue
        entries = slice(int(p.start[k]), int(p.start[k + 1]))
        index, value = p.index[entries].tolist(), p.value[entries].tolist()
        terms = _terms([(v, names[i]) for i, v in zip(index, value, strict=True)])
        text = _sided(terms, float(p.row_lower[k]) + 0.0, float(p.row_upper[k]) + 0.0)
        found.append(ModelRow(row.name, text, component.doc or ""))
    return found


def write_model(model: pyo.ConcreteModel, compiled: CompiledModel, path: Path) -> None:
    """Write a model in the LP or MPS format, by Pyomo, with its own names: ``x[job-3,v100]`` is ``x(job_3_v100)``.

    Raises
    ------
    InputError
        If the file has another ending.
    """
    if path.suffix not in ENDINGS:
        raise InputError(f"{path}: ends in {path.suffix!r}, expected {' or '.join(ENDINGS)}")
    # Rules that were traced are expanded first, and make variables that nothing has asked for yet:
    # Pyomo's writers know expressions only, and number the variables before they read them.
    for component in model.component_objects((pyo.Constraint, pyo.Objective), active=True):
        for row in component.values():
            _ = row.expr
    model.write(str(path), io_options={"labeler": DistinctLabels(LPFileLabeler())})


class DistinctLabels:
    """Names of rows and columns in a file, different ones where Pyomo's own are the same.

    The formats have fewer characters than names: both ``x[job-3]`` and ``x[job_3]`` are ``x(job_3)``, so that the
    second is ``x(job_3).2``.

    Parameters
    ----------
    label : callable
        Pyomo's name of a component.
    """

    def __init__(self, label: Callable[[Any], str]) -> None:
        self._label = label
        self._taken: set[str] = set()

    def __call__(self, component: Any) -> str:
        """Name of a component, which is asked for once."""
        label = name = self._label(component)
        number = 2
        while name in self._taken:
            name, number = f"{label}.{number}", number + 1
        self._taken.add(name)
        return name


def _terms(terms: list[tuple[float, str]]) -> str:
    """A sum in words, such as ``x[0] - 2 x[1]``."""
    text = ""
    for value, name in terms:
        sign = ("-" if value < 0 else "") if not text else (" - " if value < 0 else " + ")
        size = "" if abs(value) == 1 else f"{abs(value):.6g} "
        text += f"{sign}{size}{name}"
    return text or "0"


def _sided(terms: str, lower: float, upper: float) -> str:
    if lower == upper:
        return f"{terms} = {upper:.6g}"
    if np.isinf(lower):
        return f"{terms} <= {upper:.6g}"
    if np.isinf(upper):
        return f"{terms} >= {lower:.6g}"
    return f"{lower:.6g} <= {terms} <= {upper:.6g}"
