"""The same optimum by constraint programming: an independent second opinion in integers.

Source: intervals with a cumulative resource, Google OR-Tools' CP-SAT. CP-SAT reasons in whole
numbers throughout, so what it proves does not rest on floating point.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from shadowprice.models.slotted import Slotted


@dataclass(frozen=True)
class Proof:
    """What CP-SAT found: starts, if any, and whether they are optimal; a bound in any case."""

    starts: NDArray[np.int64] | None
    bound: float
    proven: bool


def solve(
    jobs: Slotted, *, span: bool, budget_s: float, hint: NDArray[np.int64], seed: int = 0
) -> Proof:
    """Minimise total weighted completion time, or the makespan, without preemption.

    Parameters
    ----------
    hint : ndarray of int
        Starts of a feasible schedule; its last end is the horizon for the makespan, and the
        search begins there.
    """
    model = cp_model.CpModel()
    horizon = int(jobs.release.max(initial=0) + jobs.duration.sum())
    ends, intervals = [], []
    for j in range(jobs.jobs):
        start = model.new_int_var(int(jobs.release[j]), horizon, f"start_{j}")
        length = int(jobs.duration[j])
        ends.append(start + length)
        intervals.append(model.new_fixed_size_interval_var(start, length, f"run_{j}"))
        model.add_hint(start, int(hint[j]))
    model.add_cumulative(intervals, jobs.gpus.tolist(), jobs.capacity)
    scale = 1
    if span:
        last = model.new_int_var(0, horizon, "last")
        for end in ends:
            model.add(last >= end)
        model.minimize(last)
    else:
        exact = [Fraction(w) for w in jobs.weight.tolist()]
        scale = max((w.denominator for w in exact), default=1)
        model.minimize(sum(int(w * scale) * end for w, end in zip(exact, ends, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(budget_s, 0.01)
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    starts = None
    if found:
        starts = np.array([solver.value(end) for end in ends], dtype=np.int64) - jobs.duration
    return Proof(starts, solver.best_objective_bound / scale, status == cp_model.OPTIMAL)
