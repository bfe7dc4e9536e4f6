"""Index sets of Pyomo models as arrays: members by position, positions by member.

Names are held by their codes (:class:`~shadowprice.instances.names.NameCodes`), so that all is whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.core.base.set import RangeSet, SetProduct

from shadowprice.errors import InputError
from shadowprice.instances.names import NameCodes
from shadowprice.models.arrays import TuplePositions, TupleSet

Column = NDArray[np.int64]
"""Whole numbers, and codes of names."""


class NotTraceable(Exception):
    """A component of a model cannot be expanded as arrays; the message says why."""


class Members:
    """The members of a finite set, in its order.

    Parameters
    ----------
    index_set : pyomo set
    codes : NameCodes
        Of the model.
    factors : sequence of Members
        Those of the factors of a product (:func:`factors_of`).

    Attributes
    ----------
    size : int
        Number of members.
    shape : tuple of int
        Sizes of the factors of a product, otherwise (size,).
    """

    def __init__(self, index_set: Any, codes: NameCodes, factors: Sequence[Members] = ()) -> None:
        if not index_set.isfinite():
            raise NotTraceable(f"set {index_set.name} is not finite")
        self._set = index_set
        self.size: int = 0
        self.factors = factors
        self.low: int | None = None
        self._positions: dict[Any, int] | None = None
        self._codes: TuplePositions | None = None
        if factors:
            self.shape = tuple(factor.size for factor in self.factors)
            self.size = int(np.prod(self.shape))
        else:
            self.columns, self.low = _simple(index_set, codes)
            self.size = len(self.columns[0])
            self.shape = (self.size,)

    @property
    def name(self) -> str:
        """Name of the set, which Pyomo puts together each time."""
        return str(self._set.name)

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
        if self.low is not None:
            position = index[0] - self.low
            if len(position) and (position.min() < 0 or position.max() >= self.size):
                raise NotTraceable(f"an index is not in set {self.name}")
            return np.asarray(position, dtype=np.int64)
        return self._looked_up(index)

    def _looked_up(self, index: Sequence[Column]) -> NDArray[np.int64]:
        if not self.size:
            if len(index[0]):
                raise NotTraceable(f"set {self.name} is empty")
            return np.zeros(0, dtype=np.int64)
        if self._codes is None and self._positions is None:
            try:
                self._codes = TuplePositions(self.columns)
            except InputError:  # Names and numbers in one place are too far apart.
                self._positions = {key: k for k, key in enumerate(_keys(self.columns))}
        if self._codes is not None:
            position = self._codes.positions(index)
        else:
            known = self._positions or {}
            position = np.array([known.get(key, -1) for key in _keys(index)], dtype=np.int64)
        if len(position) and position.min() < 0:
            raise NotTraceable(f"an index is not in set {self.name}")
        return position


def factors_of(index_set: Any) -> list[Any]:
    """Sets of which a set is the product; none if it is no product."""
    if not isinstance(index_set, SetProduct):
        return []
    return list(index_set.subsets(expand_all_set_operators=True))


def _keys(columns: Sequence[Column]) -> list[Any]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _simple(index_set: Any, codes: NameCodes) -> tuple[list[Column], int | None]:
    """Members of a set that is no product, and the first if they are whole numbers one after the other."""
    if isinstance(index_set, RangeSet):
        ranges = list(index_set.ranges())
        if len(ranges) == 1 and ranges[0].isdiscrete() and ranges[0].step == 1:
            low, high = int(ranges[0].start), int(ranges[0].end)
            return [np.arange(low, high + 1)], low
    if isinstance(index_set, TupleSet):
        columns = [codes.column(column) for column in index_set.columns]
        return columns, _first(columns)
    dimensions, members = index_set.dimen, list(index_set)
    if not members and not isinstance(dimensions, int):
        dimensions = 1
    if not isinstance(dimensions, int):
        raise NotTraceable(f"members of set {index_set.name} have different lengths")
    if dimensions <= 1:
        columns = [codes.column(members)]
        return columns, _first(columns)
    return [codes.column([member[k] for member in members]) for k in range(dimensions)], None


def _first(columns: Sequence[Column]) -> int | None:
    """The first of members that follow each other, None of others."""
    if len(columns) != 1 or not len(columns[0]):
        return None
    low = int(columns[0][0])
    return low if np.array_equal(columns[0], np.arange(low, low + len(columns[0]))) else None
