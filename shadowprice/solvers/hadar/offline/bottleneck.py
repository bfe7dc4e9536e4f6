r"""Hadar's offline optimum where the worst job counts: makespan, and the largest finish-time ratio.

Source: the objectives that Hadar derives from its utilities (IPDPS'24, recalled) but that no sum of
utilities expresses; the method is derived. A cost that does not fall with the round of completion is at
most c for all jobs iff each is complete by the last round in which it costs at most c; whether such
deadlines can all be kept is decided in integers (:mod:`.feasibility`). The least c is found by bisection
over the costs that occur. The rows are those of ``models/hadar.py`` or of a model that is given: schedules
are accepted by its compiled rows, and where it was edited, HiGHS decides deadlines, as bounds of its z.

Complexity: O(log(jobs x rounds)) decisions, each exponential in the worst case.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import RoundPlan, minus_completion
from shadowprice.models.hadar import time_indexed
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.acceptance import Acceptance, gpus_in
from shadowprice.solvers.hadar.offline.feasibility import Deadlines, plan_on_nodes
from shadowprice.solvers.hadar.offline.linking import LinkingRows
from shadowprice.solvers.hadar.offline.master import CapacityRows
from shadowprice.solvers.hadar.offline.pricing import states_of
from shadowprice.solvers.hadar.offline.programme import GivenModel, ModelBuilder, read_model
from shadowprice.solvers.programs.gate import Gate
from shadowprice.solvers.programs.solution import Infeasible, SolverOptions


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
    instance: Instance,
    cost: NDArray[np.float64],
    round_s: float,
    *,
    model: ModelBuilder = time_indexed,
    time_limit_s: float = 60.0,
) -> WorstOptimum:
    """Plan of whole rounds in which all jobs complete and the largest cost is least.

    Parameters
    ----------
    cost : ndarray, shape (jobs, rounds)
        Cost of a job that completes in a round; may not fall along a row.
    model : callable
        Builds the model whose rows a plan has to hold; its objective is not used.
    time_limit_s : float
        CPU time after which what is known is returned [s].

    Raises
    ------
    InputError
        If a cost falls, is not finite, or is of other jobs.
    SolverError
        If the model is not linear or does not have the variables of the published one.
    """
    table = _checked(instance, cost)
    jobs = RoundJobs.of(instance, minus_completion(instance, round_s, table.shape[1]))
    decide = _Decisions(read_model(model, jobs))
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
        known, point = (True, None) if ends is None else decide.kept(ends, left_s)
        if point is not None:
            high = middle
            gpus = gpus_in(decide.given, point)
            best = (float(levels[middle]), plan_on_nodes(instance, gpus))
            continue
        low = middle + 1
        if known:
            refuted = low
    bound = float(levels[refuted]) if refuted < len(levels) else float("inf")
    value, plan = (float("inf"), None) if best is None else best
    return WorstOptimum(value, bound, value == bound, plan)


class _Decisions:
    """Decides whether a model has a point that keeps deadlines."""

    def __init__(self, given: GivenModel) -> None:
        if not len(given.column):
            raise SolverError(f"model {given.model.name!r}: {given.said}, expected y, z and w")
        jobs = given.known.jobs
        states = [states_of(jobs, j) for j in range(jobs.jobs)]
        self.given = given
        self._deadlines = Deadlines(jobs, CapacityRows.of(jobs), states)
        self._acceptance = Acceptance(given, LinkingRows(given.known, given.more))

    def kept(
        self, ends: dict[int, int], time_limit_s: float
    ) -> tuple[bool, NDArray[np.float64] | None]:
        """Decision on deadlines: if it was reached in the time, and a point that keeps them."""
        verdict = self._deadlines.check(ends, time_limit_s)
        if verdict.schedules is not None:
            point = self._acceptance.point(verdict.schedules)
            if point is not None:
                return True, point
        if not self.given.edits:
            return verdict.known and verdict.schedules is None, None
        if self.given.keeps and verdict.known and verdict.schedules is None:
            return True, None
        return self._by_rows(ends, time_limit_s)

    def _by_rows(
        self, ends: dict[int, int], time_limit_s: float
    ) -> tuple[bool, NDArray[np.float64] | None]:
        """HiGHS's answer to the rows with deadlines as bounds, examined."""
        asked = self.given.program.copy()
        z = self.given.column[[self.given.known.z[job, end] for job, end in ends.items()]]
        asked.lower[z] = np.maximum(asked.lower[z], 1.0)
        if np.any(asked.lower > asked.upper):
            return True, None
        asked.cost = np.zeros_like(asked.cost)
        try:
            options = SolverOptions(time_limit_s=max(time_limit_s, 0.1))
            point = Gate().solve(asked, options).primal
        except Infeasible:
            return True, None
        return bool(len(point)), point if len(point) else None


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
