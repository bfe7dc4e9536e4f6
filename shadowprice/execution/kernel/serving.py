"""Decisions in compiled code: which jobs start in order, and which stop for them."""

from __future__ import annotations

import numpy as np
from numba import int64

from shadowprice.execution.kernel.arrays import CONSOLIDATE, NOBODY, SKIPS, Arrays
from shadowprice.execution.kernel.choosing import choose_within_limits
from shadowprice.execution.kernel.compiling import apart, inlined
from shadowprice.execution.kernel.keys import (
    bring_up_to_date,
    find_crossing,
    jobs_before,
    list_running,
    set_key,
    sort_running,
    take_steps,
)
from shadowprice.execution.kernel.placing import give_back, take, take_again
from shadowprice.execution.kernel.starting import start, stop
from shadowprice.execution.kernel.waiting import (
    comes_first,
    first_waiting,
    pop,
    push,
    push_refused,
)
from shadowprice.instances.grid import TICK_S
from shadowprice.solvers.index_policy import Measure, Table

NO_DECISION = -2
"""Number of no decision, in which no gang size was refused."""


@apart
def serve_waiting(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays
) -> None:
    """Start waiting jobs in order; who does not fit blocks those behind or is passed over."""
    run = a.run[0]
    skips = run.rule == SKIPS
    while run.free_gpus > 0:
        limit = run.free_gpus if skips else run.total_gpus
        job = first_waiting(a, limit, run.decisions if skips else NO_DECISION)
        if job == NOBODY:
            return
        first = take(a, job)
        if first != NOBODY:
            pop(a, job)
            start(key, level, next_step_s, table, a, job, first)
        elif skips:
            a.sizes[a.jobs[job].size].refused = run.decisions
        else:
            return


@apart
def serve_live(key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays) -> None:
    """Run the live jobs in order and stop the others; ask again when an order may change."""
    run = a.run[0]
    if run.waiting == 0:
        return
    limited = len(a.limits) > 0
    by_count = not limited and run.waiting_gpus <= run.free_gpus
    if by_count and run.placement != CONSOLIDATE:
        start_all(key, level, next_step_s, table, a)
        return
    if limited:
        chosen, stopped = choose_within_limits(key, level, next_step_s, table, a)
    else:
        chosen, stopped = _choose(key, level, next_step_s, table, a, by_count)
    # Only a quota that became smaller stops a job for nobody.
    if chosen or (limited and stopped):
        for k in range(stopped):
            give_back(a, a.decided[k].stopped)
        refused = start_chosen(key, level, next_step_s, table, a, chosen)
        anywhere = run.anywhere if limited else run.placement != CONSOLIDATE
        if not anywhere and (stopped or refused):
            stopped = fill(key, level, next_step_s, table, a, int64(0), stopped, int64(0))
        # Who stops begins to wait after all that start have left the queue.
        for k in range(refused - 1, -1, -1):
            push_refused(a, a.decided[k].chosen)
        for k in range(stopped):
            stop(a, a.decided[k].stopped)
            set_key(key, level, table, a, a.decided[k].stopped)
            push(a, a.decided[k].stopped)
    if run.waiting:
        run.wake_s = run.now_s + run.quantum_s
        if run.steps and not by_count:
            run.wake_s = min(run.wake_s, run.now_s + _until_step_s(a))


@apart
def start_all(key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays) -> None:
    """Start every waiting job, in the order they began to wait; all fit."""
    for k in range(len(a.sizes)):
        a.sizes[k].waiting = a.sizes[k].stacked = 0
        a.sizes[k].best = NOBODY
    job = a.run[0].head
    while job != NOBODY:
        after = a.jobs[job].after
        start(key, level, next_step_s, table, a, job, take(a, job))
        job = after


@inlined
def _choose(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays, by_count: bool
) -> tuple[int, int]:
    """Jobs that fit by count, taken in order: how many waiting ones do, and how many running ones do not.

    The former leave the waiting jobs, the latter their lists.
    """
    run = a.run[0]
    if not by_count:
        take_steps(key, level, next_step_s, table, a)
        sort_running(key, level, table, a)
        for k in range(len(a.sizes)):
            a.sizes[k].split = 0
    # A literal would have choose_one_by_one compiled once more, for it.
    limit, chosen, gpus, before = run.total_gpus, int64(0), 0, 0
    # As long as all running jobs before a waiting one fit, only their number matters.
    while True:
        waiting = first_waiting(a, limit, NO_DECISION)
        if waiting == NOBODY:
            break
        if not by_count:
            before += gpus_before(key, level, table, a, waiting)
            limit = run.total_gpus - gpus - before
            if limit < 0:
                break
        if a.jobs[waiting].gpus <= limit:
            pop(a, waiting)
            a.decided[chosen].chosen = waiting
            chosen += 1
            gpus += a.jobs[waiting].gpus
            limit -= a.jobs[waiting].gpus
    if by_count or gpus <= run.free_gpus:
        return chosen, 0
    # From the first running job on that does not fit, one by one.
    sizes, last, excess = _sort_sizes(key, level, table, a), 0, gpus - run.free_gpus
    while excess > 0:
        size = a.sizes[a.sizes[0].by_last]
        size.running -= 1
        job = a.listed[size.listed + size.running]
        a.sorting[last] = job
        last += 1
        excess -= a.jobs[job].gpus
        sizes = _sort_first_size(key, level, table, a, sizes)
    return choose_one_by_one(a, chosen, int64(0), last, -excess)


@inlined
def gpus_before(key: Measure, level: Measure, table: Table, a: Arrays, waiting: int) -> int:
    """GPUs of the running jobs that come before a waiting one, without those counted already."""
    gpus = 0
    for k in range(len(a.sizes)):
        size = a.sizes[k]
        if size.split < size.running:
            split = jobs_before(key, level, table, a, k, waiting, size.split)
            gpus += size.gpus * (split - size.split)
            size.split = split
    return gpus


@inlined
def _sort_sizes(key: Measure, level: Measure, table: Table, a: Arrays) -> int:
    """Gang sizes of running jobs by the last of these, the last first; how many they are."""
    count = 0
    for k in range(len(a.sizes)):
        if a.sizes[k].running:
            job = _last_of(a, k)
            bring_up_to_date(key, level, table, a, job)
            place = count
            while place > 0 and comes_first(a, _last_of(a, a.sizes[place - 1].by_last), job):
                a.sizes[place].by_last = a.sizes[place - 1].by_last
                place -= 1
            a.sizes[place].by_last = k
            count += 1
    return count


@inlined
def _sort_first_size(key: Measure, level: Measure, table: Table, a: Arrays, count: int) -> int:
    """Bring the first of these sizes, whose last job was taken away, to its new place."""
    size, place = a.sizes[0].by_last, 0
    left = a.sizes[size].running > 0
    if left:
        bring_up_to_date(key, level, table, a, _last_of(a, size))
    while place + 1 < count:
        following = a.sizes[place + 1].by_last
        if left and comes_first(a, _last_of(a, following), _last_of(a, size)):
            break
        a.sizes[place].by_last = following
        place += 1
    a.sizes[place].by_last = size
    return count if left else count - 1


@inlined
def _last_of(a: Arrays, size: int) -> int:
    return a.listed[a.sizes[size].listed + a.sizes[size].running - 1]


@inlined
def choose_one_by_one(
    a: Arrays, chosen: int, stopped: int, last: int, gpus: int
) -> tuple[int, int]:
    """Go on choosing for so many GPUs among the waiting and the last running jobs, which are in no list.

    Returns how many waiting jobs are chosen then, and how many running ones are stopped.
    """
    left, k = gpus, last - 1
    waiting, asks = NOBODY, True
    while True:
        if asks:
            waiting, asks = first_waiting(a, left, NO_DECISION), False
        if waiting != NOBODY and (k < 0 or comes_first(a, waiting, a.sorting[k])):
            pop(a, waiting)
            a.decided[chosen].chosen = waiting
            chosen += 1
            left -= a.jobs[waiting].gpus
            asks = True
            continue
        if k < 0:
            return chosen, stopped
        job = a.sorting[k]
        k -= 1
        if a.jobs[job].gpus <= left:
            left -= a.jobs[job].gpus
            size = a.sizes[a.jobs[job].size]
            a.listed[size.listed + size.running] = job
            size.running += 1
            asks = waiting != NOBODY and a.jobs[waiting].gpus > left
        else:
            a.decided[stopped].stopped = job
            stopped += 1


@inlined
def start_chosen(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays, chosen: int
) -> int:
    """Start the chosen jobs that can be placed; those that cannot come first among them then, so many."""
    run, refused = a.run[0], 0
    for k in range(chosen):
        job = a.decided[k].chosen
        first = NOBODY
        # GPUs are only taken meanwhile: no place for one gang is none for the next of its size.
        if a.sizes[a.jobs[job].size].refused != run.decisions:
            first = take(a, job)
        if first == NOBODY:
            a.sizes[a.jobs[job].size].refused = run.decisions
            a.decided[refused].chosen = job
            refused += 1
        else:
            start(key, level, next_step_s, table, a, job, first)
    return refused


@inlined
def fill(
    key: Measure,
    level: Measure,
    next_step_s: Measure,
    table: Table,
    a: Arrays,
    begin: int,
    stopped: int,
    still: int,
) -> int:
    """Use what fragmentation left over: stopped jobs go on where they were, others start if they fit.

    Of the stopped jobs those from ``begin`` on are looked at; of those before so many are ``still`` stopped.
    Returns how many are stopped after all.
    """
    run, k = a.run[0], begin
    waiting, asks = NOBODY, True
    while True:
        if asks:
            waiting, asks = first_waiting(a, run.free_gpus, run.decisions), False
        if k == stopped and waiting == NOBODY:
            return still
        if k < stopped and (waiting == NOBODY or comes_first(a, a.decided[k].stopped, waiting)):
            job = a.decided[k].stopped
            k += 1
            if a.jobs[job].gpus > run.free_gpus or not take_again(a, job):
                a.decided[still].stopped = job
                still += 1
                continue
            list_running(key, level, table, a, job)
            asks = waiting != NOBODY and a.jobs[waiting].gpus > run.free_gpus
        else:
            first = take(a, waiting)
            if first == NOBODY:
                a.sizes[a.jobs[waiting].size].refused = run.decisions
            else:
                pop(a, waiting)
                start(key, level, next_step_s, table, a, waiting, first)
            asks = True


@inlined
def _until_step_s(a: Arrays) -> float:
    """Time to the next step of the key of a job that runs [s], at least a tick."""
    run = a.run[0]
    if not run.charges and not len(a.limits):
        known = run.crossing != NOBODY and a.jobs[run.crossing].running == 1
        if not known or a.jobs[run.crossing].crossing_s != run.crossing_s:
            find_crossing(a)
        return max(run.crossing_s - run.now_s, TICK_S)
    first_s = np.inf
    if len(a.limits):
        for k in range(run.listed):
            if a.jobs[a.listed[k]].running:
                first_s = min(first_s, _expected_crossing_s(a, a.listed[k]))
    else:
        for k in range(len(a.sizes)):
            size = a.sizes[k]
            for place in range(size.listed, size.listed + size.running):
                first_s = min(first_s, _expected_crossing_s(a, a.listed[place]))
    return max(first_s - run.now_s, TICK_S)


@inlined
def _expected_crossing_s(a: Arrays, job: int) -> float:
    """Time at which the key of a running job steps, as a policy expects it [s].

    It does not know what a start that it decides now will be charged, only what the job owed before.
    """
    it = a.jobs[job]
    if it.start_s == a.run[0].now_s:
        return it.crossing_s - (it.overhead_s - it.debt_s)
    return it.crossing_s
