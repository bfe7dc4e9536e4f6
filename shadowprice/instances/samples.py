"""Samples of total service [GPU-s], for policies that use its distribution."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.files import read_text


def load_samples(path: str | Path) -> NDArray[np.float64]:
    """Read positive numbers from JSON (a list, or an object with ``samples``) or one a line.

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
    try:
        data = json.loads(text)
        values = data.get("samples") if isinstance(data, dict) else data
        values = values if isinstance(values, list) else [values]
    except json.JSONDecodeError:
        values = [word.strip().rstrip(",") for word in text.splitlines() if word.strip()]
    samples = []
    for position, value in enumerate(values, 1):
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not 0 < number < float("inf"):
            raise InputError(
                f"{path}: sample {position}: got {value!r}, expected a number of GPU-seconds > 0"
            )
        samples.append(number)
    if not samples:
        raise InputError(f"{path}: has no samples")
    return np.sort(np.array(samples))
