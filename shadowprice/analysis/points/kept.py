"""Rows that points gave, kept as each ends, so that a run that was stopped goes on.

A point is an independent run of a figure or a study, known by a key. A file of rows has one writer at a time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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
    rows: list[dict[str, Any]]
    cpu_s: float


class PointResults:
    """Rows of points, in one file of JSON lines.

    Parameters
    ----------
    path : Path
        Made with the first point that ends. Lines that are cut short, as by a kill, are passed over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._kept: dict[str, dict[str, Kept]] = {}
        self._torn = False
        if path.exists():
            text = path.read_text(encoding="utf-8", errors="replace")
            self._torn = not text.endswith("\n")
            for line in text.splitlines():
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
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._torn + line + "\n")
        self._torn = False
        self._take(line)
