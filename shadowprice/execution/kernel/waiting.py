"""Waiting jobs in compiled code: the order of jobs, and heaps of those that wait, one a gang size.

Jobs that are chosen again and again but find no place go back to a stack, not to the heap.
"""

from __future__ import annotations

from shadowprice.execution.kernel.arrays import NOBODY, Arrays
from shadowprice.execution.kernel.compiling import inlined


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


@inlined
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
    if size.best == NOBODY or comes_first(a, job, size.best):
        size.best = job


@inlined
def push_refused(a: Arrays, job: int) -> None:
    """Put back a job that comes before all that wait of its gang size."""
    size = a.sizes[a.jobs[job].size]
    if size.stacked == size.room:
        push(a, job)
        return
    a.stacks[size.listed + size.stacked] = job
    size.stacked += 1
    size.best = job


@inlined
def pop(a: Arrays, job: int) -> None:
    """Take out the first waiting job of its gang size."""
    size = a.sizes[a.jobs[job].size]
    heap = a.heaps[size.first :]
    if size.stacked and a.stacks[size.listed + size.stacked - 1] == job:
        size.stacked -= 1
    else:
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
    size.best = heap[0] if size.waiting else NOBODY
    if size.stacked:
        refused = a.stacks[size.listed + size.stacked - 1]
        if size.best == NOBODY or comes_first(a, refused, size.best):
            size.best = refused


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
        job = size.best
        if (
            job != NOBODY
            and size.refused != unless_refused
            and (best == NOBODY or comes_first(a, job, best))
        ):
            best = job
    return best


@inlined
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


@inlined
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


# Waiting jobs by the time they have left, in order of arrival.


@inlined
def note_left(a: Arrays, job: int, left_s: float) -> None:
    """Note the time that a waiting job has left [s]; infinity when it no longer waits. O(log n)."""
    size = a.sizes[a.jobs[job].size]
    tree = a.trees[size.tree :]
    place = size.leaves + a.jobs[job].rank
    tree[place] = left_s
    place >>= 1
    while place > 0:
        least = min(tree[2 * place], tree[2 * place + 1])
        if tree[place] == least:
            break
        tree[place] = least
        place >>= 1


@inlined
def next_within(a: Arrays, size: int, after: int, most_s: float) -> int:
    """The first waiting job of a gang size that has no more time left than this [s]; O(log n).

    NOBODY if there is none. ``after`` is a job of this size, the search begins behind it; NOBODY to
    search all. The time is finite.
    """
    of = a.sizes[size]
    tree = a.trees[of.tree :]
    place = 1
    if after != NOBODY:
        place = of.leaves + a.jobs[after].rank + 1
        if place == 2 * of.leaves:
            return NOBODY
    while tree[place] > most_s:
        # Up while this is a right child, then to the neighbour on the right.
        while place & 1:
            place >>= 1
        if place == 0:
            return NOBODY
        place += 1
    while place < of.leaves:
        place *= 2
        if tree[place] > most_s:
            place += 1
    return a.of_size[of.first + place - of.leaves]
