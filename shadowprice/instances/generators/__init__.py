"""Generators of workloads, all by seed: one file each, found by name.

A generator is a module with ``NAME`` and ``generate(*, jobs, seed, ...) -> Workload``; adding one
is adding its file. One that draws job after job may also have ``endless(*, seed, ...) -> EndlessWorkload``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from inspect import signature
from types import MappingProxyType, ModuleType
from typing import Any

from shadowprice.errors import InputError
from shadowprice.instances.documents.named_settings import split_settings
from shadowprice.instances.entries import expected_name, known_keys
from shadowprice.instances.steady_state.endless import EndlessWorkload
from shadowprice.instances.workload import Workload

__all__ = ["endless", "endless_named", "generate", "generator", "generators"]


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
    make = generator(name).generate
    known_keys(parameters, f"generator {name!r}: parameters", tuple(signature(make).parameters))
    workload: Workload = make(**parameters)
    return workload


def endless(name: str, **parameters: Any) -> EndlessWorkload:
    """A workload of a named law that never ends; its first jobs are those that :func:`generate` gives.

    Raises
    ------
    InputError
        If the name or a parameter is unknown, a value is out of range, or the generator draws all its
        jobs together, so that there are no first ones.
    """
    module = generator(name)
    if not hasattr(module, "endless"):
        able = sorted(each for each, found in generators().items() if hasattr(found, "endless"))
        raise InputError(
            f"generator {name!r}: draws all its jobs together and cannot be endless, expected one of "
            f"{', '.join(able)}"
        )
    known = tuple(signature(module.endless).parameters)
    known_keys(parameters, f"endless generator {name!r}: parameters", known)
    workload: EndlessWorkload = module.endless(**parameters)
    return workload


def endless_named(text: str, more: Mapping[str, Any] = MappingProxyType({})) -> EndlessWorkload:
    """A workload that never ends, by name with parameters after a colon.

    Parameters
    ----------
    text : str
        Such as ``gavel-published:jobs_per_hour=5.6,seed=1``.
    more : mapping
        Parameters that cannot be written.

    Raises
    ------
    InputError
        As of :func:`endless`, or if a value cannot be read.
    """
    name, settings = split_settings(text, "generator")
    usual = signature(getattr(generator(name), "endless", endless)).parameters
    given = {
        key: _read(value, usual[key].default, f"generator {name!r}: {key}")
        if key in usual
        else value
        for key, value in settings.items()
    }
    if more.keys() & given.keys():
        raise InputError(
            f"generator {name!r}: {', '.join(more.keys() & given.keys())} cannot be written"
        )
    return endless(name, **given, **more)


def _read(text: str, usual: object, where: str) -> object:
    """A value as it is written, of the kind of the usual one."""
    kind = next((each for each in (bool, int, float) if isinstance(usual, each)), None)
    try:
        if kind is bool:
            return {"true": True, "false": False}[text]
        if kind is not None:
            return kind(text)
    except (ValueError, KeyError):
        pass
    raise InputError(f"{where} is {text!r}, expected a value like {str(usual).lower()}")


def generator(name: str) -> ModuleType:
    """The module of a generator.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    known = generators()
    if name not in known:
        raise InputError(
            f"generator {name!r}: {expected_name(name, known, 'shadowprice generate')}"
        )
    return known[name]
