"""Digests of what the rows of a point depend on: files that it names, and the code of the package."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from shadowprice.errors import InputError

DIGITS = 12
"""Hexadecimal digits that are kept of a digest."""

_SUFFIXES = (".py", ".json", ".toml")


@cache
def file_digest(path: Path) -> str:
    """Digest of a file, which is taken to stay as it is while a process runs."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]
    except OSError as error:
        raise InputError(f"file {path}: {error.strerror or error}") from None


@cache
def package_digest() -> str:
    """Digest of all files of the package."""
    root = Path(__file__).parents[2]
    found = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in _SUFFIXES:
            found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
