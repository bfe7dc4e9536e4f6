"""The offline optimum of non-preemptive schedules, exact or bracketed when time runs out.

Non-preemptive schedules of rigid gangs, GPUs one pool: exact by a time-indexed MILP through
HiGHS, or by CP-SAT. The MILP route tightens before it branches: a list search gives an
incumbent, the LP's prices give an exact Lagrangian bound, and every start whose reduced cost
lifts that bound above the incumbent is fixed to zero (reduced-cost fixing, in exact integers).
Measured on 8 GPUs with durations up to 10 slots: see ``benchmarks/offline_optimum.py``.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.models import time_indexed
from shadowprice.models.slotted import Slotted
from shadowprice.solvers import cp_sat, lagrangian, list_schedule
from shadowprice.solvers.bounds import bound_of, offset_ticks
from shadowprice.solvers.compile import SolverOptions, Status, compile_model
from shadowprice.solvers.on_nodes import on_nodes

MAX_COLUMNS = 300_000
"""Most columns of a preemptive model."""

MAX_ENTRIES = 1_000_000
"""About the most matrix entries of a time-indexed model; beyond it the grid is coarsened."""

Method = Literal["milp", "cp-sat"]
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True)
class Optimum:
    """What is known of the non-preemptive offline optimum.

    Parameters
    ----------
    lower_s, upper_s : float
        The optimum is between them [s].
    schedule : Schedule or None
        A schedule of cost ``upper_s``, on nodes.
    method : str
        ``milp`` or ``cp-sat``.
    certified : bool
        Whether the lower bound holds in exact arithmetic: CP-SAT's, which reasons in integers,
        or a Lagrangian bound; not that of a floating-point branch and bound.
    slot_s : float
        Slot length [s]; coarser than the data unless ``exact_grid``.
    """

    lower_s: float
    upper_s: float
    schedule: Schedule | None
    method: str
    certified: bool
    slot_s: float
    exact_grid: bool

    @property
    def proven(self) -> bool:
        """Whether the optimum is known."""
        return self.exact_grid and self.lower_s >= self.upper_s


def optimum(
    instance: Instance,
    objective: Objective | str = Objective.COMPLETION,
    *,
    method: Method = "milp",
    budget_s: float = 60.0,
    slot_s: float | None = None,
    seed: int = 0,
) -> Optimum:
    """Best non-preemptive schedule of an instance, or bounds of it when time runs out.

    Parameters
    ----------
    slot_s : float, optional
        Grid of the time-indexed model [s]; by default the largest that is exact, coarsened
        until the model has about a million matrix entries. On a coarser grid the lower bound is still
        honest (durations are rounded down and the rest added), but nothing is proven.

    Raises
    ------
    InputError
        If the cluster has several GPU types on which speeds differ, or the method is unknown.
    """
    goal = Objective(objective)
    if method not in METHODS:
        raise InputError(f"method {method!r}: expected milp or cp-sat")
    if not instance.equal_speeds:
        raise InputError(
            "the exact optimum is for GPUs of equal speed; lower bounds hold for mixed types"
        )
    if len(instance.workload) == 0:
        return Optimum(0.0, 0.0, None, method, True, 1.0, True)
    until = time.monotonic() + budget_s
    fine = Slotted.of(instance)
    jobs = fine if slot_s is None else Slotted.of(instance, slot_s)
    if method == "milp":
        jobs = _coarse_enough(instance, jobs)
    span = goal is Objective.MAKESPAN
    best = list_schedule.search(
        fine, span=span, seed=seed, budget_s=0.1 * budget_s, moves=2_000 * fine.jobs
    )
    cost = list_schedule.makespan if span else list_schedule.total
    offset = offset_ticks(fine.exact_weight, fine.release_ticks, goal)
    lost = _rounded_off(fine, jobs, goal)
    if method == "cp-sat":
        proof = cp_sat.solve(
            fine, span=span, budget_s=until - time.monotonic(), hint=best, seed=seed
        )
        lower, certified = Fraction(proof.bound) * fine.slot_ticks, True
        found = proof.starts
    else:
        start = (
            best
            if jobs is fine
            else list_schedule.search(jobs, span=span, seed=seed, budget_s=1.0, moves=2000)
        )
        value, certified, found = _branch(jobs, start, span=span, until=until)
        lower = Fraction(value) * jobs.slot_ticks + lost
        found = found if jobs is fine else None
    if found is not None and cost(fine, found) < cost(fine, best):
        best = found
    upper = Fraction(cost(fine, best)) * fine.slot_ticks - offset
    low = bound_of(min(lower - offset, upper), "optimum").value_s
    schedule = on_nodes(instance, best.astype(np.float64) * (fine.slot_ticks / TICKS_PER_S))
    return Optimum(
        low, float(upper / TICKS_PER_S), schedule, method, certified, jobs.slot_s, jobs is fine
    )


def _branch(
    jobs: Slotted, best: NDArray[np.int64], *, span: bool, until: float
) -> tuple[float, bool, NDArray[np.int64] | None]:
    """Lower bound [slots], whether it is exact, and better starts if any were found."""
    if span:
        allowed = [
            np.arange(r, int((best + jobs.duration).max()) - p + 1) for r, p in _windows(jobs)
        ]
        value, certified = 0.0, True
        upper = list_schedule.makespan(jobs, best)
    else:
        upper = list_schedule.total(jobs, best)
        value, allowed = _fixed(jobs, best, upper, until)
        certified = True
        whole = jobs.whole_weights
        if any(len(slots) == 0 for slots in allowed) or (whole and math.ceil(value) >= upper):
            return upper, True, None
        value = math.ceil(value) if whole else value
        allowed = [
            np.union1d(slots, [start]) for slots, start in zip(allowed, best.tolist(), strict=True)
        ]
    left = until - time.monotonic()
    if left < 0.1:
        return value, certified, None
    compiled = compile_model(time_indexed.build(jobs, allowed, makespan=span))
    at = {(j, int(t)): 1.0 for j, t in enumerate(best)}
    start = {
        k: at.get(column.index(), 0.0)
        for k, column in enumerate(compiled.columns)
        if column.index() is not None
    }
    if span:
        start |= {k: upper for k, column in enumerate(compiled.columns) if column.index() is None}
    whole = span or jobs.whole_weights
    gap = 0.99 if whole else 1e-6
    solution = compiled.solve(
        SolverOptions(time_limit_s=max(until - time.monotonic(), 0.1), absolute_gap=gap), start
    )
    starts = None
    if len(solution.primal):
        starts = best.copy()
        for key, chosen in compiled.values(solution).items():
            if key is not None and chosen > 0.5:
                starts[key[0]] = key[1]
    if solution.status is Status.OPTIMAL:
        proven = round(solution.objective) if whole else solution.bound
        return min(float(proven), upper), False, starts
    floated = math.ceil(solution.bound - 1e-6) if whole else solution.bound
    return (floated, False, starts) if min(floated, upper) > value else (value, certified, starts)


def _fixed(
    jobs: Slotted, best: NDArray[np.int64], upper: float, until: float
) -> tuple[float, list[NDArray[np.int64]]]:
    """Exact Lagrangian bound [slots] and the starts that a better schedule could use.

    Starts at the horizon stand for all later ones: they only cost more. If a later start cannot
    be excluded the horizon is doubled.
    """
    horizon = int((best + jobs.duration).max()) + 1
    safe = list_schedule.safe_horizon(jobs)
    unit = lagrangian.PRICE_UNIT
    whole = jobs.whole_weights
    limit = int((upper - 1) * unit) if whole else int(upper * unit)
    bound = 0
    while True:
        windows = [np.arange(r, horizon - p + 1) for r, p in _windows(jobs)]
        compiled = compile_model(model := time_indexed.build(jobs, windows, relaxed=True))
        options = SolverOptions(
            time_limit_s=max(until - time.monotonic(), 0.1), method="ipm", crossover=False
        )
        solution = compiled.solve(options)
        prices = np.zeros(horizon)
        if len(solution.duals):
            for slot, dual in compiled.duals_of(solution, model.capacity).items():
                prices[slot] = -dual
        bound, reduced = lagrangian.reduced_costs(jobs, lagrangian.exact_prices(prices), horizon)
        open_ = (reduced >= 0) & (bound + reduced <= limit)
        if horizon >= safe or not open_[:, -1].any() or solution.status is Status.TIME_LIMIT:
            break
        horizon = min(2 * horizon, safe)
    if solution.status is Status.TIME_LIMIT:
        return bound / unit, [np.arange(r, safe - p + 1) for r, p in _windows(jobs)]
    return float(Fraction(bound, unit)), [np.flatnonzero(row) for row in open_]


def _windows(jobs: Slotted) -> list[tuple[int, int]]:
    return list(zip(jobs.release.tolist(), jobs.duration.tolist(), strict=True))


def _coarse_enough(instance: Instance, jobs: Slotted) -> Slotted:
    """Double the slot until the capacity rows are small enough: every start fills p_j of them."""
    while True:
        area = int(np.dot(jobs.duration, jobs.gpus)) // jobs.capacity
        horizon = int(jobs.release.max() + area + jobs.duration.max())
        if horizon * int(jobs.duration.sum()) <= MAX_ENTRIES:
            return jobs
        jobs = Slotted.of(instance, 2 * jobs.slot_s)


def _rounded_off(fine: Slotted, jobs: Slotted, goal: Objective) -> Fraction:
    """Weighted time that rounding durations down took from the bound, in ticks."""
    if jobs is fine or goal is Objective.MAKESPAN:
        return Fraction(0)
    off = fine.duration * fine.slot_ticks - jobs.duration * jobs.slot_ticks
    pairs = zip(fine.exact_weight, off.tolist(), strict=True)
    return sum((w * ticks for w, ticks in pairs), Fraction(0))
