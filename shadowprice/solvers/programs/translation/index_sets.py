"""Index sets of Pyomo models as arrays: members by position, positions by member."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.core.base.set import RangeSet, SetProduct

from shadowprice.models.arrays import NumberSet, TuplePositions, TupleSet

Column = NDArray[Any]


class NotTraceable(Exception):
    """A component of a model cannot be expanded as arrays; the message says why."""


class Members:
    """The members of a finite set, in its order.

    Attributes
    ----------
    size : int
        Number of members.
    shape : tuple of int
        Sizes of the factors of a product, otherwise (size,).
    """

    def __init__(self, index_set: Any) -> None:
        if not index_set.isfinite():
            raise NotTraceable(f"set {index_set.name} is not finite")
        self.name = index_set.name
        self.size: int = 0
        self.factors: list[Members] = []
        self.low: int | None = None
        self._positions: dict[Any, int] | None = None
        self._codes: TuplePositions | None = None
        if isinstance(index_set, SetProduct):
            self.factors = [
                Members(factor) for factor in index_set.subsets(expand_all_set_operators=True)
            ]
            self.shape = tuple(factor.size for factor in self.factors)
            self.size = int(np.prod(self.shape))
        else:
            self.columns, self.low = _simple(index_set)
            self.size = len(self.columns[0])
            self.shape = (self.size,)

    @cached_property
    def keys(self) -> list[Any]:
        """Members as Pyomo has them: tuples, or what is in them if that is one thing alone."""
        return _keys(self.columns)

    @cached_property
    def dimensions(self) -> int:
        """Length of a member as a tuple."""
        if self.factors:
            return sum(factor.dimensions for factor in self.factors)
        return len(self.columns)

    @cached_property
    def columns(self) -> list[Column]:
        """Members, one array of shape (size,) for each dimension; those of a product are made where they are read."""
        columns: list[Column] = []
        inner, outer = self.size, 1
        for factor in self.factors:
            inner //= max(factor.size, 1)
            columns += [np.tile(np.repeat(column, inner), outer) for column in factor.columns]
            outer *= factor.size
        return columns

    def positions(self, index: Sequence[Column]) -> NDArray[np.int64]:
        """Position of each member, given by one array for each dimension.

        Raises
        ------
        NotTraceable
            If one of them is not in the set.
        """
        if len(index) != self.dimensions:
            raise NotTraceable(
                f"set {self.name} has {self.dimensions} dimensions, not {len(index)}"
            )
        if self.factors:
            position: Any = 0
            for factor in self.factors:
                part, index = index[: factor.dimensions], index[factor.dimensions :]
                position = position * factor.size + factor.positions(part)
            found: NDArray[np.int64] = position
            return found
        if self.low is not None and index[0].dtype.kind == "i":
            position = index[0] - self.low
            if len(position) and (position.min() < 0 or position.max() >= self.size):
                raise NotTraceable(f"an index is not in set {self.name}")
            return np.asarray(position, dtype=np.int64)
        return self._looked_up(index)

    def _looked_up(self, index: Sequence[Column]) -> NDArray[np.int64]:
        whole = self.size and all(column.dtype.kind == "i" for column in (*index, *self.columns))
        if whole:
            if self._codes is None:
                self._codes = TuplePositions(self.columns)
            position = self._codes.positions(index)
            missing = np.flatnonzero(position < 0)
            if len(missing):
                key = tuple(int(column[missing[0]]) for column in index)
                raise NotTraceable(f"{key if len(key) > 1 else key[0]} is not in set {self.name}")
            return position
        if self._positions is None:
            self._positions = {key: k for k, key in enumerate(_keys(self.columns))}
        try:
            return np.array([self._positions[key] for key in _keys(index)], dtype=np.int64)
        except KeyError as error:
            raise NotTraceable(f"{error} is not in set {self.name}") from error


def _keys(columns: Sequence[Column]) -> list[Any]:
    lists = [column.tolist() for column in columns]
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))


def _simple(index_set: Any) -> tuple[list[Column], int | None]:
    """Members of a set that is no product, and its first one if it is a range of integers."""
    if isinstance(index_set, TupleSet):
        return list(index_set.columns), 0 if isinstance(index_set, NumberSet) else None
    dimensions = index_set.dimen
    if isinstance(index_set, RangeSet):
        ranges = list(index_set.ranges())
        if len(ranges) == 1 and ranges[0].isdiscrete() and ranges[0].step == 1:
            low, high = int(ranges[0].start), int(ranges[0].end)
            return [np.arange(low, high + 1)], low
    members = list(index_set)
    if not members and not isinstance(dimensions, int):
        dimensions = 1
    if not isinstance(dimensions, int):
        raise NotTraceable(f"members of set {index_set.name} have different lengths")
    if dimensions <= 1:
        return [_column(members)], None
    return [_column([member[k] for member in members]) for k in range(dimensions)], None


def _column(values: list[Any]) -> Column:
    if values and all(type(value) is int for value in values):
        return np.array(values, dtype=np.int64)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column if values else np.zeros(0, dtype=np.int64)
