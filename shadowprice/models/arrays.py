"""Index sets and Params of Pyomo models that are held as NumPy arrays.

They are used like any others, in rules and by Pyomo's own writers. What differs is how they are made:
from arrays, without an object for each member. A set of tuples is :func:`tuples`, a set for every
member of another is :func:`subsets`, data are :func:`param`::

    m.JT = tuples(job, slot)                     # pairs (j, t)
    m.slots_of = subsets(m.J, job, slot)         # for each j the t with (j, t) in JT
    m.w = param(weight, m.J)                     # w_j
    m.x = pyo.Var(m.JT, domain=pyo.Binary, dense=False)
    sum(m.x[j, t] for t in m.slots_of[j])        # in the rule of a constraint over m.J

A Var over a large set is made with ``dense=False``: then Pyomo makes no object for each of its
members either. Its bounds may be a rule, which is called once for all members. A :class:`NumberSet` is 0, 1, ...,
of which there may be more or fewer from one compilation of a model to the next.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray
from pyomo.core.base.set import IndexedSet, InsertionOrderSetData, OrderedSetOf, RangeSet

from shadowprice.errors import InputError

SPARSE = 8
"""A table of positions has at most this many times as many places as a set has members."""


class _Rows(Sequence[Hashable]):
    """Tuples, or single numbers, from one array for each of their places."""

    def __init__(self, columns: Sequence[NDArray[Any]]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, position: Any) -> Any:
        return self._members[position]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._members)

    def __contains__(self, member: Any) -> bool:
        return member in self._positions

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """Position of a member."""
        position = self._positions.get(value, -1)
        if position < start or (stop is not None and position >= stop):
            raise ValueError(f"{value!r} is not in the set")
        return position

    @cached_property
    def _members(self) -> list[Hashable]:
        lists = [column.tolist() for column in self.columns]
        return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {member: position for position, member in enumerate(self._members)}


class TupleSet(OrderedSetOf):  # type: ignore[misc]
    """Pyomo set of the rows of some arrays, in their order; made by :func:`tuples`.

    Attributes
    ----------
    columns : tuple of ndarray of int, each of shape (members,)
    """

    def __init__(self, *columns: NDArray[Any]) -> None:
        self.columns = columns
        super().__init__(_Rows(columns))

    @property
    def dimen(self) -> int:
        """Length of a tuple."""
        return len(self.columns)

    def __len__(self) -> int:
        return len(self.columns[0])


class NumberSet(TupleSet):
    """Pyomo set of 0, 1, ..., of which there may be more or fewer from one compilation to the next.

    Parameters
    ----------
    size : int
    """

    def __init__(self, size: int) -> None:
        super().__init__(np.arange(size))

    def resize(self, size: int) -> None:
        """Have so many members. What was made of the members before, such as rows that were read, is not made anew."""
        self.columns = (np.arange(size),)
        self._ref = _Rows(self.columns)


class SubsetFamily(IndexedSet):  # type: ignore[misc]
    """Sets of tuples by the members of another set; made by :func:`subsets`.

    Attributes
    ----------
    columns : tuple of ndarray of int, each of shape (members of all sets,)
        Tuples of all sets, one set after the other.
    ends : ndarray of int, shape (sets + 1,)
        The set at position k has rows ``ends[k]`` to ``ends[k + 1]``.
    """

    _ComponentDataClass = InsertionOrderSetData

    def __init__(
        self, index_set: Any, columns: tuple[NDArray[Any], ...], ends: NDArray[np.int64]
    ) -> None:
        self.columns, self.ends = columns, ends
        super().__init__(index_set)

    def construct(self, data: Any = None) -> None:
        """Nothing but the mark: sets are made when they are asked for by index."""
        self._constructed = True

    def __len__(self) -> int:
        return len(self.ends) - 1

    def _pprint(self) -> Any:
        """Table that ``pprint`` shows: all sets."""
        sets = [(index, self[index]) for index in self.index_set()]
        headers = [("Size", len(self)), ("Index", self.index_set())]
        return headers, sets, ("Size", "Members"), lambda _, each: [len(each), list(each)]

    def _getitem_when_not_present(self, index: Any) -> Any:
        position = self._positions[index]
        rows = slice(self.ends[position], self.ends[position + 1])
        found = TupleSet(*(column[rows] for column in self.columns))
        self._data[index] = found
        return found

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {member: position for position, member in enumerate(self.index_set())}

    @property
    def nonempty(self) -> TupleSet:
        """Members of the index set whose sets have any."""
        filled = np.diff(self.ends) > 0
        return TupleSet(*(column[filled] for column in _members(self.index_set())))


class ArrayValues:
    """Values of a Param, looked up by its index only where somebody asks for one.

    Attributes
    ----------
    array : ndarray, flat, in the order of the index set
    """

    def __init__(self, values: NDArray[Any], index_set: Any) -> None:
        self.array: NDArray[np.float64] = values.astype(np.float64)
        self._values = values
        self._index_set = index_set

    def __getitem__(self, index: Any) -> int | float:
        value: int | float = self._values[self.position(index)].item()
        return value

    def position(self, index: Any) -> int:
        """Position of a member of the index set."""
        return self._positions[index]

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {member: position for position, member in enumerate(self._index_set)}


class TuplePositions:
    """Positions of tuples of whole numbers by one number for each tuple, O(1) or O(log n) each."""

    def __init__(self, columns: Sequence[NDArray[Any]]) -> None:
        self._low = [int(column.min()) for column in columns]
        self._high = [int(column.max()) for column in columns]
        # Python's own numbers: the product may be beyond 64 bits, and is then refused.
        places = math.prod(high - low + 1 for low, high in zip(self._low, self._high, strict=True))
        if places >= 2**62:
            raise InputError(
                "index set: its numbers are too far apart, expected 2^62 tuples between them"
            )
        code, _ = self._code(columns)
        size = len(code)
        self._table: NDArray[np.int64] | None = None
        if places <= SPARSE * size + 1024:
            self._table = np.full(places, -1, dtype=np.int64)
            self._table[code] = np.arange(size)
        else:
            self._order = np.argsort(code, kind="stable")
            self._sorted = code[self._order]

    def _code(self, columns: Sequence[NDArray[Any]]) -> tuple[NDArray[np.int64], Any]:
        """Number of each tuple, and which tuples are outside the limits (False for none)."""
        code: Any = 0
        outside: Any = False
        for column, low, high in zip(columns, self._low, self._high, strict=True):
            if len(column) and (column.min() < low or column.max() > high):
                beyond = (column < low) | (column > high)
                outside, column = outside | beyond, np.where(beyond, low, column)
            code = code * (high - low + 1) + (column - low)
        return code, outside

    def positions(self, columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
        """Position of each tuple, -1 where it is no member."""
        code, outside = self._code(columns)
        if self._table is not None:
            found = self._table[code]
        else:
            place = np.minimum(np.searchsorted(self._sorted, code), len(self._sorted) - 1)
            found = np.where(self._sorted[place] == code, self._order[place], -1)
        return found if outside is False else np.where(outside, -1, found)


def tuples(*columns: ArrayLike) -> Any:
    """Pyomo set of tuples of whole numbers, one array for each of their places; O(1).

    Parameters
    ----------
    *columns : array_like of int, each of shape (members,)
        One alone makes a set of numbers. No tuple may occur twice.

    Raises
    ------
    InputError
        If the arrays are not whole numbers of one length.
    """
    return TupleSet(*_columns(columns, None))


def subsets(index_set: Any, key: ArrayLike | tuple[ArrayLike, ...], *columns: ArrayLike) -> Any:
    """Family of sets of tuples, one set for each member of an index set of whole numbers.

    O(tuples) if the index set is a range. ``family[k]`` has the tuples whose key is k, in order.

    Parameters
    ----------
    index_set : pyomo set
    key : array_like of int, shape (tuples,), or tuple of them
        Member of ``index_set`` to which each tuple belongs; one array for each of its places.
    *columns : array_like of int, each of shape (tuples,)

    Raises
    ------
    InputError
        If the arrays are not whole numbers of one length, or a key is not in the index set.
    """
    parts = key if isinstance(key, tuple) else (key,)
    place = _columns(parts, None)
    arrays = _columns(columns, len(place[0]))
    keys = _positions(index_set, place)
    members = len(index_set)
    wrong = np.flatnonzero(keys < 0)
    if len(wrong):
        found = tuple(int(part[wrong[0]]) for part in place)
        raise InputError(f"subsets: {found} is not in the index set")
    ends = np.concatenate(([0], np.cumsum(np.bincount(keys, minlength=members))))
    if len(keys) and (np.diff(keys) < 0).any():
        by_key = np.argsort(keys, kind="stable")
        arrays = tuple(column[by_key] for column in arrays)
    return SubsetFamily(index_set, arrays, ends.astype(np.int64))


def param(values: ArrayLike, *index_sets: Any, mutable: bool = True) -> Any:
    """Pyomo Param with these values; O(1).

    Parameters
    ----------
    values : array_like
        A number, or an array in the shape or flat in the order of the index sets.
    mutable : bool
        Whether the values may be set anew. What says how long a ``range`` is, or is compared with
        an index, may not.

    Raises
    ------
    InputError
        If the shape is not that of the index sets.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise InputError(f"param: an array of {array.dtype}, expected numbers")
    if not index_sets:
        if array.ndim:
            raise InputError(f"param: an array of shape {array.shape}, expected a number")
        return pyo.Param(initialize=array.item(), mutable=mutable)
    shape = tuple(len(each) for each in index_sets)
    if array.shape != shape and array.shape != (math.prod(shape),):
        raise InputError(f"param: an array of shape {array.shape}, expected {shape}")
    made = pyo.Param(*index_sets, mutable=mutable)
    made.set_default(ArrayValues(array.ravel(), made.index_set()))
    return made


def _positions(index_set: Any, place: tuple[NDArray[np.int64], ...]) -> NDArray[np.int64]:
    """Positions in a set of whole numbers or tuples of them, -1 where there is none."""
    if isinstance(index_set, RangeSet) and len(place) == 1:
        size = len(index_set)
        first = index_set.at(1) if size else 0
        step = index_set.at(2) - first if size > 1 else 1  # Pyomo's own step of one number is 0.
        position, rest = np.divmod(place[0] - first, step)
        return np.where((rest == 0) & (position >= 0) & (position < size), position, -1)
    members = _members(index_set)
    if not len(members[0]):
        return np.full(len(place[0]), -1)
    return TuplePositions(members).positions(place)


def _members(index_set: Any) -> tuple[NDArray[np.int64], ...]:
    """Members of a set of whole numbers or tuples of them, one array for each of their places."""
    if isinstance(index_set, TupleSet):
        return index_set.columns
    table = np.array(list(index_set), dtype=np.int64)
    return tuple(table.T) if table.ndim > 1 else (table,)


def _columns(given: Sequence[ArrayLike], length: int | None) -> tuple[NDArray[np.int64], ...]:
    """Arrays of whole numbers of one length, or :class:`InputError`."""
    arrays = [np.asarray(each) for each in given]
    for array in arrays:
        length = array.shape[0] if array.ndim and length is None else length
        if array.shape != (length,):
            raise InputError(
                f"index set: an array of shape {array.shape}, expected one dimension and as many "
                f"numbers as the others have ({length})"
            )
        if array.size and array.dtype.kind not in "iub":
            raise InputError(f"index set: an array of {array.dtype}, expected whole numbers")
    if not arrays:
        raise InputError("index set: no arrays, expected one for each place of a tuple")
    return tuple(array.astype(np.int64) for array in arrays)
