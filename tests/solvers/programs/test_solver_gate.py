"""No solver is trusted: wrong answers, failures and lies are found out, replaced, or not called optimal."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import shadowprice
from shadowprice.errors import SolverError
from shadowprice.models import tiresias
from shadowprice.solvers.programs import cp_sat, gate, highs, linear_gate
from shadowprice.solvers.programs.compile import compile_model
from shadowprice.solvers.programs.exact import (
    FEASIBLE,
    MinimisationForm,
    implied,
    lifted,
    safe_bound,
    violation,
    whole_point,
)
from shadowprice.solvers.programs.linear_program import LinearProgram
from shadowprice.solvers.programs.proof_tree import prove
from shadowprice.solvers.programs.solution import (
    Infeasible,
    OptimalityEvidence,
    Solution,
    SolverOptions,
    Status,
)
from shadowprice.solvers.programs.whole import Cumulative, SearchEffort, SearchStatus, WholeProgram
from support.paths import ROOT

sys.path.insert(0, str(ROOT / "tests" / "solvers" / "programs" / "solver_corpus"))
from run import Case, Runs, corpus, through

PROGRAMS, RUNS = corpus()
PACKAGE = Path(shadowprice.__file__).parent
INF = math.inf


@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case.name)
def test_the_corpus_is_answered_rightly_or_not_called_optimal(case: Case) -> None:
    assert through(case)[1]


@pytest.mark.parametrize("case", RUNS, ids=lambda case: case.name)
def test_runs_that_broke_cp_sat_are_answered(case: Runs) -> None:
    from shadowprice.solvers.offline import constraint_programming as scheduling

    proof = scheduling.solve(case.jobs, span=False, budget_s=10.0, hint=case.hint)
    assert proof.starts is not None
    assert int((proof.starts + case.jobs.duration).sum()) == case.optimum
    assert proof.proven


def test_the_placement_that_highs_1_14_gets_wrong() -> None:
    job = tiresias.ServerJob(workers=3, shards=(1.0,), free=(2, 1), traffic=(0.0, 3.0))
    solution = compile_model(tiresias.build(job)).solve()
    assert solution.objective == pytest.approx(4.0)
    assert solution.evidence is OptimalityEvidence.PROVEN


# Random programmes, small enough to try every point.


@st.composite
def programs(draw: st.DrawFn, *, bounded: bool = True) -> LinearProgram:
    """Programmes of up to four whole columns from -1 to 3, some of them without points."""
    columns, rows = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    number = st.sampled_from([-3.0, -1.5, -1.0, 0.0, 0.0, 0.1, 1.0, 2.0, 2.5, 7.0])
    table = np.array([[draw(number) for _ in range(columns)] for _ in range(rows)])
    low = np.array([draw(st.sampled_from([-INF, -INF, -2.0, 0.3, 1.0])) for _ in range(rows)])
    width = np.array([draw(st.sampled_from([0.0, 1.0, 4.5, INF])) for _ in range(rows)])
    high = np.where(np.isneginf(low), 0.0, low) + width
    cost = np.array([draw(number) for _ in range(columns)])
    lower = np.array([draw(st.sampled_from([-1.0, 0.0])) for _ in range(columns)])
    upper = np.array([draw(st.sampled_from([1.0, 3.0])) for _ in range(columns)])
    if not bounded and draw(st.booleans()):
        upper[draw(st.integers(0, columns - 1))] = INF
    sense = draw(st.booleans())
    return LinearProgram.of(cost, lower, upper, table, low, high, maximise=sense, whole=True)


def points(program: LinearProgram) -> Iterator[np.ndarray]:
    """Every point of a programme of whole, bounded columns."""
    least = MinimisationForm.of(program)
    ranges = [range(int(a), int(b) + 1) for a, b in zip(program.lower, program.upper, strict=True)]
    for each in product(*ranges):
        point = np.array(each, dtype=np.float64)
        if violation(least, point) <= 1.0:
            yield point


def best_cost(program: LinearProgram) -> Fraction | None:
    """Least cost of a point, negated for a maximisation, by trying all."""
    least = MinimisationForm.of(program)
    return min((least.value(point) for point in points(program)), default=None)


def examined(program: LinearProgram, options: SolverOptions | None = None) -> Solution | None:
    """The gate's answer; None if it says that there is no point."""
    try:
        return gate.solve(program, options)
    except Infeasible:
        return None


def assert_worth(program: LinearProgram, solution: Solution | None) -> None:
    """An answer that is called optimal is, one that is not is a point, and bounds bound."""
    cost = best_cost(program)
    if solution is None:
        assert cost is None
        return
    least = MinimisationForm.of(program)
    if len(solution.primal):
        assert violation(least, solution.primal) <= 1.0
        assert cost is not None
        value = least.value(solution.primal)
        assert solution.objective == pytest.approx(float(-value if program.maximise else value))
        if solution.evidence.optimal:
            assert value <= cost + Fraction(1, 10**5)
        assert (solution.status is Status.OPTIMAL) == solution.evidence.optimal
    if solution.evidence is OptimalityEvidence.PROVEN and cost is not None:
        bound = -solution.bound if program.maximise else solution.bound
        assert bound <= float(cost) + 1e-9


@settings(max_examples=45)
@given(program=programs())
def test_answers_are_what_trying_every_point_gives(program: LinearProgram) -> None:
    solution = examined(program)
    assert_worth(program, solution)
    assert solution is None or solution.evidence.optimal


Lie = Callable[[LinearProgram], Solution]


def claimed(program: LinearProgram, point: np.ndarray) -> Solution:
    """A point that a solver calls optimal."""
    value = float(program.cost @ point)
    return Solution(Status.OPTIMAL, value, value, point, np.zeros(0))


def any_point(program: LinearProgram) -> Solution:
    """The worst point there is, as an optimum."""
    least = MinimisationForm.of(program)
    found = max(points(program), key=least.value, default=None)
    if found is None:
        raise Infeasible("no point", [])
    return claimed(program, found)


def no_point_at_all(program: LinearProgram) -> Solution:
    """Something that breaks rows, as an optimum."""
    return claimed(program, program.upper.copy())


def half_a_point(program: LinearProgram) -> Solution:
    """Columns that are not whole."""
    return claimed(program, program.lower + 0.5)


def always_infeasible(program: LinearProgram) -> Solution:
    raise Infeasible("the model is infeasible", [])


def always_broken(program: LinearProgram) -> Solution:
    raise IndexError("map::at")


LIES: list[Lie] = [any_point, no_point_at_all, half_a_point, always_infeasible, always_broken]


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("always", [True, False], ids=["always", "with presolve"])
def test_lies_are_found_out(lie: Lie, always: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the solver of the whole programme says, nothing false is called optimal."""
    honest = highs.Highs.solve

    def solve(self: Any, program: LinearProgram, *rest: Any, presolve: bool = True) -> Solution:
        if program.mixed and (always or presolve):
            return lie(program)
        return honest(self, program, *rest, presolve=presolve)

    monkeypatch.setattr(highs.Highs, "solve", solve)

    @settings(max_examples=8)
    @given(program=programs(bounded=True), work=st.sampled_from([0.0, 2e7]))
    def check(program: LinearProgram, work: float) -> None:
        # A pack of liars that agree with one another is beyond CP-SAT's help with broken numbers.
        if (
            always
            and work == 0.0
            and gate.in_whole_numbers(MinimisationForm.of(program), INF) is None
        ):
            return
        try:
            solution = examined(program, SolverOptions(proof_work=work))
        except SolverError:
            return  # No answer is no lie.
        assert_worth(program, solution)

    check()


def test_a_better_point_takes_the_place_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    program = LinearProgram.of(
        np.array([1.0, 1.0]),
        np.zeros(2),
        np.full(2, 9.0),
        np.array([[2.0, 1.0]]),
        np.array([3.0]),
        np.array([INF]),
        whole=True,
    )
    worst = claimed(program, np.array([9.0, 9.0]))
    monkeypatch.setattr(highs.Highs, "solve", lambda self, program, *rest, **how: worst)
    solution = gate.solve(program)
    assert solution.objective == 2.0
    assert solution.evidence is OptimalityEvidence.PROVEN


def test_what_nothing_confirms_is_found_and_not_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a tree, a second solver or a second search, there is one solver's word."""
    rng = np.random.default_rng(3)
    table = rng.integers(1, 30, (4, 12)) + 0.5
    program = LinearProgram.of(
        rng.integers(5, 30, 12) + 0.25,
        np.zeros(12),
        np.ones(12),
        table,
        np.full(4, -INF),
        table.sum(axis=1) * 0.45,
        maximise=True,
        whole=True,
    )
    honest = highs.Highs.solve

    def solve(self: Any, program: LinearProgram, *rest: Any, presolve: bool = True) -> Solution:
        if not presolve:
            raise RuntimeError
        return honest(self, program, *rest)

    monkeypatch.setattr(highs.Highs, "solve", solve)
    monkeypatch.setattr(cp_sat, "_ask", None)
    found = gate.solve(program, SolverOptions(proof_work=0.0))
    assert (found.status, found.evidence) == (Status.FEASIBLE, OptimalityEvidence.POINT_ONLY)
    quick = gate.solve(program, SolverOptions(confirm=False))
    assert (quick.status, quick.evidence) == (Status.FEASIBLE, OptimalityEvidence.POINT_ONLY)
    proven = gate.confirm(program, quick)
    assert (proven.status, proven.evidence) == (Status.OPTIMAL, OptimalityEvidence.PROVEN)
    monkeypatch.undo()
    confirmed = gate.solve(program, SolverOptions(proof_work=0.0))
    assert confirmed.evidence is OptimalityEvidence.CONFIRMED


def test_a_second_opinion_is_asked_and_heard() -> None:
    program = LinearProgram.of(
        np.array([-5.0, -4.0, -3.0]),
        np.zeros(3),
        np.ones(3),
        np.array([[2.0, 3.0, 1.0]]),
        np.array([-INF]),
        np.array([4.0]),
        whole=True,
    )
    asked = []

    def second(value: Fraction, left_s: float) -> bool:
        asked.append(value)
        return False

    options = SolverOptions(proof_work=0.0)
    solution = gate.Gate().solve(program, options, second=second)
    assert asked == [Fraction(-8)]
    assert solution.evidence is OptimalityEvidence.POINT_ONLY


# Bounds, evaluated.


def exact_bound(
    least: MinimisationForm, duals: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> Fraction:
    """The bound of multipliers in rationals, for columns that are bounded."""
    p = least.program
    reduced = [Fraction(c) for c in least.cost.tolist()]
    total = Fraction(0)
    for k in range(p.rows):
        side = p.row_lower[k] if duals[k] > 0 else p.row_upper[k]
        if not duals[k] or not math.isfinite(side):
            continue
        total += Fraction(float(duals[k])) * Fraction(float(side))
        for e in range(p.start[k], p.start[k + 1]):
            reduced[p.index[e]] -= Fraction(float(duals[k])) * Fraction(float(p.value[e]))
    for d, low, high in zip(reduced, lower.tolist(), upper.tolist(), strict=True):
        total += min(d * Fraction(low), d * Fraction(high))
    return total


@settings(max_examples=30)
@given(program=programs(), data=st.data())
def test_bounds_round_down_and_hold(program: LinearProgram, data: st.DataObject) -> None:
    least = MinimisationForm.of(program)
    number = st.floats(-1e6, 1e6) | st.floats(-1e-6, 1e-6) | st.sampled_from([0.0, 1.0, -2.0])
    duals = np.array([data.draw(number) for _ in range(program.rows)])
    bound = safe_bound(least, duals, program.lower, program.upper)
    exact = exact_bound(least, duals, program.lower, program.upper)
    assert Fraction(bound) <= exact
    assert float(exact) - bound <= 1e-9 * (1 + abs(float(exact)) + np.abs(duals).max() * 100)
    cost = best_cost(program)
    if cost is not None:
        # Rows may be missed by their rounding; a bound of rows as they are may see that.
        assert lifted(least, bound) <= cost + Fraction(1, 10**5) * (
            1 + Fraction(float(np.abs(duals).max()))
        )


def test_costs_that_are_multiples_lift_a_bound() -> None:
    program = LinearProgram.of(
        np.array([6.0, 9.0]),
        np.zeros(2),
        np.ones(2),
        np.ones((1, 2)),
        np.array([1.0]),
        np.array([INF]),
        whole=True,
    )
    least = MinimisationForm.of(program)
    assert least.step == 3
    assert lifted(least, 6.0000001) == 9
    assert lifted(least, 6.0) == 6
    loose = replace(program, integer=np.array([True, False]))
    assert MinimisationForm.of(loose).step is None


@settings(max_examples=30)
@given(program=programs(bounded=False), data=st.data())
def test_implied_bounds_lose_no_point(program: LinearProgram, data: st.DataObject) -> None:
    boxed = program.copy()
    boxed.upper = np.minimum(program.upper, 4.0)
    least = MinimisationForm.of(program)
    cutoff = data.draw(st.sampled_from([INF, 0.0, 3.0]))
    lower, upper = implied(least, cutoff)
    for point in points(boxed):
        if least.value(point) <= cutoff:
            assert np.all(lower <= point)
            assert np.all(point <= upper)


def test_points_are_evaluated_exactly() -> None:
    """0.1 + 0.2 is not 0.3 in floats: rows of other than whole data allow for their rounding only."""
    row = np.array([[0.1, 0.2]])
    program = LinearProgram.of(
        np.ones(2), np.zeros(2), np.ones(2), row, np.array([-INF]), np.array([0.3]), whole=True
    )
    assert violation(MinimisationForm.of(program), np.ones(2)) <= 1.0
    program.row_upper[:] = 0.3 - 1e-8
    assert violation(MinimisationForm.of(program), np.ones(2)) > 1.0
    whole = LinearProgram.of(
        np.ones(1),
        np.zeros(1),
        np.array([2.0**40]),
        np.ones((1, 1)),
        np.array([2.0**40]),
        np.array([INF]),
        whole=True,
    )
    assert violation(MinimisationForm.of(whole), np.array([2.0**40 - 1])) == INF
    assert violation(MinimisationForm.of(whole), np.array([2.0**40])) == 0.0
    loose = LinearProgram.of(
        np.ones(1), np.zeros(1), np.array([9.0]), np.ones((1, 1)), np.array([2.0]), np.array([INF])
    )
    assert violation(MinimisationForm.of(loose), np.array([2 - FEASIBLE / 2])) <= 1.0
    assert violation(MinimisationForm.of(loose), np.array([2 - 3 * FEASIBLE])) > 1.0
    assert violation(MinimisationForm.of(loose), np.array([9 + 3 * FEASIBLE])) > 1.0
    assert whole_point(whole, np.array([0.4])) is None


def test_continuous_columns_are_solved_for_again() -> None:
    """A big M times a thousandth of a millionth is no integer solution once the integer is rounded."""
    program = LinearProgram.of(
        np.array([1.0, 100.0]),
        np.zeros(2),
        np.array([10.0, 1.0]),
        np.array([[1.0, -1e7], [1.0, 0.0]]),
        np.array([-INF, 1.0]),
        np.array([0.0, INF]),
    )
    program.integer[1] = True
    solution = gate.solve(program)
    assert solution.objective == pytest.approx(101.0)
    assert solution.evidence.optimal


@settings(max_examples=35)
@given(program=programs())
def test_a_closed_tree_is_right(program: LinearProgram) -> None:
    least, cost = MinimisationForm.of(program), best_cost(program)
    tree = prove(least, None, 0.0, work=1e9, until=INF)
    assert (tree.bound == INF) == (cost is None) or tree.better is not None
    if cost is not None:
        assert prove(least, cost + 1, 1e-9, work=1e9, until=INF).better is not None
        below = prove(least, cost - 1, 1e-9, work=1e9, until=INF)
        assert below.better is None
        assert below.bound <= cost


# Linear programmes.


def test_a_linear_programme_is_examined() -> None:
    table = np.array([[1.0, 1.0], [1.0, 3.0]])
    program = LinearProgram.of(
        np.array([3.0, 2.0]),
        np.zeros(2),
        np.full(2, INF),
        table,
        np.full(2, -INF),
        np.array([4.0, 6.0]),
        maximise=True,
    )
    right = gate.solve(program)
    assert (right.objective, right.evidence) == (pytest.approx(12.0), OptimalityEvidence.PROVEN)
    assert linear_gate.meets(program, right)
    for wrong in (
        replace(right, primal=np.array([4.1, 0.0])),
        replace(right, primal=np.array([0.0, 2.0])),
        replace(right, primal=np.array([math.nan, 0.0])),
        replace(right, primal=np.array([-1.0, 0.0])),
        replace(right, duals=np.array([2.0, 0.0])),
        replace(right, duals=np.array([-3.0, 0.0])),
        replace(right, duals=np.array([4.0, 0.0])),
    ):
        assert not linear_gate.meets(program, wrong)


def test_a_linear_answer_that_does_not_hold_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = LinearProgram.of(
        np.ones(1), np.zeros(1), np.full(1, 9.0), np.ones((1, 1)), np.array([2.0]), np.array([INF])
    )
    honest, always = highs.Highs.solve, [False]

    def solve(self: Any, program: LinearProgram, *rest: Any, presolve: bool = True) -> Solution:
        answer = honest(self, program, *rest, presolve=presolve)
        return replace(answer, primal=answer.primal * 3) if presolve or always[0] else answer

    monkeypatch.setattr(highs.Highs, "solve", solve)
    assert gate.solve(program).objective == 2.0
    assert gate.solve(program).evidence is OptimalityEvidence.PROVEN
    always[0] = True
    assert gate.solve(program).status is Status.FEASIBLE


def test_a_time_limit_is_that_of_one_solve() -> None:
    """HiGHS's clock runs on; a programme that is kept and solved often is not out of time for it."""
    rng = np.random.default_rng(0)
    kept = gate.Gate()
    rows = rng.random((60, 80))
    program = LinearProgram.of(
        -rng.random(80), np.zeros(80), np.full(80, 9.0), rows, np.full(60, -INF), np.full(60, 50.0)
    )
    took = 0.0
    for _ in range(400):
        program.cost = -rng.random(80)
        assert kept.solve(program, SolverOptions(time_limit_s=0.5)).status is Status.OPTIMAL
        took = kept._linear._highs.highs._highs.getRunTime()
        if took > 0.6:
            break
    assert took > 0.05


# Whole numbers.


def three_runs() -> WholeProgram:
    program = WholeProgram()
    starts = [program.variable(0, 9) for _ in range(3)]
    program.cumulatives.append(Cumulative(starts, [2, 3, 2], [1, 2, 1], 2))
    program.cost = dict.fromkeys(starts, 1)
    program.hint = {starts[0]: 0, starts[1]: 2, starts[2]: 0}
    return program


def test_cp_sat_is_asked_again_with_other_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, asked = cp_sat._ask, []

    def fails_at_first(program: Any, effort: Any, parameters: Any, *, hint: bool) -> Any:
        asked.append((parameters, hint))
        if len(asked) < 3:
            raise IndexError("absl::btree_map::at")
        return honest(program, effort, parameters, hint=hint)

    monkeypatch.setattr(cp_sat, "_ask", fails_at_first)
    answer = gate.ask_whole(three_runs(), SearchEffort(10.0))
    assert (answer.status, answer.bound) == (SearchStatus.OPTIMAL, 2.0)
    assert asked[0][1]
    assert not asked[2][1]


def test_cp_sat_that_always_fails_or_lies_gives_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = cp_sat._ask

    def lies(*rest: Any, **how: Any) -> Any:
        return replace(honest(*rest, **how), values=[0, 0, 0])

    monkeypatch.setattr(cp_sat, "_ask", lies)
    assert gate.ask_whole(three_runs(), SearchEffort(10.0)).status is SearchStatus.UNKNOWN
    monkeypatch.setattr(cp_sat, "_ask", None)
    answer = gate.ask_whole(three_runs(), SearchEffort(10.0))
    assert (answer.status, answer.values) == (SearchStatus.UNKNOWN, None)


@example(values=[0, 2, 0, 1])
@given(values=st.lists(st.integers(-1, 6), min_size=4, max_size=4))
def test_values_are_held_against_every_kind_of_row(values: list[int]) -> None:
    program = three_runs()
    on = program.binary()
    program.row({0: 1, 1: 1}, low=1, high=5)
    program.row({1: 1, 2: -1}, high=3, only_if=on)
    program.single.append([on])
    program.assumed = [on]
    a, b, c, d = values
    used = [
        sum(g for s, p, g in ((a, 2, 1), (b, 3, 2), (c, 2, 1)) if s <= t < s + p)
        for t in range(-1, 12)
    ]
    fine = min(a, b, c) >= 0 and d == 1 and max(used) <= 2 and 1 <= a + b <= 5 and b - c <= 3
    assert program.holds(values) == fine


# The one place.


def test_solvers_are_called_in_one_place() -> None:
    """Only the two back ends import a solver, and nothing else calls SciPy's or Pyomo's."""
    refused = {"milp", "linprog", "SolverFactory", "appsi", "CpSolver"}
    backs = {"highspy": "highs.py", "ortools": "cp_sat.py"}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if not any(word in text for word in (*refused, *backs)):
            continue
        for node in ast.walk(ast.parse(text)):
            modules: list[str] = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
                assert refused.isdisjoint(alias.name for alias in node.names), path
            elif isinstance(node, ast.Attribute) and path.parent.name != "programs":
                assert node.attr not in refused, path
            for module in modules:
                back = backs.get(module.partition(".")[0])
                assert back is None or (path.parent.name, path.name) == ("programs", back), path


def test_what_solves_nothing_loads_no_solver() -> None:
    code = (
        "import sys, shadowprice.solvers.registry as r, shadowprice.solvers.offline.non_preemptive; r.policies();"
        "print([m for m in ('highspy', 'ortools') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
