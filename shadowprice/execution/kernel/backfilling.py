"""EASY backfilling in compiled code."""

from __future__ import annotations

import numpy as np

from shadowprice.execution.kernel.arrays import NOBODY, Arrays
from shadowprice.execution.kernel.compiling import apart, inlined
from shadowprice.execution.kernel.keys import left_s
from shadowprice.execution.kernel.placing import take
from shadowprice.execution.kernel.running import drop_ended, sort_listed
from shadowprice.execution.kernel.starting import start
from shadowprice.execution.kernel.waiting import next_within
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.solvers.index_policy import Measure, Table


@apart
def backfill(key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays) -> None:
    """Start from the head of the queue; at the first job that does not fit, reserve and backfill."""
    run = a.run[0]
    head = run.head
    while head != NOBODY:
        following = a.jobs[head].after
        first = take(a, head)
        if first == NOBODY:
            break
        start(key, level, next_step_s, table, a, head, first)
        head = following
    if head == NOBODY or a.jobs[head].after == NOBODY or run.free_gpus == 0:
        return
    shadow_s, spare = _reservation(a, a.jobs[head].gpus)
    # Times are whole ticks, so that now + left <= shadow if and only if left <= slack.
    slack_s = min(shadow_s - run.now_s, MAX_TIME_S)
    for k in range(len(a.sizes)):
        if a.sizes[k].gpus > run.free_gpus:
            break
        begin = head if a.jobs[head].size == k else NOBODY
        a.sizes[k].best = _next_in_time(a, k, begin, spare, slack_s)
    while True:
        job = _first_in_time(a, spare, slack_s)
        if job == NOBODY:
            return
        it, size = a.jobs[job], a.sizes[a.jobs[job].size]
        first = take(a, job)
        if first == NOBODY:
            size.refused = run.decisions
        else:
            start(key, level, next_step_s, table, a, job, first)
            spare -= 0 if it.left_s <= slack_s else it.gpus
            size.best = _next_in_time(a, it.size, job, spare, slack_s)


@inlined
def _next_in_time(a: Arrays, size: int, after: int, spare: int, slack_s: float) -> int:
    """The next job of a gang size that would not delay the head of the queue."""
    most_s = MAX_TIME_S if a.sizes[size].gpus <= spare else slack_s
    return next_within(a, size, after, most_s)


@inlined
def _first_in_time(a: Arrays, spare: int, slack_s: float) -> int:
    """The first of these that no gang size has found no place for, and that fits by count."""
    run, best = a.run[0], NOBODY
    for k in range(len(a.sizes)):
        size = a.sizes[k]
        if size.gpus > run.free_gpus:
            break
        if size.best == NOBODY or size.refused == run.decisions:
            continue
        # What was spare when it was found may have been given away.
        if size.gpus > spare and a.jobs[size.best].left_s > slack_s:
            size.best = _next_in_time(a, k, size.best, spare, slack_s)
        if size.best != NOBODY and (best == NOBODY or size.best < best):
            best = size.best
    return best


@inlined
def _reservation(a: Arrays, gpus: int) -> tuple[float, int]:
    """Earliest start of a gang that does not fit now [s], and the GPUs it will leave free then."""
    run = a.run[0]
    if run.charges or run.typed:
        # Overhead that is owed counts for nothing here, and time left is that on the fastest type.
        drop_ended(a)
        for k in range(run.listed):
            it = a.jobs[a.listed[k]]
            ran_s = max(run.now_s - it.progress_from_s, 0.0)
            it.key = run.now_s + left_s(a, a.listed[k], ran_s)
        sort_listed(a, run.listed_from, run.listed)
    while run.listed_from < run.listed and not a.jobs[a.listed[run.listed_from]].running:
        run.listed_from += 1
    free, k = run.free_gpus, run.listed_from
    # Of a gang that would fit but for fragmentation, the first end.
    while k < run.listed and (k == run.listed_from or free < gpus):
        free += a.jobs[a.listed[k]].gpus
        k += 1
    if k == run.listed_from or free < gpus:
        return np.inf, run.free_gpus
    shadow_s = _end_of(a, a.listed[k - 1])
    while k < run.listed and _end_of(a, a.listed[k]) <= shadow_s:
        free += a.jobs[a.listed[k]].gpus
        k += 1
    return shadow_s, free - gpus


@inlined
def _end_of(a: Arrays, job: int) -> float:
    """End of a running job as a reservation sees it [s]."""
    by_key = a.run[0].charges or a.run[0].typed
    return a.jobs[job].key if by_key else a.jobs[job].end_s
