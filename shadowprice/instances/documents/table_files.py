"""Tables in Parquet or CSV, by the ending of the name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from shadowprice.errors import InputError
from shadowprice.version import __version__

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN: Mapping[str, object] = MappingProxyType({})
"""Origin of a table that was not told."""


def write_frame(frame: pd.DataFrame, path: Path, made_by: Mapping[str, object] = UNKNOWN) -> None:
    """Write the columns of a table, without its index.

    Parameters
    ----------
    made_by : mapping
        Origin of the table, such as a command and the digests of its inputs. With the version of this package
        it is JSON in the metadata of a Parquet file, by the key ``shadowprice``; CSV has no place for it.

    Raises
    ------
    InputError
        If the name ends with neither, or the file cannot be written.
    """
    try:
        if path.suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            table = pa.Table.from_pandas(frame, preserve_index=False)
            told = json.dumps({"version": __version__, **made_by})
            metadata = {**(table.schema.metadata or {}), b"shadowprice": told.encode()}
            pq.write_table(table.replace_schema_metadata(metadata), path)
        elif path.suffix == ".csv":
            frame.to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
        else:
            raise InputError(f"{path}: expected a name that ends with .parquet or .csv")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
