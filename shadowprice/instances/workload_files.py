"""Workloads to and from Parquet and CSV, without loss."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.delimited import read_table
from shadowprice.instances.files import read_bytes
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
    path = Path(path)
    frame = workload.to_frame()
    try:
        if path.suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
        elif path.suffix == ".csv":
            frame.to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
        else:
            raise InputError(f"{path}: expected a name that ends with .parquet or .csv")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


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
    table = read_table(path, strip=False, empty=True)
    if "deadline_s" in table:
        given = table["deadline_s"]
        table["deadline_s"] = np.where(given == "", np.inf, given)
    return Workload.from_table(table, source=str(path))


def _read_parquet(data: bytes, path: Path) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        frame: pd.DataFrame = pq.read_table(pa.BufferReader(data)).to_pandas()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path}: is not a Parquet file: {error}") from error
    return frame
