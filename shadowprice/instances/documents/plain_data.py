"""Plain data as JSON has it, from records, arrays and numbers, and its text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import msgspec
import numpy as np

Document = dict[str, Any]
"""An object of JSON."""


def text_of(document: Mapping[str, Any]) -> str:
    """Text of an object of JSON: a line an entry, equal objects in equal bytes.

    Raises
    ------
    TypeError, ValueError
        If it cannot be written as JSON.
    """
    lines = [
        f" {json.dumps(key)}: {json.dumps(document[key], allow_nan=False)}" for key in document
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def settings_in(record: Any) -> Document:
    """Fields of a dataclass that are not as usual, as plain data."""
    usual = {each.name: each.default for each in fields(record)}
    found = {name: each for name, each in asdict(record).items() if each != usual[name]}
    return dict(plain(found))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    return msgspec.to_builtins(
        asdict(value) if is_dataclass(type(value)) else value, enc_hook=_numbers, str_keys=True
    )


def _numbers(value: Any) -> Any:
    """Numbers of numpy as those of Python."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def or_null(value: Any) -> Any:
    """A value, and null for infinity, which JSON has not."""
    return None if value == math.inf else value


def or_endless(value: Any) -> Any:
    """Inverse of :func:`or_null`."""
    return math.inf if value is None else value
