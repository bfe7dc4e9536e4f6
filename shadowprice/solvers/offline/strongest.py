"""The strongest lower bound of the offline optimum that a time budget allows.

The bounds that take O(n log n) always; for up to 100 jobs without preemption what offline solvers say,
CP-SAT and then MILP; where GPUs differ in speed those from one price a GPU type; where nodes, shared GPUs, widths,
CPUs or memory matter those from one price a resource; of up to 12 jobs a search over
windows of completions, which ends with the preemptive optimum; then every job's cheapest plan at
prices that a search improves, for any number of jobs; then the interval LP on the
finest grid the budget affords, and where GPUs differ in speed or jobs have several modes those with GPU types and
modes as well, their duals evaluated in exact arithmetic. The search ends early only with an optimum that is certified.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from shadowprice.errors import SolverError
from shadowprice.instances.features import missing, require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.models import interval_lp as relaxations
from shadowprice.models import time_indexed
from shadowprice.models.slotted import Slotted
from shadowprice.solvers.offline import completion_search, lagrangian, priced_plans
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.offline.bounds import (
    PRICES_ONLY,
    Bound,
    RelaxedJobs,
    bound_of,
    offset_ticks,
    simple_bounds,
)
from shadowprice.solvers.offline.modes.families import PAIRS, ModeFamily, mode_families
from shadowprice.solvers.offline.modes.job_modes import Modes
from shadowprice.solvers.offline.non_preemptive import Method, describes, optimum
from shadowprice.solvers.offline.on_nodes import runs_on_nodes
from shadowprice.solvers.offline.type_prices import resource_price_bounds, type_price_bounds
from shadowprice.solvers.offline.typed_bound import (
    FEWEST_INTERVALS,
    LARGEST_TICKS,
    MOST_COLUMNS,
    TypedJobs,
    typed_bound,
    typed_prices,
)
from shadowprice.solvers.offline.typed_bound import KNOWS as TYPED_KNOWS
from shadowprice.solvers.programs.compile import SolverOptions, compile_model
from shadowprice.solvers.programs.published import stand_down

KNOWS = RELAXED_KNOWS
"""What the bounds know that always are there; others that do not know an instance are left out."""

PLANS_SHARE, PLANS_SHARE_BESIDE_MODES = 0.5, 0.15
"""Share of a budget for the search of prices at which jobs plan; where jobs have several modes."""


def certified_and_found(bounds: Iterable[Bound]) -> tuple[Bound, Bound | None]:
    """The largest certified bound, and the largest of all if that is larger still.

    Raises
    ------
    ValueError
        If none is certified.
    """
    known = list(bounds)
    certified = max((bound for bound in known if bound.certified), key=_rank)
    largest = max(known, key=_rank)
    return certified, largest if largest.ticks > certified.ticks else None


def lower_bounds(
    instance: Instance,
    objective: Objective | str,
    *,
    preemptive: bool,
    budget_s: float,
    consolidated: bool = False,
) -> Iterator[Bound]:
    """All bounds a time budget allows, cheapest first; the first ones always.

    Parameters
    ----------
    consolidated : bool
        Whether they need only hold for schedules that place every gang on as few nodes as it fits on; such bounds
        come beside those of all placements.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "lower bounds")
    goal = Objective(objective)
    if budget_s > 0 and len(instance.workload) and goal is not Objective.MAKESPAN:
        priced_plans.prepare()
    until = time.monotonic() + budget_s
    yield from simple_bounds(instance, goal)
    if len(instance.workload) == 0 or (preemptive and _fluid_is_tight(instance, goal)):
        return
    allowed = ScheduleClass.allowed(instance, preemptive=preemptive)
    if not allowed.preemptive and allowed.rigid and len(instance.workload) <= 100:
        for bound, proven in _offline(instance, goal, until):
            yield bound
            if proven and bound.certified:
                return
    if not missing(instance, TYPED_KNOWS):
        yield from type_price_bounds(instance, goal)
    families = tuple(mode_families(instance, consolidated=consolidated))
    for family in families:
        yield from resource_price_bounds(family.jobs, goal, family.holds_for, family.subject)
    if goal is not Objective.MAKESPAN:
        few = len(instance.workload) <= completion_search.MOST_SEARCHED
        if allowed.preemptive and allowed.rigid and few and budget_s > 0:
            searched = False
            for bound, finished in _of_few_jobs(instance, goal, until):
                yield bound
                searched = finished
            if searched and instance.equal_speeds and not families:
                return  # All that follows bounds the same schedules.
        # Plans know one pool of GPUs that are alike: where modes matter, most of the time is for those.
        share = PLANS_SHARE_BESIDE_MODES if families else PLANS_SHARE
        effort_s = share * budget_s
        jobs = RelaxedJobs.of(instance)
        rest_s = max(until - time.monotonic(), 0.0)
        small = FEWEST_INTERVALS * 2 * len(jobs.release) <= MOST_COLUMNS
        # Where no interval LP is small enough, all the time is for prices of plans.
        enough = time.monotonic() + (share * rest_s if small else rest_s)
        for found in priced_plans.search(jobs, effort_s, rigid=allowed.rigid, until=enough):
            yield _shifted(instance, goal, found.ticks, found.kind)
        if until - time.monotonic() > 0.2:
            yield from _interval_lps(instance, goal, families, until)


def _interval_lps(
    instance: Instance, goal: Objective, families: Sequence[ModeFamily], until: float
) -> Iterator[Bound]:
    """Bounds of the interval LPs: of one pool, of GPU types, of modes. Where there are modes, most time is theirs."""
    left = until - time.monotonic()
    first = 1.0 if instance.equal_speeds else 0.3
    one_pool = _interval_lp(instance, 0.1 * left if families else first * left)
    if one_pool is not None:
        yield _shifted(instance, goal, one_pool, "interval-lp")
    # Equal parts of pairs are the LP over GPU types.
    paired = any(family.subject == PAIRS for family in families)
    if not paired and not missing(instance, TYPED_KNOWS):
        left = until - time.monotonic()
        mine = 0.3 * left if families else left
        typed = _typed_interval_lp(TypedJobs.of(instance), mine)
        if typed is not None:
            yield _shifted(instance, goal, typed, "typed-interval-lp")
    for number, family in enumerate(families):
        mine = (until - time.monotonic()) / (len(families) - number)
        yield from _family_interval_lp(family, goal, mine)


def _fluid_is_tight(instance: Instance, goal: Objective) -> bool:
    """True if SRPT attains the fluid bound of one GPU without charges; no more is worth trying.

    It saves effort, and nobody is told of an optimum for it.
    """
    weights = instance.workload.weight
    plain = instance.overheads.free and instance.equal_speeds and instance.pair_throughputs is None
    alike = bool(np.all(weights == weights[0]))
    return plain and alike and instance.cluster.total_gpus == 1 and goal is not Objective.MAKESPAN


def _offline(instance: Instance, goal: Objective, until: float) -> Iterator[tuple[Bound, bool]]:
    """Bounds of offline solvers without preemption, and whether they call them proven.

    Where their own claim was not evaluated in exact arithmetic, the bound that was comes beside it. A
    solver that fails is left out.
    """
    left_aside = "its optimum is none of schedules, and is left aside as a bound"
    # Nodes that fail only restrict: an optimum without them is a bound with them.
    sound = replace(instance, failures=None)
    if not describes(sound) or stand_down(time_indexed.build, left_aside):
        return
    shares: dict[Method, float] = {"cp-sat": 0.3, "milp": 0.6}
    for method, share in shares.items():
        left = until - time.monotonic()
        if left <= 0:
            return
        try:
            found = optimum(sound, goal, method=method, budget_s=share * left)
        except SolverError:
            continue
        every = ScheduleClass.allowed(instance, preemptive=False)
        lower = Fraction(found.lower_s) * TICKS_PER_S
        # What certifies is the evaluation, whichever solver proposed the prices and the schedule.
        kind = found.certified_by if found.certified else method
        yield Bound(lower, kind, every, found.certified, witness=found.schedule), found.proven
        if found.certified_lower_s < found.lower_s:
            exact = Fraction(found.certified_lower_s) * TICKS_PER_S
            yield Bound(exact, found.certified_by, every, True), False
        if found.proven:
            # Also where it is not certified: the MILP was part of it, and its proof ran out of work
            # rather than time, so that asking again would end where it ended.
            return


def _of_few_jobs(instance: Instance, goal: Objective, until: float) -> Iterator[tuple[Bound, bool]]:
    """Bounds of the search over windows of completions, with its schedule, and whether it is finished."""
    completion_search.prepare()
    left = max(until - time.monotonic(), 0.0)
    enough = time.monotonic() + PLANS_SHARE * left
    plain = describes(replace(instance, failures=None)) and instance.overheads.free
    for found in completion_search.search_optimum(RelaxedJobs.of(instance), until=enough):
        bound = _shifted(instance, goal, found.lower_ticks, "completion-windows")
        if plain:
            witness = runs_on_nodes(instance, *completion_search.columns_of(found.runs))
            bound = replace(bound, witness=witness)
        yield bound, found.finished


def repeatable_bounds(
    instance: Instance, objectives: Iterable[Objective], *, columns: int
) -> dict[Objective, Bound]:
    """The largest bounds for preemptive schedules of a fixed effort: the same on every run.

    Nothing here looks at a clock, and the solver runs on one thread.

    Parameters
    ----------
    columns : int
        Size of the interval LPs; below some 16 a job, and for the makespan, they are left out.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "lower bounds")
    best, exact, families = {}, None, tuple(mode_families(instance))
    for goal in objectives:
        found = list(simple_bounds(instance, goal))
        enough = not len(instance.workload) or _fluid_is_tight(instance, goal)
        if not enough and not missing(instance, TYPED_KNOWS):
            found += type_price_bounds(instance, goal)
        if not enough:
            for each in families:
                found += resource_price_bounds(each.jobs, goal, each.holds_for, each.subject)
        if not enough and goal is not Objective.MAKESPAN:
            exact = exact or _programmes(instance, columns)
            found += [_shifted(instance, goal, *each) for each in exact]
            for each in families:
                found += _family_interval_lp(each, goal, math.inf, columns)
        best[goal] = max(found, key=_rank)
    return best


def _programmes(instance: Instance, columns: int) -> list[tuple[Fraction, str]]:
    """Bounds of the interval LPs on total completion time [ticks], and their kinds."""
    one_pool = _interval_lp(instance, math.inf, columns)
    typed = None
    if not missing(instance, TYPED_KNOWS):
        typed = _typed_interval_lp(TypedJobs.of(instance), math.inf, columns)
    both = ((one_pool, "interval-lp"), (typed, "typed-interval-lp"))
    return [(ticks, kind) for ticks, kind in both if ticks is not None]


def _shifted(instance: Instance, goal: Objective, ticks: Fraction, kind: str) -> Bound:
    """The bound of an objective from one of total weighted completion time."""
    jobs = instance.workload
    weight = [Fraction(w) for w in jobs.weight.tolist()]
    offset = offset_ticks(weight, to_ticks(jobs.arrival_s).tolist(), goal)
    return bound_of(ticks - offset, kind, ScheduleClass.allowed(instance, preemptive=True))


def _rank(bound: Bound) -> tuple[Fraction, bool]:
    return bound.ticks, bound.certified


def _interval_lp(
    instance: Instance, budget_s: float, columns: int | None = None
) -> Fraction | None:
    """Bound [ticks] of the interval LP on a grid that the budget affords, its dual evaluated exactly."""
    found = interval_prices(instance, budget_s, columns)
    if found is None:
        return None
    jobs = RelaxedJobs.of(instance)
    return lagrangian.interval_bound(
        jobs.release,
        jobs.work,
        jobs.gpus,
        jobs.weight,
        jobs.capacity,
        list(found.grid_ticks),
        found.prices,
    )


def _family_interval_lp(
    family: ModeFamily, goal: Objective, budget_s: float, columns: int | None = None
) -> Iterator[Bound]:
    """The bound of the interval LP over modes, if it is not too large."""
    jobs = family.jobs
    ticks = _typed_interval_lp(jobs, budget_s, columns)
    if ticks is not None:
        offset = offset_ticks(jobs.weight, jobs.release.tolist(), goal)
        yield bound_of(ticks - offset, f"interval-lp-of-{family.subject}", family.holds_for)


def _typed_interval_lp(jobs: Modes, budget_s: float, columns: int | None = None) -> Fraction | None:
    """Bound [ticks] of the interval LP over modes; None if too large, or there is one mode and one resource."""
    prices = None if budget_s <= 0 else typed_prices(jobs, budget_s, columns)
    return None if prices is None else typed_bound(jobs, prices)


@dataclass(frozen=True, eq=False)
class IntervalPrices:
    """Prices of GPU time, by interval.

    Parameters
    ----------
    grid_ticks : tuple of int
        Where intervals begin, and where the last ends [ticks].
    prices : ndarray of int, shape (intervals,)
        In units of 1 / ``lagrangian.PRICE_UNIT`` per GPU and tick; Python's where 64 bits do not
        suffice.
    """

    grid_ticks: tuple[int, ...]
    prices: lagrangian.Whole


def interval_prices(
    instance: Instance, budget_s: float, columns: int | None = None
) -> IntervalPrices | None:
    """Dual prices of the interval LP on a grid that a time budget [s] affords; None if too large, or it has no answer.

    Parameters
    ----------
    columns : int, optional
        Size of the LP, if it is not to follow from the budget.
    """
    began = time.monotonic()
    columns = int(min(12_000 * budget_s, MOST_COLUMNS)) if columns is None else columns
    jobs = instance.workload
    intervals = columns // (2 * max(len(jobs), 1))
    if intervals < FEWEST_INTERVALS or not len(jobs):
        return None
    relaxed = RelaxedJobs.of(instance)
    first, latest = min(relaxed.release), max(relaxed.release)
    end = latest + sum(relaxed.work) + 1  # by then one job after the other is done
    if end >= LARGEST_TICKS:
        return None
    release, work = np.array(relaxed.release), np.array(relaxed.work)
    horizon = first + _fluid_end(relaxed)
    step = max(-(-(horizon - first) // intervals), Slotted.of(instance).slot_ticks)
    bounds = [*range(first, min(horizon, end), step), end]
    scale = lagrangian.weight_scale(jobs.weight)
    data = relaxations.Intervals(
        (release - first) / step,
        work / step,
        jobs.weight / scale,
        jobs.gpus,
        float(relaxed.capacity),
        (np.array(bounds, dtype=np.float64) - first) / step,
    )
    stand_down(relaxations.build, PRICES_ONLY)
    model = relaxations.build(data)
    compiled = compile_model(model)
    left = max(budget_s - (time.monotonic() - began), 0.1)
    options = SolverOptions(time_limit_s=left, method="highs-ipx", crossover=False)
    try:
        solution = compiled.solve(options)
    except SolverError:
        # Of run times that differ by nine digits HiGHS may say that there is no end of it.
        return None
    if not len(solution.duals):
        return None
    prices = np.zeros(len(bounds) - 1)
    prices[np.array(list(model.capacity.index_set()), dtype=np.int64)] = -compiled.dual(
        solution, model.capacity
    )
    return IntervalPrices(tuple(bounds), lagrangian.exact_prices(prices * scale))


def _fluid_end(jobs: RelaxedJobs) -> int:
    """Time from the first release until most work can be done: a horizon for the grid, in ticks."""
    area = sum(g * p for g, p in zip(jobs.gpus, jobs.work, strict=True))
    longest = max(jobs.work)
    spread = max(jobs.release) - min(jobs.release)
    return spread + min(int(area / jobs.capacity), longest) + longest + 1
