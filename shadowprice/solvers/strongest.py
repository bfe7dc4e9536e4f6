"""The strongest lower bound of the offline optimum that a time budget allows.

The bounds that take O(n log n) always; for up to 100 jobs without preemption the optimum itself,
by CP-SAT and then by MILP; else the interval LP on the finest grid the budget affords, and where GPUs
differ in speed the one with GPU types as well, their duals evaluated in exact arithmetic.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.grid import to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.models import relaxations
from shadowprice.models.slotted import Slotted
from shadowprice.solvers import lagrangian
from shadowprice.solvers.bounds import Bound, bound_of, offset_ticks, simple_bounds
from shadowprice.solvers.compile import SolverOptions, compile_model
from shadowprice.solvers.offline import Method, optimum, why_not
from shadowprice.solvers.typed_bound import TypedJobs, typed_bound, typed_prices


def strongest_bound(
    instance: Instance, objective: Objective | str, *, preemptive: bool, budget_s: float
) -> Bound:
    """The largest lower bound found within a time budget [s].

    Parameters
    ----------
    preemptive : bool
        Whether the bound must hold for schedules that preempt. If not, the non-preemptive
        optimum is tried too.
    """
    return max(
        lower_bounds(instance, objective, preemptive=preemptive, budget_s=budget_s), key=_rank
    )


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
    if not preemptive and len(instance.workload) <= 100 and why_not(instance) is None:
        shares: dict[Method, float] = {"cp-sat": 0.3, "milp": 0.9}
        for method, share in shares.items():
            left = until - time.monotonic()
            if left <= 0:
                return
            found = optimum(instance, goal, method=method, budget_s=share * left)
            yield Bound(
                found.lower_s,
                "optimum" if found.proven else method,
                preemptive=False,
                certified=found.certified,
            )
            if found.certified_lower_s < found.lower_s:
                yield Bound(found.certified_lower_s, "time-indexed-lp", False, True)
            if found.proven:
                return
    left = until - time.monotonic()
    if goal is not Objective.MAKESPAN and left > 0.2:
        one_pool = _interval_lp(instance, left if instance.equal_speeds else 0.3 * left)
        if one_pool is not None:
            yield _shifted(instance, goal, one_pool, "interval-lp")
        typed = _typed_interval_lp(instance, until - time.monotonic())
        if typed is not None:
            yield _shifted(instance, goal, typed, "typed-interval-lp")


def repeatable_bounds(
    instance: Instance, objectives: Iterable[Objective], *, columns: int
) -> dict[Objective, Bound]:
    """The largest bounds for preemptive schedules of a fixed effort: the same on every run.

    Nothing here looks at a clock, and the solver runs on one thread.

    Parameters
    ----------
    columns : int
        Size of the interval LPs; below some 16 a job, and for the makespan, they are left out.
    """
    best, exact = {}, None
    for goal in objectives:
        found = list(simple_bounds(instance, goal))
        proven = any(bound.kind == "optimum" for bound in found) or not len(instance.workload)
        if not proven and goal is not Objective.MAKESPAN:
            exact = exact or _programmes(instance, columns)
            found += [_shifted(instance, goal, *each) for each in exact]
        best[goal] = max(found, key=_rank)
    return best


def _programmes(instance: Instance, columns: int) -> list[tuple[Fraction, str]]:
    """Bounds of the interval LPs on total completion time [ticks], and their kinds."""
    one_pool = _interval_lp(instance, math.inf, columns)
    typed = _typed_interval_lp(instance, math.inf, columns)
    both = ((one_pool, "interval-lp"), (typed, "typed-interval-lp"))
    return [(ticks, kind) for ticks, kind in both if ticks is not None]


def _shifted(instance: Instance, goal: Objective, ticks: Fraction, kind: str) -> Bound:
    """The bound of an objective from one of total weighted completion time."""
    jobs = instance.workload
    weight = [Fraction(w) for w in jobs.weight.tolist()]
    return bound_of(ticks - offset_ticks(weight, to_ticks(jobs.arrival_s).tolist(), goal), kind)


def _rank(bound: Bound) -> tuple[float, bool, bool]:
    return (bound.value_s, bound.kind == "optimum", bound.certified)


def _interval_lp(
    instance: Instance, budget_s: float, columns: int | None = None
) -> Fraction | None:
    """Bound [ticks] of the interval LP on a grid that the budget affords, its dual evaluated exactly."""
    found = interval_prices(instance, budget_s, columns)
    if found is None:
        return None
    jobs = instance.workload
    release, work = to_ticks(jobs.arrival_s).tolist(), to_ticks(instance.shortest_s).tolist()
    weight = [Fraction(w) for w in jobs.weight.tolist()]
    return lagrangian.interval_bound(
        release, work, jobs.gpus.tolist(), weight, instance.cluster.total_gpus,
        list(found.grid_ticks), found.prices,
    )  # fmt: skip


def _typed_interval_lp(
    instance: Instance, budget_s: float, columns: int | None = None
) -> Fraction | None:
    """Bound [ticks] of the interval LP over GPU types; None if too large, or types are alike."""
    prices = None if budget_s <= 0 else typed_prices(instance, budget_s, columns)
    return None if prices is None else typed_bound(TypedJobs.of(instance), prices)


@dataclass(frozen=True, eq=False)
class IntervalPrices:
    """Prices of GPU time, by interval.

    Parameters
    ----------
    grid_ticks : tuple of int
        Where intervals begin, and where the last ends [ticks].
    prices : ndarray of int, shape (intervals,)
        In units of 1 / ``lagrangian.PRICE_UNIT`` per GPU and tick.
    """

    grid_ticks: tuple[int, ...]
    prices: NDArray[np.int64]


def interval_prices(
    instance: Instance, budget_s: float, columns: int | None = None
) -> IntervalPrices | None:
    """Dual prices of the interval LP on a grid that a time budget [s] affords; None if too large.

    Parameters
    ----------
    columns : int, optional
        Size of the LP, if it is not to follow from the budget.
    """
    began = time.monotonic()
    columns = int(min(12_000 * budget_s, 150_000)) if columns is None else columns
    jobs = instance.workload
    intervals = columns // (2 * max(len(jobs), 1))
    if intervals < 8 or not len(jobs):
        return None
    release, work = to_ticks(jobs.arrival_s), to_ticks(instance.shortest_s)
    first = int(release.min())
    horizon = first + _fluid_end(release, work, jobs.gpus, instance.cluster.total_gpus)
    step = max(-(-(horizon - first) // intervals), Slotted.of(instance).slot_ticks)
    end = int(release.max() + work.sum()) + 1  # by then one job after the other is done
    bounds = [*range(first, min(horizon, end), step), end]
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
    return IntervalPrices(tuple(bounds), lagrangian.exact_prices(prices))


def _fluid_end(
    release: NDArray[np.int64], work: NDArray[np.int64], gpus: NDArray[np.int64], capacity: int
) -> int:
    """How long after the first release most of the work can be done: a horizon for the grid, in ticks."""
    area = int(np.dot(gpus.astype(object), work.astype(object))) // capacity
    return int(release.max() - release.min()) + min(area, int(work.max())) + int(work.max()) + 1
