"""Optima for users: none without a schedule that passed the verifier on the same instance at that cost."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.given import Given, Problem, Where
from shadowprice.analysis.metrics import end_s
from shadowprice.analysis.wording import counted, told_cost
from shadowprice.brief import html_table, screen
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import BoundedCost, Objective, exact_ticks
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.models import preemptive as preemptive_model
from shadowprice.models import time_indexed
from shadowprice.proofs.certificate import verify
from shadowprice.proofs.lower_bounds.completion_windows import tree_bound
from shadowprice.solvers.offline import completion_search, preemptive
from shadowprice.solvers.offline import non_preemptive as offline
from shadowprice.solvers.offline.bounds import Bound, RelaxedJobs, offset_ticks, seconds_down
from shadowprice.solvers.offline.completion_search import CompletionTree
from shadowprice.solvers.offline.non_preemptive import require_exact
from shadowprice.solvers.offline.on_nodes import runs_on_nodes
from shadowprice.solvers.offline.preemptive import KNOWS as PREEMPTIVE_KNOWS
from shadowprice.solvers.programs.compile import Standing


class OptimumTable(BoundedCost):
    """An optimum as far as it is known, as one shows it: its cost and bound, and what they rest on."""

    @abstractmethod
    def _said(self) -> dict[str, str]:
        """Sayings beside the cost and the bound, by name."""

    def __repr__(self) -> str:
        lines = [f"    {name}: {value}" for name, value in self._said().items()]
        return screen(f"{type(self).__name__}({told_cost(self)})", lines)

    def _repr_html_(self) -> str:
        """Show cost, bound and what they rest on as a table in a notebook."""
        numbers = {"cost [s]": self.cost, "bound [s]": self.bound, "ratio at most": self.ratio}
        return html_table({**{name: repr(each) for name, each in numbers.items()}, **self._said()})


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
        Whether the lower bound holds in exact arithmetic.
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

    def _said(self) -> dict[str, str]:
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
        The programme; one that is not as published is solved as it stands, its schedule is verified,
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
    goal, instance = Objective(objective), Given.of(jobs, cluster).as_instance()
    found = offline.optimum(
        instance, goal, method=method, budget_s=budget_s, slot_s=slot_s, seed=seed, model=model
    )
    schedule, upper_s, proven = found.schedule, found.upper_s, found.proven
    if found.edited:
        if not _is_verified(instance, goal, schedule):
            schedule, proven = None, False
    elif len(instance.workload):
        cost = _cost_found(instance, goal, found)
        if cost is None:
            schedule, upper_s, proven = None, float("inf"), False
        else:
            # Both are rounded to floats by the solver, down and to nearest.
            proven = proven and seconds_down(cost) <= found.lower_s
            upper_s = float(cost / TICKS_PER_S)
    return VerifiedOptimum(
        found.lower_s,
        upper_s,
        schedule,
        ScheduleClass(preemptive=False, ample_types=instance.has_small_types),
        proven,
        found.certified,
        found.method,
        found.slot_s,
        found.exact_grid,
        found.edited,
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
    goal, instance = Objective(objective), Given.of(jobs, cluster).as_instance()
    found = preemptive.slotted_preemptive_optimum(
        instance, goal, method=method, budget_s=budget_s, slot_s=slot_s, model=model
    )
    if not len(instance.workload):
        return found
    if found.edited:
        if _is_verified(instance, goal, found.schedule):
            return found
        return replace(found, schedule=None, standing=Standing.FOUND)
    cost = _cost_found(instance, goal, found)
    if cost is None:
        return replace(found, upper_s=float("inf"), schedule=None, standing=Standing.FOUND)
    return replace(found, upper_s=float(cost / TICKS_PER_S))


@dataclass(frozen=True, eq=False, repr=False)
class PreemptiveOptimum(OptimumTable):
    """Offline optimum of preemptive schedules of rigid gangs, stopped and resumed at any moment.

    Parameters
    ----------
    lower_ticks, upper_ticks : Fraction
        The optimum is between them, in the objective [ticks]; the first by the tree, in exact arithmetic.
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

    def _said(self) -> dict[str, str]:
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

    The lower bound is a tree of windows of completions with prices, evaluated in rationals by
    ``shadowprice.proofs.lower_bounds.completion_windows``. Times of the schedule are on the grid of 2**-20 s;
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
    goal, instance = Objective(objective), Given.of(jobs, cluster).as_instance()
    count, source = len(instance.workload), instance.workload.source
    require(instance, PREEMPTIVE_KNOWS, "the exact preemptive optimum")
    require_exact(instance)
    most = completion_search.MOST_SEARCHED
    if not 0 < count <= most:
        raise InputError(f"{source}: has {count} jobs; the preemptive optimum is for 1 to {most}")
    if goal is Objective.MAKESPAN:
        raise InputError("objective 'makespan': the preemptive optimum is for flow and completion")
    completion_search.prepare()
    relaxed, until = RelaxedJobs.of(instance), time.monotonic() + budget_s
    every = list(completion_search.search_optimum(relaxed, until=until))
    if not every:
        raise InputError(f"{source}: times span too many ticks of 2**-20 s, or no job has a weight")
    found = every[-1]
    schedule = runs_on_nodes(instance, *completion_search.columns_of(found.runs))
    verify(instance, schedule)
    upper = exact_cost(instance, goal, end_s(instance, schedule))
    shift = offset_ticks(relaxed.weight, relaxed.release, goal)
    lower = tree_bound(relaxed, found.tree) - shift
    if lower > upper:
        raise VerificationError(
            f"{source}: windows of completions say that no schedule costs less than {seconds_down(lower)} s, a "
            f"verified one costs {seconds_down(upper)} s"
        )
    holds_for = ScheduleClass.allowed(instance, preemptive=True)
    return PreemptiveOptimum(
        lower, upper, schedule, holds_for, found.finished, found.parts, found.tree
    )


def _cost_found(instance: Instance, goal: Objective, found: offline.Optimum) -> Fraction | None:
    """Cost [ticks] of a solver's schedule; None without one that the verifier accepts.

    Raises
    ------
    VerificationError
        If it is below the solver's lower bound.
    """
    cost = None if found.schedule is None else verified_cost(instance, goal, found.schedule)
    if cost is not None and cost < Fraction(found.lower_s) * TICKS_PER_S:
        raise VerificationError(
            f"{instance.workload.source}: {found.method} says that no schedule costs less than "
            f"{found.lower_s} s, a verified one costs {seconds_down(cost)} s"
        )
    return cost


def _is_verified(instance: Instance, goal: Objective, schedule: Schedule | None) -> bool:
    """True if the verifier accepts a schedule, whose cost may be 0."""
    return schedule is not None and verified_cost(instance, goal, schedule) is not None


def verified_cost(instance: Instance, goal: Objective, schedule: Schedule) -> Fraction | None:
    """Cost [ticks] of a schedule; None if the verifier refuses it."""
    try:
        complete = verify(instance, schedule)
    except VerificationError:
        return None
    return exact_cost(instance, goal, np.where(complete, end_s(instance, schedule), np.inf))


def counted_rows(instance: Instance) -> NDArray[np.int64]:
    """Jobs that the cost of a run counts, in order."""
    arrival_s, window = instance.workload.arrival_s, instance.until_complete
    rows = np.arange(len(arrival_s))[slice(None) if window is None else window.rows]
    return rows if instance.stopped_s is None else rows[arrival_s[rows] < instance.stopped_s]


def exact_cost(instance: Instance, goal: Objective, ends_s: NDArray[np.float64]) -> Fraction:
    """Cost [ticks] of the completion times [s] that count, in rationals; O(n).

    Parameters
    ----------
    ends_s : ndarray, shape (n,)
        Infinite of jobs that are not complete, which count until the run was stopped.
    """
    jobs = instance.workload
    if not instance.all_complete:
        some = counted_rows(instance)
        jobs, ends_s = jobs.select(some), ends_s[some]
    if instance.stopped_s is not None:
        ends_s = np.where(np.isinf(ends_s), instance.stopped_s, ends_s)
    # Whole weights as integers: rationals of a million jobs take seconds.
    weight = [int(w) if w.is_integer() else Fraction(w) for w in jobs.weight.tolist()]
    release, ends = to_ticks(jobs.arrival_s).tolist(), to_ticks(ends_s).tolist()
    offset = offset_ticks(weight, release, goal)
    if goal is Objective.MAKESPAN:
        return max(ends, default=0) - offset
    total = Fraction(sum(w * end for w, end in zip(weight, ends, strict=True)))
    return total - offset


def attains(instance: Instance, goal: Objective, bound: Bound, schedule: Schedule) -> bool:
    """True if a schedule passes the verifier, is of the bound's class and costs the bound."""
    cost = verified_cost(instance, goal, schedule)
    return (
        cost is not None
        and cost == bound.ticks
        and bound.holds_for.contains(ScheduleClass.used(instance, schedule))
    )
