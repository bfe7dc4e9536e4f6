"""Presets by name: the ``PRESET`` of every module of this package."""

from __future__ import annotations

import shadowprice.execution.presets
from shadowprice.errors import InputError
from shadowprice.execution.presets.preset import Preset
from shadowprice.solvers.registry import modules


def presets() -> dict[str, Preset]:
    """All presets by name."""
    found = (getattr(module, "PRESET", None) for module in modules(shadowprice.execution.presets))
    return {preset.name: preset for preset in found if preset is not None}


def preset(name: str) -> Preset:
    """A preset by name; raises InputError listing what there is."""
    known = presets()
    if name not in known:
        raise InputError(f"preset {name!r}: expected one of {', '.join(sorted(known))}")
    return known[name]
