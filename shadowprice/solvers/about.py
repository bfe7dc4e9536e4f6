"""Statements on a policy in its file: its source, its guarantee, and which of its names is for what use.

The docstring of a policy's module has a line that begins with ``Source:`` and one that begins with
``Guarantee:``, and may have one that begins with ``Use:``; each statement ends with its paragraph or where
another begins. Ours all have the first two.

Where names or parameters of one file differ in what is proven of them, the policy has a property ``guarantee``, which
speaks of that very policy, in the place of the line, which then says what is proven of which.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from shadowprice.docstrings import described_parameters

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
    """Source, guarantee and use, as stated in the file of a policy's class; a guarantee by the policy itself first."""
    module = sys.modules.get(type(thing).__module__)
    text = (module.__doc__ or "").strip() if module else ""
    found = About(*(_statement(text, label) for label in _LABELS))
    own = getattr(thing, "guarantee", None)
    return replace(found, guarantee=own) if isinstance(own, str) else found


@dataclass(frozen=True)
class Parameter:
    """A parameter of a policy: its value there, and the docstring on it, with its unit."""

    name: str
    value: object
    kind: str
    says: str


def parameters(thing: object) -> tuple[Parameter, ...]:
    """Parameters of a policy besides its name, in order; none of what is no dataclass.

    The first docstring among its class and its bases that describes one speaks of it.
    """
    if not is_dataclass(thing) or isinstance(thing, type):
        return ()
    told: dict[str, tuple[str, str]] = {}
    for each in type(thing).__mro__:
        told = {**described_parameters(each.__doc__), **told}
    given: Any = thing
    return tuple(
        Parameter(each.name, getattr(given, each.name), *told.get(each.name, ("", "")))
        for each in fields(thing)
        if each.init and each.name != "name" and not each.name.startswith("_")
    )


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
