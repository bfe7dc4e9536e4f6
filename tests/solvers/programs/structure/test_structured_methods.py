"""Folding, sifting, scaling and the block-arrow method propose; what is proposed is an optimum, or it is not taken."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

from shadowprice.solvers.programs import linear_gate
from shadowprice.solvers.programs.gate import Gate
from shadowprice.solvers.programs.highs import Highs
from shadowprice.solvers.programs.linear_program import LinearProgram, rows_of_entries
from shadowprice.solvers.programs.reads import values_read
from shadowprice.solvers.programs.solution import (
    OptimalityEvidence,
    Solution,
    SolverOptions,
    Status,
)
from shadowprice.solvers.programs.structure.fold import Folded, fold
from shadowprice.solvers.programs.structure.max_min import MaxMin, NotMaxMin, recognise
from shadowprice.solvers.programs.structure.scaling import NEAR, PowerScales
from shadowprice.solvers.programs.structure.sifting import first_columns, sift

INF = float("inf")


def matrix(program: LinearProgram) -> np.ndarray:
    shape = (program.rows, program.columns)
    return csr_array((program.value, program.index, program.start), shape=shape).toarray()


def optimum(program: LinearProgram) -> float:
    """SciPy's answer, in the rows as they are."""
    table = matrix(program)
    above, below = np.isfinite(program.row_upper), np.isfinite(program.row_lower)
    sign = -1.0 if program.maximise else 1.0
    found = linprog(
        sign * program.cost,
        A_ub=np.vstack((table[above], -table[below])),
        b_ub=np.concatenate((program.row_upper[above], -program.row_lower[below])),
        bounds=list(zip(program.lower, program.upper, strict=True)),
    )
    if found.status:
        assume(False)
    return float(sign * found.fun + program.offset)


@st.composite
def programmes(draw: st.DrawFn) -> LinearProgram:
    """Bounded programmes in which many rows and columns are alike: tables of a few numbers."""
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 10))
    numbers = np.array(draw(st.sampled_from([[0, 1], [0, 1, 2], [0, 0.5, -1], [0, 1e4, 1e-3]])))
    table = numbers[random.integers(0, len(numbers), (rows, columns))]
    if draw(st.booleans()):  # Rows and columns twice.
        table = np.kron(table, np.ones((2, 2)))
    if draw(st.booleans()):  # Blocks that are alike but apart.
        table = np.kron(np.eye(2), table)
    rows, columns = table.shape
    kinds = random.integers(1, 3)
    return LinearProgram.of(
        random.integers(-2, 3, columns) if kinds > 1 else np.ones(columns),
        np.zeros(columns),
        random.choice([1.0, 2.0], columns) if kinds > 1 else np.full(columns, 3.0),
        table,
        np.full(rows, -INF),
        random.choice([1.0, 2.0], rows) if kinds > 1 else np.ones(rows),
        maximise=bool(random.integers(2)),
    )


@settings(max_examples=60)
@given(programmes())
def test_a_folded_programme_has_the_same_optimum(program: LinearProgram) -> None:
    rows = rows_of_entries(program)
    folded = fold(program, rows)
    assume(folded is not None)
    assert folded is not None
    assert folded.program.columns <= 0.9 * program.columns
    best = optimum(program)
    assert optimum(folded.program) == pytest.approx(best, rel=1e-7, abs=1e-9)
    found = Highs().solve(folded.program, SolverOptions(method="highs-simplex"))
    whole = replace(
        found, primal=folded.point(found.primal), duals=folded.duals(found.duals), objective=best
    )
    assert linear_gate.meets(program, whole)


@given(st.integers(2, 30), st.integers(0, 10**6))
def test_equal_jobs_fold_to_one_and_an_edit_tells_them_apart(jobs: int, seed: int) -> None:
    table = np.vstack((np.eye(jobs), np.ones((1, jobs))))
    sides = np.append(np.ones(jobs), jobs / 2)
    program = LinearProgram.of(
        np.ones(jobs), np.zeros(jobs), np.full(jobs, INF), table, np.full(jobs + 1, -INF), sides
    )
    rows = rows_of_entries(program)
    folded = fold(program, rows)
    assert folded is not None
    assert (folded.program.rows, folded.program.columns) == (2, 1)
    program.row_upper[seed % jobs] = 0.3
    again = fold(program, rows)
    assert again is None if jobs <= 2 else again is not None and again.program.columns == 2


@settings(max_examples=120)
@given(programmes(), st.integers(-40, 40), st.integers(-40, 40))
def test_scaling_changes_exponents_only(program: LinearProgram, up: int, down: int) -> None:
    """The scaled programme's numbers, scaled back, are the programme's to the last bit."""
    random = np.random.default_rng(up + 100)
    rows = rows_of_entries(program)
    program.value *= np.exp2(random.integers(-abs(up), abs(up) + 1, program.rows))[rows]
    program.value *= np.exp2(random.integers(-abs(down), abs(down) + 1, program.columns))[
        program.index
    ]
    scales = PowerScales.of(program, rows)
    scaled = scales.scaled(program, rows)
    back = scaled.value / scales.row[rows] / scales.column[program.index]
    assert np.array_equal(back, program.value)
    assert np.array_equal(scaled.cost / scales.column / scales.cost, program.cost)
    assert np.array_equal(scaled.row_upper / scales.row, program.row_upper)
    largest = np.zeros(program.rows)
    np.maximum.at(largest, rows, np.abs(scaled.value))
    assert largest.max() <= NEAR
    assert scales.fits(program, rows)


def test_a_programme_near_1_is_handed_over_as_it_is() -> None:
    program = LinearProgram.of(
        np.ones(2),
        np.zeros(2),
        np.full(2, INF),
        np.array([[1.0, 8.0]]),
        np.full(1, -INF),
        np.ones(1),
    )
    rows = rows_of_entries(program)
    scales = PowerScales.of(program, rows)
    assert scales.cost == 1.0
    assert np.array_equal(scales.scaled(program, rows).value, program.value)
    program.value *= 1000.0
    assert not scales.fits(program, rows)
    assert PowerScales.of(program, rows).scaled(program, rows).value.max() <= 2.0


@settings(max_examples=35)
@given(programmes(), st.data())
def test_sifting_finds_the_optimum_whatever_it_begins_with(
    program: LinearProgram, data: st.DataObject
) -> None:
    rows = rows_of_entries(program)
    chosen = st.lists(st.booleans(), min_size=program.columns, max_size=program.columns)
    inside = np.array(data.draw(chosen))
    solve = partial(Highs().solve, options=SolverOptions(method="highs-simplex"))
    found = sift(program, rows, inside, solve)
    assert found is not None
    primal, duals = found
    value = float(program.cost @ primal)
    assert value == pytest.approx(optimum(program), rel=1e-7, abs=1e-9)
    answer = Solution(Status.OPTIMAL, value, value, primal, duals)
    assert linear_gate.meets(program, answer)


def test_columns_that_may_not_be_0_are_not_sifted() -> None:
    program = LinearProgram.of(
        np.ones(2), np.ones(2), np.full(2, 2.0), np.ones((1, 2)), np.zeros(1), np.full(1, 9.0)
    )
    assert first_columns(program, rows_of_entries(program), np.array([True, False])) is None


# --------------------------------------------------------------------------- the block-arrow method


def max_min_program(
    random: np.random.Generator, jobs: int, types: int, *, flipped: bool = False
) -> LinearProgram:
    """max t: fair rows, rows of time with coefficients of their own, rows of workers; columns shuffled."""
    gain = random.uniform(0.1, 10, (jobs, types))
    taken = random.uniform(0.5, 2, (jobs, types))
    load, need = random.choice([1.0, 2.0, 4.0], jobs), random.uniform(0.5, 5, jobs)
    columns = 1 + jobs * types
    table = np.zeros((2 * jobs + types, columns))
    for m in range(jobs):
        mine = 1 + m * types + np.arange(types)
        table[m, 0] = need[m]
        table[m, mine] = -gain[m]
        table[jobs + m, mine] = taken[m]
        table[2 * jobs + np.arange(types), mine] = load[m] * taken[m]
    upper = np.concatenate(
        (np.zeros(jobs), random.uniform(0.5, 2, jobs), load.sum() / 3 * np.ones(types))
    )
    order = np.concatenate(([0], 1 + random.permutation(columns - 1)))
    shuffled = random.permutation(len(table))
    table, upper = table[:, order][shuffled], upper[shuffled]
    cost = np.zeros(columns)
    cost[0] = random.uniform(0.5, 2)
    lower = np.full(len(table), -INF)
    if flipped:  # As 'throughput >= need t' may be written.
        table, lower, upper = -table, -upper, np.full(len(table), INF)
    return LinearProgram.of(
        cost, np.zeros(columns), np.full(columns, INF), table, lower, upper, maximise=True
    )


@settings(max_examples=35)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 3), st.booleans(), st.booleans())
def test_max_min_programmes_are_recognised_and_solved(
    seed: int, jobs: int, types: int, flipped: bool, closed: bool
) -> None:
    random = np.random.default_rng(seed)
    program = max_min_program(random, jobs, types, flipped=flipped)
    structure = recognise(program, rows_of_entries(program))
    if closed and types > 1:  # A type without GPUs.
        side = program.row_lower if flipped else program.row_upper
        side[structure.shared[0]] = 0.0
    answer = Gate().solve(program, SolverOptions(structured_jobs=1))
    assert answer.objective == pytest.approx(optimum(program), rel=1e-6)
    assert answer.evidence is OptimalityEvidence.PROVEN
    assert not answer.fallbacks
    assert answer.method == "block-arrow" or jobs * types < 4 or closed
    assert answer.bound >= answer.objective * (1 - 1e-9)


def changed(program: LinearProgram, row: np.ndarray, lower: float, upper: float) -> LinearProgram:
    """The programme with another row at its end."""
    table = np.vstack((matrix(program), row))
    return LinearProgram.of(
        program.cost,
        program.lower,
        program.upper,
        table,
        np.append(program.row_lower, lower),
        np.append(program.row_upper, upper),
        maximise=True,
    )


@settings(max_examples=35)
@given(st.integers(0, 10**6), st.integers(2, 8), st.sampled_from(["level", "cap", "tie", "floor"]))
def test_another_row_is_never_left_out(seed: int, jobs: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    program = max_min_program(random, jobs, 2)
    free = optimum(program)
    row = np.zeros(program.columns)
    lower, upper = -INF, 0.5 * free
    if kind == "level":
        row[0] = 1.0
    elif kind == "cap":
        row[1], upper = 1.0, 0.01
    elif kind == "tie":
        row[1], row[2], lower, upper = 1.0, -1.0, 0.0, 0.0
    else:
        row[1], lower, upper = 1.0, 1e-3, INF
    edited = changed(program, row, lower, upper)
    best = optimum(edited)
    answer = Gate().solve(edited, SolverOptions(structured_jobs=1))
    assert answer.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
    with pytest.raises(NotMaxMin) as refusal:
        recognise(edited, rows_of_entries(edited))
    assert refusal.value.near
    assert answer.fallbacks
    assert answer.fallbacks[0].method == "block-arrow"
    if kind != "tie":
        assert answer.fallbacks[0].row == edited.rows - 1


def test_other_programmes_are_not_near() -> None:
    program = LinearProgram.of(
        np.ones(3), np.zeros(3), np.full(3, INF), np.ones((1, 3)), np.zeros(1), np.ones(1)
    )
    with pytest.raises(NotMaxMin) as refusal:
        recognise(program, rows_of_entries(program))
    assert not refusal.value.near


def worthless(right: Any, self: MaxMin, program: LinearProgram) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(program.columns), np.ones(program.rows)


def infeasible(right: Any, self: MaxMin, program: LinearProgram) -> tuple[np.ndarray, np.ndarray]:
    """The best objective, and multipliers that prove it, but twice the fractions of time."""
    primal, duals = right(self, program)
    doubled = 2 * primal
    doubled[self.level] = primal[self.level]
    return doubled, duals


def loose(right: Any, self: MaxMin, program: LinearProgram) -> tuple[np.ndarray, np.ndarray]:
    """A point that is nearly the best: good enough for HiGHS, not for a method that is exact."""
    primal, duals = right(self, program)
    return (1 - 1e-6) * primal, duals


@pytest.mark.parametrize("wrong", [worthless, infeasible, loose])
def test_a_wrong_proposal_is_not_taken(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a structured method says: HiGHS solves, and the solution says which was not used."""
    program = max_min_program(np.random.default_rng(1), 6, 2)
    best = optimum(program)
    right = MaxMin.solve
    monkeypatch.setattr(MaxMin, "solve", lambda self, program: wrong(right, self, program))
    answer = Gate().solve(program, SolverOptions(structured_jobs=1))
    assert answer.objective == pytest.approx(best, rel=1e-6)
    assert [each.method for each in answer.fallbacks] == ["block-arrow"]
    assert answer.method == "highs"


@pytest.mark.parametrize("side", ["point", "duals"])
def test_what_does_not_unfold_is_not_taken(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = 6
    table = np.vstack((np.eye(jobs), np.ones((1, jobs))))
    sides = np.append(np.ones(jobs), jobs / 2)
    program = LinearProgram.of(
        -np.ones(jobs), np.zeros(jobs), np.full(jobs, INF), table, np.full(jobs + 1, -INF), sides
    )
    assert Gate().solve(program).method == "folded"
    right = getattr(Folded, side)
    monkeypatch.setattr(Folded, side, lambda self, values: 1.1 * right(self, values))
    answer = Gate().solve(program)
    assert answer.objective == pytest.approx(-jobs / 2)
    assert [each.method for each in answer.fallbacks] == ["folded"]


# ----------------------------------------------------------------------- what a builder reads

LIMIT = 3
LIST = [1, 2]


def test_a_function_that_reads_nothing_or_constants_is_known() -> None:
    def plain(x: int) -> int:
        return x + 1

    def constant(x: int) -> int:
        def inner() -> int:
            return x + LIMIT

        return inner() + int(np.sqrt(x))

    assert values_read(plain) == (plain.__code__,)
    assert 3 in values_read(constant)  # type: ignore[operator]
    assert values_read(partial(plain, 1)) is not None


def test_a_constant_that_changes_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def constant(x: int) -> int:
        return x + LIMIT

    before = values_read(constant)
    monkeypatch.setitem(globals(), "LIMIT", 4)
    assert values_read(constant) != before


def plus(x: int) -> int:
    return x + LIMIT


def times(x: int) -> int:
    return x * LIMIT


def test_another_function_by_the_same_name_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(x: int) -> int:
        return plus(x)

    before = values_read(build)
    assert values_read(build) == before
    monkeypatch.setitem(globals(), "plus", times)
    assert values_read(build) != before


class Mutable:
    LIMIT = 3


def test_what_may_change_is_not_trusted() -> None:
    mine = [1]
    assert values_read(lambda x: x + Mutable.LIMIT) is None
    assert values_read(lambda x: np.float64(x)) is not None
    assert values_read(lambda x: x + LIST[0]) is None
    assert values_read(lambda x: x + mine[0]) is None
    assert values_read(lambda x, y=[]: x) is None
    assert values_read(warnings) is not None
    assert values_read(object()) is None

    class Callable:
        def __call__(self, x: int) -> int:
            return x

    assert values_read(Callable()) is None
