"""Schedules cut into segments, as they are read from files that do not fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from shadowprice.instances.schedule import Schedule


@dataclass(frozen=True)
class Cut:
    """Rows of a schedule up to each of some positions."""

    schedule: Schedule
    cuts: Sequence[int]

    @property
    def lengths(self) -> list[int]:
        return np.diff([0, *self.cuts, len(self.schedule)]).tolist()

    def read(self, segment: int) -> Schedule:
        begin = sum(self.lengths[:segment])
        return rows_of(self.schedule, np.arange(begin, begin + self.lengths[segment]))


def rows_of(schedule: Schedule, rows: np.ndarray) -> Schedule:
    given = {each.name: getattr(schedule, each.name) for each in fields(Schedule)}
    return replace(
        schedule, **{name: column[rows] for name, column in given.items() if column is not None}
    )


def by_end(schedule: Schedule) -> Schedule:
    return rows_of(schedule, np.argsort(schedule.end_s, kind="stable"))
