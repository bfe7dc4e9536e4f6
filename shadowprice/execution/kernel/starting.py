"""Starts, stops and ends of jobs in compiled code."""

from __future__ import annotations

import numpy as np

from shadowprice.execution.kernel.arrays import BACKFILLS, FILLS, NOBODY, PREEMPTS, Arrays
from shadowprice.execution.kernel.compiling import apart, inlined
from shadowprice.execution.kernel.keys import list_running, set_key, set_step
from shadowprice.execution.kernel.pacing import lasts_s, note_progress
from shadowprice.execution.kernel.placing import drop_pieces, give_back
from shadowprice.execution.kernel.running import (
    add_end,
    append,
    insert_by_end,
    remove_end,
    unlist,
)
from shadowprice.execution.kernel.waiting import begin_waiting, end_waiting, note_left
from shadowprice.solvers.index_policy import Measure, Table


@inlined
def start(
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
        if run.migration_s > 0.0 and a.last[job].held_count > 0 and _moved(a, job, first):
            debt_s += run.migration_s
    it.pieces, it.start_s, it.overhead_s = first, run.now_s, debt_s
    it.progress_from_s = run.now_s + debt_s
    left_s = it.left_s
    if len(a.limits):
        run.acted = run.decisions
        if run.typed:
            left_s = lasts_s(a, job, first)
    it.end_s = run.now_s + debt_s + left_s
    if it.first_start_s == np.inf:
        it.first_start_s = run.now_s
    add_end(a, job)
    if run.windowed:
        a.last[job].turn = run.starts
        run.starts += 1
    if run.rule == BACKFILLS:
        note_left(a, job, np.inf)
        if run.charges or run.typed:
            append(a, job)
        else:
            insert_by_end(a, job)
    if run.rule == PREEMPTS or run.rule == FILLS:
        set_key(key, level, table, a, job)
        list_running(key, level, table, a, job)
        if run.steps:
            set_step(next_step_s, table, a, job)
            a.sizes[it.size].unsettled += it.step_s < np.inf


@apart
def _moved(a: Arrays, job: int, first: int) -> bool:
    """True if pieces differ from those that the job held last, in whatever order."""
    held_at, count, piece, found = a.last[job].held_at, a.last[job].held_count, first, 0
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


@inlined
def record(a: Arrays, job: int, end_s: float, overhead_s: float) -> None:
    """Add the rows of a run that is over to the schedule."""
    run, it = a.run[0], a.jobs[job]
    piece = it.pieces
    while piece != NOBODY:
        row = a.rows[run.rows]
        row.job, row.node, row.gpus = job, a.pieces[piece].node, a.pieces[piece].gpus
        row.start_s, row.end_s, row.overhead_s = it.start_s, end_s, overhead_s
        run.rows += 1
        piece = a.pieces[piece].next


@inlined
def finish(a: Arrays, job: int) -> None:
    """Let a job end that has done its work."""
    run, it = a.run[0], a.jobs[job]
    remove_end(a, job)
    if run.rule == PREEMPTS or run.rule == FILLS:
        if not len(a.limits):
            unlist(a, job)
        if it.step_s < np.inf:
            run.unsettled_gpus -= it.gpus
            a.sizes[it.size].unsettled -= 1
    if run.asks:
        a.ended[run.ended].job, a.ended[run.ended].decision = job, run.decisions
        run.ended += 1
    run.wanted -= run.first_wanted <= job < run.beyond_wanted
    record(a, job, it.end_s, it.overhead_s)
    give_back(a, job)
    drop_pieces(a, it.pieces)


@inlined
def stop(a: Arrays, job: int) -> None:
    """Let a job wait whose GPUs are free already, and which is in no list of running jobs."""
    run, it = a.run[0], a.jobs[job]
    remove_end(a, job)
    if it.step_s < np.inf:
        a.sizes[it.size].unsettled -= 1
    paid_s = min(it.overhead_s, run.now_s - it.start_s)
    ran_s = run.now_s - it.start_s - paid_s
    if len(a.limits):
        run.acted = run.decisions
    if len(a.limits) and run.typed:
        if ran_s > 0.0:
            note_progress(a, job, ran_s)
    else:
        it.left_s = max(it.left_s - ran_s, 0.0)
    it.attained_s += ran_s
    record(a, job, run.now_s, paid_s)
    if run.charges:
        it.debt_s = it.overhead_s - paid_s + a.sizes[it.size].restart_s
    if run.migration_s > 0.0:
        _remember_pieces(a, job)
    drop_pieces(a, it.pieces)
    begin_waiting(a, job)


@apart
def _remember_pieces(a: Arrays, job: int) -> None:
    piece, count = a.jobs[job].pieces, 0
    while piece != NOBODY:
        held = a.held[a.last[job].held_at + count]
        held.node, held.gpus = a.pieces[piece].node, a.pieces[piece].gpus
        count += 1
        piece = a.pieces[piece].next
    a.last[job].held_count = count
