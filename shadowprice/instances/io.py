"""Workloads to and from Parquet and CSV, without loss."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from shadowprice.errors import InputError
from shadowprice.instances.files import read_bytes, read_text
from shadowprice.instances.workload import Workload

TEXT_COLUMNS = ("id", "tenant", "model")


def write_workload(workload: Workload, path: str | Path) -> None:
    """Write a ``.parquet`` or ``.csv`` file; :func:`read_workload` gives the same workload back.

    Raises
    ------
    InputError
        If the name ends with neither.
    """
    path = Path(path)
    frame = workload.to_frame()
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False, lineterminator="\n")
    else:
        raise InputError(f"{path}: expected a name that ends with .parquet or .csv")


def read_workload(path: str | Path) -> Workload:
    """Read what :func:`write_workload` wrote.

    Raises
    ------
    InputError
        If the file is unreadable or its values are wrong, naming file, row, column and value.
    """
    path = Path(path)
    source = str(path)
    if path.suffix == ".parquet":
        try:
            frame = pq.read_table(pa.BufferReader(read_bytes(path))).to_pandas()
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(f"{path}: is not a Parquet file: {error}") from error
    else:
        try:
            frame = pd.read_csv(io.StringIO(read_text(path)), dtype=str, keep_default_na=False)
        except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
            raise InputError(f"{path}: is not CSV: {error}") from error
    for name in TEXT_COLUMNS:
        if name in frame:
            frame[name] = frame[name].astype(object)
    if "deadline_s" in frame:
        frame["deadline_s"] = frame["deadline_s"].replace("", np.inf)
    return Workload.from_frame(frame, source=source)
