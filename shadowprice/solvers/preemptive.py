"""The preemptive optimum among schedules that change at slot boundaries, by MILP and by CP-SAT.

For one GPU this is the preemptive optimum (Schrage 1968: SRPT changes jobs at releases and
completions only). For gangs on several GPUs whether finer preemption could do better is open
here, so the value is not used as a bound for other schedules.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.models import preemptive
from shadowprice.models.slotted import Slotted
from shadowprice.solvers import list_schedule
from shadowprice.solvers.bounds import offset_ticks
from shadowprice.solvers.compile import SolverOptions, Status, compile_model
from shadowprice.solvers.offline import MAX_COLUMNS, METHODS, Method, Optimum
from shadowprice.solvers.on_nodes import runs_on_nodes

Slots = NDArray[np.bool_]
"""Which job runs in which slot, shape (n, slots)."""


def slotted_preemptive_optimum(
    instance: Instance,
    objective: Objective | str = Objective.COMPLETION,
    *,
    method: Method = "milp",
    budget_s: float = 60.0,
    slot_s: float | None = None,
) -> Optimum:
    """Best schedule of rigid gangs that starts, stops and resumes jobs at slot boundaries.

    Parameters
    ----------
    slot_s : float, optional
        Slot length [s]; must divide all times. By default the largest that does.

    Raises
    ------
    InputError
        If times are not whole slots, GPUs differ in speed, or the model would be too large.
    """
    goal = Objective(objective)
    if method not in METHODS:
        raise InputError(f"method {method!r}: expected milp or cp-sat")
    if len(instance.workload) == 0:
        return Optimum(0.0, 0.0, None, method, True, 1.0, True)
    if not instance.equal_speeds:
        raise InputError(
            "the exact optimum is for GPUs of equal speed; bounds hold for mixed types"
        )
    jobs = Slotted.of(instance, slot_s)
    if not jobs.exact:
        raise InputError(f"slot_s is {slot_s!r}, expected a length that divides all times")
    span = goal is Objective.MAKESPAN
    start = list_schedule.search(jobs, span=span, seed=0, budget_s=1.0, moves=200)
    horizon = _horizon(jobs, start)
    if jobs.jobs * horizon > MAX_COLUMNS:
        raise InputError(f"{jobs.jobs} jobs x {horizon} slots: expected at most {MAX_COLUMNS}")
    known = np.zeros((jobs.jobs, horizon), dtype=bool)
    for j, first in enumerate(start.tolist()):
        known[j, first : first + int(jobs.duration[j])] = True
    solve = _milp if method == "milp" else _cp_sat
    found, lower = solve(jobs, known, span=span, budget_s=budget_s)
    if _cost(jobs, found, span) > _cost(jobs, known, span):
        found = known
    shift = offset_ticks(jobs.exact_weight, jobs.release_ticks, goal)
    upper = Fraction(_cost(jobs, found, span)) * jobs.slot_ticks - shift
    low = min(Fraction(lower) * jobs.slot_ticks - shift, upper)
    return Optimum(
        float(low / TICKS_PER_S),
        float(upper / TICKS_PER_S),
        runs_on_nodes(instance, *_runs(jobs, found)),
        method,
        method == "cp-sat",
        jobs.slot_s,
        True,
    )


def _horizon(jobs: Slotted, start: NDArray[np.int64]) -> int:
    """Slots that some best schedule keeps to.

    After the last release a best schedule never idles while work is left, and what is left then
    is at most all work; run one after the other it ends by last release + sum of durations.
    """
    return max(list_schedule.safe_horizon(jobs), int((start + jobs.duration).max()))


def _cost(jobs: Slotted, runs: Slots, span: bool) -> float:
    ends = runs.shape[1] - runs[:, ::-1].argmax(axis=1)
    return float(ends.max()) if span else float(np.dot(jobs.weight, ends))


def _milp(jobs: Slotted, known: Slots, *, span: bool, budget_s: float) -> tuple[Slots, float]:
    compiled = compile_model(model := preemptive.build(jobs, known.shape[1], makespan=span))
    whole = span or jobs.whole_weights
    options = SolverOptions(time_limit_s=max(budget_s, 0.1), absolute_gap=0.99 if whole else 1e-6)
    at = {
        column: float(known[variable.index()])
        for column, variable in enumerate(compiled.columns)
        if variable.parent_component() is model.y
    }
    solution = compiled.solve(options, at)
    found = known.copy()
    if len(solution.primal):
        for column in at:
            found[compiled.columns[column].index()] = solution.primal[column] > 0.5
    if solution.status is Status.OPTIMAL:
        return found, _cost(jobs, found, span) if whole else solution.bound
    return found, float(math.ceil(solution.bound - 1e-6)) if whole else solution.bound


def _cp_sat(jobs: Slotted, known: Slots, *, span: bool, budget_s: float) -> tuple[Slots, float]:
    model = cp_model.CpModel()
    n, horizon = known.shape
    runs = [[model.new_bool_var(f"run_{j}_{t}") for t in range(horizon)] for j in range(n)]
    ends = [model.new_int_var(0, horizon, f"end_{j}") for j in range(n)]
    for j in range(n):
        model.add(sum(runs[j]) == int(jobs.duration[j]))
        for t in range(horizon):
            model.add_hint(runs[j][t], int(known[j, t]))
            if t < jobs.release[j]:
                model.add(runs[j][t] == 0)
            model.add(ends[j] >= t + 1).only_enforce_if(runs[j][t])
    for t in range(horizon):
        model.add(sum(int(jobs.gpus[j]) * runs[j][t] for j in range(n)) <= jobs.capacity)
    weights = [Fraction(w) for w in jobs.weight.tolist()]
    scale = 1 if span else max(w.denominator for w in weights)
    if span:
        last = model.new_int_var(0, horizon, "last")
        for end in ends:
            model.add(last >= end)
        model.minimize(last)
    else:
        model.minimize(sum(int(w * scale) * end for w, end in zip(weights, ends, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(budget_s, 0.1)
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return known, solver.best_objective_bound / scale
    found = np.array([[bool(solver.value(run)) for run in row] for row in runs])
    return found, solver.best_objective_bound / scale


def _runs(
    jobs: Slotted, found: Slots
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Job, start [s] and end [s] of every uninterrupted run."""
    edges = np.diff(np.pad(found.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    job, first = np.nonzero(edges == 1)
    _, last = np.nonzero(edges == -1)
    slot_s = jobs.slot_ticks / TICKS_PER_S
    starts: NDArray[np.float64] = first.astype(np.float64) * slot_s
    ends: NDArray[np.float64] = last.astype(np.float64) * slot_s
    return job.astype(np.int64), starts, ends
