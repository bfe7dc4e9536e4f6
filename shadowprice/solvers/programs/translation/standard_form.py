"""A model as arrays by Pyomo's own standard-form compiler: any linear model, row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from shadowprice.errors import InputError, SolverError
from shadowprice.solvers.programs.linear_program import LinearProgram
from shadowprice.solvers.programs.translation.model_data import shaped

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
        # Rows that were traced are made now, all of them: Pyomo's compiler numbers the members of a
        # Var when it first sees one, and knows none that a later row makes.
        for component in model.component_objects((pyo.Constraint, pyo.Objective), active=True):
            for row in component.values():
                _ = row.expr
        self.fill(data)

    def fill(self, data: Mapping[str, ArrayLike]) -> None:
        """New values of some Params, in the order and shape of their index sets."""
        changed = {}
        for name, values in data.items():
            parameter = self.model.find_component(name)
            if parameter is None or parameter.ctype is not pyo.Param:
                raise InputError(f"model {self.model.name!r} has no Param {name!r}")
            changed[name] = shaped(name, values, _shape(parameter))
        for name, array in changed.items():
            parameter = self.model.find_component(name)
            parameter.store_values(dict(zip(_keys(parameter), array.tolist(), strict=True)))
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
        self._places: dict[int, dict[Any, list[int]]] = {}

    def part(self, array: NDArray[np.float64], component: Any) -> NDArray[np.float64]:
        """Entries of a Var or a Constraint in the order of its index set; 0 where it has none.

        A ranged constraint has two rows here, of which at most one has a dual: they are added.
        """
        if not self._places:
            for items in (self._columns, self._rows):
                for k, item in enumerate(items):
                    place = self._places.setdefault(id(item.parent_component()), {})
                    place.setdefault(item.index(), []).append(k)
        place = self._places.get(id(component), {})
        found = [array[place.get(key, [])].sum() for key in _keys(component)]
        return np.array(found, dtype=np.float64).reshape(_shape(component))

    @property
    def columns(self) -> list[Any]:
        """The Pyomo variable of every column."""
        return self._columns

    @property
    def rows(self) -> list[Any]:
        """The Pyomo constraint of every row."""
        return self._rows

    def row(self, number: int) -> Any:
        """The Pyomo constraint of a row."""
        return self._rows[number]

    def column(self, number: int) -> Any:
        """The Pyomo variable of a column."""
        return self._columns[number]


def _keys(component: Any) -> list[Any]:
    return list(component.index_set()) if component.is_indexed() else [None]


def _shape(component: Any) -> tuple[int, ...]:
    """Sizes of the factors of the index set if it is a product, otherwise its size."""
    if not component.is_indexed():
        return ()
    shape = tuple(len(factor) for factor in component.index_set().subsets())
    size = len(component.index_set())
    return shape if np.prod(shape) == size else (size,)
