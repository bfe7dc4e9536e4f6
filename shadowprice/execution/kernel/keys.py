"""Keys of jobs in compiled code, and running jobs of one gang size in order of them."""

from __future__ import annotations

import numpy as np
from numba import int64

from shadowprice.execution.kernel.arrays import NOBODY, Arrays
from shadowprice.execution.kernel.compiling import apart, inlined
from shadowprice.execution.kernel.running import append, insert_at, sort_listed, unlist
from shadowprice.execution.kernel.waiting import comes_first
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.solvers.index_policy import IndexedJob, Measure, Table


@inlined
def indexed(a: Arrays, job: int) -> IndexedJob:
    """A job as its index sees it now."""
    run, it = a.run[0], a.jobs[job]
    ran_s = 0.0
    if it.running:
        ran_s = max(run.now_s - it.progress_from_s, 0.0)
    return IndexedJob(
        float(it.gpus),
        it.arrival_s,
        it.weight,
        it.processing_s if run.knows_durations else np.nan,
        left_s(a, job, ran_s) if run.knows_durations else np.nan,
        it.attained_s + ran_s,
        it.first_start_s,
    )


@inlined
def left_s(a: Arrays, job: int, ran_s: float) -> float:
    """Time left of a job whose present run has made progress for some time, on its fastest type [s]."""
    it = a.jobs[job]
    if len(a.limits) and a.run[0].typed and it.running:
        pool = a.nodes[a.pieces[it.pieces].node].pool
        return it.left_s - a.paces[job * len(a.pools) + pool].rate * ran_s
    return it.left_s - ran_s


@inlined
def set_key(key: Measure, level: Measure, table: Table, a: Arrays, job: int) -> None:
    """Compute the key of a job."""
    run, it = a.run[0], a.jobs[job]
    told = indexed(a, job)
    it.keyed = run.decisions
    it.key = key(told, table)
    if run.levels:
        it.level = level(told, table)
    if run.by_first_start:
        it.tie = it.first_start_s
    if np.isnan(it.key) or np.isnan(it.level):
        run.faulty = job


@inlined
def bring_up_to_date(key: Measure, level: Measure, table: Table, a: Arrays, job: int) -> None:
    """Compute the key of a running job again if it may have changed since, otherwise than by a step."""
    run, it = a.run[0], a.jobs[job]
    if run.changes and it.keyed != run.decisions and not (run.steps and it.step_s == np.inf):
        set_key(key, level, table, a, job)


@inlined
def set_step(next_step_s: Measure, table: Table, a: Arrays, job: int) -> None:
    """Tell when the key of a job steps next."""
    run, it = a.run[0], a.jobs[job]
    if it.step_s < np.inf:
        run.unsettled_gpus -= it.gpus
    it.step_s = next_step_s(indexed(a, job), table)
    if it.step_s < np.inf:
        run.unsettled_gpus += it.gpus
    if not it.running:
        return
    it.crossing_s = it.progress_from_s + (up_to_grid(it.step_s) - it.attained_s)
    if it.crossing_s < run.crossing_s:
        run.crossing_s, run.crossing = it.crossing_s, job


@inlined
def up_to_grid(time_s: float) -> float:
    """Round a time up to the next tick [s]."""
    return np.ceil(time_s * TICKS_PER_S) / TICKS_PER_S


@apart
def take_steps(key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays) -> None:
    """Bring running jobs whose key has stepped to their new place."""
    run, count = a.run[0], 0
    if not run.steps or run.now_s < run.crossing_s:
        return
    for k in range(len(a.sizes)):
        size = a.sizes[k]
        for place in range(size.listed, size.listed + size.running):
            if a.jobs[a.listed[place]].crossing_s <= run.now_s:
                a.sorting[count] = a.listed[place]
                count += 1
    for k in range(count):
        job = a.sorting[k]
        unlist(a, job)
        a.sizes[a.jobs[job].size].unsettled -= 1
        set_key(key, level, table, a, job)
        set_step(next_step_s, table, a, job)
        a.sizes[a.jobs[job].size].unsettled += a.jobs[job].step_s < np.inf
        list_running(key, level, table, a, job)
    find_crossing(a)


@apart
def find_crossing(a: Arrays) -> None:
    """The first time at which the key of a running job steps."""
    run = a.run[0]
    run.crossing_s, run.crossing = np.inf, NOBODY
    for k in range(len(a.sizes)):
        size = a.sizes[k]
        for place in range(size.listed, size.listed + size.running):
            job = a.listed[place]
            if a.jobs[job].crossing_s < run.crossing_s:
                run.crossing_s, run.crossing = a.jobs[job].crossing_s, job


@apart
def sort_running(key: Measure, level: Measure, table: Table, a: Arrays) -> None:
    """Put running jobs into their order of now, if that may have changed and matters.

    While all jobs whose keys have steps to come fit side by side, it matters only among the others.
    """
    run = a.run[0]
    if not run.disorders or (run.steps and run.unsettled_gpus <= run.total_gpus):
        return
    for k in range(len(a.sizes)):
        size = a.sizes[k]
        end, place = size.listed + size.running, size.listed
        changing = size.unsettled if run.steps else size.running
        while changing > 0:
            job = a.listed[place]
            if not run.steps or a.jobs[job].step_s < np.inf:
                bring_up_to_date(key, level, table, a, job)
                changing -= 1
            place += 1
        sort_listed(a, size.listed, place)
        # Those behind are in order.
        moved = size.listed < place < end
        if moved and not comes_first(a, a.listed[place - 1], a.listed[place]):
            sort_listed(a, size.listed, end)


@inlined
def jobs_before(
    key: Measure, level: Measure, table: Table, a: Arrays, size: int, other: int, least: int
) -> int:
    """Number of running jobs of a gang size that come before another job; at least so many do."""
    first, low, high = a.sizes[size].listed, least, a.sizes[size].running
    # Most often all do, or no more: the last one is looked at, then the first, then those between.
    middle, following = high - 1, low
    while low < high:
        job = a.listed[first + middle]
        bring_up_to_date(key, level, table, a, job)
        if comes_first(a, other, job):
            high = middle
        else:
            low = middle + 1
        middle = following if low <= following < high else (low + high) // 2
        following = NOBODY
    return low


@inlined
def list_running(key: Measure, level: Measure, table: Table, a: Arrays, job: int) -> None:
    """Put a job that runs into its place among those of its gang size; with limits behind all that run."""
    if len(a.limits):
        append(a, job)
        return
    size = a.jobs[job].size
    insert_at(a, size, jobs_before(key, level, table, a, size, job, int64(0)), job)
