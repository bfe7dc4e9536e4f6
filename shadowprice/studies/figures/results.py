"""Rows of a figure's points: by what they are found again, and the tables that are made of them.

A point's rows are found again by its fields, by the contents of the files it names, and by a digest of
the code: of all files of the package, and of the figure's file and those beside it whose names begin
with an underscore. After a change of code points run anew, unless older rows are asked for.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from shadowprice.errors import InputError
from shadowprice.studies.figures.settings import plain
from shadowprice.studies.points.digests import DIGITS, file_digest, package_digest
from shadowprice.studies.points.point_rows import PointRows
from shadowprice.version import __version__

LIBRARIES = ("numpy", "scipy", "pandas", "pyomo", "highspy", "ortools")


def point_key(point: Any) -> str:
    """Fields of a point as one line; files by name and digest of what is in them.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    fields = plain(point, lambda path: f"{path.name}:{file_digest(path)}")
    return json.dumps(fields, sort_keys=True)


def code_digest(figure_file: Path) -> str:
    """Digest of the package and of a figure's own files."""
    digest = hashlib.sha256(package_digest().encode())
    for path in (figure_file, *sorted(figure_file.parent.glob("_*.py"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:DIGITS]


def write_table(path: Path, made_of: Sequence[str], points: Sequence[PointRows]) -> None:
    """Write the rows of all points, in their order, as CSV below lines that say with what they were made.

    Parameters
    ----------
    made_of : sequence of str
        Lines on the figure and its settings.
    """
    codes = Counter(each.code for each in points)
    head = (
        *made_of,
        "code " + ", ".join(f"{code} ({count} points)" for code, count in codes.items()),
        f"shadowprice {__version__}, Python {platform.python_version()}, "
        + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES),
        f"{sum(each.cpu_s for each in points) / 60:.1f} minutes of CPU",
    )
    table = pd.DataFrame([row for each in points for row in each.rows])
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"# {line}\n" for line in head)
    path.write_text(text + table.to_csv(index=False, float_format="%.10g", lineterminator="\n"))


def read_table(path: Path) -> pd.DataFrame:
    """Read a table that :func:`write_table` wrote.

    Raises
    ------
    InputError
        If there is none.
    """
    try:
        return pd.read_csv(path, comment="#", keep_default_na=False, na_values=["nan", ""])
    except OSError as error:
        raise InputError(f"table {path}: {error.strerror or error}") from None
