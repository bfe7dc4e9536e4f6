"""Data of Pyomo components as arrays: values of Params, bounds and kinds of Vars."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike, NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.programs.index_sets import NotTraceable

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
    keys: Iterable[Any] = parameter.index_set() if parameter.is_indexed() else (None,)
    message = f"Param {parameter.name!r} has no values and none were given"
    try:
        values = [pyo.value(parameter[key], exception=False) for key in keys]
    except (ValueError, KeyError) as error:
        raise InputError(message) from error
    if any(value is None for value in values):
        raise InputError(message)
    return np.array(values, dtype=np.float64)


def column_bounds(
    variable: Any, size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Bounds of every column of a Var and whether it is integer; a sparse one is not filled."""
    lower, upper = np.full(size, -INFINITY), np.full(size, INFINITY)
    integer = np.zeros(size, dtype=bool)
    bounds, domain = variable._rule_bounds, variable._rule_domain  # noqa: SLF001
    sparse = variable.is_indexed() and not variable._dense  # noqa: SLF001
    if sparse and domain.constant() and (bounds is None or bounds.constant()):
        block = variable.parent_block()
        like = pyo.Var(
            domain=domain(block, None, variable),
            bounds=None if bounds is None else bounds(block, None),
        )
        like.construct()
        lower[:], upper[:], integer[:] = _limits(like)
    elif sparse:
        for index in variable.index_set():
            variable[index]
    if len(variable):
        order = {index: k for k, index in enumerate(variable.index_set())}
        for index, each in variable.items():
            if each.fixed:
                raise NotTraceable(f"variable {each.name} is fixed")
            k = order[index]
            lower[k], upper[k], integer[k] = _limits(each)
    return lower, upper, integer


def _limits(variable: Any) -> tuple[float, float, bool]:
    low, high = variable.bounds
    return (
        -INFINITY if low is None else low,
        INFINITY if high is None else high,
        not variable.is_continuous(),
    )
