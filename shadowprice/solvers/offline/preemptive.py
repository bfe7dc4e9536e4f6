"""The preemptive optimum among schedules that change at slot boundaries, by MILP and by CP-SAT.

For one GPU this is the preemptive optimum (Schrage 1968: SRPT changes jobs at releases and
completions only). Gangs on several GPUs can gain by stopping within a slot, so the value is not used as a
bound for other schedules; :mod:`.completion_search` has the optimum over all of them, of a few jobs.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.models import preemptive
from shadowprice.models.slotted import Slotted
from shadowprice.solvers.offline import list_search as list_schedule
from shadowprice.solvers.offline.bounds import bound_of, offset_ticks
from shadowprice.solvers.offline.edited_model import ModelAnswer
from shadowprice.solvers.offline.node_assignment import assign_nodes_to_runs
from shadowprice.solvers.offline.non_preemptive import (
    BRANCHING,
    FALLS_BACK,
    LATER,
    MAX_COLUMNS,
    METHODS,
    Build,
    Method,
    Optimum,
    edited_optimum,
)
from shadowprice.solvers.offline.one_pool import require_exact
from shadowprice.solvers.programs.compile import OptimalityEvidence, SolverOptions, compile_model
from shadowprice.solvers.programs.gate import ask_whole
from shadowprice.solvers.programs.published import falls_back
from shadowprice.solvers.programs.whole import SearchEffort, SearchStatus, WholeAnswer, WholeProgram

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,  # where every job is as fast on all of them
        Feature.SHARING,  # where no two of the jobs may
    }
)
"""Who resumes goes on where it stopped, on nodes that are there and at no charge."""

_LARGEST = 2**60
"""Largest cost that CP-SAT is asked about, in its whole numbers."""

Slots = NDArray[np.bool_]
"""Which job runs in which slot, shape (n, slots)."""


def slotted_preemptive_optimum(
    instance: Instance,
    objective: Objective | str = Objective.COMPLETION,
    *,
    method: Method = "milp",
    budget_s: float = 60.0,
    slot_s: float | None = None,
    model: Build = preemptive.build,
) -> Optimum:
    """Best schedule of rigid gangs that starts, stops and resumes jobs at slot boundaries.

    Parameters
    ----------
    model : callable
        The programme, with the parameters of :func:`shadowprice.models.preemptive.build`; see
        :func:`shadowprice.solvers.offline.non_preemptive.optimum`.
    slot_s : float, optional
        Slot length [s]; must divide all times. By default the largest that does.

    Raises
    ------
    InputError
        If times are not whole slots, the instance has features that are not in ``KNOWS``, jobs do not run alone on
        GPUs of equal speed, or the model would be too large.
    """
    goal = Objective.of(objective)
    if method not in METHODS:
        raise InputError(f"method {method!r}: expected milp or cp-sat")
    require(instance, KNOWS, "the exact preemptive optimum")
    require_exact(instance)
    if len(instance.workload) == 0:
        return Optimum(0.0, 0.0, None, method, True, 1.0, True, OptimalityEvidence.PROVEN, 0.0)
    jobs = Slotted.of(instance, slot_s)
    if not jobs.exact:
        raise InputError(f"slot_s is {slot_s!r}, expected a length that divides all times")
    span = goal is Objective.MAKESPAN
    start = list_schedule.search(jobs, span=span, seed=0, budget_s=1.0, moves=200)
    horizon = _horizon(jobs, start)
    if jobs.jobs * horizon > MAX_COLUMNS:
        raise InputError(f"{jobs.jobs} jobs x {horizon} slots: expected at most {MAX_COLUMNS}")
    until = time.monotonic() + budget_s
    if falls_back(model, FALLS_BACK):
        return _edited_optimum(instance, goal, jobs, LATER * horizon, model, method, until)
    known = np.zeros((jobs.jobs, horizon), dtype=bool)
    for j, first in enumerate(start.tolist()):
        known[j, first : first + int(jobs.duration[j])] = True
    if method == "milp":
        solved = _milp(jobs, known, span=span, until=until)
    else:
        solved = _confirmed(jobs, known, span=span, until=until)
    shift = offset_ticks(jobs.exact_weight, jobs.release_ticks, goal)
    upper = _cost(jobs, solved.runs, span) * jobs.slot_ticks - shift
    low = min(solved.bound * jobs.slot_ticks - shift, upper)
    certified = solved.evidence is OptimalityEvidence.PROVEN
    least = bound_of(low, "optimum").value_s
    return Optimum(
        least,
        float(upper / TICKS_PER_S),
        assign_nodes_to_runs(instance, *_runs(jobs, solved.runs)),
        method,
        certified,
        jobs.slot_s,
        True,
        solved.evidence,
        least if certified else 0.0,
        certified_by=BRANCHING if certified else "",
    )


def _edited_optimum(
    instance: Instance,
    goal: Objective,
    jobs: Slotted,
    horizon: int,
    build: Build,
    method: Method,
    until: float,
) -> Optimum:
    """The optimum of an edited model."""

    def placed(answer: ModelAnswer) -> Schedule:
        runs = np.zeros((jobs.jobs, horizon), dtype=bool)
        for job, slot in answer.slots("y"):
            runs[job, slot] = True
        return assign_nodes_to_runs(instance, *_runs(jobs, runs))

    return edited_optimum(
        lambda span: build(jobs, horizon, makespan=span), jobs, goal, method, until, placed
    )


@dataclass(frozen=True, eq=False)
class _Searched:
    """Runs, a lower bound of the cost [slots], and what supports that the runs are optimal."""

    runs: Slots
    bound: Fraction
    evidence: OptimalityEvidence


def _horizon(jobs: Slotted, start: NDArray[np.int64]) -> int:
    """Slots that some best schedule keeps to.

    After the last release a best schedule never idles while work is left, and what is left then
    is at most all work; run one after the other it ends by last release + sum of durations.
    """
    return max(list_schedule.safe_horizon(jobs), int((start + jobs.duration).max()))


def _cost(jobs: Slotted, runs: Slots, span: bool) -> Fraction:
    ends = (runs.shape[1] - runs[:, ::-1].argmax(axis=1)).tolist()
    if span:
        return Fraction(max(ends))
    pairs = zip(jobs.exact_weight, ends, strict=True)
    return sum((w * end for w, end in pairs), Fraction(0))


def _milp(
    jobs: Slotted, known: Slots, *, span: bool, until: float, agreed: Fraction | None = None
) -> _Searched:
    """The MILP's answer.

    Parameters
    ----------
    agreed : Fraction, optional
        Cost that CP-SAT has said to be the least.
    """
    compiled = compile_model(model := preemptive.build(jobs, known.shape[1], makespan=span))
    step = Fraction(1) if span else jobs.step
    # Weights are the model's costs, so these are exact; a solver cannot see very small steps.
    gap = max(0.99 * float(step), 1e-6)
    left = max(until - time.monotonic(), 0.1)
    job, slot = model.JT.numbers
    columns, there = compiled.place(model.y), known[job, slot].astype(np.float64)
    at = dict(zip(columns.tolist(), there.tolist(), strict=True))

    def second(value: Fraction, left_s: float) -> bool:
        if agreed is not None and value >= agreed:
            return True
        answer = _ask(jobs, known, span=span, below=value, budget_s=left_s)
        return answer is not None and answer.status is SearchStatus.INFEASIBLE

    try:
        solution = compiled.solve(
            SolverOptions(time_limit_s=left, absolute_gap=gap), at, second=second
        )
    except SolverError:  # It fails; what is known stays.
        return _Searched(known, Fraction(0), OptimalityEvidence.POINT_ONLY)
    runs = known
    if len(solution.primal):
        other = np.zeros_like(known)
        other[job, slot] = compiled.value(solution, model.y) > 0.5
        runs = other if _cost(jobs, other, span) <= _cost(jobs, known, span) else known
    cost = _cost(jobs, runs, span)
    if solution.evidence.optimal:
        exact = solution.evidence is not OptimalityEvidence.PROVEN or gap < step
        return _Searched(runs, cost, solution.evidence if exact else OptimalityEvidence.CONFIRMED)
    if not math.isfinite(solution.bound):
        return _Searched(runs, Fraction(0), OptimalityEvidence.POINT_ONLY)
    word = Fraction(solution.bound) - Fraction(1, 10**6)
    return _Searched(
        runs, math.ceil(word / step) * step if gap < step else word, OptimalityEvidence.POINT_ONLY
    )


def _confirmed(jobs: Slotted, known: Slots, *, span: bool, until: float) -> _Searched:
    """CP-SAT's answer, which the MILP is asked to confirm."""
    left = until - time.monotonic()
    answer = _ask(jobs, known, span=span, below=None, budget_s=0.6 * left)
    if answer is None:
        return _milp(jobs, known, span=span, until=until)
    runs = known
    if answer.values is not None:
        runs = np.array(answer.values[: known.size], dtype=bool).reshape(known.shape)
        runs = runs if _cost(jobs, runs, span) <= _cost(jobs, known, span) else known
    cost = _cost(jobs, runs, span)
    if answer.status is not SearchStatus.OPTIMAL:
        scale = 1 if span else max(w.denominator for w in jobs.exact_weight)
        word = Fraction(answer.bound) / scale if math.isfinite(answer.bound) else Fraction(0)
        return _Searched(runs, word, OptimalityEvidence.POINT_ONLY)
    again = _milp(jobs, runs, span=span, until=until, agreed=cost)
    if again.evidence.optimal:
        return again
    return _Searched(again.runs, cost, OptimalityEvidence.POINT_ONLY)


def _ask(
    jobs: Slotted, known: Slots, *, span: bool, below: Fraction | None, budget_s: float
) -> WholeAnswer | None:
    """CP-SAT's answer to which runs cost least, or whether some cost less than a value."""
    program = WholeProgram()
    n, horizon = known.shape
    runs = [
        [program.variable(0, int(t >= r)) for t in range(horizon)] for r in jobs.release.tolist()
    ]
    ends = [program.variable(0, horizon) for _ in range(n)]
    for j, length in enumerate(jobs.duration.tolist()):
        program.row(dict.fromkeys(runs[j], 1), low=length, high=length)
        for t, run in enumerate(runs[j]):
            program.hint[run] = int(known[j, t])
            program.row({ends[j]: 1}, low=t + 1, only_if=run)
    gpus = jobs.gpus.tolist()
    for t in range(horizon):
        program.row({runs[j][t]: gpus[j] for j in range(n)}, high=jobs.capacity)
    scale = 1 if span else max(w.denominator for w in jobs.exact_weight)
    if span:
        last = program.variable(0, horizon)
        for end in ends:
            program.row({last: 1, end: -1}, low=0)
        program.cost = {last: 1}
    else:
        weights = [int(w * scale) for w in jobs.exact_weight]
        if sum(weights) * horizon >= _LARGEST:
            return None
        program.cost = {end: w for end, w in zip(ends, weights, strict=True) if w}
    if below is not None:
        program.row(program.cost, high=math.ceil(below * scale) - 1)
        program.cost, program.hint = {}, {}
    return ask_whole(program, SearchEffort(budget_s))


def _runs(
    jobs: Slotted, slots: Slots
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Job, start [s] and end [s] of every uninterrupted run."""
    edges = np.diff(np.pad(slots.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    job, first = np.nonzero(edges == 1)
    _, last = np.nonzero(edges == -1)
    slot_s = jobs.slot_ticks / TICKS_PER_S
    starts: NDArray[np.float64] = first.astype(np.float64) * slot_s
    ends: NDArray[np.float64] = last.astype(np.float64) * slot_s
    return job.astype(np.int64), starts, ends
