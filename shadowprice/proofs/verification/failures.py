"""Runs on nodes that fail, as the verifier sees them: where nothing may run, and what work counts.

Everything is computed from the rows of the schedule and plain data of the instance, in whole ticks, and
not by the code that made the schedule. Of a run with e ticks after its overhead, I ticks of progress between
checkpoints and C ticks for one,

- its progress is I for each whole I + C in e, and of the rest what is within I;
- saved of it is I for each whole I + C.

A run is in *parts* where its partner, its CPUs or its memory changed. The ticks e are those of all its parts: each has
made the progress until its end less that until its beginning, at its own pace, and what is saved is of the first.

A run is *cut short* if it ends at the moment at which a node that it holds goes down. If the job runs again,
only what such a run had saved counts of it, and it must not have completed the job; if not, all of its
progress counts, as of any other run: then it is complete or it never will be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.proofs import run_speed
from shadowprice.proofs.verification.speeds import Runs, ticks_of

if TYPE_CHECKING:
    from shadowprice.instances.failures.node_failures import NodeFailures
    from shadowprice.instances.schedule import Schedule

Mask = NDArray[np.bool_]


class FailingRuns:
    """Parts of runs of gangs on nodes that fail; O((R + F) log F) for R rows and F faults.

    Attributes
    ----------
    counted : ndarray of int, shape (runs,)
        Progress of every part that counts as work of its job [ticks].
    writing : ndarray of bool, shape (runs,)
        True for each part whose last tick, if it has any, makes no progress.
    """

    def __init__(self, failures: NodeFailures, schedule: Schedule, runs: Runs) -> None:
        self._failures, self._schedule, self._runs = failures, schedule, runs
        s = schedule
        lasts = ticks_of(s.end_s - s.start_s - s.overhead_s)[runs.row]
        number = runs.whole(s)
        elapsed = _sums(lasts, number)
        rule = failures.checkpoints
        # Without checkpoints one interval is longer than any run.
        interval = min(rule.interval_s, 2.0**34) * run_speed.TICKS_PER_S
        cycle = int(interval) + int(rule.cost_s * run_speed.TICKS_PER_S)
        saved, rest = elapsed // cycle * int(interval), elapsed % cycle
        until = saved + np.minimum(rest, int(interval))
        since = np.where(lasts < elapsed, np.roll(until, 1), 0)
        self._progress = until - since
        writing = (rest == 0) | (rest > interval)
        self.writing: Mask = writing if rule.cost_s else lasts == 0
        job = s.job[runs.row]
        again = np.zeros(len(job), dtype=bool)
        # No part is cut short: the next would hold a node that is down.
        again[:-1] = job[1:] == job[:-1]
        self._down, ends_down = self._at_nodes()
        short = np.zeros(len(runs.row), dtype=bool)
        np.logical_or.at(short, runs.piece, ends_down[runs.order])
        self._lost = short & again
        kept = np.full(len(job), np.iinfo(np.int64).max)
        kept[number[self._lost]] = saved[self._lost]
        self.counted = np.clip(kept[number] - since, 0, self._progress)

    def faults(self) -> Iterator[tuple[str, Mask, str]]:
        """Rules with the rows that break them and what was expected."""
        s, known_s = self._schedule, self._failures.known_until_s
        yield "down", self._down, "the node is down during the run"
        say = f"goes on after {known_s} s, and faults are known until then only"
        yield "down", s.end_s >= known_s, say

    def completing(self, whole: run_speed.Ticks) -> Mask:
        """True for the last part of each run that completed its job, which runs again.

        Parameters
        ----------
        whole : ndarray of int, shape (runs,)
            Time of the whole job [ticks] as each part goes.
        """
        job, found = self._schedule.job[self._runs.row], np.zeros(len(whole), dtype=bool)
        number = self._runs.whole(self._schedule)
        for run in np.flatnonzero(self._lost).tolist():
            first = int(np.searchsorted(job, job[run]))
            begun = int(np.searchsorted(number, number[run]))
            # Shares of runs at one pace add up without fractions, and most jobs have one pace.
            ran = [*self.counted[first:begun].tolist(), *self._progress[begun : run + 1].tolist()]
            pace = int(whole[run])
            short, _ = run_speed.done_and_over(ran, whole[first : run + 1].tolist(), pace)
            found[run] = not short
        return found

    def _at_nodes(self) -> tuple[Mask, Mask]:
        """Rows whose node is down at some moment of theirs, and those that end when it goes down."""
        s, f = self._schedule, self._failures
        during, ending = np.zeros(len(s), dtype=bool), np.zeros(len(s), dtype=bool)
        if not len(f.node):
            return during, ending
        by_node = np.lexsort((f.down_s, f.node))
        nodes, first = np.unique(f.node[by_node], return_index=True)
        rows_by_node = np.argsort(s.node, kind="stable")
        held = s.node[rows_by_node]
        for node, mine in zip(nodes.tolist(), np.split(by_node, first[1:]), strict=True):
            rows = rows_by_node[slice(*np.searchsorted(held, (node, node + 1)))]
            down_s = f.down_s[mine]
            # Latest end of the downtimes up to each, in case two of them overlap.
            until_s = np.maximum.accumulate(f.up_s[mine])
            before = np.searchsorted(down_s, s.end_s[rows], side="left")
            begun = before > 0
            during[rows[begun]] = until_s[before[begun] - 1] > s.start_s[rows[begun]]
            at = np.searchsorted(down_s, s.end_s[rows], side="right")
            ending[rows] = at > before
        return during, ending


def _sums(ticks: NDArray[np.int64], number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of each entry and those before it that have its number, which are side by side."""
    if not len(ticks):
        return ticks
    total = np.cumsum(ticks)
    first = np.append(True, number[1:] > number[:-1])
    before: NDArray[np.int64] = (total - ticks)[first]
    return total - before[number]
