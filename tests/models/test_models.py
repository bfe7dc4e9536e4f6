"""Every programme in ``shadowprice/models``: what is solved is what its file, edited or not, says.

The arrays that are solved are compared with the rows that Pyomo's own LP writer writes, and the
optimum with that of HiGHS on the written file, which shares no code with the translation.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.models.tracing import traced, why_not_traced
from shadowprice.solvers.programs.compile import SolverWarning, compile_model
from shadowprice.solvers.programs.translation.standard_form import StandardFormModel
from support.compiled_rows import (
    Written,
    assert_same_optimum,
    assert_written_alike,
    objective_of,
)
from support.model_instances import INSTANCES, NOT_TRACED
from support.paths import ROOT

FILES = sorted(
    path.stem
    for path in (ROOT / "shadowprice" / "models").glob("*.py")
    if any(
        isinstance(node, ast.FunctionDef) and "ConcreteModel" in ast.unparse(node.returns or node)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.returns
        if "ConcreteModel" in ast.unparse(node.returns)
    )
)
SIZES, SEEDS = st.integers(1, 4), st.integers(0, 10**6)


def made(name: str, jobs: int, seed: int) -> Any:
    assert name in INSTANCES, (
        f"tests/support/model_instances.py has no instances of shadowprice/models/{name}.py: add a "
        "function that makes one from a number of jobs and a random generator"
    )
    return INSTANCES[name](jobs, np.random.default_rng(seed))


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_traced_or_says_why_not(name: str) -> None:
    for seed in range(8):
        model = made(name, 3, seed)
        assert why_not_traced(model) == {}
        assert compile_model(model).traced or name in NOT_TRACED


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=5)
@given(jobs=SIZES, seed=SEEDS)
def test_arrays_are_what_pyomo_writes(
    name: str, jobs: int, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    model = made(name, jobs, seed)
    compiled = compile_model(model)
    written = Written(model, tmp_path_factory.mktemp("written"))
    assert_written_alike(compiled, written)
    assert_same_optimum(objective_of(compiled), written.objective())


Edit = Callable[[Any, np.random.Generator], None]


def members(model: Any, draw: np.random.Generator, count: int) -> list[Any]:
    """Some members of Vars, made if they were not."""
    variables = [each for each in model.component_objects(pyo.Var) if len(each.index_set())]
    found = []
    for _ in range(count):
        variable = variables[int(draw.integers(0, len(variables)))]
        keys = list(variable.index_set())
        found.append(variable[keys[int(draw.integers(0, len(keys)))]])
    return found


def cap(model: Any, draw: np.random.Generator) -> None:
    total = sum(float(draw.uniform(0.5, 2)) * each for each in members(model, draw, 3))
    model.extra = pyo.Constraint(expr=total <= float(draw.uniform(0, 3)))


def floor(model: Any, draw: np.random.Generator) -> None:
    (one,) = members(model, draw, 1)
    model.extra = pyo.Constraint(expr=one >= float(draw.uniform(0, 0.6)))


def tie(model: Any, draw: np.random.Generator) -> None:
    one, two = members(model, draw, 2)
    if one is not two:
        model.extra = pyo.Constraint(expr=one - two == 0)


def fixing(model: Any, draw: np.random.Generator) -> None:
    (one,) = members(model, draw, 1)
    low, high = one.bounds
    one.fix(high if draw.integers(0, 2) and high is not None else low)


def row_taken_out(model: Any, draw: np.random.Generator) -> None:
    rows = list(model.component_data_objects(pyo.Constraint, active=True))
    rows[int(draw.integers(0, len(rows)))].deactivate()


def coefficient(model: Any, draw: np.random.Generator) -> None:
    changing = [each for each in model.component_objects(pyo.Param) if each.mutable]
    if changing:
        parameter = changing[int(draw.integers(0, len(changing)))]
        keys = list(parameter.index_set()) if parameter.is_indexed() else [None]
        if keys:
            key = keys[int(draw.integers(0, len(keys)))]
            parameter[key] = float(pyo.value(parameter[key])) * float(draw.uniform(0.6, 1.4))


def objective(model: Any, draw: np.random.Generator) -> None:
    (old,) = model.component_data_objects(pyo.Objective, active=True)
    old.deactivate()
    some = sum(float(draw.uniform(-1, 1)) * each for each in members(model, draw, 3))
    model.another = pyo.Objective(expr=old.expr + some, sense=old.sense)


def variable(model: Any, draw: np.random.Generator) -> None:
    (old,) = model.component_data_objects(pyo.Objective, active=True)
    old.deactivate()
    model.slack = pyo.Var(bounds=(0, 4))
    one, two = members(model, draw, 2)
    sign = 1 if old.sense == pyo.minimize else -1
    model.soft = pyo.Constraint(expr=one + two + model.slack >= float(draw.uniform(0, 3)))
    model.another = pyo.Objective(expr=old.expr + sign * 0.3 * model.slack, sense=old.sense)


def rule_and_param(model: Any, draw: np.random.Generator) -> None:
    """A row for each member of a Var but some, with a Param of its own, written as in the files."""
    (some,) = members(model, draw, 1)
    over = some.parent_component()
    if not over.is_indexed():
        return
    keys = list(over.index_set())
    first, last = (key[0] if isinstance(key, tuple) else key for key in (keys[0], keys[-1]))
    with traced():
        model.limit = pyo.Param(over.index_set(), mutable=True, initialize=0.7)
        model.share = pyo.Param(initialize=float(draw.uniform(0.1, 1)), mutable=True)

        @model.Constraint(over.index_set())
        def extra(m: Any, *index: Any) -> Any:
            if index[0] == first:
                return pyo.Constraint.Skip
            return m.share * over[index] <= m.limit[index] + (0.5 if index[0] != last else 0.2)


EDITS: tuple[Edit, ...] = (
    cap,
    floor,
    tie,
    fixing,
    row_taken_out,
    coefficient,
    objective,
    variable,
    rule_and_param,
)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
@pytest.mark.parametrize("name", FILES)
@settings(max_examples=2)
@given(jobs=SIZES, seed=SEEDS)
def test_an_edited_model_is_what_is_solved(
    name: str, edit: Edit, jobs: int, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    model = made(name, jobs, seed)
    edit(model, np.random.default_rng(seed + 1))
    with warnings.catch_warnings():
        if edit is not rule_and_param or name in NOT_TRACED:  # The others are not slower for it.
            warnings.simplefilter("ignore", SolverWarning)
        compiled = compile_model(model)
    written = Written(model, tmp_path_factory.mktemp("written"))
    assert_written_alike(compiled, written)
    assert_same_optimum(objective_of(compiled), written.objective())


CHEAP = ["gandiva", "interval_lp", "synergy", "tiresias", "typed_interval_lp"]


@pytest.mark.parametrize("jobs", [100, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CHEAP)
def test_arrays_of_many_jobs_are_what_pyomo_writes(name: str, jobs: int, tmp_path: Path) -> None:
    model = made(name, jobs, jobs)
    compiled = compile_model(model)
    assert compiled.traced
    assert_written_alike(compiled, Written(model, tmp_path))


@pytest.mark.parametrize("name", FILES)
def test_data_set_on_a_compiled_model_are_those_of_a_new_one(name: str) -> None:
    """Every mutable Param in turn: bounds of columns follow it as well as rows and costs."""
    model = made(name, 3, 5)
    compiled = compile_model(model)
    for parameter in model.component_objects(pyo.Param):
        if not parameter.mutable:
            continue
        keys = list(parameter.index_set()) if parameter.is_indexed() else [None]
        values = {key: 1.5 * float(pyo.value(parameter[key])) + 0.25 for key in keys}
        compiled.set(
            **{
                parameter.name: np.array(list(values.values()))
                if parameter.is_indexed()
                else values[None]
            }
        )
        parameter.store_values(values if parameter.is_indexed() else values[None])
        again = StandardFormModel(model, {}).program
        fresh = compile_model(model).program
        for part in ("cost", "lower", "upper", "row_lower", "row_upper", "value"):
            np.testing.assert_allclose(
                getattr(compiled.program, part), getattr(fresh, part), err_msg=parameter.name
            )
        assert again.columns <= fresh.columns
