"""Checks of columns from outside, with errors that name what they refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from shadowprice.errors import InputError

THROUGHPUT_PREFIX = "throughput:"
"""What columns of throughputs are called in frames: the prefix and the GPU type."""


@dataclass(frozen=True)
class ColumnChecks:
    """Conversions that name source, row, column and value of what they refuse."""

    source: str
    rows: NDArray[np.int64]

    def holds(
        self, column: str, values: NDArray[Any], ok: NDArray[np.bool_], expected: str
    ) -> None:
        """Raise for the first row that is not ok."""
        if not np.all(ok):
            k = int(np.argmin(ok))
            value = values[k].item() if isinstance(values[k], np.generic) else values[k]
            raise InputError(
                f"{self.source}: row {self.rows[k]}, column {column!r}: got {value!r}, expected {expected}"
            )

    @staticmethod
    def floats(values: NDArray[Any]) -> NDArray[np.float64]:
        """Numbers, exactly as written where they are text; NaN for what is no number."""
        return np.array([_float(value) for value in values.tolist()], dtype=np.float64)

    def deadlines(self, values: ArrayLike | None, n: int) -> NDArray[np.float64]:
        """Times or infinity; infinity everywhere if none are given."""
        if values is None:
            return np.full(n, np.inf)
        due = self.floats(np.asarray(values).ravel())
        self.holds(
            "deadline_s", np.asarray(values).ravel(), ~np.isnan(due), "seconds, or inf for none"
        )
        return due

    def numbers(
        self, column: str, values: ArrayLike, n: int, low: float, high: float, expected: str
    ) -> NDArray[np.float64]:
        """Finite numbers within a range; one number is repeated for every row."""
        given = np.asarray(values)
        whole = given.dtype.kind in "iufb"
        numbers = given.astype(np.float64) if whole else self.floats(given.ravel())
        numbers = np.broadcast_to(numbers, (n,)).copy() if numbers.size == 1 else numbers
        given = np.broadcast_to(given, (n,)) if given.size == 1 else given
        if numbers.shape != (n,):
            raise InputError(
                f"{self.source}: column {column!r} has {numbers.size} rows, expected {n}"
            )
        with np.errstate(invalid="ignore"):
            self.holds(column, given, (numbers >= low) & (numbers <= high), expected)
        return numbers

    def integers(
        self, column: str, values: ArrayLike, n: int, low: int, high: int
    ) -> NDArray[np.int64]:
        """Whole numbers within a range."""
        expected = f"an integer from {low} to {high}"
        numbers = self.numbers(column, values, n, low, high, expected)
        self.holds(
            column,
            np.broadcast_to(np.asarray(values), (n,)),
            numbers == np.floor(numbers),
            expected,
        )
        return numbers.astype(np.int64)

    def texts(self, column: str, values: ArrayLike, n: int) -> NDArray[np.object_]:
        """Strings; one is repeated for every row."""
        texts = np.array(np.broadcast_to(np.asarray(values, dtype=object), (n,)), dtype=object)
        return np.array(
            [value if isinstance(value, str) else str(value) for value in texts.tolist()],
            dtype=object,
        )

    def unique(self, column: str, names: NDArray[np.object_]) -> None:
        """Refuse a repeated name."""
        duplicated = pd.Series(names, dtype=object).duplicated().to_numpy()
        self.holds(column, names, ~duplicated, "an id not used before")

    def table(self, table: NDArray[np.float64], n: int, gpu_types: Sequence[str]) -> None:
        """Refuse throughputs that are negative, not finite, or zero everywhere."""
        if table.shape != (n, len(gpu_types)) or not gpu_types:
            raise InputError(
                f"{self.source}: throughput has shape {table.shape}, "
                f"expected ({n}, {len(gpu_types)}), one column a GPU type"
            )
        for k, name in enumerate(gpu_types):
            with np.errstate(invalid="ignore"):
                ok = (table[:, k] >= 0) & (table[:, k] < np.inf)
            self.holds(THROUGHPUT_PREFIX + name, table[:, k], ok, "iterations per second >= 0")
        self.holds(
            "throughput",
            table.max(axis=1),
            table.max(axis=1) > 0,
            "a GPU type on which the job can run",
        )


def _float(value: object) -> float:
    """A number as Python reads it, exactly; NaN for what is none."""
    try:
        return float("nan") if isinstance(value, str) and "_" in value else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")
