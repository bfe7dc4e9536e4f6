"""The offline optimum, and the strongest bound of it that a time budget allows.

Non-preemptive schedules of rigid gangs, GPUs one pool: exact by a time-indexed MILP through
HiGHS, or by CP-SAT. The MILP route tightens before it branches: a list search gives an
incumbent, the LP's prices give an exact Lagrangian bound, and every start whose reduced cost
lifts that bound above the incumbent is fixed to zero (reduced-cost fixing, in exact integers).
Measured on 8 GPUs with durations up to 10 slots: see ``benchmarks/offline_optimum.py``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.models import relaxations, time_indexed
from shadowprice.models.slotted import Slotted
from shadowprice.solvers import cp_sat, lagrangian, list_schedule
from shadowprice.solvers.bounds import Bound, bound_of, simple_bounds
from shadowprice.solvers.compile import SolverOptions, Status, compile_model
from shadowprice.solvers.placement.count import CountAllocator

MAX_COLUMNS = 300_000
"""Largest time-indexed model that is built; beyond it the grid is coarsened."""

Method = Literal["milp", "cp-sat"]


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
        until the model has at most 300,000 columns. On a coarser grid the lower bound is still
        honest (durations are rounded down and the rest added), but nothing is proven.

    Raises
    ------
    InputError
        If the cluster has several GPU types on which speeds differ, or the method is unknown.
    """
    goal = Objective(objective)
    if method not in ("milp", "cp-sat"):
        raise InputError(f"method {method!r}: expected milp or cp-sat")
    times = instance.processing_s
    if len(times) and not np.all(times == times[:, :1]):
        raise InputError("the exact optimum is for GPUs of equal speed; lower bounds hold for mixed types")
    if len(instance.workload) == 0:
        return Optimum(0.0, 0.0, None, method, True, 1.0, True)
    until = time.monotonic() + budget_s
    fine = Slotted.of(instance)
    jobs = fine if slot_s is None else Slotted.of(instance, slot_s)
    if method == "milp":
        jobs = _coarse_enough(instance, jobs)
    span = goal is Objective.MAKESPAN
    best = list_schedule.search(fine, span=span, seed=seed, budget_s=0.1 * budget_s, moves=2_000 * fine.jobs)
    cost = list_schedule.makespan if span else list_schedule.total
    offset, lost = _offset(fine, goal), _rounded_off(fine, jobs, goal)
    if method == "cp-sat":
        proof = cp_sat.solve(fine, span=span, budget_s=until - time.monotonic(), hint=best, seed=seed)
        lower, certified = Fraction(proof.bound) * fine.slot_ticks, True
        found = proof.starts
    else:
        start = best if jobs is fine else list_schedule.search(jobs, span=span, seed=seed, budget_s=1.0, moves=2000)
        value, certified, found = _branch(jobs, start, span=span, until=until)
        lower = Fraction(value) * jobs.slot_ticks + lost
        found = found if jobs is fine else None
    if found is not None and cost(fine, found) < cost(fine, best):
        best = found
    upper = Fraction(cost(fine, best)) * fine.slot_ticks - offset
    low = bound_of(min(lower - offset, upper), "optimum").value_s
    schedule = on_nodes(instance, best * (fine.slot_ticks / TICKS_PER_S))
    return Optimum(low, float(upper / TICKS_PER_S), schedule, method, certified, jobs.slot_s, jobs is fine)


def strongest_bound(instance: Instance, objective: Objective | str, *, preemptive: bool, budget_s: float) -> Bound:
    """The largest lower bound found within a time budget [s].

    Parameters
    ----------
    preemptive : bool
        Whether the bound must hold for schedules that preempt. If not, the non-preemptive
        optimum is tried too.
    """
    return max(lower_bounds(instance, objective, preemptive=preemptive, budget_s=budget_s), key=_rank)


def lower_bounds(
    instance: Instance, objective: Objective | str, *, preemptive: bool, budget_s: float
) -> Iterator[Bound]:
    """All bounds a time budget allows, cheapest first; the first ones always."""
    goal = Objective(objective)
    until = time.monotonic() + budget_s
    proven = False
    for bound in simple_bounds(instance, goal):
        proven = proven or bound.kind == "optimum"
        yield bound
    if proven or len(instance.workload) == 0:
        return
    if not preemptive and len(instance.workload) <= 100 and np.all(instance.processing_s == instance.processing_s[:, :1]):
        for method, share in (("cp-sat", 0.3), ("milp", 0.9)):
            left = until - time.monotonic()
            if left <= 0:
                return
            found = optimum(instance, goal, method=method, budget_s=share * left)  # type: ignore[arg-type]
            yield Bound(found.lower_s, "optimum" if found.proven else method, preemptive=False, certified=found.certified)
            if found.proven:
                return
    left = until - time.monotonic()
    if goal is not Objective.MAKESPAN and left > 0.2:
        found_bound = _interval_lp(instance, goal, left)
        if found_bound is not None:
            yield found_bound


def on_nodes(instance: Instance, start_s: NDArray[np.float64]) -> Schedule:
    """A schedule from start times [s] of uninterrupted runs, nodes assigned by count."""
    alike = [0] * len(instance.cluster.nodes)
    allocator = CountAllocator(instance.cluster, alike)
    ends = start_s + instance.shortest_s
    events = sorted(
        [(float(t), 0, j) for j, t in enumerate(ends)] + [(float(t), 1, j) for j, t in enumerate(start_s)]
    )
    held = {}
    rows: list[tuple[int, int, int, float, float, float]] = []
    for now, kind, j in events:
        if kind == 0:
            allocator.give_back(held.pop(j))
            continue
        pieces = allocator.take(int(instance.workload.gpus[j]), (0,))
        if pieces is None:
            raise SolverError(f"job {instance.workload.id[j]!r} does not fit at {now} s: the start times are not feasible")
        held[j] = pieces
        rows += [(j, node, gpus, now, float(ends[j]), 0.0) for node, gpus in pieces]
    columns = [np.array(column) for column in zip(*rows, strict=True)] if rows else [np.zeros(0)] * 6
    job, node, gpus = (column.astype(np.int64) for column in columns[:3])
    return Schedule(job, node, gpus, *(column.astype(np.float64) for column in columns[3:]))


def _rank(bound: Bound) -> tuple[float, bool, bool]:
    return (bound.value_s, bound.kind == "optimum", bound.certified)


def _branch(
    jobs: Slotted, best: NDArray[np.int64], *, span: bool, until: float
) -> tuple[float, bool, NDArray[np.int64] | None]:
    """Lower bound [slots], whether it is exact, and better starts if any were found."""
    if span:
        allowed = [np.arange(r, int((best + jobs.duration).max()) - p + 1) for r, p in _windows(jobs)]
        value, certified = 0.0, True
        upper = list_schedule.makespan(jobs, best)
    else:
        upper = list_schedule.total(jobs, best)
        value, allowed = _fixed(jobs, best, upper, until)
        certified = True
        whole = bool(np.all(jobs.weight == np.floor(jobs.weight)))
        if any(len(slots) == 0 for slots in allowed) or (whole and math.ceil(value) >= upper):
            return upper, True, None
        value = math.ceil(value) if whole else value
        allowed = [np.union1d(slots, [start]) for slots, start in zip(allowed, best.tolist(), strict=True)]
    left = until - time.monotonic()
    if left < 0.1:
        return value, certified, None
    compiled = compile_model(time_indexed.build(jobs, allowed, makespan=span))
    at = {(j, int(t)): 1.0 for j, t in enumerate(best)}
    start = {k: at.get(column.index(), 0.0) for k, column in enumerate(compiled.columns) if column.index() is not None}
    if span:
        start |= {k: upper for k, column in enumerate(compiled.columns) if column.index() is None}
    whole = span or bool(np.all(jobs.weight == np.floor(jobs.weight)))
    gap = 0.99 if whole else 1e-6
    solution = compiled.solve(SolverOptions(time_limit_s=max(until - time.monotonic(), 0.1), absolute_gap=gap), start)
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
    whole = bool(np.all(jobs.weight == np.floor(jobs.weight)))
    limit = int((upper - 1) * unit) if whole else int(upper * unit)
    bound = 0
    while True:
        windows = [np.arange(r, horizon - p + 1) for r, p in _windows(jobs)]
        compiled = compile_model(model := time_indexed.build(jobs, windows, relaxed=True))
        options = SolverOptions(time_limit_s=max(until - time.monotonic(), 0.1), method="ipm", crossover=False)
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
    """Double the slot until the time-indexed model is small enough."""
    while jobs.jobs * (int(jobs.release.max()) + int(jobs.duration.sum() * jobs.gpus.max() // jobs.capacity)) > MAX_COLUMNS:
        jobs = Slotted.of(instance, 2 * jobs.slot_s)
    return jobs


def _offset(jobs: Slotted, goal: Objective) -> Fraction:
    """What is subtracted from completion times in this objective, in ticks."""
    if goal is Objective.COMPLETION:
        return Fraction(0)
    if goal is Objective.MAKESPAN:
        return Fraction(int(jobs.release.min()) * jobs.slot_ticks)
    pairs = zip(jobs.weight.tolist(), jobs.release.tolist(), strict=True)
    return sum((Fraction(w) * r for w, r in pairs), Fraction(0)) * jobs.slot_ticks


def _rounded_off(fine: Slotted, jobs: Slotted, goal: Objective) -> Fraction:
    """Weighted time that rounding durations down took from the bound, in ticks."""
    if jobs is fine or goal is Objective.MAKESPAN:
        return Fraction(0)
    off = fine.duration * fine.slot_ticks - jobs.duration * jobs.slot_ticks
    return sum((Fraction(w) * int(o) for w, o in zip(fine.weight.tolist(), off, strict=True)), Fraction(0))


def _interval_lp(instance: Instance, goal: Objective, budget_s: float) -> Bound | None:
    """The interval LP on a grid that the budget affords, its dual evaluated exactly; None if too large."""
    began = time.monotonic()
    columns = int(min(12_000 * budget_s, 150_000))
    jobs = instance.workload
    intervals = columns // (2 * len(jobs))
    if intervals < 8:
        return None
    release, work = to_ticks(jobs.arrival_s), to_ticks(instance.shortest_s)
    first = int(release.min())
    horizon = first + _fluid_end(release, work, jobs.gpus, instance.cluster.total_gpus)
    step = max(-(-(horizon - first) // intervals), 1)
    bounds = [*range(first, horizon, step), int(release.max() + work.sum()) + 1]
    data = relaxations.Intervals(
        (release - first) / step, work / step, jobs.weight, jobs.gpus, instance.cluster.total_gpus,
        (np.array(bounds, dtype=np.float64) - first) / step,
    )  # fmt: skip
    model = relaxations.build(data)
    compiled = compile_model(model)
    left = max(budget_s - (time.monotonic() - began), 0.1)
    solution = compiled.solve(SolverOptions(time_limit_s=left, method="ipm", crossover=False))
    if not len(solution.duals):
        return None
    prices = np.zeros(len(bounds) - 1)
    for interval, dual in compiled.duals_of(solution, model.capacity).items():
        prices[interval] = -dual
    weight = [Fraction(w) for w in jobs.weight.tolist()]
    exact = lagrangian.interval_bound(
        release.tolist(), work.tolist(), jobs.gpus.tolist(), weight, instance.cluster.total_gpus,
        bounds, lagrangian.exact_prices(prices),
    )  # fmt: skip
    if goal is Objective.FLOW:
        exact -= sum((w * r for w, r in zip(weight, release.tolist(), strict=True)), Fraction(0))
    return bound_of(exact, "interval-lp")


def _fluid_end(
    release: NDArray[np.int64], work: NDArray[np.int64], gpus: NDArray[np.int64], capacity: int
) -> int:
    """How long after the first release most of the work can be done: a horizon for the grid, in ticks."""
    area = int(np.dot(gpus.astype(object), work.astype(object))) // capacity
    return int(release.max() - release.min()) + min(area, int(work.max())) + int(work.max()) + 1
