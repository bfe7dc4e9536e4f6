"""A model as arrays by Pyomo's own standard-form compiler: any linear model, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from shadowprice.errors import InputError, SolverError
from shadowprice.solvers.linear_program import LinearProgram

INFINITY = float("inf")


class StandardFormModel:
    """Arrays of a model, made again from the model when its data change.

    Raises
    ------
    SolverError
        If the model is not linear.
    """

    def __init__(self, model: pyo.ConcreteModel, data: Mapping[str, ArrayLike]) -> None:
        self.model = model
        # What was traced before another rule could not be: call those rules row by row as well.
        for component in model.component_objects((pyo.Constraint, pyo.Objective), active=True):
            for row in component.values():
                if hasattr(row, "template_expr"):
                    _ = row.expr
        self.fill(data)

    def fill(self, data: Mapping[str, ArrayLike]) -> None:
        """New values of some Params, in the order and shape of their index sets."""
        for name, values in data.items():
            parameter = self.model.find_component(name)
            if parameter is None or parameter.ctype is not pyo.Param:
                raise InputError(f"model {self.model.name!r} has no Param {name!r}")
            given = np.asarray(values, dtype=np.float64).ravel()
            if not parameter.is_indexed():
                parameter.set_value(float(given.item()))
                continue
            keys = list(parameter.index_set())
            if given.size not in (1, len(keys)):
                raise InputError(f"Param {name!r}: {given.size} values, expected {len(keys)}")
            spread = np.broadcast_to(given, len(keys)).tolist()
            parameter.store_values(dict(zip(keys, spread, strict=True)))
        self._compile()

    def _compile(self) -> None:
        try:
            form = LinearStandardFormCompiler().write(self.model, mixed_form=True, set_sense=None)
        except Exception as error:
            message = f"model {self.model.name!r} cannot be translated: {error}"
            raise SolverError(message) from error
        self._columns, self._rows = list(form.columns), [row.constraint for row in form.rows]
        bounds = [column.bounds for column in self._columns]
        kinds = np.array([row.bound_type for row in form.rows], dtype=np.int64)
        rhs = np.asarray(form.rhs, dtype=np.float64)
        matrix = form.A.tocsr()
        objective = next(self.model.component_data_objects(pyo.Objective, active=True))
        self.program = LinearProgram(
            np.asarray(form.c.todense(), dtype=np.float64).ravel(),
            float(form.c_offset[0]),
            objective.sense == pyo.maximize,
            np.array([-INFINITY if low is None else low for low, _ in bounds], dtype=np.float64),
            np.array([INFINITY if high is None else high for _, high in bounds], dtype=np.float64),
            np.where(kinds == 1, -INFINITY, rhs),
            np.where(kinds == -1, INFINITY, rhs),
            matrix.indptr.astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data.astype(np.float64),
            np.array([not column.is_continuous() for column in self._columns], dtype=bool),
        )
        self._places: dict[int, dict[Any, int]] = {}

    def positions(self, component: Any) -> tuple[list[int], tuple[int, ...]]:
        """Columns of a Var (or rows of a Constraint) in the order of its index set; -1 where it has none.

        A ranged constraint has two rows here; the last is taken.
        """
        if not self._places:
            for items in (self._columns, self._rows):
                for k, item in enumerate(items):
                    place = self._places.setdefault(id(item.parent_component()), {})
                    place[item.index()] = k
        place = self._places.get(id(component), {})
        if not component.is_indexed():
            return [place.get(None, -1)], ()
        keys = list(component.index_set())
        shape = tuple(len(s) for s in component.index_set().subsets())
        regular = np.prod(shape) == len(keys)
        return [place.get(key, -1) for key in keys], shape if regular else (len(keys),)

    def row(self, number: int) -> Any:
        """The Pyomo constraint of a row."""
        return self._rows[number]

    def column(self, number: int) -> Any:
        """The Pyomo variable of a column."""
        return self._columns[number]
