"""Values that a function reads beside its arguments, so that what it made may be used again, or not."""

from __future__ import annotations

import sys
from functools import cache, partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

_LIBRARIES = frozenset({"numpy", "pyomo", "scipy", "pandas", "networkx", "shadowprice"})
"""Beside the standard library, modules whose contents do not change while a programme runs."""

_OF_OTHERS = _LIBRARIES - {"shadowprice"}

_CONSTANT = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))


class _MayChange(Exception):
    """Something was found that may be different on the next call."""


def values_read(function: Any) -> tuple[object, ...] | None:
    """Code of a function and of those it calls, and constants they read; None if they read what may change.

    Two calls of one function with equal arguments and equal values read do the same. Read means:
    free variables, defaults and global names, in functions defined inside it as well. Lists, arrays,
    objects, classes and modules of one's own may change without leaving a trace, so they give None.
    """
    read: list[object] = []
    try:
        _add(function, read, set())
    except _MayChange:
        return None
    return tuple(read)


def _add(value: Any, read: list[object], seen: set[int]) -> None:
    """Add what a value makes of the values read; at every solve, so in one list."""
    if id(value) in seen or isinstance(value, BuiltinFunctionType):
        return
    if isinstance(value, FunctionType):
        seen.add(id(value))
        if value.__module__.partition(".")[0] not in _OF_OTHERS:
            _add_function(value, read, seen)
    elif isinstance(value, _CONSTANT):
        read.append(value)
    elif isinstance(value, (tuple, frozenset)):
        read.append(len(value))
        for part in value:
            _add(part, read, seen)
    elif isinstance(value, (ModuleType, type)):
        seen.add(id(value))
        home = value.__name__ if isinstance(value, ModuleType) else value.__module__
        name = home.partition(".")[0]
        if name not in _LIBRARIES and name not in sys.stdlib_module_names:
            raise _MayChange
    elif isinstance(value, partial):
        _add((value.func, value.args, tuple(sorted(value.keywords.items()))), read, seen)
    elif getattr(type(value), "__module__", "") != "typing":
        raise _MayChange


def _add_function(function: FunctionType, read: list[object], seen: set[int]) -> None:
    # A name may be bound to another function that reads the same.
    read.append(function.__code__)
    try:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # A name that is not bound yet.
        raise _MayChange from None
    for value in (*cells, *(function.__defaults__ or ())):
        _add(value, read, seen)
    for value in (function.__kwdefaults__ or {}).values():
        _add(value, read, seen)
    known = function.__globals__
    for name in _names(function.__code__):
        if name in known:
            _add(known[name], read, seen)


@cache
def _names(code: CodeType) -> tuple[str, ...]:
    """Names that code looks up, with those of functions defined in it, in order."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= set(_names(constant))
    return tuple(sorted(found))
