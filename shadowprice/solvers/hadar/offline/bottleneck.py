r"""Hadar's offline optimum where the worst job counts: makespan, and the largest finish-time ratio.

Source: the objectives that Hadar derives from its utilities (IPDPS'24, recalled) but that no sum of
utilities expresses; the method is derived. A cost that does not fall with the round of completion is at
most c for all jobs iff each is complete by the last round in which it costs at most c; whether such
deadlines can all be kept is decided in integers (:mod:`.feasibility`). The least c is found by bisection
over the costs that occur.

Complexity: O(log(jobs x rounds)) decisions, each exponential in the worst case.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import RoundPlan, minus_completion
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.feasibility import Deadlines, Verdict, round_plan
from shadowprice.solvers.hadar.offline.master import CapacityRows
from shadowprice.solvers.hadar.offline.pricing import states_of


@dataclass(frozen=True)
class WorstOptimum:
    """The least of the largest costs, or what is known of it.

    Parameters
    ----------
    value : float
        Largest cost of the plan; infinite if none was found.
    bound : float
        No plan has a smaller one; infinite if no plan completes all jobs.
    proven : bool
        Whether the two are equal.
    plan : RoundPlan or None
    """

    value: float
    bound: float
    proven: bool
    plan: RoundPlan | None = field(repr=False)


def least_worst(
    instance: Instance, cost: NDArray[np.float64], round_s: float, *, time_limit_s: float = 60.0
) -> WorstOptimum:
    """Plan of whole rounds in which all jobs complete and the largest cost is least.

    Parameters
    ----------
    cost : ndarray, shape (jobs, rounds)
        Cost of a job that completes in a round; may not fall along a row.
    time_limit_s : float
        CPU time after which what is known is returned [s].

    Raises
    ------
    InputError
        If a cost falls, is not finite, or is of other jobs.
    """
    table = _checked(instance, cost)
    jobs = RoundJobs.of(instance, minus_completion(instance, round_s, table.shape[1]))
    deadlines = Deadlines(
        jobs, CapacityRows.of(jobs), [states_of(jobs, j) for j in range(jobs.jobs)]
    )
    until = time.process_time() + time_limit_s
    levels = np.unique(table)
    # Below level ``refuted`` no plan is possible, from ``high`` on there is one; between, it is open.
    low, high = 0, len(levels)
    refuted = 0
    best: tuple[float, RoundPlan] | None = None
    while low < high:
        middle = (low + high) // 2
        ends = _deadlines(table, float(levels[middle]))
        left_s = max(until - time.process_time(), 0.0)
        verdict = Verdict(True) if ends is None else deadlines.check(ends, left_s)
        if verdict.schedules is not None:
            high = middle
            best = (float(levels[middle]), round_plan(instance, jobs, verdict.schedules))
            continue
        low = middle + 1
        if verdict.known:
            refuted = low
    bound = float(levels[refuted]) if refuted < len(levels) else float("inf")
    value, plan = (float("inf"), None) if best is None else best
    return WorstOptimum(value, bound, value == bound, plan)


def makespan_costs(instance: Instance, round_s: float, rounds: int) -> NDArray[np.float64]:
    """End of each round [s] for every job: the largest is when the last job completes."""
    ends = round_s * np.arange(1, rounds + 1, dtype=np.float64)
    return np.repeat(ends[None, :], len(instance.workload), axis=0)


def finish_time_costs(instance: Instance, round_s: float, rounds: int) -> NDArray[np.float64]:
    """Finish-time ratio rho of each job if it completes in a round (Themis, NSDI'20; recalled).

    Time in the system over that on an isolated n-th of the cluster, n times the time on the
    fastest type.
    """
    isolated_s = len(instance.workload) * instance.shortest_s
    since_s = makespan_costs(instance, round_s, rounds) - instance.workload.arrival_s[:, None]
    return np.maximum(since_s, 0.0) / isolated_s[:, None]


def _checked(instance: Instance, cost: NDArray[np.float64]) -> NDArray[np.float64]:
    table = np.array(cost, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != len(instance.workload) or not table.size:
        raise InputError(
            f"cost: has shape {table.shape}, expected ({len(instance.workload)}, rounds), not empty"
        )
    bad = ~np.isfinite(table)
    bad[:, 1:] |= np.diff(table, axis=1) < 0
    if bad.any():
        job, k = (int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"cost: job {job}, round {k} has {float(table[job, k])!r}, expected a finite number, no "
            "less than in the round before"
        )
    return table


def _deadlines(table: NDArray[np.float64], limit: float) -> dict[int, int] | None:
    """Last round in which each job costs at most a limit; None if one has none."""
    allowed = (table <= limit).sum(axis=1)
    if not allowed.all():
        return None
    return {job: int(count) - 1 for job, count in enumerate(allowed.tolist())}
