"""Time limits as Slurm writes them."""

from __future__ import annotations

import math
import re

LONGEST_S = 366 * 86_400.0
"""Longer limits are mistakes, of which Slurm makes other numbers [s]."""

_DAYS = re.compile(r"(\d{1,9})-(\d{1,2})(?::(\d\d))?(?::(\d\d))?")
_TIME = re.compile(r"(\d{1,9})(?::(\d\d))?(?::(\d\d))?")
_FORMS = "MINUTES, M:SS, H:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS or UNLIMITED"


def limit_s(text: str) -> float:
    """Seconds of a time limit, infinity for none.

    >>> limit_s("90"), limit_s("8:00:00"), limit_s("2-12"), limit_s("UNLIMITED")
    (5400.0, 28800.0, 216000.0, inf)

    Raises
    ------
    ValueError
        If it is none, saying what was expected.
    """
    if text.lower() in ("unlimited", "infinite"):
        return math.inf
    if found := _DAYS.fullmatch(text):
        days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    elif found := _TIME.fullmatch(text):
        numbers = [int(part) for part in found.groups() if part is not None]
        days, hours = 0, numbers.pop(0) if len(numbers) == 3 else 0
        minutes, seconds = (*numbers, 0)[:2]
        if hours == 0 and minutes >= 60 and found[3] is None:
            hours, minutes = divmod(minutes, 60)
    else:
        raise ValueError(f"expected {_FORMS}")
    if minutes > 59 or seconds > 59 or (days and hours > 23):
        raise ValueError("expected minutes and seconds below 60, and hours below 24 after days")
    total_s = 86_400.0 * days + 3600.0 * hours + 60.0 * minutes + seconds
    if not 0 < total_s <= LONGEST_S:
        raise ValueError("expected more than 0 and at most 366 days")
    return total_s
