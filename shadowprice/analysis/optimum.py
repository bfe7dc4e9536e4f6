"""Optima for users: none without a schedule that passed the verifier on the same instance at that cost."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction

from shadowprice.analysis.certificates.cascade import Asked
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import exact_cost, verified_cost
from shadowprice.analysis.certificates.windows import window_candidate
from shadowprice.analysis.jobs_and_cluster import JobsAndCluster, Problem, Where
from shadowprice.analysis.metrics import end_s
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.wording import amount_at_least, cost_in_words, counted
from shadowprice.brief import html_table, screen
from shadowprice.errors import InputError, VerificationError
from shadowprice.execution.copies import optimal_plan
from shadowprice.execution.copies.hadare import CopyWidth, HadarE
from shadowprice.execution.copies.optimal_plan import ClaimedBound, PlanSearch
from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import BoundedCost, Objective, exact_ticks
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.models import hadare, time_indexed
from shadowprice.models import preemptive as preemptive_model
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.offline import non_preemptive as offline
from shadowprice.solvers.offline import preemptive
from shadowprice.solvers.offline.bounds import Relaxation, seconds_down
from shadowprice.solvers.offline.completions import completion_search
from shadowprice.solvers.offline.completions.completion_search import CompletionTree
from shadowprice.solvers.offline.node_assignment import assign_nodes_to_runs
from shadowprice.solvers.offline.one_pool import require_exact
from shadowprice.solvers.offline.preemptive import KNOWS as PREEMPTIVE_KNOWS
from shadowprice.solvers.programs.compile import OptimalityEvidence
from shadowprice.solvers.programs.published import falls_back

_SOLVER_SHARE = 0.7
"""Part of a budget that is the solver's; the rest is for a bound that the checker evaluates."""


_LEAST_EFFORT_S = 4.0
"""Time [s] that it may take at least, if the budget has it; else it takes no longer than the solver."""


class OptimumTable(BoundedCost):
    """An optimum as far as it is known, as one shows it: its cost and bound, and what they rest on."""

    @abstractmethod
    def _remarks(self) -> dict[str, str]:
        """Sayings beside the cost and the bound, by name."""

    def __repr__(self) -> str:
        lines = [f"    {name}: {value}" for name, value in self._remarks().items()]
        return screen(f"{type(self).__name__}({cost_in_words(self)})", lines)

    def _repr_html_(self) -> str:
        """Show cost, bound and what they rest on as a table in a notebook."""
        numbers = {"cost [s]": self.cost, "bound [s]": self.bound, "ratio at most": self.ratio}
        return html_table(
            {**{name: repr(each) for name, each in numbers.items()}, **self._remarks()}
        )


@dataclass(frozen=True, eq=False, repr=False)
class VerifiedOptimum(OptimumTable):
    """Offline optimum of a class of schedules, as far as it is known.

    Parameters
    ----------
    lower_s, upper_s : float
        The optimum is between them [s]; the upper one is infinite if there is no schedule.
    schedule : Schedule or None
        A schedule of cost ``upper_s`` that passed the verifier on the instance; None if the one that
        a solver found did not.
    holds_for : ScheduleClass
        Of which schedules ``lower_s`` bounds the cost.
    proven : bool
        Whether the solver calls the schedule optimal, and the verifier accepts it at that cost.
    certified : bool
        Whether the checker of certificates has evaluated the lower bound.
    method : str
        ``milp`` or ``cp-sat``.
    slot_s : float
        Slot length [s]; coarser than the data unless ``exact_grid``.
    edited : bool
        Whether the numbers are the objective and bound of a model that is not the published one.
    """

    lower_s: float
    upper_s: float
    schedule: Schedule | None
    holds_for: ScheduleClass
    proven: bool
    certified: bool
    method: str
    slot_s: float
    exact_grid: bool
    edited: bool = False

    def _cost_and_bound(self) -> tuple[Fraction | None, Fraction | None]:
        return exact_ticks(self.upper_s), exact_ticks(self.lower_s)

    def _remarks(self) -> dict[str, str]:
        coarse = "" if self.exact_grid else ", coarser than the data"
        edited = {"model": "not the published one"} if self.edited else {}
        return {
            "proven": "yes" if self.proven else "no",
            "certified": "yes" if self.certified else "no",
            "class": str(self.holds_for),
            "method": f"{self.method} in slots of {self.slot_s:g} s{coarse}",
            **edited,
        }


def optimum(
    jobs: Problem,
    cluster: Where | None = None,
    objective: Objective | str = Objective.COMPLETION,
    *,
    method: offline.Method = "milp",
    budget_s: float = 60.0,
    slot_s: float | None = None,
    seed: int = 0,
    model: offline.Build = time_indexed.build,
) -> VerifiedOptimum:
    """Best schedule without preemption and sharing of an instance, or bounds when time runs out.

    As :func:`shadowprice.solvers.offline.non_preemptive.optimum`, whose schedule is verified on the instance, with
    its charges, and whose cost is computed again.

    Parameters
    ----------
    jobs, cluster
        Jobs and the cluster, or an instance alone, as in :func:`shadowprice.simulate`; what follows an instance is
        given by name.
    slot_s : float, optional
        Grid of the time-indexed model [s]; by default the largest that is exact, coarsened
        until the model has about a million matrix entries.
    model : callable
        The programme; one that is not as published is solved as it is, its schedule is verified,
        and the numbers are the model's own.

    Raises
    ------
    InputError
        If the solver is not for the instance, or the method is unknown.
    SolverError
        If an edited model has no answer.
    VerificationError
        If a verified schedule costs less than the solver's lower bound, which would refute it.
    """
    goal, instance = Objective.of(objective), JobsAndCluster.of(jobs, cluster).as_instance()
    began = time.monotonic()
    solved = offline.optimum(
        instance,
        goal,
        method=method,
        budget_s=_SOLVER_SHARE * budget_s,
        slot_s=slot_s,
        seed=seed,
        model=model,
    )
    schedule, upper_s, proven = solved.schedule, solved.upper_s, solved.proven
    lower_s, certified = solved.lower_s, False
    if solved.edited:
        if not _is_verified(instance, goal, schedule):
            schedule, proven = None, False
    elif len(instance.workload):
        cost = _verified_cost(instance, goal, solved)
        if cost is None:
            schedule, upper_s, proven = None, float("inf"), False
        else:
            # Both are rounded to floats by the solver, down and to nearest.
            proven = proven and seconds_down(cost) <= solved.lower_s
            upper_s = float(cost / TICKS_PER_S)
        spent_s = time.monotonic() - began
        left_s, longest_s = max(budget_s - spent_s, 0.0), max(spent_s, _LEAST_EFFORT_S)
        effort = BoundEffort(min(left_s, longest_s))
        asked = Asked.of(instance, preemptive=False)
        checked = asked.evaluated(asked.candidates(goal, effort, cost), goal).ticks
        certified = seconds_down(checked) >= lower_s
        lower_s = max(seconds_down(checked), lower_s)
        proven = proven or checked == cost
    return VerifiedOptimum(
        lower_s,
        upper_s,
        schedule,
        ScheduleClass(preemptive=False, ample_types=instance.has_small_types),
        proven,
        certified,
        solved.method,
        solved.slot_s,
        solved.exact_grid,
        solved.edited,
    )


def slotted_preemptive_optimum(
    jobs: Problem,
    cluster: Where | None = None,
    objective: Objective | str = Objective.COMPLETION,
    *,
    method: offline.Method = "milp",
    budget_s: float = 60.0,
    slot_s: float | None = None,
    model: offline.Build = preemptive_model.build,
) -> offline.Optimum:
    """Best schedule of rigid gangs that starts, stops and resumes jobs at slot boundaries.

    As :func:`shadowprice.solvers.offline.preemptive.slotted_preemptive_optimum`, whose schedule is verified on
    the instance, and whose cost is computed again. Without a schedule that the verifier accepts, there
    is none, the upper bound is infinite, and nothing is proven.

    Parameters
    ----------
    jobs, cluster
        As in :func:`optimum`.
    slot_s : float, optional
        Slot length [s]; must divide all times. By default the largest that does.
    model : callable
        The programme; as in :func:`optimum`.

    Raises
    ------
    InputError
        If times are not whole slots, the models do not describe the instance, or the model would be too large.
    VerificationError
        If a verified schedule costs less than the solver's lower bound, which would refute it.
    """
    goal, instance = Objective.of(objective), JobsAndCluster.of(jobs, cluster).as_instance()
    solved = preemptive.slotted_preemptive_optimum(
        instance, goal, method=method, budget_s=budget_s, slot_s=slot_s, model=model
    )
    if not len(instance.workload):
        return solved
    if solved.edited:
        if _is_verified(instance, goal, solved.schedule):
            return solved
        return replace(solved, schedule=None, evidence=OptimalityEvidence.POINT_ONLY)
    cost = _verified_cost(instance, goal, solved)
    if cost is None:
        return replace(
            solved, upper_s=float("inf"), schedule=None, evidence=OptimalityEvidence.POINT_ONLY
        )
    return replace(solved, upper_s=float(cost / TICKS_PER_S))


@dataclass(frozen=True, eq=False, repr=False)
class PreemptiveOptimum(OptimumTable):
    """Offline optimum of preemptive schedules of rigid gangs, stopped and resumed at any moment.

    Parameters
    ----------
    lower_ticks, upper_ticks : Fraction
        The optimum is between them, in the objective [ticks]; the first by the tree, as the checker has it.
    schedule : Schedule
        It costs ``upper_ticks``, and has passed the verifier.
    holds_for : ScheduleClass
    finished : bool
        Whether the search had time to come to its end: then the two are equal but for
        ``completion_search.TOLERANCE`` of the weighted flow time.
    parts : int
        Parts of the search.
    tree : CompletionTree
        The proof of ``lower_ticks``, which ``proofs.lower_bounds.completion_windows`` checks.
    """

    lower_ticks: Fraction
    upper_ticks: Fraction
    schedule: Schedule
    holds_for: ScheduleClass
    finished: bool
    parts: int
    tree: CompletionTree

    @property
    def lower_s(self) -> float:
        """Certified lower bound [s], rounded down."""
        return seconds_down(self.lower_ticks)

    @property
    def upper_s(self) -> float:
        """Cost of the schedule [s]."""
        return float(self.upper_ticks / TICKS_PER_S)

    @property
    def proven(self) -> bool:
        """True if the schedule costs exactly what the tree proves to be least."""
        return self.lower_ticks == self.upper_ticks

    def _cost_and_bound(self) -> tuple[Fraction, Fraction]:
        return self.upper_ticks, self.lower_ticks

    def _remarks(self) -> dict[str, str]:
        ended = "ended" if self.finished else "out of time"
        return {
            "proven": "yes" if self.proven else "no",
            "certified": "yes",
            "class": str(self.holds_for),
            "search": f"{ended} after {counted(self.parts, 'part')}",
        }


def preemptive_optimum(
    jobs: Problem,
    cluster: Where | None = None,
    objective: Objective | str = Objective.FLOW,
    *,
    budget_s: float = 60.0,
) -> PreemptiveOptimum:
    """Best schedule of up to 12 rigid gangs, stopped and resumed at any moment, or bounds when time runs out.

    The lower bound is a tree of windows of completions with prices, evaluated by the checker of certificates
    (LB-windows). Times of the schedule are on the grid of 2**-20 s;
    where the best one needs thirds of a second, say, it costs some ticks more than the bound.

    Parameters
    ----------
    jobs, cluster
        As in :func:`optimum`.
    objective : Objective
        Flow or completion time, weighted.
    budget_s : float
        Time for the search [s]; small instances take a second.

    Raises
    ------
    InputError
        If there are no jobs or more than 12, the objective is the makespan, the instance has features that
        ``solvers.offline.preemptive`` does not know, jobs do not run alone on GPUs of equal speed, or times span too
        many ticks.
    VerificationError
        If the verifier rejects the schedule, or it costs less than the bound: faults of this package.
    """
    goal, instance = Objective.of(objective), JobsAndCluster.of(jobs, cluster).as_instance()
    count, source = len(instance.workload), instance.workload.source
    require(instance, PREEMPTIVE_KNOWS, "the exact preemptive optimum")
    require_exact(instance)
    most = completion_search.MOST_SEARCHED
    if not 0 < count <= most:
        raise InputError(f"{source}: has {count} jobs; the preemptive optimum is for 1 to {most}")
    if goal is Objective.MAKESPAN:
        raise InputError("objective 'makespan': the preemptive optimum is for flow and completion")
    completion_search.prepare()
    relaxed, until = Relaxation.of(instance), time.monotonic() + budget_s
    every = list(completion_search.search_optimum(relaxed, until=until))
    if not every:
        raise InputError(f"{source}: times span too many ticks of 2**-20 s, or no job has a weight")
    last = every[-1]
    schedule = assign_nodes_to_runs(instance, *completion_search.columns_of(last.runs))
    verify(instance, schedule)
    upper = exact_cost(instance, goal, end_s(instance, schedule))
    lower = Asked.of(instance).evaluated([window_candidate(last)], goal).ticks
    if lower > upper:
        raise VerificationError(
            f"{source}: windows of completions say that no schedule costs less than {seconds_down(lower)} s, a "
            f"verified one costs {seconds_down(upper)} s"
        )
    holds_for = ScheduleClass.allowed(instance, preemptive=True)
    return PreemptiveOptimum(
        lower, upper, schedule, holds_for, last.finished, last.parts, last.tree
    )


@dataclass(frozen=True, eq=False, repr=False)
class CopiesOptimum(OptimumTable):
    """Offline optimum of jobs that run as several copies, as far as it is known.

    Parameters
    ----------
    upper_ticks : Fraction
        Cost of the schedule.
    lower_ticks : Fraction
        No schedule of the class costs less: the largest of the bounds that were evaluated, by the checker in exact
        arithmetic, or from the programme's multipliers with rounding errors counted.
    schedule : Schedule
        The best one known, which passed the verifier.
    holds_for : ScheduleClass
    claimed, aligned : ClaimedBound
        A solver's word on all schedules of the class, and on those whose rounds begin at multiples of their length,
        as HadarE's do; the same where all jobs arrive at multiples.
    round_s : float
    edited : bool
        Whether the schedule and the solver's word are those of a model that is not the published one.
    """

    upper_ticks: Fraction
    lower_ticks: Fraction
    schedule: Schedule
    holds_for: ScheduleClass
    claimed: ClaimedBound
    aligned: ClaimedBound
    round_s: float
    edited: bool = False

    @property
    def upper_s(self) -> float:
        """Cost of the schedule [s]."""
        return float(self.upper_ticks / TICKS_PER_S)

    @property
    def lower_s(self) -> float:
        """The bound [s], rounded down."""
        return seconds_down(self.lower_ticks)

    def _cost_and_bound(self) -> tuple[Fraction, Fraction]:
        return self.upper_ticks, self.lower_ticks

    def _remarks(self) -> dict[str, str]:
        edited = {"model": "not the published one"} if self.edited else {}
        aligned = f"in rounds that begin at multiples of {self.round_s:g} s"
        return {
            "class": str(self.holds_for),
            "by the solver's word": _in_words(self.claimed),
            aligned: _in_words(self.aligned),
            **edited,
        }


def _in_words(claimed: ClaimedBound) -> str:
    return f"at least {amount_at_least(claimed.value_s, 10)} s ({claimed.evidence})"


def copies_optimum(
    jobs: Problem,
    cluster: Where | None = None,
    objective: Objective | str = Objective.FLOW,
    *,
    policy: str | HadarE = "hadare",
    budget_s: float = 60.0,
    model: optimal_plan.Build = hadare.build,
) -> CopiesOptimum:
    """Best schedule of jobs that run as several copies, a copy on all GPUs of a node, or bounds when time runs out.

    Parameters
    ----------
    jobs, cluster
        As in :func:`shadowprice.simulate`; a few jobs, nodes and rounds.
    policy : str or HadarE
        Whose rounds, charges and number of copies are meant; its copies use all GPUs of their nodes.
    budget_s : float
        Time for the search [s].
    model : callable
        The programme; one that is not as published is solved as it is, and who has a step left when its copies are
        over goes on where it was last.

    Raises
    ------
    InputError
        If the policy does not run such copies, there are no jobs, the instance says more than the model knows, or the
        programme would be too large.
    InfeasibleJobError
        If no step of a job and all charges fit a round.
    SolverError, PolicyError
        If an edited model has no answer, or one that no whole steps fit.
    VerificationError
        If the verifier refuses a schedule, or it costs less than the bound: faults of this package.

    Notes
    -----
    Rounds of the schedule begin at multiples of their length. The bounds are for rounds that begin at any times: with
    all rounds and arrivals moved to the last multiple before, no schedule of the instance ends a job later.

    Examples
    --------
    >>> import shadowprice as sp
    >>> jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[900, 300])
    >>> sp.copies_optimum(jobs, "2x1", policy="hadare:restart_s=0").upper_s
    930.0
    """
    goal = Objective.of(objective)
    run = prepare_run(jobs, cluster, policy)
    instance, source = run.instance, run.instance.workload.source
    if instance.copies is None:
        raise InputError(f"policy {policy!r}: runs no copies of jobs, expected hadare")
    if run.settings.get("width") != CopyWidth.NODE:
        raise InputError(
            f"policy {policy!r}: its copies use a part of their nodes, expected width=node"
        )
    require(instance, hadare.KNOWS, "the optimum of copies")
    if not len(instance.workload):
        raise InputError(f"{source}: has no jobs, expected some")

    def cost(schedule: Schedule) -> Fraction:
        verify(instance, schedule)
        return exact_cost(instance, goal, end_s(instance, schedule))

    until = time.monotonic() + budget_s
    search = PlanSearch(instance, goal, cost, until - (1 - _SOLVER_SHARE) * budget_s)
    edited = falls_back(model, "HadarE's own schedules are not used, and the model is solved")
    best = search.edited(model) if edited else search.best()
    asked, effort = Asked.of(instance), BoundEffort(max(until - time.monotonic(), 0.1))
    lower = asked.evaluated(asked.candidates(goal, effort, best.cost_ticks), goal).ticks
    if best.every.evidence is OptimalityEvidence.PROVEN and not edited:
        lower = max(lower, Fraction(best.every.value_s) * TICKS_PER_S)
    if lower > best.cost_ticks:
        raise VerificationError(
            f"{source}: a bound says that no schedule of copies costs less than {seconds_down(lower)} s, a verified "
            f"one costs {seconds_down(best.cost_ticks)} s"
        )
    holds_for = ScheduleClass.allowed(instance, preemptive=True)
    return CopiesOptimum(
        best.cost_ticks,
        lower,
        best.schedule,
        holds_for,
        best.every,
        best.aligned,
        instance.copies.round_s,
        edited,
    )


def _verified_cost(
    instance: Instance, goal: Objective, optimum: offline.Optimum
) -> Fraction | None:
    """Cost [ticks] of a solver's schedule; None without one that the verifier accepts.

    Raises
    ------
    VerificationError
        If it is below the solver's lower bound.
    """
    cost = None if optimum.schedule is None else verified_cost(instance, goal, optimum.schedule)
    if cost is not None and cost < Fraction(optimum.lower_s) * TICKS_PER_S:
        raise VerificationError(
            f"{instance.workload.source}: {optimum.method} says that no schedule costs less than "
            f"{optimum.lower_s} s, a verified one costs {seconds_down(cost)} s"
        )
    return cost


def _is_verified(instance: Instance, goal: Objective, schedule: Schedule | None) -> bool:
    """True if the verifier accepts a schedule, whose cost may be 0."""
    return schedule is not None and verified_cost(instance, goal, schedule) is not None
