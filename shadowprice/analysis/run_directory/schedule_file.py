"""Schedules as Parquet files that are written and read a group of rows at a time."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from shadowprice.analysis.run_directory.files import parsed
from shadowprice.errors import InputError
from shadowprice.instances.schedule import ALONE, Schedule

ROWS_OF_A_GROUP = 2**20
"""Rows written at a time."""

_WHOLE, _TIMES = ("job", "node", "gpus"), ("start_s", "end_s", "overhead_s")
_SCHEMA = pa.schema(
    [(name, pa.int64()) for name in _WHOLE]
    + [(name, pa.float64()) for name in _TIMES]
    + [("partner", pa.int64())]
)


class ScheduleWriter:
    """Writes rows of gangs that run alone as they come; the file is whole when the writer is left.

    It has the columns that :meth:`Schedule.to_frame` gives.

    Parameters
    ----------
    path : Path
        File to write, replaced if it is there.
    """

    def __init__(self, path: Path) -> None:
        # Few different values: nodes, gang sizes, charges. Of the others a dictionary would be given up later.
        few = ["node", "gpus", "overhead_s", "partner"]
        self._file = pq.ParquetWriter(path, _SCHEMA, compression="zstd", use_dictionary=few)
        self._rows: list[NDArray[Any]] = []
        self._count = 0
        self.rows = 0

    def add(self, rows: NDArray[Any]) -> None:
        """Append records with the fields of a schedule's rows."""
        self._rows.append(rows)
        self._count += len(rows)
        if self._count >= ROWS_OF_A_GROUP:
            self._write()

    def _write(self) -> None:
        rows = np.concatenate(self._rows)
        columns = {name: rows[name].astype(np.int64) for name in _WHOLE}
        times = {name: rows[name].astype(np.float64) for name in _TIMES}
        alone = np.full(len(rows), ALONE)
        self._file.write_table(pa.table({**columns, **times, "partner": alone}, schema=_SCHEMA))
        self.rows += len(rows)
        self._rows, self._count = [], 0

    def __enter__(self) -> ScheduleWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._rows and kind is None:
                self._write()
        finally:
            self._file.close()


class ScheduleFile:
    """A schedule in a file, group of rows by group of rows: segments for the verifier.

    Raises
    ------
    InputError
        If the file is missing, no Parquet, or has not the columns of a schedule of gangs that run alone.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"{path}: no such file")
        self.path = path
        self._file: pq.ParquetFile = parsed(path, pq.ParquetFile)
        types = {field.name: field.type for field in self._file.schema_arrow}
        expected = {field.name: field.type for field in _SCHEMA}
        if types != expected:
            raise InputError(
                f"{path}: columns are {', '.join(types)}, expected {', '.join(expected)} of their types"
            )
        metadata = self._file.metadata
        groups = range(metadata.num_row_groups)
        self.lengths: list[int] = [metadata.row_group(k).num_rows for k in groups] or [0]

    def read(self, segment: int) -> Schedule:
        """Rows of a group; Parquet without rows has no group, and here one of none."""

        def table(_: Path) -> pa.Table:
            if not self._file.metadata.num_row_groups:
                return _SCHEMA.empty_table()
            return self._file.read_row_group(segment)

        # A column with missing values would become one of floats.
        rows = parsed(self.path, table)
        for name in _SCHEMA.names:
            if rows.column(name).null_count:
                raise InputError(f"{self.path}: column {name!r} has missing values")
        return Schedule(**{name: rows.column(name).to_numpy() for name in _SCHEMA.names})
