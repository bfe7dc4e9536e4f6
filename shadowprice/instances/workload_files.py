"""Workloads to and from Parquet and CSV, without loss; delimited text as columns of strings."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.documents.table_files import write_frame
from shadowprice.instances.files import read_bytes, read_text
from shadowprice.instances.workload import Workload

if TYPE_CHECKING:
    import pandas as pd


def write_workload(workload: Workload, path: str | Path) -> None:
    """Write a ``.parquet`` or ``.csv`` file; :func:`read_workload` gives the same workload back.

    Raises
    ------
    InputError
        If the name ends with neither, or the file cannot be written.
    """
    write_frame(workload.to_frame(), Path(path))


def read_workload(path: str | Path) -> Workload:
    """Read what :func:`write_workload` wrote, plain or packed by gzip or xz.

    Raises
    ------
    InputError
        If the file is unreadable or its values are wrong, naming file, row, column and value.
    """
    path = Path(path)
    data = read_bytes(path)
    if data.startswith(b"PAR1") or path.suffix == ".parquet":
        return Workload.from_frame(_read_parquet(data, path), source=str(path))
    return own_table(read_table(path, strip=False, empty=True), str(path))


def own_table(table: dict[str, NDArray[Any]], source: str) -> Workload:
    """Workload of the columns that :func:`write_workload` writes; an empty deadline is none."""
    if "deadline_s" in table:
        given = table["deadline_s"]
        table = {**table, "deadline_s": np.where(given == "", np.inf, given)}
    return Workload.from_table(table, source=source)


def _read_parquet(data: bytes, path: Path) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        frame: pd.DataFrame = pq.read_table(pa.BufferReader(data)).to_pandas()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path}: is not a Parquet file: {error}") from error
    return frame


# Delimited text with a header: comma, semicolon, tab or bar, as columns of strings.


DELIMITERS = ",;\t|"
Columns = dict[str, NDArray[np.object_]]
"""Columns of one length by their names, in the order of the text."""

_QUOTED = re.compile(r'"[^"]*"')


def delimiter_of(line: str) -> str:
    """The delimiter that is most frequent outside quotes, a comma if there is none."""
    return max(DELIMITERS, key=_QUOTED.sub("", line).count)


def split_header(line: str) -> list[str]:
    """Names in a header line."""
    line = line.rstrip("\r\n")
    return [name.strip() for name in next(csv.reader([line], delimiter=delimiter_of(line)), [])]


def read_table(
    path: str | Path,
    *,
    strip: bool = True,
    empty: bool = False,
    whole_rows: bool = False,
    needed: Sequence[str] = (),
) -> Columns:
    """Read delimited text as columns of strings by name, blank lines left out.

    A short row is filled with empty strings, as spreadsheets write it; a row that is longer than
    the header is refused, since its values may belong to other columns.

    Parameters
    ----------
    strip : bool
        Take white space from the ends of values and names.
    empty : bool
        Accept a header without rows.
    whole_rows : bool
        Refuse short rows as well: a file that was cut off may end in one.
    needed : sequence of str
        Columns that there must be.

    Raises
    ------
    InputError
        If the text has no header, no rows, a repeated column, an open quote, or too long a row, or lacks a column.
    """
    text = read_text(path, keep_line_ends=True).lstrip("\r\n")
    delimiter = delimiter_of(re.split(r"[\r\n]", text, maxsplit=1)[0])
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        lines = [line for line in reader if line]
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: is not a table: {error}") from error
    names, rows = lines[0], lines[1:]
    names = [name.strip() for name in names] if strip else names
    expect_columns_once(names, str(path))
    missing = [name for name in needed if name not in names]
    if missing:
        raise InputError(
            f"{path}: column {missing[0]!r} is missing, found {', '.join(filter(None, names))}"
        )
    if not empty:
        expect_rows(len(rows), str(path))
    width = len(names)
    uneven = set(map(len, rows)) - {width}
    for number, row in enumerate(rows if uneven else (), 1):
        if len(row) > width or (whole_rows and len(row) < width):
            raise InputError(
                f"{path}: row {number} has {len(row)} values, expected {width} as in the header: "
                f"{delimiter.join(row)[:80]!r}"
            )
        row.extend([""] * (width - len(row)))
    columns = list(zip(*rows, strict=True)) if rows else [()] * width
    return {
        name: np.array(list(map(str.strip, values)) if strip else values, dtype=object)
        for name, values in zip(names, columns, strict=True)
        if name
    }


def expect_columns_once(names: list[str], source: str) -> None:
    """Raise InputError if two columns of a table have one name."""
    repeated = [name for name in names if name and names.count(name) > 1]
    if repeated:
        raise InputError(f"{source}: column {repeated[0]!r} appears twice")


def expect_rows(count: int, source: str) -> None:
    """Raise InputError if a table has no rows."""
    if not count:
        raise InputError(f"{source}: has a header but no rows")
