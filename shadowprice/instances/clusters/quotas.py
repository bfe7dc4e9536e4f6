"""Quotas of GPUs by tenant and day, such as those of Helios' virtual clusters.

A run may begin only if the tenant's jobs then hold no more GPUs than the tenant's quota of that day. A quota that
becomes smaller stops nobody.
"""

from __future__ import annotations

import bisect
import csv
import itertools
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import Line
from shadowprice.instances.entries import shown
from shadowprice.instances.files import read_text
from shadowprice.instances.grid import MAX_TIME_S, TICKS_PER_S

_NOT_TENANTS = ("date", "total")


Count = Annotated[int, Meta(ge=0, le=10**12, description="a whole number of GPUs")]


@dataclass(frozen=True, repr=False)
class Quotas(Brief):
    """GPUs that the jobs of each tenant may hold, by period.

    Parameters
    ----------
    tenants : tuple of str
        All tenants there are, different.
    start_s : tuple of float
        When each period begins [s], the first at 0; the last never ends.
    gpus : tuple of tuple of int
        For each period the GPUs of every tenant.

    Raises
    ------
    InputError
        If these do not fit each other, or periods are not in order.
    """

    tenants: tuple[Line, ...]
    start_s: tuple[float, ...]
    gpus: tuple[tuple[Count, ...], ...]

    def __post_init__(self) -> None:
        if not self.tenants or len(set(self.tenants)) < len(self.tenants):
            raise InputError("quotas: expected tenants, each once")
        starts = self.start_s
        ordered = all(one < two for one, two in itertools.pairwise(starts))
        on_grid = all(0 <= each <= MAX_TIME_S and each * TICKS_PER_S % 1 == 0 for each in starts)
        if not starts or starts[0] != 0 or not ordered or not on_grid:
            raise InputError(
                "quotas: expected periods in order, the first at 0 s, on the time grid"
            )
        if len(self.gpus) != len(starts) or {len(row) for row in self.gpus} != {len(self.tenants)}:
            raise InputError("quotas: expected a row a period, in it the GPUs of every tenant")

    def next_change_s(self, now_s: float) -> float:
        """Start of the next period [s]; infinity in the last."""
        place = bisect.bisect_right(self.start_s, now_s)
        return self.start_s[place] if place < len(self.start_s) else math.inf

    def at(self, now_s: float) -> tuple[int, ...]:
        """GPUs of every tenant at a time."""
        return self.gpus[bisect.bisect_right(self.start_s, now_s) - 1]


def read_quotas(path: str | Path, origin_s: float) -> Quotas:
    """Read ``cluster_gpu_number.csv`` of Helios: a column ``date``, one a tenant, and ``total``.

    A day's quotas hold from its midnight, by the clock of the log; those of the last day for ever.

    Parameters
    ----------
    origin_s : float
        Time 0 of the jobs, in seconds since 1970 by the same clock.

    Raises
    ------
    InputError
        If the table is another, days are not in order, or the first is after time 0.
    """
    lines = [line for line in csv.reader(read_text(path).splitlines()) if line]
    head, rows = [name.strip() for name in lines[0]], lines[1:]
    tenants = tuple(name for name in head if name not in _NOT_TENANTS)
    if head[0] != "date" or not tenants or not rows:
        raise InputError(f"{path}: expected a column date and one for each tenant, and rows")
    periods: list[tuple[float, tuple[int, ...]]] = []
    for number, row in enumerate(rows, 1):
        if len(row) != len(head):
            raise InputError(f"{path}: row {number} has {len(row)} values, expected {len(head)}")
        given = dict(zip(head, map(str.strip, row), strict=True))
        try:
            day = datetime.strptime(given["date"], "%Y-%m-%d").replace(tzinfo=UTC)
            gpus = tuple(int(given[name]) for name in tenants)
        except ValueError as error:
            raise InputError(
                f"{path}: row {number}: {shown(str(error))}, expected a date and whole numbers"
            ) from None
        periods.append((day.timestamp() - origin_s, gpus))
    # The last day that has begun at time 0 begins there.
    begun = [start_s for start_s, _ in periods if start_s <= 0]
    if not begun:
        first = rows[0][0]
        raise InputError(
            f"{path}: begins on {first}, after time 0 of the jobs; expected their days"
        )
    kept = [(max(start_s, 0.0), gpus) for start_s, gpus in periods if start_s >= begun[-1]]
    try:
        return Quotas(tenants, tuple(each[0] for each in kept), tuple(each[1] for each in kept))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
