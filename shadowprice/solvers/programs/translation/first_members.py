"""A traced model of fewer members, by rows and columns of a larger one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.solvers.programs.linear_program import LinearProgram, rows_of_entries
from shadowprice.solvers.programs.translation.model_data import shaped
from shadowprice.solvers.programs.translation.traced_model import TracedModel


class FirstMembers:
    """Arrays of a model whose set has fewer members: the first of those of a larger model, which several may share.

    Right under the conditions of :meth:`CompiledModel.first`: terms of the members that are left out go with them, as
    do their rows, and Params of theirs are 0.

    Parameters
    ----------
    larger : TracedModel
    members : pyomo set
        The set of the larger model.
    size : int
        Number of its members that there are.
    data : mapping of str to array_like
        Values of all Params, those of the members that there are.
    """

    def __init__(
        self,
        larger: TracedModel,
        members: Any,
        size: int,
        data: Mapping[str, ArrayLike],
    ) -> None:
        self.model, self.untraced = larger.model, larger.untraced
        self._larger, self._members, self._size = larger, members, size
        self._data: dict[str, NDArray[np.float64]] = {}
        self._places: dict[int, NDArray[np.int64]] = {}
        whole = larger.program
        constraints = [each.component for each in larger.rows_of.values()]
        column = self._numbered(larger.variables, whole.columns)
        row = self._numbered(constraints, whole.rows)
        self._columns, self._rows = np.flatnonzero(column >= 0), np.flatnonzero(row >= 0)
        row_of_entry = row[rows_of_entries(whole)]
        self._entries = np.flatnonzero((row_of_entry >= 0) & (column >= 0)[whole.index])
        columns, rows = len(self._columns), len(self._rows)
        ends = np.cumsum(np.bincount(row_of_entry[self._entries], minlength=rows))
        self.program = LinearProgram(
            np.zeros(columns),
            0.0,
            whole.maximise,
            np.zeros(columns),
            np.zeros(columns),
            np.zeros(rows),
            np.zeros(rows),
            np.concatenate(([0], ends)).astype(np.int32),
            column[whole.index[self._entries]].astype(np.int32),
            np.zeros(len(self._entries)),
            whole.integer[self._columns],
        )
        self.fill(data)

    def _numbered(self, components: Sequence[Any], count: int) -> NDArray[np.int64]:
        """Number of each column or row of the larger model among those that there are, -1 for others."""
        # From 1 on, as 0 stands for members without a row.
        numbers = np.arange(1, count + 1)
        parts = [self._larger.part(numbers, each)[self._first(each)] for each in components]
        there = np.zeros(count + 1, dtype=bool)
        for part in parts:
            there[part] = True
        there[0] = False
        number = np.where(there, np.cumsum(there) - 1, -1)
        self._places |= {id(k): number[part] for k, part in zip(components, parts, strict=True)}
        return number[1:]

    def _first(self, component: Any) -> tuple[slice, ...]:
        """Part of the larger model's array of a component that there is."""
        return self._larger.first(component, self._members, self._size)

    def fill(self, data: Mapping[str, ArrayLike]) -> None:
        """New values of some Params; the arrays of :attr:`program` are filled again in place."""
        own = dict(self._data)
        for name, values in data.items():
            parameter, shape = self._larger.parameter(name)
            part = np.empty(shape)[self._first(parameter)].shape
            own[name] = shaped(name, values, part).reshape(part)
        padded = {}
        # All of them: others that share the larger model have filled in theirs.
        for name, numbers in own.items():
            parameter, shape = self._larger.parameter(name)
            padded[name] = np.zeros(shape)
            padded[name][self._first(parameter)] = numbers
        self._larger.fill(padded)
        self._data = own
        whole, program = self._larger.program, self.program
        program.value[:] = whole.value[self._entries]
        program.cost[:], program.offset = whole.cost[self._columns], whole.offset
        program.lower[:], program.upper[:] = whole.lower[self._columns], whole.upper[self._columns]
        program.row_lower[:] = whole.row_lower[self._rows]
        program.row_upper[:] = whole.row_upper[self._rows]

    def _place(self, component: Any) -> NDArray[np.int64]:
        """Columns of a Var or rows of a Constraint, in the shape of its index set; -1 where it has none."""
        known = self._places.get(id(component))
        if known is None:
            nothing = self._larger.part(np.zeros(0), component)
            known = np.full_like(nothing[self._first(component)], -1, dtype=np.int64)
        return known

    def place(self, component: Any) -> NDArray[np.int64]:
        """As :meth:`TracedModel.place`."""
        found = self._place(component)
        return found[found >= 0]

    def part(self, array: NDArray[np.float64], component: Any) -> NDArray[np.float64]:
        """As :meth:`TracedModel.part`."""
        return np.append(array, 0.0)[self._place(component)]
