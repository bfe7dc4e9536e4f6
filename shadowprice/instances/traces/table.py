"""Reading delimited text with a header, and dropping bad rows with a report."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.files import read_text
from shadowprice.instances.traces.imported import Finding


def read_table(path: str | Path) -> pd.DataFrame:
    """Delimited text as strings; comma, semicolon or tab by the header line.

    Raises
    ------
    InputError
        If the text has no header, no rows, a repeated column, or rows of differing length.
    """
    text = read_text(path)
    header = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=header.count)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise InputError(f"{path}: column {repeated[0]!r} appears twice")
    try:
        frame = pd.read_csv(
            io.StringIO(text),
            sep=delimiter,
            dtype=str,
            keep_default_na=False,
            names=names,
            header=0,
            index_col=False,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, pd.errors.ParserWarning) as error:
        raise InputError(f"{path}: is not a table: {str(error).strip()}") from error
    if frame.empty:
        raise InputError(f"{path}: has a header but no rows")
    for name in frame:
        frame[name] = frame[name].str.strip()
    return frame


def seconds(values: pd.Series, path: str | Path, column: str) -> NDArray[np.float64]:
    """Times as seconds: numbers as they are, dates counted from the first one.

    Raises
    ------
    InputError
        Naming the first value that is neither.
    """
    numbers = pd.to_numeric(values, errors="coerce")
    if numbers.notna().sum() >= values.ne("").sum() / 2:
        return np.asarray(numbers, dtype=np.float64)
    dates = pd.to_datetime(values, errors="coerce", format="ISO8601", utc=True)
    if dates.isna().any():
        row = int(dates.isna().to_numpy().argmax())
        raise InputError(
            f"{path}: row {row + 1}, column {column!r}: got {values.iloc[row]!r}, expected a date or seconds"
        )
    return np.asarray((dates - dates.min()).dt.total_seconds(), dtype=np.float64)


def drop(
    frame: pd.DataFrame, bad: NDArray[np.bool_], why: str, report: list[Finding]
) -> pd.DataFrame:
    """Leave bad rows out and say so; the index keeps the row numbers of the file, from 1."""
    if not bad.any():
        return frame
    row = int(bad.argmax())
    example = f"row {frame.index[row]}: {', '.join(map(str, frame.iloc[row].tolist()))[:120]}"
    report.append(Finding("dropped", int(bad.sum()), why, example))
    return frame[~bad]


def report_order(
    arrival_s: NDArray[np.float64], rows: NDArray[np.int64], report: list[Finding]
) -> None:
    """Say that rows were not in order of arrival; the workload sorts them."""
    late = np.flatnonzero(np.diff(arrival_s) < 0) + 1
    if len(late):
        report.append(
            Finding(
                "repaired", len(late), "arrive before the row above, sorted", f"row {rows[late[0]]}"
            )
        )
