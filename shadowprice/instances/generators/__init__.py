"""Generators of workloads, all by seed: one file each, found by name.

A generator is a module with ``NAME`` and ``generate(*, jobs, seed, ...) -> Workload``; adding one
is adding its file.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

from shadowprice.errors import InputError
from shadowprice.instances.entries import known_keys
from shadowprice.instances.workload import Workload

__all__ = ["generate", "generators"]


def generators() -> dict[str, ModuleType]:
    """All generators by name."""
    names = (f"{__name__}.{module.name}" for module in pkgutil.iter_modules(__path__))
    modules = (importlib.import_module(name) for name in names)
    return {module.NAME: module for module in modules if hasattr(module, "NAME")}


def generate(name: str, **parameters: Any) -> Workload:
    """A workload of a named law; the same parameters and seed give the same jobs.

    Raises
    ------
    InputError
        If the name or a parameter is unknown, or a value is out of range.
    """
    known = generators()
    if name not in known:
        raise InputError(f"generator {name!r}: expected one of {', '.join(sorted(known))}")
    accepted = inspect.signature(known[name].generate).parameters
    known_keys(parameters, f"generator {name!r}: parameters", tuple(accepted))
    workload: Workload = known[name].generate(**parameters)
    return workload
