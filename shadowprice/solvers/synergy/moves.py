"""From a plan of servers to starts, stops and adjustments, with as few moves as can be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from shadowprice.errors import PolicyError
from shadowprice.instances.clusters.cpu_memory import per_node
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, State
from shadowprice.solvers.synergy.servers import ServerGrant


def grants_of(state: State) -> dict[int, ServerGrant]:
    """Grants of running jobs; jobs of Synergy have as much on each server for each GPU."""
    grants = {}
    for job, pieces in state.running.items():
        cpus, memory_gb = state.cpu_memory_of[job][0]
        gpus = pieces[0][1]
        grants[job] = ServerGrant(pieces, cpus / gpus, memory_gb / gpus)
    return grants


def least_moves(
    plan: Mapping[int, ServerGrant], running: Mapping[int, Pieces], size: NDArray[np.int64]
) -> dict[int, ServerGrant]:
    """The plan with servers of equal size exchanged so that most GPUs stay with their jobs.

    A maximum-weight assignment of the plan's servers to those there are; O(s^3 + pieces).
    """
    stay = np.zeros((len(size), len(size)))
    for job, pieces in running.items():
        for planned, gpus in plan[job].pieces if job in plan else ():
            for server, held in pieces:
                if held == gpus:
                    stay[planned, server] += gpus
    where = np.arange(len(size))
    for gpus in np.unique(size):
        alike = np.flatnonzero(size == gpus)
        _, columns = linear_sum_assignment(stay[np.ix_(alike, alike)], maximize=True)
        where[alike] = alike[columns]
    to: list[int] = where.tolist()
    return {
        job: ServerGrant(
            tuple(sorted((to[server], gpus) for server, gpus in grant.pieces)),
            grant.cpus,
            grant.memory_gb,
        )
        for job, grant in plan.items()
    }


def apply_plan(state: State, decision: Decision, plan: Mapping[int, ServerGrant]) -> None:
    """Stop who is not in the plan or moves, adjust who stays, start the others.

    Raises
    ------
    PolicyError
        If GPUs of the plan are not free.
    """
    for job, pieces in list(state.running.items()):
        grant = plan.get(job)
        if grant is None or sorted(grant.pieces) != sorted(pieces):
            decision.stop(job)
            continue
        held = per_node((grant.cpus, grant.memory_gb), pieces)
        if held != state.cpu_memory_of[job]:
            decision.adjust(job, held)
    stopped = set(decision.stops)
    for job, grant in plan.items():
        if job in state.running and job not in stopped:
            continue
        # A plan counts tenants' jobs that wait one by one; those that have no room together wait on.
        if not state.allocator.admits(job, state.gang[job]):
            continue
        if not decision.start_at(job, grant.pieces, grant.cpu_memory):
            raise PolicyError(f"job {job} is started on {grant.pieces}, which are not all free")
