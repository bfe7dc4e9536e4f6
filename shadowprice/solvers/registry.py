"""Policies, placements and allocation policies by name, with parameters."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import shadowprice.solvers
import shadowprice.solvers.gavel.policies
import shadowprice.solvers.placement
from shadowprice.errors import InputError
from shadowprice.instances.offers import Offers

if TYPE_CHECKING:
    from shadowprice.solvers.gavel.allocation import AllocationPolicy
    from shadowprice.solvers.placement.protocol import Placement
    from shadowprice.solvers.policy import Policy


COPIES = "hadare"
"""Name of the scheduler that runs a job as several copies; policies run it as one gang."""


def modules(package: ModuleType) -> Iterable[ModuleType]:
    """Modules of a package, in order of their names, packages in it left out."""
    for module in pkgutil.iter_modules(package.__path__):
        if not module.ispkg:
            yield importlib.import_module(f"{package.__name__}.{module.name}")


def policies() -> Mapping[str, Policy]:
    """All policies of :mod:`shadowprice.solvers` by name: the ``POLICIES`` of its modules."""
    return Offers(shadowprice.solvers, "POLICIES")


def placements() -> Mapping[str, Placement]:
    """All placements by name: the ``PLACEMENTS`` of the modules of :mod:`shadowprice.solvers.placement`."""
    return Offers(shadowprice.solvers.placement, "PLACEMENTS")


def allocations() -> Mapping[str, AllocationPolicy]:
    """All allocation policies by name: the ``ALLOCATIONS`` of :mod:`shadowprice.solvers.gavel.policies`."""
    return Offers(shadowprice.solvers.gavel.policies, "ALLOCATIONS")


def allocation(name: str) -> AllocationPolicy:
    """An allocation policy by name, with parameters after a colon: ``pop:parts=8``.

    Raises
    ------
    InputError
        If the name, a parameter or its value is unknown; the message lists what there is.
    """
    found: AllocationPolicy = resolve("allocation policy", name, allocations())
    return found


def policy(name: str) -> Policy:
    """A policy by name, with parameters after a colon: ``las2d:thresholds_gpu_s=3250/7200``.

    The first parameter may be given by its value alone where it is a name:
    ``gavel:max_min_fairness_perf,round_s=600``.

    Raises
    ------
    InputError
        If the name, a parameter or its value is unknown; the message lists what there is.
    """
    found: Policy = resolve("policy", name, policies())
    return found


def require_policy(name: str) -> None:
    """Refuse the name of no policy, whatever parameters it is given with; reads texts and imports nothing.

    Raises
    ------
    InputError
        Listing what there is.
    """
    if name.partition(":")[0] != COPIES:
        _require_known("policy", name, policies())


def resolve(
    what: str, name: str, known: Mapping[str, Any], *, fixed: frozenset[str] = frozenset()
) -> Any:
    """Look up a name, and set its parameters to those after the colon.

    Parameters
    ----------
    what
        What such a thing is called in messages.
    known
        Dataclasses by name.
    fixed
        Parameters that cannot be set here.

    Raises
    ------
    InputError
        If the name, a parameter or its value is unknown; the message lists what there is.
    """
    _require_known(what, name, known)
    base, _, settings = name.partition(":")
    return _configured(known[base], settings, what, fixed) if settings else known[base]


def _require_known(what: str, name: str, known: Mapping[str, Any]) -> None:
    base = name.partition(":")[0]
    if base not in known:
        raise InputError(f"{what} {base!r}: expected one of {', '.join(sorted(known))}")


def placement(name: str) -> Placement:
    """A placement by name, with parameters after a colon: ``skew:pack_limit=0.3``.

    Raises
    ------
    InputError
        If the name, a parameter or its value is unknown; the message lists what there is.
    """
    found: Placement = resolve("placement", name, placements())
    return found


def _configured(item: Any, settings: str, what: str, fixed: frozenset[str]) -> Any:
    name = item.name
    if not is_dataclass(item) or isinstance(item, type):
        raise InputError(f"{what} {name!r} takes no parameters")
    written = (str, bool, int, float, tuple)
    parameters = [
        f.name
        for f in fields(item)
        if f.init and f.name not in {"name", *fixed} and isinstance(getattr(item, f.name), written)
    ]
    values: dict[str, Any] = {}
    for k, setting in enumerate(settings.split(",")):
        key, equals, text = setting.partition("=")
        if k == 0 and not equals and parameters and isinstance(getattr(item, parameters[0]), str):
            key, equals, text = parameters[0], "=", setting
        if not equals or key not in parameters:
            listed = ", ".join(sorted(parameters)) or "none"
            raise InputError(
                f"{what} {name!r}: parameter {setting!r}, expected NAME=VALUE with one of {listed}"
            )
        values[key] = _value(getattr(item, key), text, f"{what} {name!r}: parameter {key}")
    return replace(item, **values)


def _value(default: object, text: str, where: str) -> object:
    try:
        if isinstance(default, tuple):
            return tuple(float(word) for word in text.split("/"))
        if isinstance(default, bool):
            return {"true": True, "false": False}[text]
        if isinstance(default, int):
            return int(text)
        if isinstance(default, float):
            return float(text)
    except (ValueError, KeyError):
        raise InputError(f"{where}: got {text!r}, expected a value like {default!r}") from None
    return text
