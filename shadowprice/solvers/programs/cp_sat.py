"""OR-Tools' CP-SAT behind a data structure: asked, asked again with other parameters if it fails.

What is caught: exceptions. OR-Tools 9.15 throws ``IndexError: absl::btree_map::at`` where it moves a
hint through a symmetry (google/or-tools issue 5091); without the hint, or without symmetries, it answers.
Values are checked against the programme in whole numbers; values that do not hold count as no answer.

What is not caught: an assertion inside the library ends the process. CP-SAT is called in this process
all the same. Searches here take milliseconds and come in hundreds, time is counted in CPU time of this
process, and loading the library in a second process takes half a second of every run; in return, of
9,000 random programmes of the kinds that are asked here none ended the process (OR-Tools 9.15).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from shadowprice.solvers.programs.whole import SearchEffort, SearchStatus, WholeAnswer, WholeProgram

_ATTEMPTS: tuple[dict[str, Any], ...] = (
    {},
    {"symmetry_level": 0},
    {"symmetry_level": 0, "cp_model_presolve": False},
)


@cache
def _library() -> Any:
    """The solver's module, loaded when first needed."""
    from ortools.sat.python import cp_model

    return cp_model


def ask(program: WholeProgram, effort: SearchEffort) -> WholeAnswer:
    """CP-SAT's answer; ``UNKNOWN`` if it fails however it is asked."""
    for number, parameters in enumerate(_ATTEMPTS):
        try:
            answer = _ask(program, effort, parameters, hint=number == 0)
        except Exception:  # Whatever the library throws: the next attempt, or no answer.
            continue
        if answer.values is None or program.holds(answer.values):
            return answer
    return WholeAnswer(SearchStatus.UNKNOWN, None, float("-inf"))


def _ask(
    program: WholeProgram, effort: SearchEffort, parameters: dict[str, Any], *, hint: bool
) -> WholeAnswer:
    library = _library()
    model, variables = _model(program, hint=hint)
    solver = library.CpSolver()
    solver.parameters.max_time_in_seconds = max(effort.time_limit_s, 0.01)
    if effort.counted_s is not None:
        solver.parameters.max_deterministic_time = max(effort.counted_s, 0.001)
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = effort.seed
    if not effort.relaxations:
        solver.parameters.linearization_level = 0
    for name, value in parameters.items():
        setattr(solver.parameters, name, value)
    with _own_interrupts():
        status = solver.solve(model)
    if status == library.INFEASIBLE:
        return WholeAnswer(
            SearchStatus.INFEASIBLE, None, float("inf"), _core(solver, program, variables)
        )
    bound = float(solver.best_objective_bound) if program.cost else float("-inf")
    if status not in (library.OPTIMAL, library.FEASIBLE):
        return WholeAnswer(SearchStatus.UNKNOWN, None, bound)
    ending = SearchStatus.OPTIMAL if status == library.OPTIMAL else SearchStatus.FEASIBLE
    return WholeAnswer(ending, [int(solver.value(x)) for x in variables], bound)


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Have Ctrl-C mean what it meant before, afterwards.

    The library ends its search at an interrupt, which is well, and then leaves the signal to the system, for
    which the next one is the end of the process.
    """
    yield
    if threading.current_thread() is threading.main_thread():
        before = signal.getsignal(signal.SIGINT)
        # None: set by other than Python, of which nothing can be known.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


def _core(solver: Any, program: WholeProgram, variables: list[Any]) -> tuple[int, ...]:
    if not program.assumed:
        return ()
    position = {variables[k].index: k for k in program.assumed}
    return tuple(position[k] for k in solver.sufficient_assumptions_for_infeasibility())


def _model(program: WholeProgram, *, hint: bool) -> tuple[Any, list[Any]]:
    """The same programme in CP-SAT's words, and its variables."""
    library = _library()
    model = library.CpModel()
    bounds = zip(program.lower, program.upper, strict=True)
    x = [
        model.new_bool_var("") if (low, high) == (0, 1) else model.new_int_var(low, high, "")
        for low, high in bounds
    ]
    for group in program.single:
        model.add_at_most_one([x[k] for k in group])
    for row in program.rows:
        terms = row.terms or {0: 0}
        total = library.LinearExpr.weighted_sum([x[k] for k in terms], list(terms.values()))
        low = library.INT_MIN if row.low is None else row.low
        high = library.INT_MAX if row.high is None else row.high
        constraint = model.add_linear_constraint(total, low, high)
        if row.only_if is not None:
            constraint.only_enforce_if(x[row.only_if])
    for runs in program.cumulatives:
        intervals = [
            model.new_fixed_size_interval_var(x[start], length, "")
            for start, length in zip(runs.starts, runs.lengths, strict=True)
        ]
        model.add_cumulative(intervals, list(runs.demands), runs.capacity)
    if program.cost:
        model.minimize(
            library.LinearExpr.weighted_sum(
                [x[k] for k in program.cost], list(program.cost.values())
            )
        )
    if hint:
        for k, value in program.hint.items():
            model.add_hint(x[k], value)
    if program.assumed:
        model.add_assumptions([x[k] for k in program.assumed])
    return model, x
