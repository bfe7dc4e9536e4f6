"""Docstrings in NumPy style, read for pages and tables."""

from __future__ import annotations

import inspect
import re

_RULE = re.compile("-+")


def described_parameters(docstring: str | None) -> dict[str, tuple[str, str]]:
    r"""Type and description by name of the parameters that a docstring in NumPy style describes.

    >>> described_parameters("Wait.\n\nParameters\n----------\nleast, most : float\n    Wait [s].\n")
    {'least': ('float', 'Wait [s].'), 'most': ('float', 'Wait [s].')}
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    heads = [k for k, line in enumerate(lines[1:]) if _RULE.fullmatch(line)]
    begin = next((k for k in heads if lines[k] == "Parameters"), None)
    if begin is None:
        return {}
    end = next((k for k in heads if k > begin), len(lines))
    found: dict[str, tuple[str, str]] = {}
    names: list[str] = []
    for line in lines[begin + 2 : end]:
        if line and not line.startswith(" "):
            before, _, kind = line.partition(" : ")
            names = [name.strip() for name in before.split(",")]
            found.update(dict.fromkeys(names, (kind, "")))
        elif line:
            for name in names:
                kind, says = found[name]
                found[name] = (kind, f"{says} {line.strip()}".strip())
    return found


def first_line(text: str | None) -> str:
    """The first line of a docstring; empty if there is none."""
    return (text or "").strip().partition("\n")[0]
