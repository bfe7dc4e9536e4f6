"""Release notes, drawn from the changelog: ``python docs/release_notes.py 0.1.0``, or ``unreleased``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"
_HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\S+))?$", re.MULTILINE)


def versions(text: str) -> list[str]:
    """Versions of a changelog, newest first."""
    return [found["version"] for found in _HEADING.finditer(text)]


def notes(text: str, version: str) -> str:
    """Notes on a version: what stands below its heading, "Numbers that changed" first.

    Raises
    ------
    ValueError
        If the changelog has no such version, or nothing below it.
    """
    headings = list(_HEADING.finditer(text))
    for place, found in enumerate(headings):
        if found["version"].lower() != version.lower():
            continue
        end = headings[place + 1].start() if place + 1 < len(headings) else len(text)
        body = text[found.end() : end].strip()
        if not body:
            raise ValueError(f"changelog: nothing is said of version {found['version']}")
        date = f", {found['date']}" if found["date"] else ""
        parts = re.split(r"(?m)^(?=### )", body)
        parts.sort(key=lambda part: not part.startswith("### Numbers that changed"))
        return f"# shadowprice {found['version']}{date}\n\n" + "\n".join(
            part.strip() + "\n" for part in parts if part.strip()
        )
    raise ValueError(f"changelog: no version {version!r}, expected one of {versions(text)}")


def main() -> int:
    """Print the notes of the version that is named."""
    if len(sys.argv) != 2:
        print("usage: release_notes.py VERSION", file=sys.stderr)
        return 2
    try:
        print(notes(CHANGELOG.read_text(encoding="utf-8"), sys.argv[1]), end="")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
