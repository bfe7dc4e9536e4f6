"""Index sets and Params of Pyomo models that are held as NumPy arrays.

They are used like any others, in rules and by Pyomo's own writers. What differs is how they are made: from arrays,
without an object for each member. Each is one of Pyomo's own, with ``job`` and ``slot`` two arrays of one length::

    tuples(job, slot)          pyo.Set(initialize=zip(job, slot))
    subsets(m.J, job, slot)    pyo.Set(m.J, initialize=lambda m, j: the slots where job is j)
    param(weight, m.J)         pyo.Param(m.J, initialize=dict(zip(m.J, weight)), mutable=True)

    m.x = pyo.Var(m.JT, domain=pyo.Binary, dense=False)
    sum(m.x[j, t] for t in m.slots_of[j])        # in the rule of a constraint over m.J

Arrays are of whole numbers or of names (:class:`~shadowprice.instances.names.Names`), such as ids of jobs. A Var over a
large set is made with ``dense=False``: then Pyomo makes no object for each of its members either. Its bounds may be a
rule, which is called once for all members.
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
from shadowprice.instances.names import NameCodes, Names
from shadowprice.models.rule_cases import is_probing

Column = NDArray[np.int64] | Names
"""Whole numbers, or names."""

SPARSE = 8
"""A table of positions has at most this many times as many places as a set has members."""


class _Rows(Sequence[Hashable]):
    """Tuples, or single members, from one array for each of their places."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, position: Any) -> Any:
        self._seen()
        return self._members[position]

    def __iter__(self) -> Iterator[Hashable]:
        if is_probing():
            return self._one_by_one()
        self._seen()
        return iter(self._members)

    def __contains__(self, member: Any) -> bool:
        return self.place(member) >= 0

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """Position of a member."""
        position = self.place(value)
        if position < start or (stop is not None and position >= stop):
            raise ValueError(f"{value!r} is not in the set")
        return position

    def place(self, member: Any) -> int:
        """Position of a member, -1 if it is none."""
        if is_probing():  # Of the first, nearly always.
            return next((k for k, each in enumerate(self._one_by_one()) if each == member), -1)
        self._seen()
        return self._positions.get(member, -1)

    def _seen(self) -> None:
        """Note that somebody looks at members; Pyomo looks at any, to see what a template is like."""
        for column in self.columns:
            if isinstance(column, Names):
                column.table.read = True

    def _one_by_one(self) -> Iterator[Hashable]:
        """Members for who makes nothing that depends on their names."""
        if len(self.columns) == 1:
            return _unread(self.columns[0])
        return zip(*map(_unread, self.columns), strict=True)

    @cached_property
    def _members(self) -> list[Hashable]:
        lists: list[list[Any]] = [column.tolist() for column in self.columns]
        return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {member: position for position, member in enumerate(self._members)}


def _unread(column: Column) -> Iterator[Any]:
    if not isinstance(column, Names):
        return (number.item() for number in column)
    texts = column.table.texts
    return (texts[k] for k in column.positions)


class TupleSet(OrderedSetOf):  # type: ignore[misc]
    """Pyomo set of the rows of some arrays, in their order; made by :func:`tuples`.

    Attributes
    ----------
    columns : tuple of ndarray of int or Names, each of shape (members,)
    """

    def __init__(self, *columns: Column) -> None:
        self.columns = columns
        super().__init__(_Rows(columns))

    @property
    def dimen(self) -> int:
        """Length of a tuple."""
        return len(self.columns)

    @property
    def numbers(self) -> tuple[NDArray[np.int64], ...]:
        """The columns, names by their position in their table: of jobs, as the arrays of a model's data have them."""
        return tuple(
            column.positions if isinstance(column, Names) else column for column in self.columns
        )

    def place(self, member: Any) -> int:
        """Position of a member, -1 if it is none."""
        found: int = self._ref.place(member)
        return found

    def __len__(self) -> int:
        return len(self.columns[0])


class SubsetFamily(IndexedSet):  # type: ignore[misc]
    """Sets of tuples by the members of another set; made by :func:`subsets`.

    Attributes
    ----------
    columns : tuple of ndarray of int or Names, each of shape (members of all sets,)
        Tuples of all sets, one set after the other.
    ends : ndarray of int, shape (sets + 1,)
        The set at position k has rows ``ends[k]`` to ``ends[k + 1]``.
    """

    _ComponentDataClass = InsertionOrderSetData

    def __init__(
        self, index_set: Any, columns: tuple[Column, ...], ends: NDArray[np.int64]
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
        position = self._place(index)
        rows = slice(self.ends[position], self.ends[position + 1])
        found = TupleSet(*(column[rows] for column in self.columns))
        self._data[index] = found
        return found

    def _place(self, index: Any) -> int:
        own = self.index_set()
        return own.place(index) if isinstance(own, TupleSet) else self._positions[index]

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


def tuples(*columns: ArrayLike | Names) -> Any:
    """Pyomo set of tuples of whole numbers and names, one array for each of their places; O(1).

    Parameters
    ----------
    *columns : Names or array_like of int or str, each of shape (members,)
        One alone makes a set of names or numbers. No tuple may occur twice.

    Raises
    ------
    InputError
        If the arrays are not names or whole numbers, of one length.
    """
    return TupleSet(*_columns(columns, None))


def subsets(
    index_set: Any,
    key: ArrayLike | Names | tuple[ArrayLike | Names, ...],
    *columns: ArrayLike | Names,
) -> Any:
    """Family of sets of tuples, one set for each member of an index set of whole numbers and names.

    O(tuples) if the index set is a range or made of arrays. ``family[k]`` has the tuples whose key is k, in order.

    Parameters
    ----------
    index_set : pyomo set
    key : Names or array_like of int or str, shape (tuples,), or tuple of them
        Member of ``index_set`` to which each tuple belongs; one array for each of its places.
    *columns : Names or array_like of int or str, each of shape (tuples,)

    Raises
    ------
    InputError
        If the arrays are not names or whole numbers, of one length, or a key is not in the index set.
    """
    parts = key if isinstance(key, tuple) else (key,)
    place = _columns(parts, None)
    arrays = _columns(columns, len(place[0]))
    keys = _positions(index_set, place)
    members = len(index_set)
    wrong = np.flatnonzero(keys < 0)
    if len(wrong):
        found = tuple(part.tolist()[wrong[0]] for part in place)
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


def _positions(index_set: Any, place: tuple[Column, ...]) -> NDArray[np.int64]:
    """Positions in a set of whole numbers, names or tuples of them, -1 where there is none."""
    key = place[0]
    if isinstance(index_set, RangeSet) and len(place) == 1 and not isinstance(key, Names):
        size = len(index_set)
        first = index_set.at(1) if size else 0
        step = index_set.at(2) - first if size > 1 else 1  # Pyomo's own step of one number is 0.
        position, rest = np.divmod(key - first, step)
        return np.where((rest == 0) & (position >= 0) & (position < size), position, -1)
    members = _members(index_set)
    if not len(members[0]):
        return np.full(len(key), -1)
    own = members[0]
    if len(place) == 1 and isinstance(key, Names) and isinstance(own, Names):
        same = own.table is key.table and own.whole
        if same:
            return key.positions
    codes = NameCodes()
    known = [codes.column(column) for column in members]
    return TuplePositions(known).positions([codes.column(column) for column in place])


def _members(index_set: Any) -> tuple[Column, ...]:
    """Members of a set of whole numbers, names or tuples of them, one array for each of their places."""
    if isinstance(index_set, TupleSet):
        return index_set.columns
    rows = list(index_set)
    places = list(zip(*rows, strict=True)) if rows and isinstance(rows[0], tuple) else [rows]
    return tuple(_column(place) for place in places)


def _columns(columns: Sequence[ArrayLike | Names], length: int | None) -> tuple[Column, ...]:
    """Arrays of names or whole numbers, of one length, or :class:`InputError`."""
    arrays = [each if isinstance(each, Names) else np.asarray(each) for each in columns]
    for array in arrays:
        shape = (len(array),) if isinstance(array, Names) else array.shape
        length = shape[0] if shape and length is None else length
        if shape != (length,):
            raise InputError(
                f"index set: an array of shape {shape}, expected one dimension and as many members "
                f"as the others have ({length})"
            )
    if not arrays:
        raise InputError("index set: no arrays, expected one for each place of a tuple")
    return tuple(each if isinstance(each, Names) else _column(each) for each in arrays)


def _column(values: NDArray[Any] | Sequence[Any]) -> Column:
    """One array of whole numbers or names, or :class:`InputError`."""
    array = np.asarray(values)
    if array.dtype.kind == "O" and all(type(value) is int for value in values):
        array = array.astype(np.int64)
    if array.size and array.dtype.kind in "UO" and all(isinstance(each, str) for each in values):
        return Names.of(array.tolist())
    if array.size and array.dtype.kind not in "iub":
        raise InputError(f"index set: an array of {array.dtype}, expected whole numbers or names")
    return array.astype(np.int64)
