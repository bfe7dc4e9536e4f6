"""Compiled programmes kept from one allocation to the next, so that jobs that come and go only change numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.models.gavel import Shape
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.programs.compile import (
    CompiledModel,
    Solution,
    SolverOptions,
    Status,
    compile_model,
)

_FEWEST_ROWS = 32


@dataclass(frozen=True, eq=False)
class Solved:
    """A solved programme, rows of absent jobs cut off.

    Parameters
    ----------
    solution : Solution
    x, y : ndarray
        Values of the allocation variables.
    """

    solution: Solution
    x: FloatArray
    y: FloatArray
    _compiled: CompiledModel
    _model: Any
    _rows: int

    def dual(self, name: str) -> FloatArray:
        """Duals of a constraint, by name."""
        component = getattr(self._model, name)
        duals = self._compiled.dual(self.solution, component)
        per_row = component.is_indexed() and component.index_set() is self._model.M
        return duals[: self._rows] if per_row else duals

    def value(self, name: str) -> FloatArray:
        """Values of a variable, by name."""
        component = getattr(self._model, name)
        values = self._compiled.value(self.solution, component)
        per_row = component.is_indexed() and component.index_set() is self._model.M
        return values[: self._rows] if per_row else values


@dataclass
class Workspace:
    """Programmes compiled so far, by kind and shape; not for several threads.

    Parameters
    ----------
    options : SolverOptions
        For every solve.
    spare : bool
        Compile for the next power of two of rows, so that a programme fits when jobs arrive; a
        row without a job has no gang, no rates and no needs.
    structured_rows : int
        From so many rows the block-arrow method is tried before HiGHS. From 1 on, allocations
        lie in the interior of the optimal set, as those of conic solvers do.

    Attributes
    ----------
    solver_s, solves : float, int
        CPU time spent inside the solver [s], and how often it was called.
    """

    options: SolverOptions = field(default_factory=lambda: SolverOptions(time_limit_s=600.0))
    spare: bool = False
    structured_rows: int = 96
    solver_s: float = 0.0
    solves: int = 0
    _programmes: dict[tuple[str, Shape], tuple[Any, CompiledModel]] = field(default_factory=dict)

    def solve(
        self,
        build: Callable[[Shape], pyo.ConcreteModel],
        rates: Rates,
        options: SolverOptions | None = None,
        **data: FloatArray,
    ) -> Solved:
        """Solve a programme of :mod:`shadowprice.models.gavel` for these rates and further Params."""
        shape, rows = rates.shape(), rates.rows
        if self.spare and not shape.pairs:
            padded = max(_FEWEST_ROWS, 1 << (rows - 1).bit_length())
            shape = replace(shape, jobs=padded)
        values: Mapping[str, FloatArray] = {
            name: _padded(array, rows, shape.jobs) if name in _BY_ROW else array
            for name, array in {**rates.data(), **data}.items()
        }
        key = (build.__name__, shape)
        if key in self._programmes:
            model, compiled = self._programmes[key]
            compiled.set(**values)
        else:
            model = build(shape)
            compiled = compile_model(model, values)
            self._programmes[key] = (model, compiled)
        began = time.process_time()
        solution = compiled.solve(options or self.options)
        self.solver_s += time.process_time() - began
        self.solves += 1
        if solution.status is not Status.OPTIMAL and not compiled.program.mixed:
            limit_s = (options or self.options).time_limit_s
            raise SolverError(
                f"{build.__name__} for {rows} jobs and {len(rates.pairs)} pairs is not solved after "
                f"{limit_s} s; raise the time limit"
            )
        y = compiled.value(solution, model.y) if shape.pairs else np.zeros((0, shape.types))
        x = compiled.value(solution, model.x)[:rows]
        return Solved(solution, np.maximum(x, 0.0), np.maximum(y, 0.0), compiled, model, rows)


_BY_ROW = frozenset({"T", "s", "n", "r", "v", "c", "f"})
"""Params of the models with one entry, or one row, a job."""


def _padded(array: FloatArray, rows: int, size: int) -> NDArray[np.float64]:
    if size == rows:
        return array
    whole = np.zeros((size, *array.shape[1:]))
    whole[:rows] = array
    return whole
