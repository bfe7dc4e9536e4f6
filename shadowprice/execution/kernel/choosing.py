"""Choice of the jobs that run by count, where pools of GPUs or quotas limit it, in compiled code.

As ``choose_by_pool`` in :mod:`shadowprice.solvers.list_scheduling`: all live jobs in order, as if nobody held
anything; a running job keeps its pool, a waiting one takes its first with room.
"""

from __future__ import annotations

from numba import int64

from shadowprice.execution.kernel.arrays import NOBODY, Arrays
from shadowprice.execution.kernel.compiling import apart, inlined
from shadowprice.execution.kernel.keys import set_key, set_step
from shadowprice.execution.kernel.running import drop_ended, sort_listed
from shadowprice.execution.kernel.waiting import comes_first, first_waiting, pop
from shadowprice.solvers.index_policy import Measure, Table


@apart
def choose_within_limits(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays
) -> tuple[int, int]:
    """Jobs that fit, taken in order: how many waiting ones do, and how many running ones do not.

    The former leave the waiting jobs, the latter the list of those that run.
    """
    run = a.run[0]
    _order_running(key, level, next_step_s, table, a)
    _empty_all(a)
    # No decision has this number: who is passed over here may yet be placed.
    passed_over = -3 - run.decisions
    left, chosen, stopped, kept, k = run.total_gpus, int64(0), int64(0), int64(0), int64(0)
    waiting, asks = NOBODY, True
    while True:
        if asks:
            waiting, asks = first_waiting(a, left, passed_over), False
        if waiting != NOBODY and (k == run.listed or comes_first(a, waiting, a.listed[k])):
            if _has_room(a, waiting):
                pop(a, waiting)
                a.decided[chosen].chosen = waiting
                chosen += 1
                left -= a.jobs[waiting].gpus
            else:
                # Room only becomes less: for all that are like it there is none.
                a.sizes[a.jobs[waiting].size].refused = passed_over
            asks = True
            continue
        if k == run.listed:
            break
        job = a.listed[k]
        k += 1
        if _has_room_again(a, job):
            a.listed[kept] = job
            kept += 1
            left -= a.jobs[job].gpus
        else:
            a.decided[stopped].stopped = job
            stopped += 1
    run.listed = kept
    return chosen, stopped


@inlined
def _order_running(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays
) -> None:
    """Put all running jobs into the order of now."""
    run = a.run[0]
    drop_ended(a)
    for k in range(run.listed):
        job = a.listed[k]
        set_key(key, level, table, a, job)
        if run.steps and a.jobs[job].crossing_s <= run.now_s:
            set_step(next_step_s, table, a, job)
    sort_listed(a, int64(0), run.listed)


@inlined
def _empty_all(a: Arrays) -> None:
    """Room as if nobody held anything."""
    for pool in range(len(a.pools)):
        a.pools[pool].room = a.pools[pool].gpus
    for tenant in range(len(a.tenants)):
        a.tenants[tenant].left = a.tenants[tenant].quota


@inlined
def _has_room(a: Arrays, job: int) -> bool:
    """Count a waiting job in the first of its pools with room; False, and no change, beyond its tenant's quota."""
    size = a.sizes[a.jobs[job].size]
    for k in range(size.order, size.order + size.pools):
        if a.pools[a.orders[k]].room >= size.gpus:
            return _counted(a, size.tenant, size.gpus, a.orders[k])
    return False


@inlined
def _has_room_again(a: Arrays, job: int) -> bool:
    """The same of a running job in its pool."""
    size, pool = a.sizes[a.jobs[job].size], a.nodes[a.pieces[a.jobs[job].pieces].node].pool
    return a.pools[pool].room >= size.gpus and _counted(a, size.tenant, size.gpus, pool)


@inlined
def _counted(a: Arrays, tenant: int, gpus: int, pool: int) -> bool:
    if tenant != NOBODY:
        if a.tenants[tenant].left < gpus:
            return False
        a.tenants[tenant].left -= gpus
    a.pools[pool].room -= gpus
    return True
