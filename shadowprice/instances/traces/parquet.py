"""The project's own Parquet files."""

from __future__ import annotations

from pathlib import Path

from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.traces import Imported
from shadowprice.instances.workload_files import read_workload

NAME = "parquet"


def sniff(first_line: str, path: Path) -> bool:
    """True if the file starts as Parquet does."""
    return first_line.startswith("PAR1")


def load(path: Path, throughputs: Throughputs | None = None) -> Imported:
    """Read a file that ``write_workload`` wrote."""
    return Imported(read_workload(path))
