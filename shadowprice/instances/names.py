"""Names of jobs, GPU types and nodes, in arrays that hold them as positions in a table.

Sets of a model hold names, and arrays are fast as long as they hold numbers: :class:`Names` is both. Text is made only
where somebody reads a name::

    job = Names(["ada-1", "ada-2", "bob-1"])
    job[np.array([0, 0, 2])]            # ada-1, ada-1, bob-1; O(array), no text
    tuples(job[who], slot)              # a set of pairs ("ada-1", 0), ...

While a model is compiled, every name has a number of its own (:class:`NameCodes`), so that looking up is done by NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError

Whole = NDArray[np.int64]

FIRST_CODE = 2**62
"""Codes of names begin here; whole numbers below stand for themselves."""


class NameTable:
    """Different names in an order, made when they are first needed.

    Attributes
    ----------
    read : bool
        Whether somebody has looked at a name: what was made then may be another thing for other names.
    """

    def __init__(self, size: int, made: Callable[[], Iterable[Any]]) -> None:
        self.size = size
        self.read = False
        self._made = made
        self._texts: list[str] | None = None

    @property
    def texts(self) -> list[str]:
        """All names; looking at them here does not count as reading.

        Raises
        ------
        InputError
            If one occurs twice.
        """
        if self._texts is None:
            self._texts = list(self._made())
            if len(set(self._texts)) < len(self._texts):
                twice = next(name for name in self._texts if self._texts.count(name) > 1)
                raise InputError(f"names: {twice!r} occurs twice, expected different ones")
        return self._texts


class Names(Sequence[str]):
    """An array of names, held as positions in a table of different ones.

    Parameters
    ----------
    names : sequence of str
        Different ones, such as the ids of jobs.

    Attributes
    ----------
    table : NameTable
    positions : ndarray of int
    """

    def __init__(self, names: Sequence[str] | NDArray[Any]) -> None:
        self.table = NameTable(
            len(names), names.tolist if isinstance(names, np.ndarray) else lambda: names
        )
        self.positions: Whole = np.arange(len(names))

    @classmethod
    def at(cls, table: NameTable, positions: Whole) -> Names:
        """Names of a table by position."""
        made = cls.__new__(cls)
        made.table, made.positions = table, positions
        return made

    @classmethod
    def numbered(cls, word: str, size: int) -> Names:
        """Names of things that have none of their own: ``job-0``, ``job-1``, ..."""
        return cls.at(
            NameTable(size, lambda: (f"{word}-{k}" for k in range(size))), np.arange(size)
        )

    @classmethod
    def known(cls, names: Sequence[str] | NDArray[Any], word: str, size: int) -> Names:
        """Names as they are known; numbered if there are none.

        Raises
        ------
        InputError
            If there are some, but not as many as things.
        """
        if not len(names):
            return cls.numbered(word, size)
        if len(names) != size:
            raise InputError(f"names: {len(names)} of {size} times {word!r}, expected all or none")
        return cls(names)

    @classmethod
    def of(cls, values: Iterable[Any]) -> Names:
        """An array of any names, of which some may be the same; O(values) in Python."""
        found: dict[Any, int] = {}
        positions = [found.setdefault(value, len(found)) for value in values]
        return cls.at(NameTable(len(found), lambda: found), np.array(positions, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.positions)

    @overload
    def __getitem__(self, where: int) -> str: ...

    @overload
    def __getitem__(self, where: slice | NDArray[Any]) -> Names: ...

    def __getitem__(self, where: Any) -> Any:
        if isinstance(where, slice | np.ndarray):
            return Names.at(self.table, self.positions[where])
        self.table.read = True
        return self.table.texts[self.positions[where]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def tolist(self) -> list[str]:
        """The names as text."""
        self.table.read = True
        texts = self.table.texts
        return [texts[k] for k in self.positions.tolist()]

    @property
    def different(self) -> Names:
        """The names that occur, each once, in the order of their first places."""
        return self[np.sort(np.unique(self.positions, return_index=True)[1])]

    @property
    def whole(self) -> bool:
        """True if these are all names of the table in its order."""
        size = self.table.size
        return len(self.positions) == size and bool((self.positions == np.arange(size)).all())


class NameCodes:
    """A whole number for every name, the same wherever it occurs; whole numbers stand for themselves.

    Names of a table that shares none with those before have codes one after the other.
    """

    def __init__(self) -> None:
        self._codes: dict[Hashable, int] = {}
        self._tables: dict[int, tuple[NameTable, Whole]] = {}
        self._constants: set[Hashable] = set()
        self._any_is_read = False

    def column(self, values: NDArray[Any] | Names | Iterable[Any]) -> Whole:
        """Codes of an array, O(array) and O(table) once; of other values one by one."""
        if isinstance(values, Names):
            return self._table(values.table)[values.positions]
        if isinstance(values, np.ndarray) and values.dtype.kind == "i":
            return values
        return np.array([self.code(value) for value in values], dtype=np.int64)

    def code(self, value: Any) -> int:
        """Code of a name or number, as equal ones have the same hash."""
        number = float(value) if isinstance(value, int | float | np.integer | np.floating) else 0.5
        if number.is_integer() and abs(number) < FIRST_CODE:
            return int(value)
        return self._codes.setdefault(value, FIRST_CODE + len(self._codes))

    def constant(self, value: Any) -> int:
        """Code of a name that a rule has as an index; tables that have the name count as read."""
        self._constants.add(value)
        for table, _ in self._tables.values():
            table.read = table.read or value in table.texts
        return self.code(value)

    def compared(self, value: Any) -> int:
        """Code of a name that a rule compares an index with; all tables count as read."""
        self._any_is_read = True
        for table, _ in self._tables.values():
            table.read = True
        return self.code(value)

    def _table(self, table: NameTable) -> Whole:
        known = self._tables.get(id(table))
        if known is None:
            texts, first = table.texts, FIRST_CODE + len(self._codes)
            table.read |= self._any_is_read or not self._constants.isdisjoint(texts)
            if self._codes.keys().isdisjoint(texts):
                self._codes.update(zip(texts, count(first)))
                codes = np.arange(first, first + len(texts))
            else:
                codes = np.array([self.code(text) for text in texts], dtype=np.int64)
            known = self._tables[id(table)] = (table, codes)
        return known[1]


def is_named(column: Whole) -> bool:
    """True if an array of codes has a name in it."""
    return bool(len(column)) and int(column.max()) >= FIRST_CODE
