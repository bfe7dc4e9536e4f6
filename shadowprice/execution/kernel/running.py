"""Running jobs in compiled code: a heap of them by end, and lists in order of key, one a gang size.

Under EASY backfilling, which has no order, there is one list of all.
"""

from __future__ import annotations

import numpy as np
from numba import int64

from shadowprice.execution.kernel.arrays import Arrays
from shadowprice.execution.kernel.compiling import apart, inlined
from shadowprice.execution.kernel.waiting import comes_first

# Running jobs by end.


@inlined
def add_end(a: Arrays, job: int) -> None:
    """Note that a job runs, and its end in the heap of ends."""
    run = a.run[0]
    run.running += 1
    a.jobs[job].running = 1
    if run.ending == len(a.ends):
        _drop_ends_in_vain(a)
    _rise(a, run.ending, a.jobs[job].end_s, job)
    run.ending += 1


@inlined
def remove_end(a: Arrays, job: int) -> None:
    """Note that a job stops or ends; what the heap says of it is in vain."""
    a.run[0].running -= 1
    a.jobs[job].running = 0


@inlined
def next_end_s(a: Arrays) -> float:
    """End of the running job that ends first, which is on top of the heap [s]; infinity if none runs."""
    run = a.run[0]
    while run.ending:
        end_s, job = a.ends[0].end_s, a.ends[0].job
        if _is_due(a, end_s, job):
            return end_s
        run.ending -= 1
        _sink(a, run.ending, a.ends[run.ending].end_s, a.ends[run.ending].job)
    return np.inf


@inlined
def _is_due(a: Arrays, end_s: float, job: int) -> bool:
    return a.jobs[job].running == 1 and a.jobs[job].end_s == end_s


@inlined
def _rise(a: Arrays, place: int, end_s: float, job: int) -> None:
    while place > 0:
        above = (place - 1) >> 1
        x = a.ends[above]
        if x.end_s < end_s or (x.end_s == end_s and x.job < job):
            break
        a.ends[place].end_s, a.ends[place].job = x.end_s, x.job
        place = above
    a.ends[place].end_s, a.ends[place].job = end_s, job


@inlined
def _sink(a: Arrays, count: int, end_s: float, job: int) -> None:
    """Put an end into the heap of so many in place of the one on top."""
    place = 0
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        x = a.ends[below]
        if below + 1 < count:
            y = a.ends[below + 1]
            if y.end_s < x.end_s or (y.end_s == x.end_s and y.job < x.job):
                x = y
                below += 1
        if end_s < x.end_s or (end_s == x.end_s and job < x.job):
            break
        a.ends[place].end_s, a.ends[place].job = x.end_s, x.job
        place = below
    a.ends[place].end_s, a.ends[place].job = end_s, job


@apart
def _drop_ends_in_vain(a: Arrays) -> None:
    run, kept = a.run[0], int64(0)
    for k in range(run.ending):
        end_s, job = a.ends[k].end_s, a.ends[k].job
        if _is_due(a, end_s, job):
            _rise(a, kept, end_s, job)
            kept += 1
    run.ending = kept


# Running jobs of a gang size in order.


@inlined
def insert_at(a: Arrays, size: int, place: int, job: int) -> None:
    """Put a job into the list of its gang size."""
    first, count = a.sizes[size].listed, a.sizes[size].running
    for k in range(first + count, first + place, -1):
        a.listed[k] = a.listed[k - 1]
    a.listed[first + place] = job
    a.sizes[size].running += 1


@inlined
def unlist(a: Arrays, job: int) -> None:
    """Take a job out of the list of its gang size; O(running jobs of this size)."""
    size = a.jobs[job].size
    first, last = a.sizes[size].listed, a.sizes[size].listed + a.sizes[size].running - 1
    place = first
    while a.listed[place] != job:
        place += 1
    for k in range(place, last):
        a.listed[k] = a.listed[k + 1]
    a.sizes[size].running -= 1


# Running jobs in one list.


@inlined
def append(a: Arrays, job: int) -> None:
    """Add a job that starts to the one list of running jobs."""
    if a.run[0].listed == len(a.listed):
        drop_ended(a)
    a.listed[a.run[0].listed] = job
    a.run[0].listed += 1


@inlined
def insert_by_end(a: Arrays, job: int) -> None:
    """Add it to a list that is in order of end; O(R), less where many end later."""
    run = a.run[0]
    if run.listed == len(a.listed):
        drop_ended(a)
    low, high, end_s = run.listed_from, run.listed, a.jobs[job].end_s
    while low < high:
        middle = (low + high) // 2
        if a.jobs[a.listed[middle]].end_s > end_s:
            high = middle
        else:
            low = middle + 1
    for k in range(run.listed, low, -1):
        a.listed[k] = a.listed[k - 1]
    a.listed[low] = job
    run.listed += 1


@apart
def drop_ended(a: Arrays) -> None:
    """Take jobs that ended out of it, which keeps its order."""
    run, kept = a.run[0], 0
    for k in range(run.listed_from, run.listed):
        job = a.listed[k]
        if a.jobs[job].running:
            a.listed[kept] = job
            kept += 1
    run.listed_from, run.listed = 0, kept


# Sorting.


@apart
def sort_listed(a: Arrays, first: int, end: int) -> None:
    """Sort a part of the lists by key: natural merging, O(R) for two runs that are in order already."""
    while True:
        if first >= end or _end_of_run(a, first, end) == end:
            return
        done = first
        while done < end:
            middle = _end_of_run(a, done, end)
            beyond = _end_of_run(a, middle, end)
            _merge(a, done, middle, beyond)
            done = beyond


@inlined
def _end_of_run(a: Arrays, begin: int, end: int) -> int:
    """Position after the jobs that are in order from this one on."""
    k = begin + 1
    while True:
        if k >= end:
            return end
        if not comes_first(a, a.listed[k - 1], a.listed[k]):
            return k
        k += 1


@inlined
def _merge(a: Arrays, begin: int, middle: int, end: int) -> None:
    one, other = begin, middle
    for k in range(begin, end):
        if other == end or (one < middle and comes_first(a, a.listed[one], a.listed[other])):
            a.sorting[k] = a.listed[one]
            one += 1
        else:
            a.sorting[k] = a.listed[other]
            other += 1
    for k in range(begin, end):
        a.listed[k] = a.sorting[k]
