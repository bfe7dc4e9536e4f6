"""Running jobs in compiled code: a heap of them by end, and lists in order of key, one a gang size.

Under EASY backfilling, which has no order, there is one list of all.
"""

from __future__ import annotations

from shadowprice.execution.kernel.arrays import NOBODY, Arrays
from shadowprice.execution.kernel.compiling import function, inlined
from shadowprice.execution.kernel.waiting import comes_first

# Running jobs by end.


@inlined
def _ends_first(a: Arrays, one: int, other: int) -> bool:
    x, y = a.jobs[one].end_s, a.jobs[other].end_s
    return x < y or (x == y and one < other)


@inlined
def _set_end(a: Arrays, place: int, job: int) -> None:
    a.ends[place] = job
    a.jobs[job].at = place


@function
def _rise(a: Arrays, place: int, job: int) -> int:
    while place > 0:
        above = (place - 1) >> 1
        if not _ends_first(a, job, a.ends[above]):
            break
        _set_end(a, place, a.ends[above])
        place = above
    return place


@function
def add_end(a: Arrays, job: int) -> None:
    """Add a running job to the heap of ends."""
    a.run[0].running += 1
    _set_end(a, _rise(a, a.run[0].running - 1, job), job)


@function
def remove_end(a: Arrays, job: int) -> None:
    """Take a job that stops or ends out of it."""
    run, place = a.run[0], a.jobs[job].at
    a.jobs[job].at = NOBODY
    run.running -= 1
    count = run.running
    if place == count:
        return
    last = a.ends[count]
    place = _rise(a, place, last)
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and _ends_first(a, a.ends[below + 1], a.ends[below]):
            below += 1
        if not _ends_first(a, a.ends[below], last):
            break
        _set_end(a, place, a.ends[below])
        place = below
    _set_end(a, place, last)


# Running jobs of a gang size in order.


@function
def insert_at(a: Arrays, size: int, place: int, job: int) -> None:
    """Put a job into the list of its gang size."""
    first, count = a.sizes[size].listed, a.sizes[size].running
    for k in range(first + count, first + place, -1):
        a.listed[k] = a.listed[k - 1]
    a.listed[first + place] = job
    a.sizes[size].running += 1


@function
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


@function
def append(a: Arrays, job: int) -> None:
    """Add a job that starts to the one list of running jobs."""
    if a.run[0].listed == len(a.listed):
        drop_ended(a)
    a.listed[a.run[0].listed] = job
    a.run[0].listed += 1


@function
def drop_ended(a: Arrays) -> None:
    """Take jobs that ended out of it, which keeps its order."""
    run, kept = a.run[0], 0
    for k in range(run.listed):
        job = a.listed[k]
        if a.jobs[job].at != NOBODY:
            a.listed[kept] = job
            kept += 1
    run.listed = kept


# Sorting.


@function
def sort_listed(a: Arrays, first: int, end: int) -> None:
    """Sort a part of the lists by key: natural merging, O(R) for two runs that are in order already."""
    while first < end and _end_of_run(a, first, end) < end:
        done = first
        while done < end:
            middle = _end_of_run(a, done, end)
            beyond = _end_of_run(a, middle, end)
            _merge(a, done, middle, beyond)
            done = beyond


@function
def _end_of_run(a: Arrays, begin: int, end: int) -> int:
    """Position after the jobs that are in order from this one on."""
    k = begin + 1
    while k < end and comes_first(a, a.listed[k - 1], a.listed[k]):
        k += 1
    return min(k, end)


@function
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
