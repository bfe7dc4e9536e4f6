"""Rows of a schedule on disk, which are in order of their ends, in order of their starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from shadowprice.instances.schedule import Schedule

if TYPE_CHECKING:
    from shadowprice.proofs.verification.segments import ScheduleSegments

_COLUMNS = ("job", "node", "gpus", "start_s", "end_s", "overhead_s", "partner")

MOST_ROWS = 2**21
"""Rows of a block, unless more of them start together."""


def blocks_by_start(segments: ScheduleSegments, most_rows: int = MOST_ROWS) -> Iterator[Schedule]:
    """All rows, in blocks one of which starts after the other; every segment is read once a block.

    In memory are a block and a segment, and beside these a number a row, its start. Rows that start
    together are in one block.
    """
    every = range(len(segments.lengths))
    starts = np.sort(np.concatenate([segments.read(segment).start_s for segment in every]))
    first = 0
    while first < len(starts):
        begin_s, until_s = starts[first], starts[min(first + most_rows, len(starts)) - 1]
        blocks = [_between(segments.read(segment), begin_s, until_s) for segment in every]
        columns = {n: np.concatenate([getattr(each, n) for each in blocks]) for n in _COLUMNS}
        block = Schedule(**columns)
        yield block
        first += len(block)


def _between(rows: Schedule, begin_s: float, until_s: float) -> Schedule:
    """Rows that start between two times, both included."""
    some = (rows.start_s >= begin_s) & (rows.start_s <= until_s)
    return Schedule(**{name: getattr(rows, name)[some] for name in _COLUMNS})
