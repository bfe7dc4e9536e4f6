"""Values of Pyomo Params as arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray

from shadowprice.errors import InputError
from shadowprice.models.arrays import ArrayValues

INFINITY = float("inf")


def shaped(name: str, values: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Values given for a Param, flat and in the order of its set, or :class:`InputError`."""
    given = np.asarray(values, dtype=np.float64)
    size = int(np.prod(shape, dtype=np.int64))
    if given.ndim and given.shape != shape and given.shape != (size,):
        raise InputError(f"Param {name!r}: an array of shape {given.shape}, expected {shape}")
    if np.isnan(given).any():
        raise InputError(f"Param {name!r}: a value is not a number (NaN)")
    return np.array(np.broadcast_to(given, shape) if not given.ndim else given).reshape(size)


def stored(parameter: Any) -> NDArray[np.float64]:
    """Values a Param was built with."""
    default = parameter.default()
    if isinstance(default, ArrayValues):
        found: NDArray[np.float64] = default.array.copy()
        # Members that somebody has read or changed have a value of their own.
        for index, member in parameter._data.items():  # noqa: SLF001
            found[default.position(index)] = pyo.value(member)
        return found
    keys: Iterable[Any] = parameter.index_set() if parameter.is_indexed() else (None,)
    message = f"Param {parameter.name!r} has no values and none were given"
    try:
        values = [pyo.value(parameter[key], exception=False) for key in keys]
    except (ValueError, KeyError) as error:
        raise InputError(message) from error
    if any(value is None for value in values):
        raise InputError(message)
    return np.array(values, dtype=np.float64)
