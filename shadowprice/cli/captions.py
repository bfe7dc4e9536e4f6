"""Captions of tables: assumptions of a run, durations in units one reads, rows left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from rich.console import Console

Row = TypeVar("Row")

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_FROM_S = 120
"""Shorter durations are read well in seconds."""

_OTHER_LINES = 12
"""Lines of a screen that a command prints beside a table: title, frame, sentences, the prompt."""
_FEWEST = 10


def assumptions(settings: Mapping[str, object]) -> str:
    """The settings of a run that decide what its numbers are about, for the caption of a table.

    Parameters
    ----------
    settings : mapping
        As of :class:`shadowprice.analysis.outcome.VerifiedRun`.

    Examples
    --------
    >>> assumptions({"placement": "count", "round_s": None})
    'placement count: a gang gets any free GPUs of a type, on whatever nodes, unless the policy says which'
    >>> assumptions({"preset": "gavel", "placement": "strided", "round_s": 360.0})
    'preset gavel; placement strided; rounds of 360 s'
    """
    preset, placement, round_s = (settings.get(key) for key in ("preset", "placement", "round_s"))
    parts = [] if preset is None else [f"preset {preset}"]
    # A placement of that name may be the preset's own.
    if placement == "count" and preset is None:
        parts.append(
            "placement count: a gang gets any free GPUs of a type, on whatever nodes, "
            "unless the policy says which"
        )
    elif placement is not None:
        parts.append(f"placement {placement}")
    if isinstance(round_s, int | float) and round_s:
        parts.append(f"rounds of {round_s:g} s")
    return "; ".join(parts)


def assumptions_by_policy(settings: Mapping[str, Mapping[str, object]]) -> str:
    """Assumptions of some policies, as :func:`assumptions` has them; once if they are the same of all.

    Examples
    --------
    >>> assumptions_by_policy({"a": {"placement": "skew"}, "b": {"placement": "skew"}})
    'placement skew'
    >>> print(assumptions_by_policy({"a": {"placement": "skew"}, "b": {}, "c": {"round_s": 60}}))
    a: placement skew
    c: rounds of 60 s
    """
    texts = {policy: assumptions(each) for policy, each in settings.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "\n".join(f"{policy}: {text}" for policy, text in texts.items() if text)


def duration(seconds: float) -> str:
    """A duration in the two units one reads it in, rounded to the smaller; empty below two minutes.

    Examples
    --------
    >>> duration(12707.9), duration(218_998.0), duration(119.0), duration(7199.9)
    ('3 h 32 min', '2 d 13 h', '', '2 h 0 min')
    """
    if not _FROM_S <= seconds < float("inf"):
        return ""
    for (large, large_s), (small, small_s) in pairwise(_UNITS):
        rounded = round(seconds / small_s)
        if rounded * small_s >= large_s:
            more = rounded - rounded * small_s // large_s * (large_s // small_s)
            return f"{rounded * small_s // large_s:,} {large} {more} {small}"
    return ""


def screenful(rows: Sequence[Row], console: Console) -> tuple[Sequence[Row], str | None]:
    """Rows of a table that fit on the screen, and a line on those that do not; all, where nobody looks on.

    A pipe or a file gets all rows.
    """
    fit = max(console.height - _OTHER_LINES, _FEWEST)
    if not console.is_terminal or len(rows) <= fit:
        return rows, None
    return rows[:fit], f"{len(rows) - fit:,} more of {len(rows):,} rows: --csv prints all"
