"""Certificates as records, and records as certificates whose digests are right."""

from __future__ import annotations

import json
from typing import Any

from shadowprice.proofs.checker import canonical, digest

Record = dict[str, Any]

NOT_GIVEN = ("header", "run", "bound", "part", "claim")
MALFORMED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What parts of the checker raise where a record is malformed, which is a refusal of the whole."""


def records_of(text: str) -> list[Record]:
    """Records of a certificate."""
    return [json.loads(line) for line in text.splitlines()]


def signed(found: list[Record]) -> str:
    """The file of these records, its digests made anew."""
    lines = [canonical(record) for record in found[:-1]]
    parts = [canonical(record) for record in found if record["kind"] not in NOT_GIVEN]
    claim = {**found[-1], "instance": digest(parts)}
    claim.pop("file", None)
    claim["file"] = digest([*lines, canonical(claim)])
    return "\n".join([*lines, canonical(claim), ""])


def changes(value: Any) -> tuple[Any, ...]:
    """Other values of a field."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value + 1, value - 1, str(value), -1, None
    if isinstance(value, str):
        return f"{value}x", 7, ""
    if isinstance(value, list):
        return value[:-1], [*value, 1], None
    return {}, {**value, "more": 1}, None
