"""Rows that points of a figure gave, kept as each ends, so that a run that was stopped goes on.

A point's rows are found again by its fields, by the contents of the files it names, and by a digest of
the code: of all files of the package, and of the figure's file and those beside it whose names begin
with an underscore. After a change of code points run anew, unless older rows are asked for.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import shadowprice
from shadowprice.analysis.figures.figure_run import FigureRun
from shadowprice.analysis.figures.settings import plain
from shadowprice.analysis.points.digests import DIGITS, file_digest, package_digest
from shadowprice.analysis.points.kept import Kept
from shadowprice.errors import InputError

LIBRARIES = ("numpy", "scipy", "pandas", "pyomo", "highspy", "ortools")


def point_key(point: Any) -> str:
    """Fields of a point as one line; files by name and digest of what is in them.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    fields = plain(point)
    for field in dataclasses.fields(point):
        value = getattr(point, field.name)
        if isinstance(value, Path):
            fields[field.name] = f"{value.name}:{file_digest(value)}"
    return json.dumps(fields, sort_keys=True)


def code_digest(figure_file: Path) -> str:
    """Digest of the package and of a figure's own files."""
    found = hashlib.sha256(package_digest().encode())
    for path in (figure_file, *sorted(figure_file.parent.glob("_*.py"))):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:DIGITS]


def table_of(kept: Iterable[Kept]) -> pd.DataFrame:
    """All rows, in the order of the points."""
    return pd.DataFrame([row for each in kept for row in each.rows])


def write_table(path: Path, table: pd.DataFrame, of: FigureRun, kept: Sequence[Kept]) -> None:
    """Write a table as CSV, below lines that say with what it was made."""
    codes = pd.Series([each.code for each in kept]).value_counts(sort=False)
    seeds = "" if of.first_seed is None else f"; seeds from {of.first_seed}"
    head = (
        f"{of.figure.paper}; size {of.size}{seeds}",
        "settings " + json.dumps(settings_of(of.settings), sort_keys=True),
        "code " + ", ".join(f"{code} ({count} points)" for code, count in codes.items()),
        f"shadowprice {shadowprice.__version__}, Python {platform.python_version()}, " + versions(),
        f"{sum(each.cpu_s for each in kept) / 60:.1f} minutes of CPU",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"# {line}\n" for line in head)
    path.write_text(text + table.to_csv(index=False, float_format="%.10g", lineterminator="\n"))


def settings_of(settings: Any) -> dict[str, Any]:
    """Settings with files by their names: where they lie is not part of what was run."""
    found = plain(settings)
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, Path):
            found[field.name] = value.name
    return found


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


def versions() -> str:
    """Versions of the libraries that results depend on."""
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
