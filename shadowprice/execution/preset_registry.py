"""Presets by name: the ``PRESET`` of every module of the packages that distributions offer."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, MutableMapping
from functools import cache
from typing import cast

from shadowprice.entry_points import PRESETS, offers
from shadowprice.errors import InputError
from shadowprice.execution.preset import Preset
from shadowprice.instances.entries import expected_name
from shadowprice.instances.offers import Offers


def presets() -> Mapping[str, Preset]:
    """All presets by name; of two with the same name that of the entry point that comes first by its own.

    Raises
    ------
    InputError
        If a package of presets that a distribution offers cannot be imported.
    """
    # A ChainMap writes to its first mapping alone, and nobody writes here.
    return ChainMap(*cast("tuple[MutableMapping[str, Preset], ...]", _packages()))


@cache
def _packages() -> tuple[Offers[Preset], ...]:
    """Presets by package; metadata of distributions is read once, not for every run."""
    return tuple(Offers[Preset](offer.load(), "PRESET") for offer in offers(PRESETS))


def preset(name: str) -> Preset:
    """A preset by name; raises InputError listing what there is."""
    known = presets()
    if name not in known:
        raise InputError(f"preset {name!r}: {expected_name(name, known)}")
    return known[name]
