"""The exact worst instance of a list policy: Dinkelbach's method over ``models/bilevel.py``.

Every step solves one mixed-integer programme whose optimal value is a whole number, so that a
solver's tolerances do not decide; the ratio itself is formed from whole numbers.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, SolverError
from shadowprice.models import bilevel
from shadowprice.models.bilevel import RULES, InstanceLimits
from shadowprice.solvers.programs.compile import (
    CompiledModel,
    Solution,
    SolverOptions,
    Status,
    compile_model,
)

MAX_STARTS = 6_000
"""Most variables (jobs x slots x lengths x gangs) of each schedule."""


@dataclass(frozen=True)
class WorstList:
    """Worst instance that the search found, and its ratio.

    Parameters
    ----------
    arrival, work, gpus : tuple of int
        The instance, jobs in order of arrival [slots, slots, GPUs].
    ratio : Fraction
        Cost of the policy over that of the schedule it was compared with.
    proven : bool
        Whether no instance within the limits has a larger ratio: proven here, or confirmed by a
        second search, never on one solver's word.
    steps : int
        Programmes solved.
    """

    arrival: tuple[int, ...]
    work: tuple[int, ...]
    gpus: tuple[int, ...]
    ratio: Fraction
    proven: bool
    steps: int


def worst_list(
    policy: str, limits: InstanceLimits, *, flow: bool = False, budget_s: float = 600.0
) -> WorstList:
    """The instance with the largest ratio for ``fifo``, ``fifo-skip`` or ``sjf``.

    Parameters
    ----------
    flow : bool
        Total flow time instead of total completion time.
    budget_s : float
        Wall time; when it ends the best found is returned, not proven.

    Raises
    ------
    InputError
        If the policy is not covered or the programme would be too large.
    SolverError
        If time ends before any instance is found.
    """
    if policy not in RULES:
        raise InputError(
            f"bilevel search: policy {policy!r} is not covered, expected one of {', '.join(RULES)}"
        )
    starts = limits.jobs * limits.horizon * limits.max_work * limits.widest
    if starts > MAX_STARTS:
        raise InputError(
            f"bilevel search: {starts} starts to choose from, expected at most {MAX_STARTS}; "
            "fewer jobs, shorter ones, or earlier arrivals"
        )
    until = time.monotonic() + budget_s
    # The ratio is what changes from step to step: a Param of the model, compiled once.
    model: Any = bilevel.build(RULES[policy], limits, (1, 1), flow=flow)
    compiled = compile_model(model)
    best = WorstList((), (), (), Fraction(1), False, 0)
    while True:
        better = _step(model, compiled, best, flow=flow, left_s=until - time.monotonic())
        if better is None or better.proven or not better.arrival:
            break
        best = better
    last = best if better is None else better
    if not last.arrival:
        raise SolverError(f"bilevel search: no instance found within {budget_s:g} s")
    return last


def _step(
    model: Any, compiled: CompiledModel, best: WorstList, *, flow: bool, left_s: float
) -> WorstList | None:
    """A worse instance; the same again, proven, if there is none; None if time is up."""
    if left_s <= 0:
        return None
    a, b = best.ratio.numerator, best.ratio.denominator
    compiled.set(numerator=a, denominator=b)
    # The value is a whole number, so a gap below 1 is none.
    began = time.monotonic()
    options = SolverOptions(time_limit_s=left_s, absolute_gap=0.5, confirm=False)
    solution = compiled.solve(options)
    if len(solution.primal) and solution.objective < 0.5:
        # Only that nothing is worse has to be shown; a worse instance shows itself.
        left_s = max(left_s - (time.monotonic() - began), 0.1)
        solution = compiled.confirm(solution, replace(options, time_limit_s=left_s))
    if not len(solution.primal):
        return None
    arrival = _chosen(compiled, solution, model.a)[:, 1]
    acted, compared = (_chosen(compiled, solution, each) for each in (model.x, model.y))
    shift = int(arrival.sum()) if flow else 0
    # Lengths and gangs are numbered from 0 here and are from 1 on: a job ends p slots after t.
    cost, least = (int((each[:, 1] + each[:, 2] + 1).sum()) - shift for each in (acted, compared))
    proven = solution.status is Status.OPTIMAL and b * cost - a * least <= 0
    ratio = Fraction(cost, least)
    if ratio < best.ratio or (ratio == best.ratio and not proven):
        return None
    return WorstList(
        tuple(arrival.tolist()),
        tuple((acted[:, 2] + 1).tolist()),
        tuple((acted[:, 3] + 1).tolist()),
        ratio,
        proven,
        best.steps + 1,
    )


def _chosen(compiled: CompiledModel, solution: Solution, variable: Any) -> NDArray[np.int64]:
    """Positions of the members that are 1, one row for each job in their order."""
    return np.argwhere(compiled.value(solution, variable) > 0.5)
