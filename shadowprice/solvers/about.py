"""Statements on a policy in its file: its source, its guarantee, and which of its names is for what use.

The docstring of a policy's module has a line that begins with ``Source:`` and one that begins with
``Guarantee:``, and may have one that begins with ``Use:``; each statement ends with its paragraph or where
another begins. Ours all have the first two.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

_LABELS = ("Source:", "Guarantee:", "Use:")
_CLAUSE = re.compile(r";|\.(?=\s+[A-Z]|$)")


@dataclass(frozen=True)
class About:
    """Statements in full; empty where the file does not say.

    Parameters
    ----------
    source, guarantee : str
        Citation with section, and what is proven, or that nothing is.
    use : str
        Which of several names of the policy to take for what.
    """

    source: str
    guarantee: str
    use: str = ""


def about(thing: object) -> About:
    """Source, guarantee and use, as stated in the file of a policy's class."""
    module = sys.modules.get(type(thing).__module__)
    text = (module.__doc__ or "").strip() if module else ""
    return About(*(_statement(text, label) for label in _LABELS))


def first_clause(statement: str) -> str:
    """A statement up to its first semicolon or full stop."""
    return _CLAUSE.split(statement)[0]


def _statement(text: str, label: str) -> str:
    lines = text.splitlines()
    begin = next((k for k, line in enumerate(lines) if line.startswith(label)), None)
    if begin is None:
        return ""
    kept = [lines[begin].removeprefix(label)]
    for line in lines[begin + 1 :]:
        if not line.strip() or line.startswith(_LABELS):
            break
        kept.append(line)
    return " ".join(" ".join(kept).replace("``", "").split())
