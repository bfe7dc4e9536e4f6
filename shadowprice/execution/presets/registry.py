"""Presets by name: the ``PRESET`` of every module of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import shadowprice.execution.presets
from shadowprice.errors import InputError
from shadowprice.instances.entries import expected_name
from shadowprice.instances.offers import Offers

if TYPE_CHECKING:
    from shadowprice.execution.presets.preset import Preset


def presets() -> Mapping[str, Preset]:
    """All presets by name."""
    return Offers(shadowprice.execution.presets, "PRESET")


def preset(name: str) -> Preset:
    """A preset by name; raises InputError listing what there is."""
    known = presets()
    if name not in known:
        raise InputError(f"preset {name!r}: {expected_name(name, known)}")
    return known[name]
