r"""Placement of a job's workers and parameter servers: Tiresias' programme, and its rule beside it.

Source: Gu et al., Tiresias, NSDI'19, appendix D (the programme, :mod:`shadowprice.models.tiresias`) and
section 3.4 (the rule, :mod:`shadowprice.solvers.placement.skew`). The rule says where workers go and nothing of
servers; beside it they are placed as well as the programme can with the workers where they are
(derived), so that what is compared is the rule's choice of nodes.

Complexity: mixed-integer programmes with nodes x servers binaries, exponential in the worst case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shadowprice.errors import SolverError
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.models.tiresias import ServerJob, build
from shadowprice.solvers.placement.skew import SkewAllocator
from shadowprice.solvers.programs.compile import SolverOptions, compile_model


@dataclass(frozen=True)
class ServerPlacement:
    """Workers and parameter servers on nodes.

    Parameters
    ----------
    workers : tuple of int
        w_i, by node [GPUs].
    servers : tuple of int
        Node of each parameter server.
    busiest_mb : float
        Traffic of the busiest node in an iteration [MB], by the paper's formula.
    bound_mb : float
        No placement of these servers, and of these workers if they were given, has less [MB].
    proven : bool
        Whether the solver's answer was shown to be optimal.
    """

    workers: tuple[int, ...]
    servers: tuple[int, ...]
    busiest_mb: float
    bound_mb: float
    proven: bool


def best_placement(
    job: ServerJob, workers: tuple[int, ...] | None = None, *, time_limit_s: float = 60.0
) -> ServerPlacement:
    """Least traffic of the busiest node, by the programme.

    Parameters
    ----------
    workers : tuple of int, optional
        w_i where they are given; only servers are placed then.
    time_limit_s : float
        Wall time [s].

    Raises
    ------
    SolverError
        If no placement was found within the time, or the workers have no room.
    """
    model: Any = build(job)
    for node, count in enumerate(workers or ()):
        model.w[node].setlb(count)
        model.w[node].setub(count)
    compiled = compile_model(model)
    solution = compiled.solve(SolverOptions(time_limit_s=time_limit_s))
    if not len(solution.primal):
        raise SolverError(
            f"job with parameter servers: no placement of {job.workers} workers on {len(job.free)} nodes "
            f"was found in {time_limit_s:g} s; allow more time"
        )
    placed = np.rint(compiled.value(solution, model.w)).astype(np.int64)
    at = np.argmax(compiled.value(solution, model.p), axis=1)
    found, servers = tuple(placed.tolist()), tuple(at.tolist())
    busiest = job.busiest(found, servers)
    return ServerPlacement(
        found, servers, busiest, min(solution.bound, busiest), solution.standing.optimal
    )


def placement_by_rule(
    job: ServerJob, *, together: bool, time_limit_s: float = 60.0
) -> ServerPlacement:
    """Workers where placement ``skew`` puts them, and servers as well as they can be there.

    Parameters
    ----------
    together : bool
        Whether the skew of the job's model is above PACKLIMIT, so that the rule consolidates it.
    time_limit_s : float
        Wall time [s].
    """
    nodes = [node for node, free in enumerate(job.free) if free]
    cluster = Cluster(tuple(Node(job.free[node]) for node in nodes))
    allocator = SkewAllocator(cluster, [0] * len(nodes), np.array([together]), waits=False)
    workers = [0] * len(job.free)
    for place, count in allocator.take_for(0, job.workers, (0,)) or ():
        workers[nodes[place]] += count
    return best_placement(job, tuple(workers), time_limit_s=time_limit_s)
