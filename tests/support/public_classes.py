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

OF_COMMANDS = (
    "shadowprice.analysis.calibration",
    "shadowprice.analysis.jobs_and_cluster",
    "shadowprice.analysis.run_directory.files",
    "shadowprice.studies.comparisons",
    "shadowprice.studies.difference",
    "shadowprice.studies.plan",
    "shadowprice.analysis.trace.contents",
    "shadowprice.analysis.trace.fit",
)
"""Modules whose results commands print; nobody is promised them in Python, and they are shown there."""


def public_things() -> list[Any]:
    """Classes and functions that the API reference lists: names of the package, and those of its public modules."""
    found = [getattr(sp, name) for name in sp.__all__]
    for modules in [*(modules for _, modules in reference_pages.MODULES.values()), OF_COMMANDS]:
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
            of_modules = set(re.findall(r"\.([A-Z]\w+)", text)) & set(_homes())
            named = set(re.findall(r"\b[A-Z]\w+", text)) & seen_from(thing)
            for name in sorted(named | of_modules):
                each = getattr(importlib.import_module(_homes()[name]), name)
                ahead.append((each, f"{path} > {name}"))
    return found


def seen_from(thing: Any) -> set[str]:
    """Names of classes of the package in the file of a class or function, and in those of its bases."""
    homes = {each.__module__ for each in getattr(thing, "__mro__", (thing,))}
    return {name for home in homes if home.startswith("shadowprice") for name in _named_in(home)}


@cache
def _named_in(module: str) -> frozenset[str]:
    """Classes that a module defines or imports, those for type checkers among them."""
    found = {name for name, home in _homes().items() if home == module}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        if isinstance(node, ast.ImportFrom):
            found |= {each.name for each in node.names if _homes().get(each.name) == node.module}
    return frozenset(found)


def is_enum(name: str) -> bool:
    """True for the name of an enumeration of the package."""
    home = _homes().get(name)
    return home is not None and issubclass(getattr(importlib.import_module(home), name), Enum)


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
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            homes[name] = module
    return homes
