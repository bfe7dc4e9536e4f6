"""Files of generated pages, written only where they changed, so that a second build reads little again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

Pages = Mapping[str, str]
"""Texts by path below ``docs/generated/``."""


def write_pages(folder: Path, pages: Pages) -> None:
    """Write pages whose text changed."""
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
