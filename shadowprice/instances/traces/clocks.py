"""Dates of logs, with or without a zone, as seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.traces.table import iso_dates

Seconds = NDArray[np.float64]

_ANY_OFFSET = re.compile(r"[T ].*([+-]\d\d(:?\d\d)?|Z)\s*$")
_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])")


@dataclass(frozen=True)
class LogClock:
    """Meaning of the dates of a log.

    Parameters
    ----------
    form : str, optional
        As of ``strptime``; ISO 8601 if absent.
    zone : str, optional
        Zone of dates that bear none, whose clocks change; without it they are taken as UTC.
    of_site : bool
        True for dates of a site that is not known: their zone may be chosen, or they are seconds, if the
        first is a number.
    """

    form: str | None = None
    zone: str | None = None
    of_site: bool = False

    def seconds(self, values: NDArray[np.object_], zone: str | None = None) -> Seconds:
        """Seconds since 1970, NaN for what is no time; ``zone`` is one that was chosen."""
        absent = ("", "Unknown", "None")
        first = next((each for each in values.tolist() if each not in absent), "")
        if self.of_site and not np.isnan(ColumnChecks.floats(np.array([first], dtype=object))[0]):
            return ColumnChecks.floats(values)
        return dates_s(values, self.form, zone or self.zone)


def dates_s(
    values: NDArray[np.object_], form: str | None = None, zone: str | None = None
) -> Seconds:
    """Dates of a column as seconds since 1970; NaN for what is none.

    Parameters
    ----------
    form : str, optional
        As of ``strptime``; ISO 8601 if not given. Dates without a zone are taken as UTC.
    zone : str, optional
        Zone of dates without one; in the hour that a clock shows twice its second time is meant.
    """
    import pandas as pd

    bear_offset, ahead_s = np.zeros(len(values), dtype=np.bool_), 0.0
    if form is not None:
        dates = pd.to_datetime(pd.Series(values, dtype=object), errors="coerce", format=form)
        dates = dates.dt.tz_localize("UTC")
    else:
        if zone is None:
            values, ahead_s = _without_offset(values)
        else:
            bear_offset = np.array([_bears_offset(each) for each in values.tolist()], np.bool_)
        dates = iso_dates(values.tolist())
    epoch = pd.Timestamp(0, tz="UTC")
    seconds = np.asarray((dates - epoch).dt.total_seconds(), dtype=np.float64) - ahead_s
    if zone is None:
        return seconds
    second = np.zeros(len(dates), dtype=np.bool_)
    clock = dates.dt.tz_localize(None)
    local = clock.dt.tz_localize(zone, ambiguous=second, nonexistent="shift_forward")
    shifted = np.asarray((local - epoch).dt.total_seconds(), dtype=np.float64)
    return np.where(bear_offset, seconds, shifted)


def _bears_offset(value: object) -> bool:
    return isinstance(value, str) and _ANY_OFFSET.search(value) is not None


def _without_offset(values: NDArray[np.object_]) -> tuple[NDArray[np.object_], float]:
    """Dates without the offset that all of them bear, and how far that is ahead of UTC [s].

    Dates without one are read in a third of the time.
    """
    texts = values.tolist()
    if set(map(type, texts)) != {str}:
        return values, 0.0
    given = list(filter(None, texts))
    found = _OFFSET.fullmatch(given[0][19:]) if given else None
    if found is None or not _are_alike(given):
        return values, 0.0
    sign, hours, minutes = found.groups()
    ahead_s = int(f"{sign}1") * (int(hours) * 3600.0 + int(minutes) * 60.0)
    return np.array([text[:-6] for text in texts], dtype=object), ahead_s


def _are_alike(texts: list[str]) -> bool:
    """True if all are dates to the second with the offset of the first: columns of characters are compared."""
    joined = "".join(texts)
    if set(map(len, texts)) != {len("2026-01-31 12:00:00+00:00")} or not joined.isascii():
        return False
    rows = np.frombuffer(joined.encode("ascii"), dtype=np.uint8).reshape(len(texts), -1)
    digits = rows[:, [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18]]
    between = {place: ord(mark) for place, mark in ((4, "-"), (7, "-"), (13, ":"), (16, ":"))}
    return (
        bool(((digits >= ord("0")) & (digits <= ord("9"))).all())
        and all(bool((rows[:, place] == mark).all()) for place, mark in between.items())
        and set(np.unique(rows[:, 10]).tolist()) <= set(b" T")
        and bool((rows[:, 19:] == rows[0, 19:]).all())
    )
