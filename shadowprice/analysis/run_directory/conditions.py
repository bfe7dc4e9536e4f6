"""Conditions of runs as JSON, without loss: what a run directory keeps of them."""

from __future__ import annotations

import json
from typing import Any

from shadowprice.instances.documents.schema import decode
from shadowprice.instances.files import parse_json
from shadowprice.instances.speeds.conditions import Conditions

_TABLES = ("cpus_per_gpu", "memory_gb_per_gpu", "speed")


def to_json(conditions: Conditions) -> str:
    """Profiles and which of them each job has; speeds of spread gangs; widths."""
    described: dict[str, Any] = {}
    sensitivity, locality, elasticity = (
        conditions.sensitivity,
        conditions.locality,
        conditions.elasticity,
    )
    if sensitivity is not None:
        tables = [
            {"name": each.name, **{name: getattr(each, name).tolist() for name in _TABLES}}
            for each in sensitivity.profiles
        ]
        described["sensitivity"] = {"profiles": tables, "of": sensitivity.of.tolist()}
    if locality is not None:
        described["locality"] = {"spread_speed": locality.spread_speed.tolist()}
    if elasticity is not None:
        described["elasticity"] = {
            "widest": elasticity.widest.tolist(),
            "efficiency": elasticity.efficiency.tolist(),
        }
    return json.dumps(described, allow_nan=False) + "\n"


def from_json(text: str, *, path: str) -> Conditions:
    """Inverse of :func:`to_json`.

    Raises
    ------
    InputError
        If it is not JSON of this form, or describes no conditions.
    """
    return decode(Conditions, parse_json(text, path), path)
