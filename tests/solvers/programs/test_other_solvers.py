"""Solvers can be exchanged: whoever proposes, the same rule says whether an answer is certified."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import SolverError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocate import allocate
from shadowprice.solvers.programs import other_solvers
from shadowprice.solvers.programs.compile import compile_model
from shadowprice.solvers.programs.gate import Gate
from shadowprice.solvers.programs.linear_program import LinearProgram
from shadowprice.solvers.programs.solution import (
    HIGHS_METHODS,
    METHODS,
    PYOMO_SOLVERS,
    Infeasible,
    OptimalityEvidence,
    SolverOptions,
    Status,
    Unbounded,
)

INF = float("inf")

HERE = [*HIGHS_METHODS, "pyomo:highs", "scip"]
"""Solvers that can be tested without a licence or a GPU; SCIP where it is installed."""


@pytest.fixture(params=HERE)
def method(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "scip":
        pytest.importorskip("pyscipopt", reason="SCIP is an extra: pip install 'shadowprice[scip]'")
    return name


def knapsack(seed: int, *, whole: bool, maximise: bool) -> LinearProgram:
    random = np.random.default_rng(seed)
    rows, columns = 3, 6
    sign = 1.0 if maximise else -1.0
    return LinearProgram.of(
        sign * random.integers(1, 20, columns),
        np.zeros(columns),
        np.full(columns, 3.0),
        random.integers(0, 9, (rows, columns)).astype(float),
        np.full(rows, -INF),
        random.integers(5, 40, rows).astype(float),
        maximise=maximise,
        whole=whole,
    )


@pytest.mark.parametrize("whole", [False, True])
def test_every_solver_finds_the_optimum_and_is_certified(method: str, whole: bool) -> None:
    @settings(max_examples=5)
    @given(st.integers(0, 10**6), st.booleans())
    def law(seed: int, maximise: bool) -> None:
        program = knapsack(seed, whole=whole, maximise=maximise)
        expected = Gate().solve(program)
        found = Gate().solve(program, SolverOptions(method=method))
        assert found.objective == pytest.approx(expected.objective, rel=1e-5)
        assert found.status is Status.OPTIMAL
        assert found.evidence is OptimalityEvidence.PROVEN
        side = found.bound - found.objective
        assert (side if maximise else -side) >= -1e-6 * abs(found.objective)

    law()


def test_every_solver_gives_the_same_allocation(method: str) -> None:
    random = np.random.default_rng(0)
    problem = AllocationProblem.from_columns(
        gpu_types=["a", "b"], capacity=[3, 4], throughput=random.uniform(0.1, 9, (12, 2))
    )
    for policy in ("max_min_fairness:aware=true", "water_filling:aware=true"):
        expected = allocate(problem, policy)
        found = allocate(problem, policy, SolverOptions(method=method))
        assert found.objective == pytest.approx(expected.objective, rel=1e-5)
        assert found.certified


def test_what_cannot_hold_is_named(method: str) -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, 5))
    model.low = pyo.Constraint(expr=model.x >= 3)
    model.high = pyo.Constraint(expr=2 * model.x <= 4)
    model.objective = pyo.Objective(expr=model.x)
    with pytest.raises(Infeasible, match=r"low, high|high, low"):
        compile_model(model).solve(SolverOptions(method=method))


@pytest.mark.parametrize("method", ["pyomo:highs", "scip", "highs-simplex"])
def test_what_has_no_limit_is_said(method: str) -> None:
    if method == "scip":
        pytest.importorskip("pyscipopt", reason="SCIP is an extra")
    model = pyo.ConcreteModel()
    model.x, model.y = pyo.Var(bounds=(0, None)), pyo.Var(bounds=(0, None))
    model.row = pyo.Constraint(expr=model.x - model.y <= 1)
    model.objective = pyo.Objective(expr=model.x, sense=pyo.maximize)
    with pytest.raises((Unbounded, SolverError), match=r"unbounded|infeasible, and nothing"):
        compile_model(model).solve(SolverOptions(method=method))


def is_here(method: str) -> bool:
    return bool(pyo.SolverFactory(PYOMO_SOLVERS[method]).available(exception_flag=False))


@pytest.mark.parametrize("method", sorted(PYOMO_SOLVERS))
def test_a_solver_that_is_not_there_is_said_in_a_line(method: str) -> None:
    """Without a licence or a GPU there is no answer by another solver in its place."""
    if is_here(method):
        pytest.skip("it is installed")
    with pytest.raises(SolverError, match=f"^solver {PYOMO_SOLVERS[method]} is not there: .*$"):
        Gate().solve(knapsack(0, whole=False, maximise=True), SolverOptions(method=method))


@pytest.mark.parametrize("method", sorted(PYOMO_SOLVERS))
def test_a_solver_that_is_there_agrees(method: str) -> None:
    if not is_here(method):
        pytest.skip("no installation, licence or GPU here")
    program = knapsack(0, whole=False, maximise=True)
    expected = Gate().solve(program).objective
    found = Gate().solve(program, SolverOptions(method=method)).objective
    assert found == pytest.approx(expected, rel=1e-5)


def test_a_solver_that_nobody_knows() -> None:
    with pytest.raises(SolverError, match=f"'hihgs', expected one of {METHODS[0]}, {METHODS[1]}"):
        SolverOptions(method="hihgs")
    with pytest.raises(SolverError, match="nosuch"):
        Gate().solve(knapsack(0, whole=False, maximise=True), SolverOptions(method="pyomo:nosuch"))


class Imprecise:
    """A solver that calls optimal what is a little off, as single precision may."""

    def __init__(self, error: float) -> None:
        self.error = error

    def solve(self, program: LinearProgram, options: Any, start: Any = None) -> Any:
        found = Gate().solve(program)
        return found.__class__(
            Status.OPTIMAL,
            found.objective,
            found.objective,
            found.primal * (1 - self.error),
            found.duals * (1 + self.error),
            method="imprecise",
        )


@pytest.mark.parametrize(("error", "certified"), [(1e-8, True), (1e-3, False)])
def test_precision_decides_not_the_solvers_word(
    error: float, certified: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_solvers, "backend", lambda method: Imprecise(error))
    program = knapsack(5, whole=False, maximise=True)
    found = Gate().solve(program, SolverOptions(method="cuopt"))
    assert (found.status is Status.OPTIMAL) == certified
    assert (found.evidence is OptimalityEvidence.PROVEN) == certified
    # Whatever the multipliers are, the bound that they prove holds.
    assert found.bound >= Gate().solve(program).objective * (1 - 1e-9)
    problem = AllocationProblem.from_columns(
        gpu_types=["a"], capacity=[2], throughput=[[1.0], [2.0], [3.0]]
    )
    told = allocate(problem, options=SolverOptions(method="cuopt"))
    assert told.certified == certified
    assert certified or "not certified: nothing but cuopt says" in told.notes[-1]
