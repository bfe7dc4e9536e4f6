r"""Placement of a job's workers and parameter servers: Tiresias' programme, and its rule beside it.

Source: Gu et al., Tiresias, NSDI'19, appendix D (the programme, :mod:`shadowprice.models.tiresias`) and
section 3.4 (the rule, :mod:`shadowprice.solvers.placement.skew`). The rule says where workers go and nothing of
servers; beside it they are placed as well as the programme can with the workers where they are
(derived), so that what is compared is the rule's choice of nodes.

Complexity: mixed-integer programmes with nodes x servers binaries, exponential in the worst case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo

from shadowprice.errors import SolverError
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.speeds.model_skew import ModelSkew, ModelSkews
from shadowprice.models.tiresias import ServerJob, build
from shadowprice.solvers.placement.skew import Skew
from shadowprice.solvers.programs.compile import SolverOptions, compile_model
from shadowprice.solvers.programs.published import is_published

ModelBuilder = Callable[[ServerJob], pyo.ConcreteModel]
"""What makes the programme of a job."""

CLOSE = 1e-5
"""Relative difference between the programme's objective and the paper's formula."""


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
    edited : bool
        Whether the programme is not the published one; the claims are then about it as it is.
    """

    workers: tuple[int, ...]
    servers: tuple[int, ...]
    busiest_mb: float
    bound_mb: float
    proven: bool
    edited: bool = False


def best_placement(
    job: ServerJob,
    workers: tuple[int, ...] | None = None,
    *,
    model: ModelBuilder = build,
    time_limit_s: float = 60.0,
) -> ServerPlacement:
    """Least traffic of the busiest node, by the programme.

    Parameters
    ----------
    workers : tuple of int, optional
        w_i where they are given; only servers are placed then.
    model : callable
        Builds the programme of a job.
    time_limit_s : float
        Wall time [s].

    Raises
    ------
    SolverError
        If no placement was found within the time, the workers have no room, or the programme's
        objective is not the traffic of the busiest node.
    """
    built: Any = model(job)
    for node, count in zip(built.N, workers, strict=True) if workers else ():
        built.w[node].setlb(count)
        built.w[node].setub(count)
    compiled = compile_model(built)
    solution = compiled.solve(SolverOptions(time_limit_s=time_limit_s))
    if not len(solution.primal):
        raise SolverError(
            f"job with parameter servers: no placement of {job.workers} workers on {len(job.free)} nodes "
            f"was found in {time_limit_s:g} s; allow more time"
        )
    placed = np.rint(compiled.value(solution, built.w)).astype(np.int64)
    at = np.argmax(compiled.value(solution, built.p), axis=1)
    found, servers = tuple(placed.tolist()), tuple(at.tolist())
    busiest, proven = job.busiest(found, servers), solution.evidence.optimal
    if proven and abs(solution.objective - busiest) > CLOSE * (1.0 + busiest):
        raise SolverError(
            f"model {built.name!r}: its objective is {solution.objective:g} where the busiest node has "
            f"{busiest:g} MB, expected the same"
        )
    bound = min(solution.bound, busiest)
    return ServerPlacement(found, servers, busiest, bound, proven, not is_published(model))


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
    skews = ModelSkews({"job": ModelSkew(1.0 if together else 0.0, 1.0)})
    allocator = Skew(skews=skews).allocator(cluster, [0] * len(nodes))
    allocator.arrive_with("job")
    workers = [0] * len(job.free)
    for place, count in allocator.take(0, job.workers, (0,)) or ():
        workers[nodes[place]] += count
    return best_placement(job, tuple(workers), time_limit_s=time_limit_s)
