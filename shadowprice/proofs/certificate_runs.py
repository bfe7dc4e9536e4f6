"""Rows of a schedule gathered into runs of gangs, and what these are charged, for the verifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.proofs.run_speed import TICKS_PER_S

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance, Overheads
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

    def width(self, schedule: Schedule) -> NDArray[np.int64]:
        """GPUs of every run."""
        if not len(self.first):
            return np.zeros(0, dtype=np.int64)
        return np.asarray(np.add.reduceat(schedule.gpus[self.order], self.first))

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


def owed_ticks(instance: Instance, schedule: Schedule, runs: Runs) -> NDArray[np.int64]:
    """Overhead that each run's job still owes at the end of the run [ticks]; negative if overpaid."""
    s, row, rules = schedule, runs.row, instance.overheads
    job = s.job[row]
    again = np.zeros(len(row), dtype=bool)
    again[1:] = job[1:] == job[:-1]
    gangs, which = np.unique(instance.workload.gpus, return_inverse=True)
    by_gang = np.array([_restart_s(rules, int(gang)) for gang in gangs], dtype=np.float64)
    moved = runs.moved(s)
    resumed = by_gang[which[job]] + moved * rules.migration_s
    charge = rules.start_s + np.where(again, resumed, 0.0)
    # Who keeps his GPUs while his partner, CPUs or memory change has not stopped.
    changes = (s.partner >= 0) | (s.cpus is not None)
    stays = again & ~moved & changes[row]
    stays[1:] |= again[1:] & ~moved[1:] & changes[row[:-1]]
    stays[1:] &= s.start_s[row[1:]] == s.end_s[row[:-1]]
    charge[stays] = 0.0
    ticks = ticks_of(charge) - ticks_of(s.overhead_s[row])
    total = np.cumsum(ticks)
    before = (total - ticks)[~again][np.cumsum(~again) - 1] if len(row) else total
    return total - before


def ticks_of(times_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """Times [s] that are on the grid, as whole ticks."""
    return (times_s * TICKS_PER_S).astype(np.int64)


def _restart_s(rules: Overheads, gang: int) -> float:
    """What a gang that resumes is charged [s]: the first step that is not below it, else the last."""
    steps = rules.restart_by_gpus or ((gang, rules.restart_s),)
    return next((cost for most, cost in steps if gang <= most), steps[-1][1])
