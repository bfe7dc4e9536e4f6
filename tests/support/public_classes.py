"""Every class of the package that a public name leads to, by its annotations."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import shadowprice as sp
from support.paths import ROOT

sys.path.append(str(ROOT / "docs" / "sphinx_extensions"))
import reference_pages


def public_things() -> list[Any]:
    """Classes and functions that the API reference lists: names of the package, and those of its public modules."""
    found = [getattr(sp, name) for name in sp.__all__]
    for _, modules in reference_pages.MODULES.values():
        for module in map(importlib.import_module, modules):
            found += [thing for name, thing in vars(module).items() if _is_own(module, name, thing)]
    return found


def _is_own(module: ModuleType, name: str, thing: Any) -> bool:
    of_code = inspect.isclass(thing) or inspect.isfunction(thing)
    return of_code and not name.startswith("_") and thing.__module__ == module.__name__


def public_classes() -> dict[type, str]:
    """Classes that public things are, return or hold, with the way to each."""
    found: dict[type, str] = {}
    ahead = [(thing, thing.__name__) for thing in public_things()]
    seen = set()
    while ahead:
        thing, path = ahead.pop(0)
        if thing in seen:
            continue
        seen.add(thing)
        if inspect.isclass(thing):
            found[thing] = path
        for text in _annotations(thing):
            for name in sorted(set(re.findall(r"\b[A-Z]\w+", text)) & set(_homes())):
                each = getattr(importlib.import_module(_homes()[name]), name)
                ahead.append((each, f"{path} > {name}"))
    return found


def enums() -> set[str]:
    """Names of the enumerations of the package."""
    return {name for name, thing in _all_classes().items() if issubclass(thing, Enum)}


@cache
def _all_classes() -> dict[str, type]:
    return {name: getattr(importlib.import_module(home), name) for name, home in _homes().items()}


def fields_of(thing: type) -> dict[str, str]:
    """Annotations of a class and its bases, as they are written."""
    found: dict[str, str] = {}
    for each in reversed(thing.__mro__):
        found.update(
            {key: str(value) for key, value in vars(each).get("__annotations__", {}).items()}
        )
    return found


def _annotations(thing: Any) -> Iterator[str]:
    """Annotations of what a class holds and its methods return, or of what a function returns."""
    if inspect.isfunction(thing):
        yield str(thing.__annotations__.get("return", ""))
        return
    yield from (text for name, text in fields_of(thing).items() if not name.startswith("_"))
    for name in dir(thing):
        if not name.startswith("_"):
            member = inspect.getattr_static(thing, name)
            code = getattr(member, "fget", getattr(member, "func", member))
            code = getattr(code, "__func__", code)
            if inspect.isfunction(code) or isinstance(member, cached_property):
                yield str(getattr(code, "__annotations__", {}).get("return", ""))


@cache
def _homes() -> dict[str, str]:
    """Modules by the classes that they define; names are unique in the package."""
    homes = {}
    for path in sorted((ROOT / "shadowprice").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name] = module
    return homes
