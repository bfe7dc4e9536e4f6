"""Rows of a schedule gathered into runs of gangs, for the verifier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.schedule import Schedule


@dataclass(frozen=True)
class Runs:
    """Runs of gangs in order of job, then start.

    ``order`` sorts the rows by run, ``piece`` is the run of each, ``first`` where each run begins
    and ``row`` the row there.
    """

    row: NDArray[np.int64]
    first: NDArray[np.int64]
    piece: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def of(cls, schedule: Schedule) -> Runs:
        """Rows of one job that start together are one run, in order of node; O(R log R)."""
        order = np.lexsort((schedule.node, schedule.start_s, schedule.job))
        job, start = schedule.job[order], schedule.start_s[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (job[1:] != job[:-1]) | (start[1:] != start[:-1])
        return cls(order[first], np.flatnonzero(first), np.cumsum(first) - 1, order)

    def moved(self, schedule: Schedule) -> NDArray[np.bool_]:
        """Whether a run holds other nodes or counts than the run before it of the same job."""
        s, pieces = schedule, np.diff(np.append(self.first, len(self.order)))
        # Piece k of a run and of the one before lie apart by the latter's number of pieces.
        before = np.arange(len(self.order)) - pieces[self.piece]
        row, old = self.order, self.order[np.maximum(before, 0)]
        same = (before >= 0) & (s.job[row] == s.job[old])
        same &= (s.node[row] == s.node[old]) & (s.gpus[row] == s.gpus[old])
        moved = np.bincount(self.piece[same], minlength=len(pieces)) < pieces
        moved[1:] |= pieces[1:] != pieces[:-1]
        return moved
