"""Common parts of the importers of tables: dates as seconds, and rows that are out of order."""

from __future__ import annotations

import re
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.traces import Finding

if TYPE_CHECKING:
    import pandas as pd

_BEFORE_1 = re.compile(r"\s*(-|0000)")


def seconds(
    values: NDArray[np.object_], path: str | Path, column: str
) -> tuple[NDArray[np.float64], pd.Timestamp | None]:
    """Times as seconds: numbers as they are, ISO dates counted from the first one.

    Dates without a zone are taken as UTC. A column is dates if fewer than half of its values are
    numbers, so that one wrong value does not change how the others are read.

    Returns
    -------
    ndarray, Timestamp or None
        The times [s] and the date of time 0, None for numbers.

    Raises
    ------
    InputError
        Naming the first value that is neither.
    """
    numbers = ColumnChecks.floats(values)
    good = ~np.isnan(numbers)
    dated = good.sum() < np.count_nonzero(values != "") / 2
    if dated:
        dates = read_dates(values)
        good = dates.notna().to_numpy()
    if not good.all():
        row = int(np.argmin(good))
        expected = "a date as 2026-01-31 12:00:00, or seconds" if dated else "a number of seconds"
        raise InputError(
            f"{path}: row {row + 1}, column {column!r}: got {values[row]!r}, expected {expected}"
        )
    if not dated:
        return numbers, None
    first = dates.min()
    return since(dates, first), first


def read_dates(values: NDArray[np.object_]) -> pd.Series[Any]:
    """ISO dates, those without a zone in UTC; NaT for what is none.

    Numbers of a data frame are read as their text is: they count no nanoseconds since 1970.
    """
    texts = [str(each) if isinstance(each, Real) else each for each in values.tolist()]
    return iso_dates(texts)


def iso_dates(texts: list[Any]) -> pd.Series[Any]:
    """ISO dates of texts, those without a zone in UTC; NaT for what is none, and for years before 1."""
    import pandas as pd

    # pandas raises at years that Python does not know, of which '-1' is one, and coerces all else.
    able = [None if isinstance(each, str) and _BEFORE_1.match(each) else each for each in texts]
    dates = pd.Series(able, dtype=object)
    return pd.to_datetime(dates, errors="coerce", format="ISO8601", utc=True)


def since(dates: pd.Series[Any], first: pd.Timestamp) -> NDArray[np.float64]:
    """Seconds from the first date to each; NaN where there is none."""
    return np.asarray((dates - first).dt.total_seconds(), dtype=np.float64)


def report_order(
    arrival_s: NDArray[np.float64], rows: NDArray[np.int64], report: list[Finding]
) -> None:
    """Say that rows were not in order of arrival; the workload sorts them."""
    late = np.flatnonzero(arrival_s[1:] < arrival_s[:-1]) + 1
    if len(late):
        report.append(
            Finding(
                "repaired", len(late), "arrive before the row above, sorted", f"row {rows[late[0]]}"
            )
        )
