"""Preemptive list scheduling: GPUs in order of priority, each gang whole, skipping what does not fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.decision import Decision
from shadowprice.solvers.job_columns import Live
from shadowprice.solvers.state import State

Priority = Callable[[Live], NDArray[np.int64]]
"""Positions in the live columns, highest priority first."""


def serve_in_order(state: State, priority: Priority) -> Decision:
    """Run the live jobs in order of priority and preempt the others.

    A gang that does not fit beside those before it is skipped, not waited for. O(L log L) for L
    live jobs, O(waiting) when everything fits.
    """
    if state.everything_fits:
        return state.decision().start_all()
    if not state.waiting:
        return state.decision()
    live = state.live()
    return run_exactly(state, live, priority(live))


def run_exactly(state: State, live: Live, order: NDArray[np.int64]) -> Decision:
    """Give GPUs in this order, by count for each pool; then place, then fill what is left over."""
    jobs, running = live.jobs[order], live.running[order]
    if state.allocator.anywhere or state.one_pool:
        chosen = choose_by_count(live.gpus[order], state.total_gpus)
    else:
        chosen = choose_by_pool(state, jobs.tolist())
    decision = state.decision()
    stopped = jobs[running & ~chosen].tolist()
    for job in stopped:
        decision.stop(job)
    refused = [job for job in jobs[chosen & ~running].tolist() if not decision.start(job)]
    if stopped and not state.allocator.anywhere:
        left = ~running | ~chosen
    elif refused:
        left = ~chosen & ~running
    else:
        return decision
    if not state.partner_of:  # Who shares with a partner needs no free GPUs.
        left &= live.gpus[order] <= decision.free_gpus
    _fill(decision, jobs[left], set(stopped), state)
    return decision


def choose_by_count(gpus: NDArray[np.int64], capacity: int) -> NDArray[np.bool_]:
    """Which gangs, taken in order, fit into a number of GPUs; those that do not are skipped."""
    chosen = np.zeros(len(gpus), dtype=bool)
    first_too_many = int(np.searchsorted(np.cumsum(gpus), capacity, side="right"))
    chosen[:first_too_many] = True
    left = capacity - int(gpus[:first_too_many].sum())
    position = first_too_many + 1
    while left > 0 and position < len(gpus):
        fits = gpus[position:] <= left
        step = int(fits.argmax())
        if not fits[step]:
            break
        position += step
        chosen[position] = True
        left -= int(gpus[position])
        position += 1
    return chosen


def choose_by_pool(state: State, jobs: list[int]) -> NDArray[np.bool_]:
    """The same over several pools: a running job keeps its pool, a waiting one takes its first with room."""
    allocator = state.allocator
    pools = {pool for job in jobs for pool in state.pools[job]}
    room = {pool: allocator.free_in(pool) for pool in pools}
    held = {job: allocator.pool_of(pieces[0][0]) for job, pieces in state.running.items()}
    for job, pool in held.items():
        room[pool] += state.gang[job]
    chosen = np.zeros(len(jobs), dtype=bool)
    for position, job in enumerate(jobs):
        wanted = (held[job],) if job in held else state.pools[job]
        for pool in wanted:
            if room[pool] >= state.gang[job]:
                room[pool] -= state.gang[job]
                chosen[position] = True
                break
    return chosen


def _fill(decision: Decision, jobs: NDArray[np.int64], stopped: set[int], state: State) -> None:
    """Use what fragmentation left over: preempted jobs stay where they were, others start if they fit."""
    started = {job for job, _ in decision.starts}
    gang, sharing, free = state.gang, bool(state.partner_of), decision.free_gpus
    for job in jobs.tolist():
        if not sharing and gang[job] > free:
            if not free:
                break
            continue
        if job in stopped:
            decision.resume_in_place(job)
        elif job not in started:
            decision.start(job)
        free = decision.free_gpus
