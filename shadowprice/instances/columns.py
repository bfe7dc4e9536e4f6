"""Checks of columns from outside, with errors that name what they refuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.errors import InputError
from shadowprice.instances.entries import LARGEST, ONE_LINE, on_one_line, shown

THROUGHPUT_PREFIX = "throughput:"
"""What columns of throughputs are called in frames: the prefix and the GPU type."""


@dataclass(frozen=True)
class ColumnChecks:
    """Conversions that name source, row, column and value of what they refuse.

    Parameters
    ----------
    source : str
        File or other origin.
    rows : ndarray of int, shape (n,)
        Number of each row there.
    names : mapping of str to str
        What a column is called there, where that differs from our name.
    """

    source: str
    rows: NDArray[np.int64]
    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rows.ndim != 1:
            raise InputError(f"{self.source}: row numbers have shape {self.rows.shape}")

    def holds(
        self, column: str, values: NDArray[Any], ok: NDArray[np.bool_], expected: str
    ) -> None:
        """Raise for the first row that is not ok."""
        if not np.all(ok):
            k = int(np.argmin(ok))
            value = values[k].item() if isinstance(values[k], np.generic) else values[k]
            raise InputError(
                f"{self.source}: row {self.rows[k]}, column {self.names.get(column, column)!r}: "
                f"got {shown(value)}, expected {expected}"
            )

    def column(self, column: str, values: ArrayLike) -> NDArray[Any]:
        """One value a row; a single value that is not in a list is repeated.

        Lists keep the types of their elements: NumPy would turn ``[1, "x"]`` into text and
        ``[True, 2]`` into integers before anything could be refused.
        """
        n = len(self.rows)
        given = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
        if given.ndim == 0:
            return np.broadcast_to(given, (n,))
        if given.shape != (n,):
            has = f"{len(given)} rows" if given.ndim == 1 else f"shape {given.shape}"
            name = self.names.get(column, column)
            raise InputError(f"{self.source}: column {name!r} has {has}, expected {n} rows")
        return given

    @staticmethod
    def floats(values: NDArray[Any]) -> NDArray[np.float64]:
        """Numbers, exactly as written where they are text; NaN for what is no number."""
        if values.dtype.kind in "iuf":
            return values.astype(np.float64)
        given = values.tolist()
        if set(map(type, given)) == {str} and "_" not in "".join(given):
            # A million texts that are numbers in a tenth of the time; others are looked at one by one.
            with suppress(ValueError):
                return np.fromiter(map(float, given), dtype=np.float64, count=len(given))
        return np.array([_float(value) for value in given], dtype=np.float64)

    def numbers(
        self, column: str, values: ArrayLike, low: float, high: float, expected: str
    ) -> NDArray[np.float64]:
        """Numbers from low to high."""
        given = self.column(column, values)
        numbers = self.floats(given)
        with np.errstate(invalid="ignore"):
            self.holds(column, given, (numbers >= low) & (numbers <= high), expected)
        return numbers

    def reals(self, column: str, values: NDArray[Any]) -> NDArray[np.float64]:
        """Numbers, also those that are none if they are given as such: who reads them looks at them."""
        if values.dtype.kind == "f":
            return values.astype(np.float64)
        return self.numbers(column, values, -np.inf, np.inf, "a number")

    def positive(self, column: str, values: ArrayLike, high: float) -> NDArray[np.float64]:
        """Numbers above 0, at most high."""
        expected = f"a number > 0, at most {high:.10g}"
        numbers = self.numbers(column, values, 0.0, high, expected)
        self.holds(column, self.column(column, values), numbers > 0, expected)
        return numbers

    def integers(self, column: str, values: ArrayLike, low: int, high: int) -> NDArray[np.int64]:
        """Whole numbers from low to high."""
        expected = f"an integer from {low} to {high}"
        numbers = self.numbers(column, values, low, high, expected)
        self.holds(column, self.column(column, values), numbers == np.floor(numbers), expected)
        return numbers.astype(np.int64)

    def texts(self, column: str, values: ArrayLike, *, required: bool) -> NDArray[np.object_]:
        """Strings on one line; numbers become text, missing values the empty string unless required."""
        given = self.column(column, values).astype(object)
        texts = given
        if not set(map(type, given.tolist())) <= {str}:
            odd = np.array([not _is_text(each) for each in given.tolist()], dtype=bool)
            missing = _missing(given) if odd.any() else given != given
            self.holds(column, given, ~odd | missing, "text")
            texts = np.where(missing, "", np.array([str(each) for each in given], dtype=object))
        if required:
            self.holds(column, given, texts != "", "a name that is not empty")
        if not on_one_line("".join(texts.tolist())):
            fine = np.array([on_one_line(text) for text in texts.tolist()], dtype=bool)
            self.holds(column, texts, fine, ONE_LINE)
        return texts

    def unique(self, column: str, names: NDArray[np.object_]) -> None:
        """Refuse a repeated name."""
        if len(set(names.tolist())) == len(names):
            return
        fresh = np.zeros(len(names), dtype=bool)
        fresh[np.unique(names, return_index=True)[1]] = True
        self.holds(column, names, fresh, "an id not used before")

    def table(self, table: ArrayLike, gpu_types: Sequence[str]) -> NDArray[np.float64]:
        """Throughputs, one column a GPU type; none negative or infinite, not all of a row zero."""
        n = len(self.rows)
        ragged = f"{self.source}: throughput is not a table of {n} rows"
        try:
            given = np.asarray(table, dtype=object if isinstance(table, list | tuple) else None)
        except ValueError as error:
            raise InputError(ragged) from error
        given = given.reshape(n, len(gpu_types)) if given.size == n == 0 else given
        names = [] if isinstance(gpu_types, str) else list(gpu_types)
        good = all(isinstance(name, str) and name and on_one_line(name) for name in names)
        if not good or len(set(names)) < len(names):
            raise InputError(
                f"{self.source}: gpu_types are {gpu_types!r}, expected different names of GPU types, "
                "each on one line"
            )
        if given.shape != (n, len(names)) or not names:
            raise InputError(
                f"{self.source}: throughput has shape {given.shape}, "
                f"expected ({n}, {len(names)}), one column a GPU type"
            )
        rates = np.empty(given.shape, dtype=np.float64)
        for k, name in enumerate(names):
            rates[:, k] = self.numbers(
                THROUGHPUT_PREFIX + name, given[:, k], 0.0, LARGEST, "iterations per second >= 0"
            )
        most = rates.max(axis=1)
        self.holds("throughput", most, most > 0, "a GPU type on which the job can run")
        return rates


def _float(value: object) -> float:
    """A number as Python reads it, exactly; NaN for what is none, and for truth values."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, str | Real | Decimal):
        return float("nan")
    try:
        return float("nan") if isinstance(value, str) and "_" in value else float(value)
    except OverflowError:
        return float("inf")
    except (TypeError, ValueError):
        return float("nan")


def _is_text(value: object) -> bool:
    return isinstance(value, str | Real) and not isinstance(value, bool | np.bool_)


def _missing(values: NDArray[np.object_]) -> NDArray[np.bool_]:
    """True for objects that stand for a missing value: None, NaN and those of pandas."""
    import pandas as pd

    return np.asarray(pd.isna(values), dtype=bool)
