"""Nodes of the search for Hadar's offline optimum: what schedules are still allowed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar_master import Master, Relaxed

_WHOLE = 1e-6
"""Shares this close to 0 or 1 count as 0 or 1."""


@dataclass(frozen=True, eq=False)
class Node:
    """A part of all choices of schedules.

    Parameters
    ----------
    bound : float
        No choice in this part is worth more.
    ends : ndarray of bool, shape (jobs, rounds)
        Rounds in which a job may complete.
    allowed : ndarray of bool, shape (jobs, rounds, levels + 1)
        What a job that is not complete may do in a round: its levels, and last to idle.
    must : ndarray of bool, shape (jobs,)
        Jobs that have to complete.
    """

    bound: float
    ends: NDArray[np.bool_]
    allowed: NDArray[np.bool_]
    must: NDArray[np.bool_]

    @classmethod
    def root(cls, jobs: RoundJobs) -> Node:
        """All choices."""
        widest = max((len(levels) for levels in jobs.levels), default=0)
        allowed = np.zeros((jobs.jobs, jobs.rounds, widest + 1), dtype=bool)
        for job, levels in enumerate(jobs.levels):
            allowed[job, int(jobs.first[job]) :, : len(levels)] = True
        allowed[:, :, -1] = True
        ends = np.ones((jobs.jobs, jobs.rounds), dtype=bool)
        return cls(float("inf"), ends, allowed, np.zeros(jobs.jobs, dtype=bool))

    def columns(self, master: Master) -> NDArray[np.int64]:
        """Schedules of a master that this part allows."""
        job, end, levels = master.table()
        running = np.arange(self.ends.shape[1]) <= end[:, None]
        # IDLE is -1, the last entry of what is allowed.
        allowed = self.allowed[job[:, None], np.arange(self.ends.shape[1]), levels]
        return np.flatnonzero(self.ends[job, end] & np.all(allowed | ~running, axis=1))


def branch(node: Node, master: Master, relaxed: Relaxed) -> tuple[Node, Node] | None:
    """Two parts that hold every choice of a node, neither of which holds the relaxed solution.

    On when a job completes, if that is open for one; else on whether a job runs in a round; else
    on how fast. None if the solution is integral in all three, and so gives a plan. The part
    nearer to the relaxed solution comes first.
    """
    job, end, levels = master.table()
    used = np.flatnonzero(relaxed.share > _WHOLE)
    job, end, levels, share = job[used], end[used], levels[used], relaxed.share[used]
    completes = np.zeros(node.ends.shape)
    np.add.at(completes, (job, end), share)
    found = _by_completion(node, master.jobs, completes)
    if found is not None:
        return found
    doing = np.zeros(node.allowed.shape)
    np.add.at(doing, (job[:, None], np.arange(levels.shape[1]), levels), share[:, None])
    return _by_round(node, master.jobs, doing)


def _by_completion(
    node: Node, jobs: RoundJobs, completes: NDArray[np.float64]
) -> tuple[Node, Node] | None:
    until = np.cumsum(completes, axis=1)
    open_ = np.minimum(until, 1.0 - until)
    if open_.max(initial=0.0) <= _WHOLE:
        return None
    # The job whose utility is least certain: left out counts as 0.
    utility = jobs.utility.values[:, :-1]
    mean = (completes * utility).sum(axis=1)
    variance = (completes * utility**2).sum(axis=1) - mean**2
    job = int(np.argmax(np.where(open_.max(axis=1) > _WHOLE, variance, -np.inf)))
    end = int(np.argmax(open_[job]))
    rounds = np.arange(jobs.rounds)
    must = node.must.copy()
    must[job] = True
    early = replace(node, ends=_with(node.ends, job, node.ends[job] & (rounds <= end)), must=must)
    late = replace(node, ends=_with(node.ends, job, node.ends[job] & (rounds > end)))
    return (early, late) if until[job, end] >= 0.5 else (late, early)


def _by_round(node: Node, jobs: RoundJobs, doing: NDArray[np.float64]) -> tuple[Node, Node] | None:
    """Cumulated over levels from the fastest on: whether a job runs, and at least how fast."""
    at_least = np.cumsum(doing[:, :, :-1], axis=2)
    open_ = np.minimum(at_least, 1.0 - at_least)
    open_[open_ <= _WHOLE] = 0.0
    if not open_.any():
        return None
    running = open_[:, :, -1] * jobs.gang[:, None]
    if running.any():
        job, t = (int(i) for i in np.unravel_index(np.argmax(running), running.shape))
        level = at_least.shape[2] - 1
    else:
        job, t, level = (int(i) for i in np.unravel_index(np.argmax(open_), open_.shape))
    fast = np.arange(doing.shape[2]) <= level
    must, rounds = node.must.copy(), np.arange(jobs.rounds)
    must[job] = True
    yes = replace(
        node,
        allowed=_with(node.allowed, (job, t), node.allowed[job, t] & fast),
        ends=_with(node.ends, job, node.ends[job] & (rounds >= t)),
        must=must,
    )
    no = replace(node, allowed=_with(node.allowed, (job, t), node.allowed[job, t] & ~fast))
    return (yes, no) if at_least[job, t, level] >= 0.5 else (no, yes)


def _with(
    table: NDArray[np.bool_], place: int | tuple[int, int], row: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    changed = table.copy()
    changed[place] = row
    return changed
