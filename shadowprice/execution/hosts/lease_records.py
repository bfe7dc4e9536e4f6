"""What a job and its supervisor wrote, reduced to what makes sense."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path
from typing import Any

from shadowprice.execution.hosts.protocol import Exit
from shadowprice.execution.supervision.files import read_json

REPORT_LIMIT_BYTES = 1 << 16
TEXT_LIMIT = 2000
REASONS = ("exited", "stopped", "expired", "void", "unstartable")


def read_exit(directory: Path) -> Exit | None:
    """``exit.json``; None if there is none that makes sense."""
    found = read_json(f"{directory}/exit.json", REPORT_LIMIT_BYTES)
    if found is None or type(found.get("code")) is not int or found.get("reason") not in REASONS:
        return None
    detail = str(found.get("detail", ""))[:TEXT_LIMIT]
    return Exit(found["code"], found["reason"], found.get("forced") is True, detail)


def read_report(directory: Path) -> dict[str, Any]:
    """``report.json`` without what is no plain number, text or truth value; empty if there is none.

    Numbers are finite, not negative and at most 2^53; texts are cut.
    """
    found = read_json(f"{directory}/report.json", REPORT_LIMIT_BYTES) or {}
    report: dict[str, Any] = {}
    for key, value in found.items():
        if isinstance(value, str):
            report[key] = value[:TEXT_LIMIT]
        elif isinstance(value, bool) or (_is_number(value) and 0 <= value <= 2**53):
            report[key] = value
    return report


def read_text_tail(path: Path, characters: int = TEXT_LIMIT) -> str:
    """The end of a text, without what could steer a terminal; empty if there is no such file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        file.seek(max(0, os.fstat(descriptor).st_size - 4 * characters))
        text = file.read(4 * characters).decode(errors="replace")
    shown = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    return shown.strip()[-characters:]


def _is_number(value: object) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))
