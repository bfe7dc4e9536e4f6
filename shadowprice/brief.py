"""Representations that fit on a screen, whatever an object holds, and say the same in every process."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from fractions import Fraction
from html import escape
from typing import Any

COLUMNS = 100
"""Most characters in a line."""
MOST_ROWS = 15
"""Most rows of a table in text."""
SHOWN_ROWS, SHOWN_COLUMNS = 10, 20
"""Most rows and columns of a table in a notebook."""
_FIELDS = 16
"""Most fields that are shown."""
_ITEMS = 6
"""Items up to which a collection is shown rather than counted."""
_ROOM = 64
"""Characters of a value."""


class Brief:
    """Fields that differ from their defaults, with long values told by their size."""

    __slots__ = ()

    def __repr__(self) -> str:
        return described(type(self).__name__, dict(_shown_fields(self)))


class BriefTable(Brief):
    """Fields as of :class:`Brief`, in a notebook as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_table(dict(_shown_fields(self)))


def described(name: str, fields: Mapping[str, str]) -> str:
    """Fields of an object on one line, or on one each where a line is too short."""
    parts = [cut(f"{key}={value}", COLUMNS - 5) for key, value in fields.items()]
    line = f"{name}({', '.join(parts)})"
    if len(line) <= COLUMNS:
        return line
    if len(parts) > _FIELDS:
        parts = [*parts[:_FIELDS], f"... {len(parts) - _FIELDS} more"]
    return "\n".join((f"{name}(", *(f"    {part}," for part in parts), ")"))


def table_lines(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table as aligned text, the first column to the left; of many rows the first, and how many more."""
    shown = [names, *rows[:MOST_ROWS]]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = [
        "  ".join((row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:]))).rstrip()
        for row in shown
    ]
    return lines if len(rows) <= MOST_ROWS else [*lines, f"... {len(rows) - MOST_ROWS} more"]


def screen(head: str, *parts: Sequence[str]) -> str:
    """A heading and lines below it, none longer than a screen is wide."""
    return "\n".join(
        cut(line, COLUMNS) for line in (head, *(each for part in parts for each in part))
    )


def html_table(fields: Mapping[str, str]) -> str:
    """A table of names and values for a notebook."""
    rows = "".join(
        f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in fields.items()
    )
    return f"<table>{rows}</table>"


def short(value: object, deep: int = 1) -> str:
    """A value on one line of few characters; one that is long by its kind and size.

    Parameters
    ----------
    deep : int
        Levels of :class:`Brief` objects within others of which fields are told: trees may be deep.

    Examples
    --------
    >>> short((1, 2)), short(list(range(500))), short({"a": 1}), short("x" * 1000)
    ('(1, 2)', '500 x int', "{'a': 1}", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' (1000 characters)")
    >>> short(Fraction(10**40, 3))
    'about 3.33333e+39'
    """
    for kind, told in _KINDS:
        if isinstance(value, kind):
            return told(value)
    for kind, gathered in _COLLECTIONS:
        if isinstance(value, kind):
            return gathered(value, deep)
    text = f"{type(value).__name__}(...)"
    if type(value).__repr__ is Brief.__repr__:
        line = (
            described(type(value).__name__, dict(_shown_fields(value, deep - 1))) if deep else text
        )
        return line if len(line) <= _ROOM else text
    if hasattr(value, "shape") and hasattr(value, "dtypes"):
        return f"table of {value.shape[0]} rows"
    if hasattr(value, "shape") and hasattr(value, "tolist"):
        size = " x ".join(map(str, value.shape))
        return short(value.tolist()) if value.shape in ((0,), (1,)) else f"array of {size}"
    if callable(value) and not dataclasses.is_dataclass(value):
        return str(getattr(value, "__qualname__", type(value).__name__))
    line = f"{type(value).__name__}()"
    if type(value).__repr__ is not object.__repr__:
        line = repr(value)
    return line if len(line) <= _ROOM and "\n" not in line else text


def cut(text: str, most: int) -> str:
    """A text on one line of at most so many characters."""
    line = " ".join(text.split("\n"))
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _text(value: str) -> str:
    if len(value) <= _ROOM - 4:
        return cut(repr(value), _ROOM)
    return f"{cut(value, 39)!r} ({len(value)} characters)"


def _fraction(value: Fraction) -> str:
    text = str(value)
    if len(text) <= 24:
        return text
    try:
        return f"about {float(value):.6g}"
    except OverflowError:
        return f"a number of {len(str(int(value)))} digits"


def _mapping(value: Mapping[Any, Any], deep: int) -> str:
    items = (f"{short(key, deep)}: {short(each, deep)}" for key, each in value.items())
    return _listed(value, items, list(value.values()), "{%s}")


def _sequence(value: Sequence[Any], deep: int) -> str:
    single = "(%s,)" if len(value) == 1 else "(%s)"
    form = single if isinstance(value, tuple) else "[%s]"
    return _listed(value, (short(each, deep) for each in value), value, form)


def _set(value: Set[Any], deep: int) -> str:
    return _listed(value, sorted(short(each, deep) for each in value), list(value), "{%s}")


def _listed(value: Any, items: Iterator[str] | list[str], each: Sequence[object], form: str) -> str:
    """Items, if they are few and short; else how many, and of what kind."""
    if len(value) <= _ITEMS:
        text = form % ", ".join(items)
        if len(text) <= _ROOM:
            return text
    kinds = sorted({type(one).__name__ for one in each})
    return f"{len(value)} x {kinds[0] if len(kinds) == 1 else 'values'}"


def _shown_fields(thing: object, deep: int = 1) -> Iterator[tuple[str, str]]:
    """Names of an object's fields that differ from their defaults, with their values in short."""
    if dataclasses.is_dataclass(thing):
        for field in dataclasses.fields(thing):
            value = getattr(thing, field.name)
            if field.repr and not field.name.startswith("_") and not _is_default(value, field):
                yield field.name, short(value, deep)
        return
    names: tuple[str, ...] = getattr(thing, "__struct_fields__", ())
    for name in names:
        yield name, short(getattr(thing, name), deep)


def _is_default(value: object, field: dataclasses.Field[Any]) -> bool:
    """True for a plain value that is the field's default; arrays and the like are not compared."""
    return (
        isinstance(value, _PLAIN) and type(value) is type(field.default) and value == field.default
    )


_PLAIN = (bool, int, float, str, tuple, type(None))
_KINDS: tuple[tuple[type, Callable[[Any], str]], ...] = ((str, _text), (Fraction, _fraction))
_COLLECTIONS: tuple[tuple[type, Callable[[Any, int], str]], ...] = (
    (Mapping, _mapping),
    (tuple, _sequence),
    (list, _sequence),
    (Set, _set),
)
