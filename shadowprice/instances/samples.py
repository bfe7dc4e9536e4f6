"""Samples of total service [GPU-s], for policies that use its distribution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.entries import is_number, known_keys, shown
from shadowprice.instances.files import parse_json, read_text

HEADER = "duration"
"""First line of the published samples."""


def load_samples(path: str | Path) -> NDArray[np.float64]:
    """Read positive numbers from JSON (a list, or an object with ``samples``) or one a line.

    The lines may have a header, ``duration``, as in Tiresias' published samples.

    Returns
    -------
    ndarray
        Sorted.

    Raises
    ------
    InputError
        If there are none, or one is not a positive number.
    """
    text = read_text(path)
    if text.lstrip()[0] in "[{":
        data = parse_json(text, str(path))
        if isinstance(data, dict):
            data = known_keys(data, str(path), ("samples",), ("samples",))["samples"]
        values = data if isinstance(data, list) else [data]
        numbers = [float(value) if is_number(value) else float("nan") for value in values]
    else:
        values = [word.strip().rstrip(",") for word in text.splitlines() if word.strip()]
        if values[0] == HEADER:
            del values[0]
        numbers = ColumnChecks.floats(np.array(values, dtype=object)).tolist()
    for position, (value, number) in enumerate(zip(values, numbers, strict=True), 1):
        if not 0 < number < float("inf"):
            raise InputError(
                f"{path}: sample {position}: got {shown(value)}, expected a number of GPU-seconds > 0"
            )
    if not numbers:
        raise InputError(f"{path}: has no samples")
    return np.sort(np.array(numbers))
