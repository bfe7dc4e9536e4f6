"""Nodes of the search for Hadar's offline optimum: what schedules are still allowed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.master import Master, Relaxed

_WHOLE = 1e-6
"""Shares this close to 0 or 1 count as 0 or 1."""


@dataclass(frozen=True, eq=False)
class Node:
    """A part of all choices of schedules.

    Parameters
    ----------
    bound : float
        No choice in this part is worth more.
    ends : ndarray of bool, shape (jobs, rounds + 1)
        Rounds in which a job may complete; last whether it may be left out.
    allowed : ndarray of bool, shape (jobs, rounds, levels + 1)
        What a job that is not complete may do in a round: its levels, and last to idle.
    narrowed : bool
        Whether less is allowed than at the root.
    """

    bound: float
    ends: NDArray[np.bool_]
    allowed: NDArray[np.bool_]
    narrowed: bool = False

    @classmethod
    def root(cls, jobs: RoundJobs) -> Node:
        """All choices."""
        widest = max((len(levels) for levels in jobs.levels), default=0)
        allowed = np.zeros((jobs.jobs, jobs.rounds, widest + 1), dtype=bool)
        for job, levels in enumerate(jobs.levels):
            allowed[job, int(jobs.first[job]) :, : len(levels)] = True
        allowed[:, :, -1] = True
        ends = np.ones((jobs.jobs, jobs.rounds + 1), dtype=bool)
        return cls(float("inf"), ends, allowed)

    def columns(self, master: Master) -> NDArray[np.bool_]:
        """Which schedules of a master this part allows."""
        may: NDArray[np.bool_] = self.ends[master.job, master.end]
        if not self.narrowed:
            return may
        rounds = np.arange(master.jobs.rounds)
        # IDLE is -1, the last entry of what is allowed; nothing is asked of a job that is left out.
        allowed = self.allowed[master.job[:, None], rounds, master.levels]
        last = np.where(master.end < master.jobs.rounds, master.end, -1)
        may &= np.all(allowed | (rounds > last[:, None]), axis=1)
        return may


def branch(node: Node, master: Master, relaxed: Relaxed) -> tuple[Node, Node] | None:
    """Two parts that hold every choice of a node, neither of which holds the relaxed solution.

    On when a job completes, if that is open for one; else on whether a job runs in a round; else
    on how fast. None if the solution is integral in all three, and so gives a plan. The part
    nearer to the relaxed solution comes first.
    """
    found = _by_completion(node, master.jobs, completions(node, master, relaxed))
    if found is not None:
        return found
    used = np.flatnonzero(relaxed.share > _WHOLE)
    job, share = master.job[used], relaxed.share[used]
    doing = np.zeros(node.allowed.shape)
    rounds = np.arange(master.jobs.rounds)
    np.add.at(doing, (job[:, None], rounds, master.levels[used]), share[:, None])
    return _by_round(node, master.jobs, doing)


def completions(node: Node, master: Master, relaxed: Relaxed) -> NDArray[np.float64]:
    """How much of each job completes in each round, shape (jobs, rounds + 1)."""
    found = np.zeros(node.ends.shape)
    # Schedules may have been added since.
    n = len(relaxed.share)
    np.add.at(found, (master.job[:n], master.end[:n]), relaxed.share)
    return found


def running(master: Master, relaxed: Relaxed) -> NDArray[np.float64]:
    """How much of each job runs in each round at each level, shape (rounds, jobs, levels)."""
    jobs = master.jobs
    widest = max((len(levels) for levels in jobs.levels), default=0)
    found = np.zeros((jobs.rounds, jobs.jobs, widest + 1))
    used = np.flatnonzero(relaxed.share > 0.0)
    rounds = np.arange(jobs.rounds)
    where = (rounds, master.job[used, None], master.levels[used])
    np.add.at(found, where, relaxed.share[used, None])
    # IDLE is -1, the last level.
    return found[:, :, :-1]


def _by_completion(
    node: Node, jobs: RoundJobs, completes: NDArray[np.float64]
) -> tuple[Node, Node] | None:
    until = np.cumsum(completes, axis=1)
    open_ = np.minimum(until, 1.0 - until)
    if open_.max(initial=0.0) <= _WHOLE:
        return None
    # The job whose utility is least certain. Trying several jobs in the programme first (strong
    # branching) was measured to save a third of the nodes and no time.
    utility = jobs.utility.values
    mean = (completes * utility).sum(axis=1)
    variance = (completes * utility**2).sum(axis=1) - mean**2
    job = int(np.argmax(np.where(open_.max(axis=1) > _WHOLE, variance, -np.inf)))
    end = int(np.argmax(open_[job]))
    rounds = np.arange(jobs.rounds + 1)
    early = replace(node, ends=_with(node.ends, job, node.ends[job] & (rounds <= end)))
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
    rounds = np.arange(jobs.rounds + 1)
    yes = replace(
        node,
        allowed=_with(node.allowed, (job, t), node.allowed[job, t] & fast),
        ends=_with(node.ends, job, node.ends[job] & (rounds >= t) & (rounds < jobs.rounds)),
        narrowed=True,
    )
    slow = _with(node.allowed, (job, t), node.allowed[job, t] & ~fast)
    no = replace(node, allowed=slow, narrowed=True)
    return (yes, no) if at_least[job, t, level] >= 0.5 else (no, yes)


def _with(
    table: NDArray[np.bool_], place: int | tuple[int, int], row: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    changed = table.copy()
    changed[place] = row
    return changed
