"""Waiting jobs in compiled code: the order of jobs, and heaps of those that wait, one a gang size."""

from __future__ import annotations

from shadowprice.execution.kernel.arrays import NOBODY, Arrays
from shadowprice.execution.kernel.compiling import function, inlined


@inlined
def comes_first(a: Arrays, one: int, other: int) -> bool:
    """Order of two jobs: by level, key, tie, and then arrival."""
    x, y = a.jobs[one], a.jobs[other]
    if x.level != y.level:
        return x.level < y.level
    if x.key != y.key:
        return x.key < y.key
    if x.tie != y.tie:
        return x.tie < y.tie
    return one < other


# Waiting jobs.


@function
def push(a: Arrays, job: int) -> None:
    """Put a waiting job into the heap of its gang size."""
    size = a.sizes[a.jobs[job].size]
    heap = a.heaps[size.first :]
    place = size.waiting
    size.waiting += 1
    while place > 0:
        above = (place - 1) >> 1
        if not comes_first(a, job, heap[above]):
            break
        heap[place] = heap[above]
        place = above
    heap[place] = job


@function
def pop(a: Arrays, job: int) -> None:
    """Take the first job of its gang size out of the heap."""
    size = a.sizes[a.jobs[job].size]
    heap = a.heaps[size.first :]
    size.waiting -= 1
    count = size.waiting
    last = heap[count]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and comes_first(a, heap[below + 1], heap[below]):
            below += 1
        if not comes_first(a, heap[below], last):
            break
        heap[place] = heap[below]
        place = below
    heap[place] = last


@inlined
def first_waiting(a: Arrays, gpus: int, unless_refused: int) -> int:
    """The first waiting job in order whose gang is no larger, NOBODY if there is none.

    Sizes that were refused in the decision ``unless_refused`` are passed over.
    """
    best = NOBODY
    for k in range(len(a.sizes)):
        size = a.sizes[k]
        if size.gpus > gpus:
            break
        if size.waiting and size.refused != unless_refused:
            job = a.heaps[size.first]
            if best == NOBODY or comes_first(a, job, best):
                best = job
    return best


@function
def begin_waiting(a: Arrays, job: int) -> None:
    """Add a job behind all that wait."""
    run = a.run[0]
    a.jobs[job].before, a.jobs[job].after = run.tail, NOBODY
    if run.tail == NOBODY:
        run.head = job
    else:
        a.jobs[run.tail].after = job
    run.tail = job
    run.waiting += 1
    run.waiting_gpus += a.jobs[job].gpus


@function
def end_waiting(a: Arrays, job: int) -> None:
    """Take a job out of the list of those that wait."""
    run, before, after = a.run[0], a.jobs[job].before, a.jobs[job].after
    if before == NOBODY:
        run.head = after
    else:
        a.jobs[before].after = after
    if after == NOBODY:
        run.tail = before
    else:
        a.jobs[after].before = before
    run.waiting -= 1
    run.waiting_gpus -= a.jobs[job].gpus
