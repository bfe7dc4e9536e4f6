"""GPUs on the emptiest nodes, as the policies of Pollux' simulator place whoever begins."""

from __future__ import annotations

from shadowprice.solvers.placement.protocol import Pieces, in_turn
from shadowprice.solvers.policy import Decision, State


def emptiest(free: list[int], gpus: int) -> Pieces:
    """GPUs on the emptiest node, then on the next, the first of equal ones; they are taken from ``free``.

    O(nodes log nodes); as many GPUs have to be free.
    """
    pieces = in_turn(sorted(range(len(free)), key=lambda node: -free[node]), free, gpus)
    for node, taken in pieces:
        free[node] -= taken
    return pieces


def allotted(state: State, wanted: dict[int, int]) -> Decision:
    """Stop those whose width changes, keep all others, and start in order those that wait, on the emptiest nodes.

    Parameters
    ----------
    wanted : dict of int to int
        Width of each live job [GPUs], 0 for none, in the order in which they are placed; no more than there are.
    """
    decision = Decision(state)
    for job, pieces in list(state.running.items()):
        if sum(gpus for _, gpus in pieces) != wanted.get(job, 0):
            decision.stop(job)
    held = state.running.keys() - set(decision.stops)
    free = state.free_gpus_by_node()
    for job, gpus in wanted.items():
        if gpus and job not in held:
            decision.start_at(job, emptiest(free, gpus))
    return decision
