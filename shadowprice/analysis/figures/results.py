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
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

import shadowprice
from shadowprice.analysis.figures.figure import Figure, Row, Size
from shadowprice.analysis.figures.settings import plain
from shadowprice.errors import InputError

_SUFFIXES = (".py", ".json", ".toml")
_DIGITS = 12
_LIBRARIES = ("numpy", "scipy", "pandas", "pyomo", "highspy", "ortools")


@dataclass(frozen=True)
class Kept:
    """Rows of one point.

    Parameters
    ----------
    code : str
        Digest of the code that made them.
    rows : list of dict
    cpu_s : float
        CPU time that the point took [s].
    """

    code: str
    rows: list[Row]
    cpu_s: float


class PointResults:
    """Rows of a figure's points, in one file of JSON lines.

    Parameters
    ----------
    path : Path
        Made with the first point that ends. Lines that are cut short, as by a kill, are passed over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept: dict[str, dict[str, Kept]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                self._take(line)

    def _take(self, line: str) -> None:
        try:
            read = json.loads(line)
            kept = Kept(str(read["code"]), list(read["rows"]), float(read["cpu_s"]))
            key = str(read["point"])
        except (ValueError, KeyError, TypeError):
            return
        by_code = self._kept.setdefault(key, {})
        by_code.pop(kept.code, None)
        by_code[kept.code] = kept

    def find(self, key: str, code: str, *, older: bool) -> Kept | None:
        """Rows of a point by this code; with ``older`` the last ones by any code."""
        by_code = self._kept.get(key, {})
        if code in by_code:
            return by_code[code]
        return list(by_code.values())[-1] if older and by_code else None

    def add(self, key: str, kept: Kept) -> None:
        """Keep the rows of a point."""
        line = json.dumps(
            {"point": key, "code": kept.code, "cpu_s": round(kept.cpu_s, 3), "rows": kept.rows}
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * torn + line + "\n")
        self._take(line)


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


@cache
def file_digest(path: Path) -> str:
    """Digest of a file, which is taken to stay as it is while a process runs."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:_DIGITS]
    except OSError as error:
        raise InputError(f"file {path}: {error.strerror or error}") from None


def code_digest(figure_file: Path) -> str:
    """Digest of the package and of a figure's own files."""
    found = hashlib.sha256(_package_digest().encode())
    for path in (figure_file, *sorted(figure_file.parent.glob("_*.py"))):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:_DIGITS]


@cache
def _package_digest() -> str:
    root = Path(shadowprice.__file__).parent
    found = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in _SUFFIXES:
            found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def table_of(kept: Iterable[Kept]) -> pd.DataFrame:
    """All rows, in the order of the points."""
    return pd.DataFrame([row for each in kept for row in each.rows])


def write_table(
    path: Path, table: pd.DataFrame, figure: Figure, size: Size, settings: Any, kept: Sequence[Kept]
) -> None:
    """Write a table as CSV, below lines that say with what it was made."""
    codes = pd.Series([each.code for each in kept]).value_counts(sort=False)
    head = (
        f"{figure.paper}; size {size}",
        "settings " + json.dumps(settings_of(settings), sort_keys=True),
        "code " + ", ".join(f"{code} ({count} points)" for code, count in codes.items()),
        f"shadowprice {shadowprice.__version__}, Python {platform.python_version()}, "
        + _versions(),
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


def _versions() -> str:
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)
