"""Jobs that hold more GPUs than their gang: whether any may, and how a policy changes their widths."""

from __future__ import annotations

from collections.abc import Mapping

from shadowprice.solvers.placement.protocol import Pieces, in_turn
from shadowprice.solvers.policy import Decision, State


def can_grow(state: State) -> bool:
    """True where jobs may hold more than their gang, on GPUs that are all alike."""
    plain = state.one_pool and not (state.allocator.in_parts or state.allocator.limits_starts)
    alone = not (state.profiled or state.sharing or state.mapped)
    return state.environment.elastic and plain and alone


def available_gpus(state: State) -> int:
    """GPUs that are free or held by jobs; O(jobs that run)."""
    held = sum(gpus for pieces in state.running.values() for _, gpus in pieces)
    return held + state.allocator.free_gpus


def resized(state: State, wanted: Mapping[int, int]) -> Decision:
    """Stop those whose width changes, then start those that wait, the widest first, where there is room.

    O(L log L + starts x nodes) for L live jobs.

    Parameters
    ----------
    wanted : mapping of int to int
        Width of each live job [GPUs], 0 for those that wait; no more than are available together.
    """
    decision = Decision(state)
    for job, pieces in list(state.running.items()):
        if sum(gpus for _, gpus in pieces) != wanted[job]:
            decision.stop(job)
    starts = [job for job in (*state.waiting, *decision.stops) if wanted[job]]
    free = state.free_gpus_by_node()
    for job in sorted(starts, key=lambda job: (-wanted[job], job)):
        if not decision.start_at(job, _place(free, wanted[job])):
            # CPUs or memory lack for so many GPUs: who runs goes on as it is, who waits begins with its gang.
            if job not in decision.stops or not decision.resume_in_place(job):
                decision.start(job)
            free = state.free_gpus_by_node()
    return decision


def _place(free: list[int], gpus: int) -> Pieces:
    """GPUs on the fullest node that has room for all of them, else on the emptiest ones; taken from ``free``."""
    fits = [node for node, room in enumerate(free) if room >= gpus]
    if fits:
        nodes = [min(fits, key=lambda node: (free[node], node))]
    else:
        nodes = sorted(range(len(free)), key=lambda node: (-free[node], node))
    pieces = in_turn(nodes, free, gpus)
    for node, taken in pieces:
        free[node] -= taken
    return pieces
