"""ServerFilling in compiled code: the least prefix of the order that asks for all GPUs is served widest first."""

from __future__ import annotations

from numba import int64

from shadowprice.execution.kernel.arrays import CONSOLIDATE, NOBODY, Arrays
from shadowprice.execution.kernel.compiling import apart, inlined
from shadowprice.execution.kernel.keys import bring_up_to_date, list_running, set_key, sort_running
from shadowprice.execution.kernel.placing import give_back, take, take_again
from shadowprice.execution.kernel.serving import (
    NO_DECISION,
    choose_one_by_one,
    fill,
    gpus_before,
    start_all,
    start_chosen,
)
from shadowprice.execution.kernel.starting import start, stop
from shadowprice.execution.kernel.waiting import comes_first, first_waiting, pop, push, push_refused
from shadowprice.solvers.index_policy import Measure, Table


@apart
def serve_filling(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays
) -> None:
    """Run the live jobs in order, the first of them that ask for all GPUs widest first; stop the others."""
    run = a.run[0]
    if run.waiting == 0:
        return
    if run.waiting_gpus <= run.free_gpus and run.placement != CONSOLIDATE:
        start_all(key, level, next_step_s, table, a)
        return
    sort_running(key, level, table, a)
    _group(a, _pull_prefix(key, level, table, a))
    chosen, passed, first, left = _choose_of_prefix(key, level, table, a)
    last = _take_rest_out(key, level, table, a)
    chosen, stopped = choose_one_by_one(a, chosen, first, last, left)
    for k in range(stopped):
        give_back(a, a.decided[k].stopped)
    refused = start_chosen(key, level, next_step_s, table, a, chosen)
    if run.placement == CONSOLIDATE and (stopped or refused):
        still, passed = _fill_of_prefix(key, level, next_step_s, table, a, first, passed)
        stopped = fill(key, level, next_step_s, table, a, first, stopped, still)
    # Of one gang size, refused jobs come before those that did not fit, and both before all that wait.
    for k in range(passed - 1, -1, -1):
        push_refused(a, a.decided[k].passed)
    for k in range(refused - 1, -1, -1):
        push_refused(a, a.decided[k].chosen)
    for k in range(stopped):
        stop(a, a.decided[k].stopped)
        set_key(key, level, table, a, a.decided[k].stopped)
        push(a, a.decided[k].stopped)


@inlined
def _pull_prefix(key: Measure, level: Measure, table: Table, a: Arrays) -> int:
    """Find the least prefix of the order that asks for all GPUs, or all live jobs.

    Its waiting jobs leave the queue for those chosen, in order; returns how many they are. Of the running jobs
    of each gang size it has the first ``split``.
    """
    run, pulled, gpus = a.run[0], 0, 0
    for k in range(len(a.sizes)):
        a.sizes[k].split = 0
    while gpus < run.total_gpus:
        waiting = first_waiting(a, run.total_gpus, NO_DECISION)
        if waiting == NOBODY:
            for k in range(len(a.sizes)):
                gpus += a.sizes[k].gpus * (a.sizes[k].running - a.sizes[k].split)
                a.sizes[k].split = a.sizes[k].running
        else:
            gpus += gpus_before(key, level, table, a, waiting)
        if waiting == NOBODY or gpus >= run.total_gpus:
            # It ends with a running job, perhaps before the last of those counted.
            _cut(key, level, table, a, gpus - run.total_gpus)
            return pulled
        pop(a, waiting)
        a.decided[pulled].chosen = waiting
        pulled += 1
        gpus += a.jobs[waiting].gpus
    return pulled


@inlined
def _cut(key: Measure, level: Measure, table: Table, a: Arrays, excess: int) -> None:
    """Leave the last running jobs out of the prefix that it does not need to ask for all GPUs."""
    while excess > 0:
        last = _last_running(key, level, table, a, True)
        if last == NOBODY or a.sizes[last].gpus > excess:
            return
        a.sizes[last].split -= 1
        excess -= a.sizes[last].gpus


@inlined
def _last_running(key: Measure, level: Measure, table: Table, a: Arrays, in_prefix: bool) -> int:
    """Gang size of the last running job in order, among those in the prefix or behind it; NOBODY if none is."""
    last, best = NOBODY, NOBODY
    for k in range(len(a.sizes)):
        size = a.sizes[k]
        count = size.split if in_prefix else size.running
        if count > (0 if in_prefix else size.split):
            job = a.listed[size.listed + count - 1]
            bring_up_to_date(key, level, table, a, job)
            if last == NOBODY or comes_first(a, best, job):
                last, best = k, job
    return last


@inlined
def _group(a: Arrays, pulled: int) -> None:
    """Bring so many chosen jobs to ``passed``, widest first; ``pulled`` of a size is where it ends."""
    for k in range(len(a.sizes)):
        a.sizes[k].pulled = 0
    for k in range(pulled):
        a.sizes[a.jobs[a.decided[k].chosen].size].pulled += 1
    place = 0
    for k in range(len(a.sizes) - 1, -1, -1):
        count = a.sizes[k].pulled
        a.sizes[k].pulled = place
        place += count
    for k in range(pulled):
        size = a.sizes[a.jobs[a.decided[k].chosen].size]
        a.decided[size.pulled].passed = a.decided[k].chosen
        size.pulled += 1


@inlined
def _choose_of_prefix(
    key: Measure, level: Measure, table: Table, a: Arrays
) -> tuple[int, int, int, int]:
    """Jobs of the prefix that fit by count, widest first.

    Returns how many waiting ones do, how many do not, how many running ones do not, and the GPUs
    left. The running ones go to ``stopped``; ``split`` is how many of the others there are.
    """
    left, chosen, passed, stopped, begin = a.run[0].total_gpus, 0, 0, 0, 0
    for k in range(len(a.sizes) - 1, -1, -1):
        size = a.sizes[k]
        waits, runs, end = size.pulled, size.split, size.pulled
        # Who does not fit is last in order among those of this size.
        while (waits - begin + runs) * size.gpus > left:
            other = NOBODY
            if runs:
                other = a.listed[size.listed + runs - 1]
                bring_up_to_date(key, level, table, a, other)
            if waits > begin and (
                other == NOBODY or comes_first(a, other, a.decided[waits - 1].passed)
            ):
                waits -= 1
            else:
                runs -= 1
        left -= (waits - begin + runs) * size.gpus
        for place in range(begin, waits):
            a.decided[chosen].chosen = a.decided[place].passed
            chosen += 1
        for place in range(waits, end):
            a.decided[passed].passed = a.decided[place].passed
            passed += 1
        for place in range(runs, size.split):
            a.decided[stopped].stopped = a.listed[size.listed + place]
            stopped += 1
        for place in range(size.split, size.running):
            a.listed[size.listed + place - size.split + runs] = a.listed[size.listed + place]
        size.running -= size.split - runs
        size.split = runs
        begin = end
    return chosen, passed, stopped, left


@inlined
def _take_rest_out(key: Measure, level: Measure, table: Table, a: Arrays) -> int:
    """Take the running jobs behind the prefix out of their lists, into ``a.sorting``, the last first; how many."""
    count = 0
    while True:
        last = _last_running(key, level, table, a, False)
        if last == NOBODY:
            return count
        size = a.sizes[last]
        size.running -= 1
        a.sorting[count] = a.listed[size.listed + size.running]
        count += 1


@inlined
def _fill_of_prefix(
    key: Measure,
    level: Measure,
    next_step_s: Measure,
    table: Table,
    a: Arrays,
    stopped: int,
    passed: int,
) -> tuple[int, int]:
    """Use what fragmentation left over for jobs of the prefix that did not fit by count, widest first.

    Returns how many of the running and of the waiting ones still have no GPUs.
    """
    run, k, n = a.run[0], 0, 0
    still, waits = int64(0), 0
    while k < stopped or n < passed:
        runs = n == passed or (k < stopped and _wider(a, a.decided[k].stopped, a.decided[n].passed))
        job = a.decided[k].stopped if runs else a.decided[n].passed
        size = a.sizes[a.jobs[job].size]
        if runs:
            k += 1
            if size.gpus <= run.free_gpus and take_again(a, job):
                list_running(key, level, table, a, job)
            else:
                a.decided[still].stopped = job
                still += 1
            continue
        n += 1
        first = NOBODY
        if size.refused != run.decisions:
            first = take(a, job)
            if first == NOBODY:
                size.refused = run.decisions
        if first == NOBODY:
            a.decided[waits].passed = job
            waits += 1
        else:
            start(key, level, next_step_s, table, a, job, first)
    return still, waits


@inlined
def _wider(a: Arrays, one: int, other: int) -> bool:
    """Order of two jobs of the prefix: by gang, the widest first, then as all jobs."""
    x, y = a.jobs[one], a.jobs[other]
    return x.gpus > y.gpus or (x.gpus == y.gpus and comes_first(a, one, other))
