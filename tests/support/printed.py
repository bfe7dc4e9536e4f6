"""JSON that commands print, without what made it."""

from __future__ import annotations

import json
from typing import Any


def without_origin(printed: str) -> dict[str, Any]:
    """A result, whose origin is there and is left out: two commands may have the same result."""
    record: dict[str, Any] = json.loads(printed)
    assert set(record.pop("made_by")) == {"version", "command", "options", "inputs_sha256"}
    return record
