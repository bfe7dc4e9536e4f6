"""The offline optimum of non-preemptive schedules, exact or bracketed when time runs out.

Non-preemptive schedules of rigid gangs, GPUs one pool, nobody shares: exact by a time-indexed MILP
through HiGHS, or by CP-SAT. Every job pays one start charge, which is part of its duration. A list search
gives an incumbent, and the LP's prices an exact Lagrangian bound; every start whose reduced cost
lifts that bound above the incumbent is fixed to zero (reduced-cost fixing, in exact integers) before
the MILP branches. Measured on 8 GPUs with durations up to 10 slots: see
``benchmarks/offline_optimum.py``.

What the optimum rests on is its ``evidence``. ``PROVEN``: a bound that was evaluated in exact
arithmetic meets the cost of the schedule; only then is it ``certified``. ``CONFIRMED``: the MILP and
CP-SAT, which share no code, both say that nothing is better. ``POINT_ONLY``: one of them says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import BriefTable
from shadowprice.errors import InputError, SolverError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import BoundedCost, Objective, exact_ticks
from shadowprice.instances.schedule import Schedule
from shadowprice.models import time_indexed
from shadowprice.models.slotted import Slotted
from shadowprice.solvers.offline import constraint_programming as cp_sat
from shadowprice.solvers.offline import lagrangian
from shadowprice.solvers.offline import list_search as list_schedule
from shadowprice.solvers.offline.bounds import (
    Relaxation,
    offset_ticks,
    seconds_down,
    simple_bounds,
)
from shadowprice.solvers.offline.edited_model import ModelAnswer, solve_edited_model
from shadowprice.solvers.offline.list_optimum import cheapest_list
from shadowprice.solvers.offline.node_assignment import assign_nodes
from shadowprice.solvers.offline.one_pool import require_exact
from shadowprice.solvers.offline.slot_prices import coarse_enough, slot_prices, windows_until
from shadowprice.solvers.programs.compile import (
    OptimalityEvidence,
    SolverOptions,
    Status,
    compile_model,
)
from shadowprice.solvers.programs.published import falls_back

TIME_INDEXED_LP = "time-indexed-lp"
"""Prices of the LP's slots, in whole numbers: what any schedule costs, or a schedule that is any better."""

BRANCHING = "branching"
"""Boxes of starts that hold every schedule, each closed by prices whose bound counts rounding errors."""

LISTS = "list-schedules"
"""All lists of few jobs, in whole numbers."""

MAX_COLUMNS = 300_000
"""Most columns of a preemptive model."""

Method = Literal["milp", "cp-sat"]
METHODS: tuple[Method, ...] = get_args(Method)

Build: TypeAlias = Callable[..., Any]
"""A model with the parameters of :func:`shadowprice.models.time_indexed.build`."""

LATER = 2
"""Times the horizon by which some best schedule of the published models ends, for edited ones."""

FALLS_BACK = "other searches are not used, and the model itself is solved"

_WHOLE = 2.0**53
"""Below it whole numbers are exact as floats."""

_LISTED = 12
"""Jobs up to which all lists are gone through: a second or so."""

_FINEST = 2**10
"""Largest denominator of weights for which costs of the models are taken as exact."""


@dataclass(frozen=True, repr=False)
class Optimum(BriefTable, BoundedCost):
    """Bounds on the offline optimum of a class of schedules, and the best schedule found.

    Parameters
    ----------
    lower_s, upper_s : float
        The optimum is between them [s], as far as ``evidence`` and ``certified`` say.
    schedule : Schedule or None
        A schedule of cost ``upper_s``, on nodes, with its start charges.
    method : str
        ``milp`` or ``cp-sat``.
    certified : bool
        Whether ``lower_s`` was evaluated in exact arithmetic; never a solver's word.
    slot_s : float
        Slot length [s]; coarser than the data unless ``exact_grid``.
    exact_grid : bool
    evidence : OptimalityEvidence
        What the claim that the schedule is optimal rests on.
    certified_lower_s : float
        The largest lower bound that was evaluated in exact arithmetic [s].
    edited : bool
        Whether all this is about a model that is not the published one, and so of no class of
        schedules.
    certified_by : str
        Kind of the evaluation that gave ``certified_lower_s``: ``time-indexed-lp``, ``branching``, ``list-schedules``,
        or a kind of :func:`shadowprice.solvers.offline.bounds.simple_bounds`; empty where it says nothing.
    """

    lower_s: float
    upper_s: float
    schedule: Schedule | None
    method: str
    certified: bool
    slot_s: float
    exact_grid: bool
    evidence: OptimalityEvidence
    certified_lower_s: float
    edited: bool = False
    certified_by: str = ""

    def _cost_and_bound(self) -> tuple[Fraction | None, Fraction | None]:
        return exact_ticks(self.upper_s), exact_ticks(self.lower_s)

    @property
    def proven(self) -> bool:
        """True if the optimum is known: by an exact bound, or by two searches that agree."""
        return self.exact_grid and self.evidence.optimal and self.lower_s >= self.upper_s


@dataclass(frozen=True)
class _Known:
    """Best starts on the fine grid, and lower bounds of every schedule's cost, in ticks.

    ``exact`` was evaluated here, by ``kind``; ``word`` is a solver's, and ``evidence`` what supports
    that the starts are optimal.
    """

    starts: NDArray[np.int64]
    exact: Fraction
    kind: str
    word: Fraction
    evidence: OptimalityEvidence


def optimum(
    instance: Instance,
    objective: Objective | str = Objective.COMPLETION,
    *,
    method: Method = "milp",
    budget_s: float = 60.0,
    slot_s: float | None = None,
    seed: int = 0,
    model: Build = time_indexed.build,
) -> Optimum:
    """Best non-preemptive schedule of an instance, or bounds of it when time runs out.

    Parameters
    ----------
    model : callable
        The programme, with the parameters of :func:`shadowprice.models.time_indexed.build`. One that is
        not as published, and the file itself once it is edited, is solved as it is: the optimum
        then is the model's, in times of its slots, and no other method has a say.
    slot_s : float, optional
        Grid of the time-indexed model [s]; by default the largest that is exact, coarsened
        until the model has about a million matrix entries. On a coarser grid the lower bound is still
        honest (durations are rounded down and the rest added), but nothing is proven.

    Raises
    ------
    InputError
        If the models do not describe the instance (see ``one_pool``), the method is unknown, or
        the model is edited and the method is not the MILP.
    SolverError
        If an edited model is infeasible or has no answer in time.
    """
    goal = Objective.of(objective)
    if method not in METHODS:
        raise InputError(f"method {method!r}: expected milp or cp-sat")
    require_exact(instance)
    if len(instance.workload) == 0:
        return Optimum(0.0, 0.0, None, method, True, 1.0, True, OptimalityEvidence.PROVEN, 0.0)
    until = time.monotonic() + budget_s
    fine = Slotted.of(instance)
    if falls_back(model, FALLS_BACK):
        jobs = fine if slot_s is None else Slotted.of(instance, slot_s)
        return _edited_optimum(instance, goal, jobs, model, method, until)
    search = _Search(instance, goal, fine, until)
    best = list_schedule.search(
        fine, span=search.span, seed=seed, budget_s=0.1 * budget_s, moves=2_000 * fine.jobs
    )
    offset = offset_ticks(fine.exact_weight, fine.release_ticks, goal)
    simple = max(simple_bounds(instance, goal), key=lambda bound: bound.ticks)
    least = simple.ticks + offset
    known = _Known(best, least, simple.kind, least, OptimalityEvidence.POINT_ONLY)
    jobs = fine if slot_s is None else Slotted.of(instance, slot_s)
    if method == "cp-sat":
        known = search.by_cp_sat(known, 0.6 * budget_s, seed)
    grid = coarse_enough(jobs, lambda ticks: Slotted.of(instance, ticks / TICKS_PER_S))
    known = search.by_milp(known, grid)
    if not known.evidence.optimal:
        known = search.by_lists(known)
    if method == "cp-sat":
        grid = fine
    upper = search.cost(known.starts)
    exact = min(known.exact, upper)
    lower = max(exact, min(known.word, upper))
    schedule = assign_nodes(
        instance, known.starts.astype(np.float64) * (fine.slot_ticks / TICKS_PER_S)
    )
    return Optimum(
        seconds_down(lower - offset),
        float((upper - offset) / TICKS_PER_S),
        schedule,
        method,
        lower == exact,
        grid.slot_s,
        grid is fine,
        known.evidence,
        seconds_down(exact - offset),
        certified_by=known.kind,
    )


def _edited_optimum(
    instance: Instance, goal: Objective, jobs: Slotted, build: Build, method: Method, until: float
) -> Optimum:
    """The optimum of an edited model."""
    latest = LATER * list_schedule.safe_horizon(jobs)
    anywhere = windows_until(jobs, latest)

    def built(span: bool) -> Any:
        return build(jobs, anywhere, makespan=span)

    def placed(answer: ModelAnswer) -> Schedule:
        slot_s = jobs.slot_ticks / TICKS_PER_S
        return assign_nodes(instance, answer.starts("x").astype(np.float64) * slot_s)

    return edited_optimum(built, jobs, goal, method, until, placed)


def edited_optimum(
    build: Callable[[bool], Any],
    jobs: Slotted,
    goal: Objective,
    method: Method,
    until: float,
    placed: Callable[[ModelAnswer], Schedule],
) -> Optimum:
    """The optimum of an edited model, in times of its slots.

    Parameters
    ----------
    build : callable
        The model; its argument says whether the makespan is minimised.
    until : float
        By the monotonic clock [s].
    placed : callable
        The schedule that an answer is.

    Raises
    ------
    InputError
        If the method is not the MILP, or the grid of slots is not exact.
    SolverError
        If the model is infeasible, has no point in time, or its point is no schedule.
    """
    if method != "milp":
        raise InputError(
            f"method {method!r} knows the published model only; an edited one takes milp"
        )
    shift = offset_ticks(jobs.exact_weight, jobs.release_ticks, goal)
    answer = solve_edited_model(lambda: build(goal is Objective.MAKESPAN), jobs, shift, until)
    proven = answer.evidence is OptimalityEvidence.PROVEN
    return Optimum(
        min(answer.bound_s, answer.objective_s),
        answer.objective_s,
        placed(answer),
        method,
        proven,
        jobs.slot_s,
        True,
        answer.evidence,
        answer.bound_s if proven else -math.inf,
        edited=True,
        certified_by=BRANCHING if proven else "",
    )


@dataclass(frozen=True)
class _Search:
    """One instance and objective; costs and bounds in ticks."""

    instance: Instance
    goal: Objective
    fine: Slotted
    until: float

    @property
    def span(self) -> bool:
        """True if the makespan is minimised."""
        return self.goal is Objective.MAKESPAN

    @property
    def step(self) -> Fraction:
        """Granularity of the costs: they differ by multiples of it."""
        return (Fraction(1) if self.span else self.fine.step) * self.fine.slot_ticks

    def cost(self, starts: NDArray[np.int64]) -> Fraction:
        """Cost of starts on the fine grid."""
        return list_schedule.exact_cost(self.fine, starts, span=self.span) * self.fine.slot_ticks

    def _better(self, known: _Known, starts: NDArray[np.int64] | None) -> _Known:
        if starts is None or self.cost(starts) >= self.cost(known.starts):
            return known
        return replace(known, starts=starts)

    def by_cp_sat(self, known: _Known, budget_s: float, seed: int) -> _Known:
        """Better starts and a bound by CP-SAT, which are its word."""
        proof = cp_sat.solve(
            self.fine, span=self.span, budget_s=budget_s, hint=known.starts, seed=seed
        )
        known = self._better(known, proof.starts)
        word = self.cost(known.starts) if proof.proven else Fraction(0)
        if not proof.proven and math.isfinite(proof.bound):
            word = Fraction(proof.bound) * self.fine.slot_ticks
        return replace(known, word=word)

    def by_milp(self, known: _Known, jobs: Slotted) -> _Known:
        """An exact bound, better starts, and what supports that they are optimal.

        Parameters
        ----------
        jobs : Slotted
            The instance on the grid of the model.
        """
        fine, upper = self.fine, self.cost(known.starts)
        coarse = jobs is not fine
        start = (
            list_schedule.search(jobs, span=self.span, seed=0, budget_s=1.0, moves=2000)
            if coarse
            else known.starts
        )
        lost = _rounded_off(fine, jobs, self.goal)
        allowed: list[NDArray[np.int64]] | None = None
        value = known.exact
        if not self.span:
            bound, allowed = _fixed(jobs, start, self.until)
            value = bound * jobs.slot_ticks + lost
        value = math.ceil(value / self.step) * self.step
        if value > known.exact:
            known = replace(known, exact=value, kind=known.kind if self.span else TIME_INDEXED_LP)
        if known.exact >= upper:
            return replace(known, evidence=OptimalityEvidence.PROVEN)
        claimed = known.word >= upper
        branched = _branch(
            jobs, start, allowed, span=self.span, until=self.until, agreed=claimed and not coarse
        )
        if branched is None:
            return known
        word = branched.bound * jobs.slot_ticks + lost
        if coarse:
            return replace(known, word=max(known.word, word))
        known = self._better(known, branched.starts)
        upper = self.cost(known.starts)
        if branched.evidence is OptimalityEvidence.PROVEN and word >= upper:
            return replace(
                known,
                exact=upper,
                kind=branched.kind,
                word=upper,
                evidence=OptimalityEvidence.PROVEN,
            )
        agree = branched.evidence.optimal and word >= upper
        evidence = OptimalityEvidence.CONFIRMED if agree else OptimalityEvidence.POINT_ONLY
        return replace(known, word=max(known.word, word), evidence=evidence)

    def by_lists(self, known: _Known) -> _Known:
        """The optimum of a few jobs, where two solvers could not agree on it.

        In whole numbers and without a solver, so it needs nobody to confirm it.
        """
        if self.fine.jobs > _LISTED:
            return known
        optimum = cheapest_list(Relaxation.of(self.instance), span=self.span, until=self.until)
        if optimum.starts is None:
            return known
        known = self._better(known, np.array(optimum.starts) // self.fine.slot_ticks)
        cost = self.cost(known.starts)
        return replace(known, exact=cost, kind=LISTS, word=cost, evidence=OptimalityEvidence.PROVEN)


@dataclass(frozen=True)
class _Branched:
    """A bound [slots], what it rests on, better starts if any were found, and the kind of a proof."""

    bound: Fraction
    evidence: OptimalityEvidence
    starts: NDArray[np.int64] | None
    kind: str = BRANCHING


def _branch(
    jobs: Slotted,
    best: NDArray[np.int64],
    allowed: list[NDArray[np.int64]] | None,
    *,
    span: bool,
    until: float,
    agreed: bool,
) -> _Branched | None:
    """The MILP over allowed starts; None if it was not asked or has no answer.

    Parameters
    ----------
    allowed : list of ndarray of int, optional
        Starts of schedules that may be better; all up to the end of the best one if not given.
    agreed : bool
        Whether CP-SAT has already said that nothing is better than ``best``.
    """
    if until - time.monotonic() < 0.1:
        return None
    if allowed is None:
        last = int((best + jobs.duration).max())
        allowed = windows_until(jobs, last)
    upper = list_schedule.exact_cost(jobs, best, span=span)
    if any(len(slots) == 0 for slots in allowed):
        # Some job has no start with which a schedule is better.
        return _Branched(upper, OptimalityEvidence.PROVEN, None, TIME_INDEXED_LP)
    own = best.tolist()
    allowed = [np.union1d(slots, [start]) for slots, start in zip(allowed, own, strict=True)]
    compiled = compile_model(model := time_indexed.build(jobs, allowed, makespan=span))
    job, slot = model.JT.numbers
    known = (best[job] == slot).astype(np.float64)
    start = dict(zip(compiled.place(model.x).tolist(), known.tolist(), strict=True))
    if span:
        start[int(compiled.place(model.z)[0])] = float(upper)
    step = Fraction(1) if span else jobs.step
    # Whether the model's costs, w (t + p) in floats, are exact, and steps apart that a solver can see.
    size = max((float(upper), *(float(w) * list_schedule.safe_horizon(jobs) for w in jobs.weight)))
    whole = step.denominator <= _FINEST and size * step.denominator < _WHOLE

    def second(value: Fraction, left_s: float) -> bool:
        return (agreed and value >= upper) or cp_sat.none_better(
            jobs, value, span=span, budget_s=left_s, hint=best
        )

    left = max(until - time.monotonic(), 0.1)
    gap = 0.99 * float(step) if whole else 1e-6
    options = SolverOptions(time_limit_s=left, absolute_gap=gap)
    try:
        solution = compiled.solve(options, start, second=second)
    except SolverError:  # It fails; the schedule that is known stays.
        return None
    starts = None
    if len(solution.primal):
        starts = best.copy()
        chosen = compiled.value(solution, model.x) > 0.5
        starts[job[chosen]] = slot[chosen]
    if not math.isfinite(solution.bound):
        return (
            None
            if starts is None
            else _Branched(Fraction(0), OptimalityEvidence.POINT_ONLY, starts)
        )
    evidence = (
        solution.evidence if solution.status is Status.OPTIMAL else OptimalityEvidence.POINT_ONLY
    )
    if evidence.optimal and starts is not None:
        value = list_schedule.exact_cost(jobs, starts, span=span)
        return _Branched(value, evidence if whole else OptimalityEvidence.CONFIRMED, starts)
    word = Fraction(solution.bound) - Fraction(1, 10**6)
    return _Branched(math.ceil(word / step) * step if whole else word, evidence, starts)


def _fixed(
    jobs: Slotted, best: NDArray[np.int64], until: float
) -> tuple[Fraction, list[NDArray[np.int64]]]:
    """Exact Lagrangian bound [slots] and the starts that a better schedule could use.

    Starts at the horizon stand for all later ones: they only cost more. If a later start cannot
    be excluded the horizon is doubled.
    """
    horizon = int((best + jobs.duration).max()) + 1
    safe = list_schedule.safe_horizon(jobs)
    unit = lagrangian.PRICE_UNIT
    upper = list_schedule.exact_cost(jobs, best, span=False)
    limit = math.floor((upper - jobs.step) * unit)
    anywhere = windows_until(jobs, safe)
    while True:
        prices, solved = slot_prices(jobs, horizon, until)
        try:
            bound, reduced = lagrangian.reduced_costs(
                jobs, lagrangian.exact_prices(prices), horizon
            )
        except OverflowError:
            return Fraction(0), anywhere
        open_ = (reduced >= 0) & (bound + reduced <= limit)
        if horizon >= safe or not open_[:, -1].any() or not solved:
            break
        horizon = min(2 * horizon, safe)
    if not solved:
        return Fraction(bound, unit), anywhere
    return Fraction(bound, unit), [np.flatnonzero(row) for row in open_]


def _rounded_off(fine: Slotted, jobs: Slotted, goal: Objective) -> Fraction:
    """Weighted time that rounding durations down took from the bound, in ticks."""
    if jobs is fine or goal is Objective.MAKESPAN:
        return Fraction(0)
    off = fine.duration * fine.slot_ticks - jobs.duration * jobs.slot_ticks
    pairs = zip(fine.exact_weight, off.tolist(), strict=True)
    return sum((w * ticks for w, ticks in pairs), Fraction(0))
