"""Pyomo model -> arrays -> the gate, which calls the solver and examines its answer.

:func:`compile_model` translates a ConcreteModel. Rules traced while it was built (see
:mod:`shadowprice.models.tracing`) are expanded with NumPy, and new data are filled into the same
arrays. Rows of any other rule are read one by one, with the same result, and a warning says once which
rule it was; a model that cannot be read in this way goes through Pyomo's standard-form compiler.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray

from shadowprice.errors import SolverError
from shadowprice.models.tracing import (
    TracedConstraint,
    TracedObjective,
    TracedScalarConstraint,
    why_not_traced,
)
from shadowprice.solvers.programs.gate import Gate, Second, confirm
from shadowprice.solvers.programs.linear_program import LinearProgram
from shadowprice.solvers.programs.solution import (
    Infeasible,
    OptimalityEvidence,
    Solution,
    SolverOptions,
    Status,
    Unbounded,
)
from shadowprice.solvers.programs.translation.first_members import FirstMembers
from shadowprice.solvers.programs.translation.index_sets import NotTraceable
from shadowprice.solvers.programs.translation.standard_form import StandardFormModel
from shadowprice.solvers.programs.translation.traced_model import CHANGED, OUTSIDE, TracedModel

__all__ = [
    "CompiledModel",
    "OptimalityEvidence",
    "Solution",
    "SolverOptions",
    "SolverWarning",
    "Status",
    "compile_model",
]


MANY_ROWS = 1000
"""Rows outside ``traced()`` from which it is worth a word that they are read one by one."""


class SolverWarning(UserWarning):
    """Something about a model that costs time, not correctness."""


class CompiledModel:
    """A model as arrays, held in the solver between solves; made by :func:`compile_model`.

    Attributes
    ----------
    traced : bool
        Whether the rules were expanded from their templates.
    """

    def __init__(
        self,
        translation: TracedModel | FirstMembers | StandardFormModel,
        data: Mapping[str, ArrayLike] | None = None,
        anew: Callable[[], pyo.ConcreteModel] | None = None,
    ) -> None:
        self._translation = translation
        self._data, self._anew = _copies(data or {}), anew
        self._gate = Gate()
        self.traced = not isinstance(translation, StandardFormModel) and not translation.untraced

    @property
    def program(self) -> LinearProgram:
        """The arrays."""
        return self._translation.program

    @property
    def columns(self) -> list[Any]:
        """The Pyomo variable of every column; made on demand, for small models."""
        return self._named.columns

    @property
    def rows(self) -> list[Any]:
        """The Pyomo constraint of every row; made on demand, for small models."""
        return self._named.rows

    def column(self, number: int) -> Any:
        """The Pyomo variable of a column."""
        return self._named.column(number)

    def row(self, number: int) -> Any:
        """The Pyomo constraint of a row."""
        return self._named.row(number)

    def named_by(self, anew: Callable[[], pyo.ConcreteModel]) -> None:
        """Name rows and columns by the model that this builds: the same but for the names in its sets."""
        self._anew = anew
        self.__dict__.pop("_named", None)

    @cached_property
    def _named(self) -> TracedModel | StandardFormModel:
        """The translation of the model that has the names."""
        if self._anew is None:
            assert not isinstance(self._translation, FirstMembers)
            return self._translation
        return compile_model(self._anew(), self._data)._named  # noqa: SLF001

    def first(
        self,
        index_set: Any,
        size: int,
        data: Mapping[str, ArrayLike],
        anew: Callable[[], pyo.ConcreteModel],
    ) -> CompiledModel:
        """The model with the first members of a set alone, for a fraction of the time that it takes to compile.

        It is what the smaller model would be, which is not examined here, under these conditions. Whatever is over
        members has this very set as a factor of its index set, not another one with equal members. All that a rule
        says of a member are terms in variables of its own, and Params of members are in such terms, in rows of
        theirs or in sums that a 0 leaves as they are. No rule looks at the number of members, at their names, or at
        one by its place from the end. Data are copied.

        Parameters
        ----------
        index_set : pyomo set
        size : int
            Number of members.
        data : mapping of str to array_like
            Values of all Params, as the smaller model has them.
        anew : callable
            Builds the smaller model, by which rows and columns are named.

        Raises
        ------
        SolverError
            If the model was not translated from its rules.
        """
        if not isinstance(self._translation, TracedModel):
            raise SolverError(f"model {self._translation.model.name!r}: its rules were not traced")
        return CompiledModel(FirstMembers(self._translation, index_set, size, data), data, anew)

    def place(self, component: Any) -> NDArray[np.int64]:
        """Columns of a Var or rows of a Constraint, in the order of its index set."""
        if not isinstance(self._translation, StandardFormModel):
            return self._translation.place(component)
        of_var = component.ctype is pyo.Var
        count = self.program.columns if of_var else self.program.rows
        item = self._translation.column if of_var else self._translation.row
        mine = [k for k in range(count) if item(k).parent_component() is component]
        return np.array(mine, dtype=np.int64)

    def fallbacks(self, solution: Solution) -> list[str]:
        """Sentences on faster methods that could not answer the model, naming rows in the way."""
        return [
            f"model {self._translation.model.name!r}: {each.method} was not used, "
            + each.why.format(row="" if each.row is None else f"row {self.row_name(each.row)}")
            for each in solution.fallbacks
        ]

    def set(self, **data: ArrayLike) -> None:
        """Give Params new values; the next solve starts from the last basis.

        Parameters
        ----------
        **data : array_like
            By name of the Param, in the order and shape of its index set.

        Raises
        ------
        InputError
            If there is no such Param or the shape is wrong.
        """
        self._translation.fill(data)
        self._data |= _copies(data)

    def solve(
        self,
        options: SolverOptions | None = None,
        start: Mapping[int, float] | None = None,
        *,
        second: Second | None = None,
        left_out: NDArray[np.bool_] | None = None,
        size: NDArray[np.float64] | None = None,
    ) -> Solution:
        """Solve, and examine the answer; see :mod:`shadowprice.solvers.programs.gate`.

        Parameters
        ----------
        start : mapping of int to float, optional
            Values of some columns of a feasible point, by position.
        second : callable, optional
            A second opinion for a mixed-integer programme, instead of the general ones.
        left_out : ndarray of bool, shape (columns,), optional
            Columns of a linear programme to try without; they come in where they pay.
        size : ndarray, shape (columns,), optional
            How large the columns of a linear programme are, roughly, where they differ widely.

        Raises
        ------
        SolverError
            If the model is infeasible (naming an irreducible set of its constraints) or
            unbounded, or HiGHS fails.
        """
        try:
            return self._gate.solve(
                self.program, options, start, second=second, left_out=left_out, size=size
            )
        except Infeasible as error:
            raise Infeasible(self._infeasible(error), error.rows) from None
        except Unbounded:
            names = [self.column_name(k) for k in range(min(self.program.columns, 5))]
            more = ", ..." if self.program.columns > 5 else ""
            raise Unbounded(
                f"the model is unbounded; check the sense and bounds of {', '.join(names)}{more}"
            ) from None

    def confirm(self, solution: Solution, options: SolverOptions | None = None) -> Solution:
        """A solution that was asked for without confirmation, with it."""
        return confirm(self.program, solution, options)

    def _infeasible(self, error: Infeasible) -> str:
        if not error.rows and self.program.mixed:
            return "the model is infeasible, though its linear relaxation is not"
        names = ", ".join(map(self.row_name, error.rows))
        return f"the model is infeasible; these constraints cannot hold together: {names or 'none named'}"

    def value(self, solution: Solution, variable: Any) -> NDArray[np.float64]:
        """Values of a Var, in the shape of its index set."""
        return self._part(solution.primal, variable)

    def dual(self, solution: Solution, constraint: Any) -> NDArray[np.float64]:
        """Duals of a Constraint, in the shape of its index set; signs as in :class:`Solution`."""
        if len(solution.duals) == 0 and self.program.integer.any():
            raise SolverError(
                f"constraint {constraint.name!r} has no price, which is asked for: a model with integer or binary "
                "variables has none; expected continuous ones"
            )
        return self._part(solution.duals, constraint)

    def column_of(self, variable: Any) -> NDArray[np.int64]:
        """Column of every entry of a Var, in the shape of its index set; -1 where it has none."""
        numbers = np.arange(1.0, self.program.columns + 1.0)
        return self._part(numbers, variable).astype(np.int64) - 1

    def column_name(self, number: int) -> str:
        """Name of the Pyomo variable of a column."""
        return str(self._named.column(number).name)

    def row_name(self, number: int) -> str:
        """Name of the Pyomo constraint of a row."""
        return str(self._named.row(number).name)

    def _part(self, array: NDArray[np.float64], component: Any) -> NDArray[np.float64]:
        if len(array) == 0 and not (component.ctype is pyo.Constraint and len(component) == 0):
            raise SolverError(f"the solution has no values for {component.name}")
        return self._translation.part(array, component)


def compile_model(
    model: pyo.ConcreteModel, data: Mapping[str, ArrayLike] | None = None
) -> CompiledModel:
    """Translate a linear or mixed-integer linear Pyomo model with one objective.

    Parameters
    ----------
    data : mapping of str to array_like, optional
        Values of its mutable Params, by name, in the order and shape of their index sets; Params
        that are not named keep the values they were built with.

    Raises
    ------
    SolverError
        If the model is not linear.
    InputError
        If a Param has no values, or an array has the wrong shape.
    """
    translation: TracedModel | StandardFormModel
    try:
        translation = TracedModel(model, data or {})
        causes = translation.untraced
    except NotTraceable as error:
        translation = StandardFormModel(model, data or {})
        causes = {"": (str(error), translation.program.rows)}
    # Of rules that were to be traced the author wants to know; of others if they are many.
    meant = "" not in causes or bool(why_not_traced(model)) or _some_traced(model)
    wanted = meant and any(why not in (OUTSIDE, CHANGED) for why, _ in causes.values())
    if causes and (wanted or sum(rows for _, rows in causes.values()) >= MANY_ROWS):
        warnings.warn(_slow(model, causes), SolverWarning, stacklevel=2)
    return CompiledModel(translation, data)


def _copies(data: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
    """Data as they are now, whatever their owner writes into them later."""
    return {name: np.array(values) for name, values in data.items()}


def _slow(model: pyo.ConcreteModel, causes: Mapping[str, tuple[str, int]]) -> str:
    """One sentence on what is compiled row by row, and why."""
    name, (why, _) = max(causes.items(), key=lambda cause: cause[1][1])
    where = f"constraint {name}: " if name else ""
    others = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
    return f"model {model.name!r} is compiled row by row, which is slower: {where}{why}{others}"


def _some_traced(model: pyo.ConcreteModel) -> bool:
    """True if a rule was traced: then the author of the model expects it to be expanded."""
    kinds = (TracedConstraint, TracedScalarConstraint, TracedObjective)
    components = model.component_objects((pyo.Constraint, pyo.Objective), active=True)
    return any(isinstance(component, kinds) for component in components)
