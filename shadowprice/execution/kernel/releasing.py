"""A virtual machine under SRPT and the queue of jobs that it has completed, in compiled code.

As :mod:`shadowprice.solvers.asrpt.srpt_machine`, in whole numbers of 1/m tick for m GPUs.
"""

from __future__ import annotations

from shadowprice.execution.kernel.arrays import NOBODY, Arrays
from shadowprice.execution.kernel.compiling import apart, inlined
from shadowprice.execution.kernel.placing import take
from shadowprice.execution.kernel.starting import start
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.solvers.index_policy import Measure, Table

LATEST = 2**62
"""No virtual time is later."""


@apart
def serve_released(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays
) -> None:
    """Start jobs in the order in which the virtual machine has completed them; the head blocks."""
    run = a.run[0]
    _advance(a, min(int(run.now_s * TICKS_PER_S), LATEST // run.total_gpus) * run.total_gpus)
    while run.joined < run.admitted:
        _add(a, run.joined)
        run.joined += 1
    while run.served < run.released and run.free_gpus > 0:
        job = a.of_size[run.served]
        first = take(a, job)
        if first == NOBODY:
            break
        start(key, level, next_step_s, table, a, job, first)
        run.served += 1
    if run.virtual:
        at = run.virtual_now + a.works[a.heaps[0]]
        run.wake_s = (at + run.total_gpus - 1) // run.total_gpus / TICKS_PER_S


@inlined
def _advance(a: Arrays, until: int) -> None:
    run = a.run[0]
    while run.virtual:
        job = a.heaps[0]
        end = run.virtual_now + a.works[job]
        if end > until:
            # What the first has been given leaves it the first.
            a.works[job] = end - until
            break
        run.virtual_now = end
        _drop_first(a)
        # No rule but this one needs jobs by gang size less.
        a.of_size[run.released] = job
        run.released += 1
    run.virtual_now = max(run.virtual_now, until)


@inlined
def _less(a: Arrays, one: int, other: int) -> bool:
    if a.works[one] != a.works[other]:
        return a.works[one] < a.works[other]
    return one < other


@inlined
def _add(a: Arrays, job: int) -> None:
    run = a.run[0]
    place = run.virtual
    run.virtual += 1
    while place > 0:
        above = (place - 1) >> 1
        if not _less(a, job, a.heaps[above]):
            break
        a.heaps[place] = a.heaps[above]
        place = above
    a.heaps[place] = job


@inlined
def _drop_first(a: Arrays) -> None:
    run = a.run[0]
    run.virtual -= 1
    count, place = run.virtual, 0
    last = a.heaps[count]
    while True:
        below = 2 * place + 1
        if below >= count:
            break
        if below + 1 < count and _less(a, a.heaps[below + 1], a.heaps[below]):
            below += 1
        if not _less(a, a.heaps[below], last):
            break
        a.heaps[place] = a.heaps[below]
        place = below
    a.heaps[place] = last
