"""A plugin for pytest that keeps every text that a test gives to the checker of certificates, with its answer.

``pytest -p support.recorded_certificates`` writes each text to a file of the folder
RECORDED_CERTIFICATES: ``N.proven`` or ``N.rejected``. Texts beyond ASCII are left out, no file can have them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from shadowprice.proofs import checker

FOLDER = Path(os.environ["RECORDED_CERTIFICATES"])
check = checker.check
known: set[str] = set()


def keep(text: str, answer: str) -> None:
    if text.isascii() and text not in known:
        known.add(text)
        (FOLDER / f"{len(known)}.{answer}").write_text(text, encoding="ascii", newline="")


def recorded(text: str) -> dict[str, Any]:
    """The checker, which is observed."""
    try:
        claim = check(text)
    except checker.Rejected:
        keep(text, "rejected")
        raise
    keep(text, "proven")
    return claim


checker.check = recorded
