"""Compiled models kept from one allocation to the next, so that new numbers do not build them again."""

from __future__ import annotations

import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyomo.environ as pyo
from numpy.typing import NDArray

from shadowprice.errors import InputError, ShadowpriceError, SolverError
from shadowprice.instances.names import Names
from shadowprice.models.gavel import OF_ANY_SIZE, Shape
from shadowprice.solvers.gavel.rates import FloatArray
from shadowprice.solvers.programs.compile import (
    CompiledModel,
    Solution,
    SolverOptions,
    SolverWarning,
    Status,
    compile_model,
)
from shadowprice.solvers.programs.reads import values_read
from shadowprice.solvers.programs.translation.model_data import stored
from shadowprice.user_code import sentence

Build: TypeAlias = Callable[[Shape], pyo.ConcreteModel]
"""A model of :mod:`shadowprice.models.gavel`, or one of your own: from sizes and index sets."""

_ROOM = 16
"""Jobs for which there is room at least, in a model of any size."""

MOST_ENTRIES = 5_000_000
"""Entries of compiled models that are kept, those with room for more jobs among them; the last model is in any case."""


@dataclass(frozen=True, eq=False)
class Solved:
    """A solved model, in its own units.

    Parameters
    ----------
    solution : Solution
    compiled : CompiledModel
    model : ConcreteModel
    """

    solution: Solution
    compiled: CompiledModel
    model: Any

    def dual(self, name: str) -> FloatArray | None:
        """Duals of a constraint by name, d(objective) / d(right-hand side); None if there is none."""
        component = self.model.component(name)
        if component is None or component.ctype is not pyo.Constraint:
            return None
        return self.compiled.dual(self.solution, component)

    def value(self, name: str) -> FloatArray:
        """Values of a variable by name.

        Raises
        ------
        InputError
            If the model has no such variable.
        """
        component = self.model.component(name)
        if component is None or component.ctype is not pyo.Var:
            raise InputError(f"model {self.model.name!r} has no variable {name!r}")
        return self.compiled.value(self.solution, component)


@dataclass
class Workspace:
    """Models compiled so far; not for several threads.

    A model is compiled for exactly the jobs it is solved for, and used again for as many: new
    numbers are filled into its arrays. It is found again by the function that built it, its shape, and
    the constants that the function reads; one that reads what may change is built for every solve. One of
    :data:`~shadowprice.models.gavel.OF_ANY_SIZE` is compiled for some more jobs, of which it has the first, if that is
    the same: its arrays are compared with those of exact models of two sizes. Names of
    jobs are of no matter to the arrays of a model that does not look at them.

    Parameters
    ----------
    options : SolverOptions
        For every solve.

    Attributes
    ----------
    solver_s, solves : float, int
        CPU time spent in solving and in examining answers [s], and how often.
    uncertified : int
        Solves of which nothing but a solver says that the answer is optimal.
    notes : dict of str to None
        What faster methods could not answer, and why; every sentence once.
    """

    options: SolverOptions = field(default_factory=lambda: SolverOptions(time_limit_s=600.0))
    solver_s: float = 0.0
    solves: int = 0
    uncertified: int = 0
    notes: dict[str, None] = field(default_factory=dict)
    _models: OrderedDict[Hashable, _Compiled] = field(default_factory=OrderedDict)
    _roomy: dict[Hashable, _Compiled | None] = field(default_factory=dict)
    _doubted: bool = False

    def solve(
        self,
        build: Build,
        shape: Shape,
        data: Mapping[str, FloatArray],
        options: SolverOptions | None = None,
        left_out: Mapping[str, NDArray[np.bool_]] | None = None,
        sizes: Mapping[str, FloatArray] | None = None,
    ) -> Solved:
        """Solve a model with the data that its Params ask for, by name.

        Parameters
        ----------
        left_out : mapping of str to ndarray of bool, optional
            Members of variables that are 0 in some optimum of the model as it is published: they
            are left out at first, and come in where prices say that they pay.
        sizes : mapping of str to ndarray, optional
            How large variables are in an optimum, roughly, where they differ by more than solvers
            tell from 0; 1 for those that are not named. The answer takes the place of the last one.

        Raises
        ------
        InputError
            If a Param without a value is not among the data, or its index sets do not fit them.
        SolverError
            If the model is infeasible, unbounded, or not solved in time.
        """
        model, compiled = self._compiled(build, shape, data)
        # With sizes it is asked again, and the answer before does not count, if there was one.
        replaced, self._doubted = sizes is not None and self._doubted, False
        began = time.process_time()
        solution = compiled.solve(
            options or self.options,
            left_out=_columns(model, compiled, left_out or {}),
            size=None if sizes is None else _sizes(model, compiled, sizes),
        )
        self.solver_s += time.process_time() - began
        self.solves += 1
        for note in compiled.fallbacks(solution):
            if note not in self.notes:
                self.notes[note] = None
                warnings.warn(note, SolverWarning, stacklevel=2)
        self._doubted = solution.status is Status.FEASIBLE
        self.uncertified += self._doubted - replaced
        # A point of a mixed programme is worth having without its optimum; of others, answers are optima.
        usable = compiled.program.mixed or solution.status is not Status.TIME_LIMIT
        if not len(solution.primal) or not usable:
            limit_s = (options or self.options).time_limit_s
            raise SolverError(
                f"{model.name} for {len(shape.jobs)} jobs and {shape.pairs} pairs is not solved after "
                f"{limit_s} s; raise the time limit"
            )
        return Solved(solution, compiled, model)

    def vouch(self) -> None:
        """Count the last answer as shown to be optimal: its fractions of time were evaluated against its bound."""
        self.uncertified -= self._doubted
        self._doubted = False

    def _compiled(
        self, build: Build, shape: Shape, data: Mapping[str, FloatArray]
    ) -> tuple[Any, CompiledModel]:
        read = values_read(build)
        key = (build, shape.sizes, read, frozenset(data))
        kept = None if read is None else self._models.get(key)
        if kept is None or not kept.serves(shape):
            made = None
            if read is not None and not shape.pairs and build in OF_ANY_SIZE:
                made = self._with_room(build, shape, data, read)
            made = made or _exactly(build, shape, data)
            if read is not None:
                self._keep(key, made)
            return made.model, made.compiled
        self._models.move_to_end(key)
        # Rows and columns have the names of the last solve.
        last = kept.shape
        if shape.jobs is not last.jobs or shape.entities is not last.entities:
            kept.compiled.named_by(partial(_built, build, shape))
            self._models[key] = replace(kept, shape=shape)
        kept.compiled.set(**{name: data[name] for name in kept.parameters})
        return kept.model, kept.compiled

    def _with_room(
        self, build: Build, shape: Shape, data: Mapping[str, FloatArray], read: Hashable
    ) -> _Compiled | None:
        """The first jobs of a model for at least as many, but not for many more; None if that is another model.

        The first time it is the exact model, with which that of its jobs has been compared.
        """
        key, jobs = (build, shape.types, shape.draws, read, frozenset(data)), len(shape.jobs)
        if key in self._roomy:
            room = self._roomy[key]
            if room is None:
                return None
            if jobs <= len(room.shape.jobs) <= 2 * jobs + 4 * _ROOM:
                return room.first(build, shape, data)
        exact = _exactly(build, shape, data)
        self._roomy[key] = _room(build, exact, data)
        return exact

    def _keep(self, key: Hashable, compiled: _Compiled) -> None:
        self._models.pop(key, None)
        self._models[key] = compiled
        while self._entries() > MOST_ENTRIES and len(self._models) > 1:
            self._models.popitem(last=False)
            used = {id(each.room) for each in self._models.values()}
            self._roomy = {
                k: room for k, room in self._roomy.items() if room is None or id(room) in used
            }

    def _entries(self) -> int:
        """Entries of all models that are kept, each once."""
        rooms = (*self._roomy.values(), *(each.room for each in self._models.values()))
        different = {id(each): each for each in (*self._models.values(), *rooms) if each}
        return sum(each.entries for each in different.values())


def _exactly(build: Build, shape: Shape, data: Mapping[str, FloatArray]) -> _Compiled:
    """A model compiled for the jobs of a shape."""
    model = _built(build, shape)
    own = asked(model, data)
    return _Compiled.of(model, compile_model(model, own), shape, tuple(own))


def _room(build: Build, exact: _Compiled, data: Mapping[str, FloatArray]) -> _Compiled | None:
    """A model for more jobs than another one has, if those with its first jobs are parts of it; None if not.

    This is seen at two sizes, so that no limit on the number of jobs looks like none: the other one's, and a few jobs.
    """
    shape, jobs = exact.shape, len(exact.shape.jobs)

    def numbered(size: int) -> Shape:
        return Shape(Names.numbered("job", size), shape.types, shape.draws)

    few = numbered(2 if jobs > 2 else 3)
    # Numbers that tell Params apart, each for all its members.
    numbers = {name: np.array(k + 1.5) for k, name in enumerate(exact.parameters)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SolverWarning)
            room = _exactly(build, numbered(jobs + jobs // 8 + _ROOM), numbers)
            if exact.names or room.names or room.users or room.model.component("M") is None:
                return None
            for own, its in ((exact, data), (_exactly(build, few, numbers), numbers)):
                if not own.same(room.first(build, own.shape, its)):
                    return None
    except ShadowpriceError:  # It cannot be built for other jobs than its own, or was not traced.
        return None
    return room


def _built(build: Build, shape: Shape) -> pyo.ConcreteModel:
    """A model of somebody's own as well, whose mistakes are told in a sentence."""
    name = getattr(build, "__name__", repr(build))
    try:
        model = build(shape)
    except ShadowpriceError:
        raise
    except Exception as error:
        raise InputError(f"model {name}: {sentence(error)}") from error
    if not isinstance(model, pyo.ConcreteModel):
        kind = "nothing" if model is None else type(model).__name__
        raise InputError(f"model {name}: returned {kind}, expected a ConcreteModel of Pyomo")
    return model


@dataclass(frozen=True)
class _Compiled:
    """A compiled model, the shape it was solved for last, the names of its data, and the model it is a part of."""

    model: Any
    compiled: CompiledModel
    shape: Shape
    names: bool
    users: bool
    parameters: tuple[str, ...]
    room: _Compiled | None = None

    @classmethod
    def of(
        cls, model: Any, compiled: CompiledModel, shape: Shape, parameters: tuple[str, ...]
    ) -> _Compiled:
        """A compiled model with what it has looked at, which is known by now."""
        return cls(model, compiled, shape, shape.jobs.table.read, shape.users_read, parameters)

    def first(self, build: Build, shape: Shape, data: Mapping[str, FloatArray]) -> _Compiled:
        """The model of the first jobs, as many as a shape has, which shares the arrays of this one."""
        own = {name: data[name] for name in self.parameters}
        anew = partial(_built, build, shape)
        compiled = self.compiled.first(self.model.M, len(shape.jobs), own, anew)
        return _Compiled(self.model, compiled, shape, False, False, self.parameters, self)

    def same(self, other: _Compiled) -> bool:
        """True if both ask for the same data and are the same programme of them."""
        mine, its = self.compiled.program, other.compiled.program
        arrays = [each.name for each in fields(mine)]
        return self.parameters == other.parameters and all(
            np.array_equal(getattr(mine, name), getattr(its, name)) for name in arrays
        )

    @property
    def entries(self) -> int:
        """Entries of its matrix."""
        return len(self.compiled.program.value)

    def serves(self, shape: Shape) -> bool:
        """True if the arrays are the same for another shape of the same sizes."""
        mine, other = self.shape.jobs, shape.jobs
        if self.names and mine is not other and mine.table.texts != other.table.texts:
            return False
        return not self.users or np.array_equal(self.shape.users.positions, shape.users.positions)


def _columns(
    model: Any, compiled: CompiledModel, left_out: Mapping[str, NDArray[np.bool_]]
) -> NDArray[np.bool_] | None:
    """Mask of the columns that are left out at first; None for none."""
    columns = np.zeros(compiled.program.columns, dtype=bool)
    for name, members in left_out.items():
        variable = model.component(name)
        if variable is not None and variable.ctype is pyo.Var:
            columns[compiled.place(variable)[members.reshape(-1)]] = True
    return columns if columns.any() else None


def _sizes(
    model: Any, compiled: CompiledModel, sizes: Mapping[str, FloatArray]
) -> NDArray[np.float64]:
    """Size of every column."""
    columns = np.ones(compiled.program.columns)
    for name, size in sizes.items():
        variable = model.component(name)
        if variable is not None and variable.ctype is pyo.Var:
            columns[compiled.place(variable)] = np.reshape(size, -1)
    return columns


def asked(model: Any, data: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Those of the data that a model has Params for.

    Raises
    ------
    InputError
        Naming the first Param that has neither data nor a value, and what there is.
    """
    given = {}
    for parameter in model.component_objects(pyo.Param):
        name = parameter.name
        if name in data:
            given[name] = data[name]
            continue
        try:
            stored(parameter)
        except InputError as error:
            raise InputError(
                f"model {model.name!r}: {error}; there are data for {', '.join(sorted(data))}"
            ) from None
    return given
