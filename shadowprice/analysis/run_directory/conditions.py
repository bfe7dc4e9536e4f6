"""Conditions of runs as JSON, without loss: what a run directory keeps of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.entries import is_number, known_keys
from shadowprice.instances.files import parse_json
from shadowprice.instances.speeds.conditions import Conditions
from shadowprice.instances.speeds.elasticity import Elasticity
from shadowprice.instances.speeds.locality import Locality
from shadowprice.instances.speeds.profile import Profile
from shadowprice.instances.speeds.sensitivity import Sensitivity

_CONDITIONS = ("sensitivity", "locality", "elasticity")
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
    try:
        described = known_keys(parse_json(text, path), path, _CONDITIONS)
        return Conditions(
            _sensitivity(described["sensitivity"]) if "sensitivity" in described else None,
            _locality(described["locality"]) if "locality" in described else None,
            _elasticity(described["elasticity"]) if "elasticity" in described else None,
        )
    except InputError as error:
        message = str(error)
        raise error if message.startswith(path) else InputError(f"{path}: {message}") from error
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path}: are not conditions of runs as saved: {error}") from error


def _sensitivity(described: Any) -> Sensitivity:
    known_keys(described, "sensitivity", ("profiles", "of"), ("profiles", "of"))
    for each in described["profiles"]:
        known_keys(each, "profiles", ("name", *_TABLES), ("name", *_TABLES))
    profiles = tuple(
        Profile(
            _reals(each["cpus_per_gpu"]),
            _reals(each["memory_gb_per_gpu"]),
            _reals(each["speed"]),
            str(each["name"]),
        )
        for each in described["profiles"]
    )
    return Sensitivity(profiles, _integers(described["of"]))


def _locality(described: Any) -> Locality:
    known_keys(described, "locality", ("spread_speed",), ("spread_speed",))
    return Locality(_reals(described["spread_speed"]))


def _elasticity(described: Any) -> Elasticity:
    known_keys(described, "elasticity", ("widest", "efficiency"), ("widest", "efficiency"))
    return Elasticity(_integers(described["widest"]), _reals(described["efficiency"]))


def _reals(values: Any) -> NDArray[np.float64]:
    rows = values if values and isinstance(values[0], list) else [values]
    if not all(is_number(value) for row in rows for value in row):
        raise ValueError("a value is no number")
    return np.array(values, dtype=np.float64)


def _integers(values: Any) -> NDArray[np.int64]:
    if any(isinstance(value, bool) or not isinstance(value, int) for value in values):
        raise ValueError("a number is not whole")
    return np.array(values, dtype=np.int64)
