"""Rows that points gave, stored as each ends, so that a run that was stopped goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shadowprice.errors import InputError


@dataclass(frozen=True)
class PointRows:
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
    rows: list[dict[str, Any]]
    cpu_s: float


class PointStore:
    """Rows of points, in one file of JSON lines, which has one writer at a time.

    Parameters
    ----------
    path : Path, optional
        Made with the first point that ends. Lines that are cut short, as by a kill, are passed over. Without one
        rows are in memory alone, as they would be read from a file.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._rows: dict[str, dict[str, PointRows]] = {}
        self._torn = False
        if path is not None and path.exists():
            text = path.read_text(encoding="utf-8", errors="replace")
            self._torn = not text.endswith("\n")
            for line in text.splitlines():
                self._take(line)

    def _take(self, line: str) -> None:
        try:
            read = json.loads(line)
            rows = PointRows(str(read["code"]), list(read["rows"]), float(read["cpu_s"]))
            key = str(read["point"])
        except (ValueError, KeyError, TypeError):
            return
        by_code = self._rows.setdefault(key, {})
        by_code.pop(rows.code, None)
        by_code[rows.code] = rows

    def find(self, key: str, code: str, *, older: bool) -> PointRows | None:
        """Rows of a point by this code; with ``older`` the last ones by any code."""
        by_code = self._rows.get(key, {})
        if code in by_code:
            return by_code[code]
        return list(by_code.values())[-1] if older and by_code else None

    def add(self, key: str, rows: PointRows) -> None:
        """Store the rows of a point.

        Raises
        ------
        InputError
            If they cannot be written, as on a disk that is full.
        """
        line = json.dumps(
            {"point": key, "code": rows.code, "cpu_s": round(rows.cpu_s, 3), "rows": rows.rows}
        )
        if self.path is not None:
            try:
                self._append(self.path, line)
            except OSError as error:
                raise not_written(self.path.parent, error) from error
        self._take(line)

    def _append(self, path: Path, line: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._torn + line + "\n")
        self._torn = False


def not_written(folder: Path, error: OSError) -> InputError:
    """Error where a disk is full, or a folder gone, with what to do."""
    return InputError(
        f"{folder}: cannot be written: {error.strerror or error}; what had ended before is kept: the same command "
        "goes on"
    )
