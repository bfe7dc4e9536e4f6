"""The compiled loop: events in, decisions out, as in :mod:`shadowprice.execution.engine`.

Times are seconds as there, whole ticks of 2**-20 s, whose sums are exact, and every operation on them is the
engine's. A waiting job's key is computed when it begins to wait and a running job's when a
decision looks at it.

Running jobs of one gang size are kept in order as long as that order stays. A decision then costs O(d log R)
for d gang sizes and R running jobs, and O(d + log n) more for each job that starts, stops or may have
to. Where the order changes with time, or steps and overhead are charged, it is O(R) more.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from shadowprice.execution.kernel.arrays import (
    BACKFILLS,
    CONSOLIDATE,
    NOBODY,
    PREEMPTS,
    SKIPS,
    Arrays,
)
from shadowprice.execution.kernel.compiling import OPTIONS, function, inlined
from shadowprice.execution.kernel.keys import (
    bring_up_to_date,
    find_crossing,
    jobs_before,
    list_running,
    set_key,
    set_step,
    sort_running,
    take_steps,
    up_to_grid,
)
from shadowprice.execution.kernel.placing import drop_pieces, give_back, take, take_again
from shadowprice.execution.kernel.running import (
    add_end,
    append,
    drop_ended,
    remove_end,
    sort_listed,
    unlist,
)
from shadowprice.execution.kernel.waiting import (
    begin_waiting,
    comes_first,
    end_waiting,
    first_waiting,
    pop,
    push,
)
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, TICKS_PER_S
from shadowprice.solvers.index_policy import Measure, Table

DONE, ROOM, STUCK, NOT_A_NUMBER = range(4)
"""States in which the loop returns: no event is left, no room for more rows, jobs wait that nothing will
start, a key is no number."""

_NEVER = -2
"""Number of no decision."""

Loop = Callable[[Measure, Measure, Measure, Table, Arrays], int]


# Starts and stops.


@function
def _start(
    key: Measure,
    level: Measure,
    next_step_s: Measure,
    table: Table,
    a: Arrays,
    job: int,
    first: int,
) -> None:
    """Let a job that is in no heap run on the pieces it was given."""
    run, it = a.run[0], a.jobs[job]
    end_waiting(a, job)
    debt_s = 0.0
    if run.charges:
        debt_s = it.debt_s + run.start_charge_s
        if run.migration_s > 0.0 and a.held_count[job] != NOBODY and _moved(a, job, first):
            debt_s += run.migration_s
    it.pieces, it.start_s, it.overhead_s = first, run.now_s, debt_s
    it.progress_from_s = run.now_s + debt_s
    it.end_s = run.now_s + debt_s + it.left_s
    if it.first_start_s == np.inf:
        it.first_start_s = run.now_s
    add_end(a, job)
    if run.rule == BACKFILLS:
        append(a, job)
    if run.rule == PREEMPTS:
        set_key(key, level, table, a, job)
        list_running(key, level, table, a, job)
        if run.steps:
            set_step(next_step_s, table, a, job)


@function
def _moved(a: Arrays, job: int, first: int) -> bool:
    """True if pieces differ from those that the job held last, in whatever order."""
    held_at, count, piece, found = a.held_at[job], a.held_count[job], first, 0
    while piece != NOBODY:
        node, gpus = a.pieces[piece].node, a.pieces[piece].gpus
        same = False
        for k in range(held_at, held_at + count):
            same = same or (a.held[k].node == node and a.held[k].gpus == gpus)
        if not same:
            return True
        found += 1
        piece = a.pieces[piece].next
    return found != count


@function
def _record(a: Arrays, job: int, end_s: float, overhead_s: float) -> None:
    run, it = a.run[0], a.jobs[job]
    piece = it.pieces
    while piece != NOBODY:
        row = a.rows[run.rows]
        row.job, row.node, row.gpus = job, a.pieces[piece].node, a.pieces[piece].gpus
        row.start_s, row.end_s, row.overhead_s = it.start_s, end_s, overhead_s
        run.rows += 1
        piece = a.pieces[piece].next


@function
def _finish(a: Arrays, job: int) -> None:
    run, it = a.run[0], a.jobs[job]
    remove_end(a, job)
    if run.rule == PREEMPTS:
        unlist(a, job)
        if it.step_s < np.inf:
            run.unsettled_gpus -= it.gpus
    _record(a, job, it.end_s, it.overhead_s)
    give_back(a, it.pieces)
    drop_pieces(a, it.pieces)


@function
def _stop(a: Arrays, job: int) -> None:
    """Let a job wait whose GPUs are free already, and which is no longer among the ends."""
    run, it = a.run[0], a.jobs[job]
    paid_s = min(it.overhead_s, run.now_s - it.start_s)
    ran_s = run.now_s - it.start_s - paid_s
    it.left_s = max(it.left_s - ran_s, 0.0)
    it.attained_s += ran_s
    _record(a, job, run.now_s, paid_s)
    if run.charges:
        it.debt_s = it.overhead_s - paid_s + a.sizes[it.size].restart_s
    if run.migration_s > 0.0:
        _remember_pieces(a, job)
    drop_pieces(a, it.pieces)
    begin_waiting(a, job)


@function
def _remember_pieces(a: Arrays, job: int) -> None:
    piece, count = a.jobs[job].pieces, 0
    while piece != NOBODY:
        held = a.held[a.held_at[job] + count]
        held.node, held.gpus = a.pieces[piece].node, a.pieces[piece].gpus
        count += 1
        piece = a.pieces[piece].next
    a.held_count[job] = count


# Decisions.


@function
def _serve_waiting(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays
) -> None:
    """Start waiting jobs in order; who does not fit blocks those behind or is passed over."""
    run = a.run[0]
    skips = run.rule == SKIPS
    while run.free_gpus > 0:
        limit = run.free_gpus if skips else run.total_gpus
        job = first_waiting(a, limit, run.decisions if skips else _NEVER)
        if job == NOBODY:
            return
        first = take(a, a.jobs[job].gpus)
        if first != NOBODY:
            pop(a, job)
            _start(key, level, next_step_s, table, a, job, first)
        elif skips:
            a.sizes[a.jobs[job].size].refused = run.decisions
        else:
            return


@function
def _serve_live(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays
) -> None:
    """Run the live jobs in order and stop the others; ask again when an order may change."""
    run = a.run[0]
    if run.waiting == 0:
        return
    by_count = run.waiting_gpus <= run.free_gpus
    if by_count and run.placement != CONSOLIDATE:
        _start_all(key, level, next_step_s, table, a)
        return
    stopped = 0
    if by_count:
        chosen = _choose_waiting(a)
    else:
        take_steps(key, level, next_step_s, table, a)
        sort_running(key, level, table, a)
        chosen, stopped = _choose_live(key, level, table, a)
    if chosen:
        for k in range(stopped):
            remove_end(a, a.stopped[k])
            give_back(a, a.jobs[a.stopped[k]].pieces)
        refused = _start_chosen(key, level, next_step_s, table, a, chosen)
        if run.placement == CONSOLIDATE and (stopped or refused):
            stopped = _fill(key, level, next_step_s, table, a, stopped)
        # Who stops begins to wait after all that start have left the queue.
        for k in range(stopped):
            _stop(a, a.stopped[k])
            set_key(key, level, table, a, a.stopped[k])
            push(a, a.stopped[k])
        for k in range(refused):
            push(a, a.chosen[k])
    if run.waiting:
        run.wake_s = run.now_s + run.quantum_s
        if run.steps and not by_count:
            run.wake_s = min(run.wake_s, run.now_s + _until_step_s(a))


@function
def _start_all(key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays) -> None:
    """Start every waiting job, in the order they began to wait; all fit."""
    for k in range(len(a.sizes)):
        a.sizes[k].waiting = 0
    job = a.run[0].head
    while job != NOBODY:
        after = a.jobs[job].after
        _start(key, level, next_step_s, table, a, job, take(a, a.jobs[job].gpus))
        job = after


@function
def _choose_waiting(a: Arrays) -> int:
    """All waiting jobs in order, taken out of their heaps; how many they are."""
    chosen = 0
    while True:
        job = first_waiting(a, a.run[0].total_gpus, _NEVER)
        if job == NOBODY:
            return chosen
        pop(a, job)
        a.chosen[chosen] = job
        chosen += 1


@function
def _choose_live(key: Measure, level: Measure, table: Table, a: Arrays) -> tuple[int, int]:
    """Jobs that fit by count, taken in order: how many waiting ones do, and how many running ones do not.

    Those running ones leave their lists.
    """
    run = a.run[0]
    limit, chosen, gpus = run.total_gpus, 0, 0
    # As long as all running jobs before a waiting one fit, only their number matters.
    while True:
        waiting = first_waiting(a, limit, _NEVER)
        if waiting == NOBODY:
            break
        left = run.total_gpus - gpus
        for k in range(len(a.sizes)):
            if a.sizes[k].running:
                left -= a.sizes[k].gpus * jobs_before(key, level, table, a, k, waiting)
        if left < 0:
            break
        limit = left
        if a.jobs[waiting].gpus <= left:
            pop(a, waiting)
            a.chosen[chosen] = waiting
            chosen += 1
            gpus += a.jobs[waiting].gpus
            limit -= a.jobs[waiting].gpus
    if chosen == 0 or gpus <= run.free_gpus:
        return chosen, 0
    # From the first running job on that does not fit, one by one.
    last, excess = 0, gpus - run.free_gpus
    while excess > 0:
        job = _last_running(key, level, table, a)
        a.sizes[a.jobs[job].size].running -= 1
        a.sorting[last] = job
        last += 1
        excess -= a.jobs[job].gpus
    return _choose_one_by_one(a, chosen, last, -excess)


@inlined
def _last_running(key: Measure, level: Measure, table: Table, a: Arrays) -> int:
    found = NOBODY
    for k in range(len(a.sizes)):
        size = a.sizes[k]
        if size.running:
            job = a.listed[size.listed + size.running - 1]
            bring_up_to_date(key, level, table, a, job)
            if found == NOBODY or comes_first(a, found, job):
                found = job
    return found


@function
def _choose_one_by_one(a: Arrays, chosen: int, last: int, gpus: int) -> tuple[int, int]:
    """Go on choosing for so many GPUs among the waiting and the last running jobs, which are in no list."""
    stopped, left = 0, gpus
    for k in range(last - 1, -2, -1):
        while True:
            waiting = first_waiting(a, left, _NEVER)
            if waiting == NOBODY or (k >= 0 and comes_first(a, a.sorting[k], waiting)):
                break
            pop(a, waiting)
            a.chosen[chosen] = waiting
            chosen += 1
            left -= a.jobs[waiting].gpus
        if k < 0:
            break
        job = a.sorting[k]
        if a.jobs[job].gpus <= left:
            left -= a.jobs[job].gpus
            size = a.sizes[a.jobs[job].size]
            a.listed[size.listed + size.running] = job
            size.running += 1
        else:
            a.stopped[stopped] = job
            stopped += 1
    return chosen, stopped


@function
def _start_chosen(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays, chosen: int
) -> int:
    """Start the chosen jobs that can be placed; those that cannot come first among them then, so many."""
    run, refused = a.run[0], 0
    for k in range(chosen):
        job = a.chosen[k]
        first = NOBODY
        # GPUs are only taken meanwhile: no place for one gang is none for the next of its size.
        if a.sizes[a.jobs[job].size].refused != run.decisions:
            first = take(a, a.jobs[job].gpus)
        if first == NOBODY:
            a.sizes[a.jobs[job].size].refused = run.decisions
            a.chosen[refused] = job
            refused += 1
        else:
            _start(key, level, next_step_s, table, a, job, first)
    return refused


@function
def _fill(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays, stopped: int
) -> int:
    """Use what fragmentation left over: stopped jobs go on where they were, others start if they fit.

    Returns how many are stopped after all.
    """
    run, k, still = a.run[0], 0, 0
    while True:
        waiting = first_waiting(a, run.free_gpus, run.decisions)
        if k < stopped and (waiting == NOBODY or comes_first(a, a.stopped[k], waiting)):
            job = a.stopped[k]
            k += 1
            if a.jobs[job].gpus <= run.free_gpus and take_again(a, a.jobs[job].pieces):
                add_end(a, job)
                list_running(key, level, table, a, job)
            else:
                a.stopped[still] = job
                still += 1
        elif waiting != NOBODY:
            first = take(a, a.jobs[waiting].gpus)
            if first == NOBODY:
                a.sizes[a.jobs[waiting].size].refused = run.decisions
            else:
                pop(a, waiting)
                _start(key, level, next_step_s, table, a, waiting, first)
        else:
            return still


@function
def _until_step_s(a: Arrays) -> float:
    """Time to the next step of the key of a job that runs [s], at least a tick."""
    run = a.run[0]
    if not run.charges:
        known = run.crossing != NOBODY and a.jobs[run.crossing].at != NOBODY
        if not known or a.jobs[run.crossing].crossing_s != run.crossing_s:
            find_crossing(a)
        return max(run.crossing_s - run.now_s, TICK_S)
    gap_s = np.inf
    for k in range(len(a.sizes)):
        size = a.sizes[k]
        for place in range(size.listed, size.listed + size.running):
            it = a.jobs[a.listed[place]]
            attained_s = it.attained_s + max(run.now_s - it.progress_from_s, 0.0)
            gap_s = min(gap_s, up_to_grid(it.step_s - attained_s))
    return max(gap_s, TICK_S)


@function
def _backfill(key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays) -> None:
    """Start from the head of the queue; at the first job that does not fit, reserve and backfill."""
    run = a.run[0]
    head = run.head
    while head != NOBODY:
        following = a.jobs[head].after
        first = take(a, a.jobs[head].gpus)
        if first == NOBODY:
            break
        _start(key, level, next_step_s, table, a, head, first)
        head = following
    if head == NOBODY or a.jobs[head].after == NOBODY or run.free_gpus == 0:
        return
    shadow_s, spare = _reservation(a, a.jobs[head].gpus)
    job = a.jobs[head].after
    while job != NOBODY and run.free_gpus > 0:
        it = a.jobs[job]
        following = it.after
        in_time = run.now_s + it.left_s <= shadow_s
        fits = it.gpus <= run.free_gpus and a.sizes[it.size].refused != run.decisions
        if fits and (in_time or it.gpus <= spare):
            first = take(a, it.gpus)
            if first == NOBODY:
                a.sizes[it.size].refused = run.decisions
            else:
                _start(key, level, next_step_s, table, a, job, first)
                spare -= 0 if in_time else it.gpus
        job = following


@function
def _reservation(a: Arrays, gpus: int) -> tuple[float, int]:
    """Earliest start of a gang that does not fit now [s], and the GPUs it will leave free then."""
    run = a.run[0]
    drop_ended(a)
    for k in range(run.listed):
        it = a.jobs[a.listed[k]]
        it.key = run.now_s + (it.left_s - max(run.now_s - it.progress_from_s, 0.0))
    sort_listed(a, 0, run.listed)
    free, k = run.free_gpus, 0
    # Of a gang that would fit but for fragmentation, the first end.
    while k < run.listed and (k == 0 or free < gpus):
        free += a.jobs[a.listed[k]].gpus
        k += 1
    if k == 0 or free < gpus:
        return np.inf, run.free_gpus
    shadow_s = a.jobs[a.listed[k - 1]].key
    while k < run.listed and a.jobs[a.listed[k]].key <= shadow_s:
        free += a.jobs[a.listed[k]].gpus
        k += 1
    return shadow_s, free - gpus


# Events.


@inlined
def _due_s(a: Arrays, event_s: float) -> float:
    """Time of the decision about an event [s]."""
    run = a.run[0]
    if run.round_s == 0.0:
        return event_s
    rounds = np.ceil((event_s - run.first_round_s) / run.round_s)
    return run.first_round_s + max(rounds, 0.0) * run.round_s


@inlined
def _next_event_s(a: Arrays) -> float:
    run = a.run[0]
    event_s = run.wake_s
    if event_s < MAX_TIME_S:
        event_s = np.ceil(event_s * TICKS_PER_S) / TICKS_PER_S
    if run.running:
        event_s = min(event_s, a.jobs[a.ends[0]].end_s)
    if run.admitted < len(a.jobs):
        event_s = min(event_s, a.jobs[run.admitted].arrival_s)
    return event_s


def compiled(sources: str) -> Loop:
    """The loop, which goes from event to event until one of the states above; compiled when first called.

    Parameters
    ----------
    sources : str
        Digest of the files of this package. Without it numba would go on using what it compiled
        before a function was changed that the loop calls.
    """

    @njit(cache=True, **OPTIONS)
    def advance(key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays) -> int:
        _ = sources
        run = a.run[0]
        while True:
            if run.rows > len(a.rows) - 2 * run.total_gpus:
                return ROOM
            event_s = _next_event_s(a)
            if event_s == np.inf:
                return STUCK if run.waiting else DONE
            run.now_s = _due_s(a, event_s)
            while run.running and a.jobs[a.ends[0]].end_s <= run.now_s:
                _finish(a, a.ends[0])
            while run.admitted < len(a.jobs) and a.jobs[run.admitted].arrival_s <= run.now_s:
                if run.rule != BACKFILLS:
                    set_key(key, level, table, a, run.admitted)
                    if run.steps:
                        set_step(next_step_s, table, a, run.admitted)
                    push(a, run.admitted)
                begin_waiting(a, run.admitted)
                run.admitted += 1
            run.wake_s = np.inf
            if run.rule == PREEMPTS:
                _serve_live(key, level, next_step_s, table, a)
            elif run.rule == BACKFILLS:
                _backfill(key, level, next_step_s, table, a)
            else:
                _serve_waiting(key, level, next_step_s, table, a)
            run.decisions += 1
            if run.faulty != NOBODY:
                return NOT_A_NUMBER
            if run.waiting and not run.running and run.admitted == len(a.jobs):
                return STUCK

    loop: Loop = advance
    return loop
