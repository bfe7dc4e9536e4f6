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
    FILLS,
    HEAD_BLOCKS,
    NOBODY,
    PREEMPTS,
    RELEASES,
    SKIPS,
    Arrays,
)
from shadowprice.execution.kernel.backfilling import backfill
from shadowprice.execution.kernel.compiling import OPTIONS, apart, inlined
from shadowprice.execution.kernel.filling import serve_filling
from shadowprice.execution.kernel.keys import set_key, set_step
from shadowprice.execution.kernel.quotas import change_quotas, next_period_s
from shadowprice.execution.kernel.releasing import serve_released
from shadowprice.execution.kernel.running import next_end_s
from shadowprice.execution.kernel.serving import serve_live, serve_waiting
from shadowprice.execution.kernel.starting import finish
from shadowprice.execution.kernel.stored_code import StoredCode
from shadowprice.execution.kernel.waiting import begin_waiting, note_left, push
from shadowprice.instances.grid import MAX_TIME_S, TICKS_PER_S
from shadowprice.solvers.index_policy import Measure, Table

DONE, ROOM, ASKS, STUCK, NOT_A_NUMBER, WINDOW = range(6)
"""States in which the loop returns: no event is left, no room for more rows, predictions are asked for, jobs
wait that nothing will start, a key is no number, the window of jobs is complete or will not be. After the second and
third it goes on."""

IDLE_WAKES = 100_000
"""Decisions in a row that do nothing while nothing runs and nobody will come: as many as the engine goes along with."""

Loop = Callable[[Measure, Measure, Measure, Table, Arrays], int]


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
    event_s = min(event_s, next_end_s(a))
    if run.admitted < len(a.jobs):
        event_s = min(event_s, a.jobs[run.admitted].arrival_s)
    if len(a.limits) and run.waiting:
        event_s = min(event_s, next_period_s(a))
    return event_s


@inlined
def _finish_due(a: Arrays) -> None:
    """Let the jobs end that have done their work by now."""
    if len(a.limits):
        change_quotas(a)
    # Conditions of loops are compiled twice, before them and at their ends.
    while True:
        if next_end_s(a) > a.run[0].now_s:
            break
        finish(a, a.ends[0].job)


@inlined
def _is_stuck(a: Arrays) -> bool:
    """True if jobs wait after a decision that nothing will start."""
    run = a.run[0]
    idle = run.waiting and not run.running and not run.virtual
    if not idle or run.admitted < len(a.jobs):
        return False
    return not len(a.limits) or _is_idle_for_ever(a)


@apart
def _is_idle_for_ever(a: Arrays) -> bool:
    """True unless quotas change; also, as in the engine, after too many decisions in vain until then."""
    run = a.run[0]
    if next_period_s(a) == np.inf:
        return True
    # The decision that has just been counted.
    if run.acted == run.decisions - 1:
        run.idle = 0
    elif run.wake_s < np.inf:
        run.idle += 1
    return run.idle > IDLE_WAKES


@inlined
def _admit(
    key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays, job: int
) -> None:
    run = a.run[0]
    if run.rule == BACKFILLS:
        note_left(a, job, a.jobs[job].left_s)
    elif run.rule != RELEASES:
        set_key(key, level, table, a, job)
        if run.steps:
            set_step(next_step_s, table, a, job)
        push(a, job)
    begin_waiting(a, job)


@inlined
def _admit_due(key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays) -> bool:
    """Admit the jobs that have arrived by now; true if there are any."""
    run, before = a.run[0], a.run[0].admitted
    while run.admitted < len(a.jobs) and a.jobs[run.admitted].arrival_s <= run.now_s:
        _admit(key, level, next_step_s, table, a, run.admitted)
        run.admitted += 1
    return run.admitted > before


@inlined
def _window_decided(a: Arrays) -> bool:
    """True if all jobs of the window are complete, or the run has gone on for too long for that."""
    run = a.run[0]
    return run.wanted == 0 or run.admitted == len(a.jobs) or run.now_s >= run.latest_s


def shared_rule(rule: int) -> int:
    """The rule whose loop serves a rule: the loop of one that blocks also passes jobs over."""
    return HEAD_BLOCKS if rule == SKIPS else rule


def compiled(stored: StoredCode, rule: int) -> Loop:
    """The loop for a rule, which goes from event to event until one of the states above; compiled when first called.

    A loop for all rules would take longer to compile than anyone wants to wait for one of them.

    Parameters
    ----------
    stored : StoredCode
        Where its code is read and written.
    rule : int
        What :func:`shared_rule` says of the run's.
    """

    @njit(**OPTIONS)
    def advance(key: Measure, level: Measure, next_step_s: Measure, table: Table, a: Arrays) -> int:
        run = a.run[0]
        while True:
            if not run.asked:
                if run.rows > len(a.rows) - 2 * run.total_gpus:
                    return ROOM
                event_s = _next_event_s(a)
                if event_s == np.inf:
                    return STUCK if run.waiting else DONE
                run.now_s = _due_s(a, event_s)
                _finish_due(a)
                arrived = _admit_due(key, level, next_step_s, table, a)
                run.wake_s = np.inf
                if run.windowed and _window_decided(a):
                    return WINDOW
                if run.asks and arrived:
                    run.asked = 1
                    return ASKS
            run.asked = 0
            # Constants, so that the other branches are not compiled.
            if rule == PREEMPTS:
                serve_live(key, level, next_step_s, table, a)
            elif rule == FILLS:
                serve_filling(key, level, next_step_s, table, a)
            elif rule == BACKFILLS:
                backfill(key, level, next_step_s, table, a)
            elif rule == RELEASES:
                serve_released(key, level, next_step_s, table, a)
            else:
                serve_waiting(key, level, next_step_s, table, a)
            run.decisions += 1
            if run.faulty != NOBODY:
                return NOT_A_NUMBER
            if _is_stuck(a):
                return STUCK

    advance._cache = stored
    loop: Loop = advance
    return loop
