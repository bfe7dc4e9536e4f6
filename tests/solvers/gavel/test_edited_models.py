"""An edit of a model takes effect at every size: every allocation is an answer to the model as it stands."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.models import gavel
from shadowprice.models.gavel import Shape
from shadowprice.models.tracing import traced
from shadowprice.solvers.gavel.allocate import allocate
from shadowprice.solvers.gavel.explain import explain
from shadowprice.solvers.gavel.programme import Programme, data_of
from shadowprice.solvers.gavel.rates import Rates
from shadowprice.solvers.gavel.workspace import Workspace, asked
from shadowprice.solvers.programs.compile import SolverOptions, SolverWarning
from shadowprice.solvers.registry import allocation

pytestmark = pytest.mark.filterwarnings(
    "ignore::shadowprice.solvers.programs.compile.SolverWarning"
)

Build = Callable[[Shape], pyo.ConcreteModel]
Edit = Callable[[Any, Shape, float], None]

SIZES = (10, 100, 1000)


def problem_of(seed: int, jobs: int, *, kinds: int = 0, pairs: bool = False) -> AllocationProblem:
    """Jobs all different, or of a few kinds; users, and data that models of one's own ask for."""
    random = np.random.default_rng(seed)
    of = random.integers(0, kinds, jobs) if kinds else np.arange(jobs)
    rates = random.uniform(0.1, 20.0, (max(kinds, jobs), 2))[of]
    gang = random.choice([1, 1, 1, 2], max(kinds, jobs))[of]
    shared = Pairs.none(2)
    if pairs:
        first, second = np.triu_indices(jobs, 1)
        equal = gang[first] == gang[second]
        first, second = first[equal], second[equal]
        factors = random.uniform(0.4, 0.9, (2, len(first), 2))
        shared = Pairs(first, second, rates[first] * factors[0], rates[second] * factors[1])
    return AllocationProblem.from_columns(
        gpu_types=["a", "b"],
        capacity=[jobs // 4 + 1, jobs // 5 + 1],
        throughput=rates,
        gpus=gang,
        steps=random.uniform(10, 100, max(kinds, jobs))[of],
        entity=[f"user{k}" for k in random.integers(0, 3, jobs)],
        price=[1.0, 3.0],
        pairs=shared,
        job_data={"most": random.uniform(0.05, 0.9, jobs)},
        data={"user_cap": random.uniform(0.2, 0.5, 3) * jobs},
    )


# Edits that a researcher makes; each takes a model, its shape and a number from 0 to 1.


def cap_on_a_variable(m: Any, shape: Shape, u: float) -> None:
    where = shape.jobs[int(u * (len(shape.jobs) - 1))]
    m.extra = pyo.Constraint(expr=m.x[where, "a"] + m.x[where, "b"] <= 0.2 + 0.3 * u)


def cap_on_all_variables(m: Any, shape: Shape, u: float) -> None:
    m.extra = pyo.Constraint(m.M, m.J, rule=lambda m, i, j: m.x[i, j] <= 0.1 + 0.4 * u)


def floor(m: Any, shape: Shape, u: float) -> None:
    m.extra = pyo.Constraint(m.M, rule=lambda m, i: m.x[i, "a"] + m.x[i, "b"] >= 0.1 * u)


def tie(m: Any, shape: Shape, u: float) -> None:
    first, other = shape.jobs[0], shape.jobs[1 + int(u * (len(shape.jobs) - 2))]
    m.extra = pyo.Constraint(expr=m.x[first, "a"] == m.x[other, "a"])


def cap_on_the_objective(m: Any, shape: Shape, u: float) -> None:
    if m.find_component("t") is not None:
        m.extra = pyo.Constraint(expr=m.t <= u * 0.05)
    else:
        m.extra = pyo.Constraint(expr=sum(m.x[i, "b"] for i in m.M) <= u * len(shape.jobs) / 10)


def changed_coefficient(m: Any, shape: Shape, u: float) -> None:
    m.del_component(m.workers)
    m.workers = pyo.Constraint(
        m.A,
        rule=lambda m, a: (
            sum((1 + u) * m.s[i] * m.x[i, j] for j in m.types_of[a] for i in m.M)
            + (sum(m.s2[p] * m.y[p, j] for j in m.types_of[a] for p in m.P) if shape.pairs else 0)
            <= m.W[a]
        ),
    )


def new_parameter(m: Any, shape: Shape, u: float) -> None:
    m.most = pyo.Param(m.M, mutable=True)
    m.extra = pyo.Constraint(m.M, rule=lambda m, i: m.x[i, "a"] <= m.most[i])


def cap_of_users(m: Any, shape: Shape, u: float) -> None:
    gavel.users(m, shape)
    m.user_cap = pyo.Param(m.U, mutable=True)
    m.extra = pyo.Constraint(
        m.U,
        rule=lambda m, user: (
            sum(m.s[i] * m.x[i, j] for i in m.jobs_of[user] for j in m.J) <= m.user_cap[user] * u
        ),
    )


def new_variable(m: Any, shape: Shape, u: float) -> None:
    m.idle = pyo.Var(m.A, bounds=(u, None))
    m.extra = pyo.Constraint(
        m.A,
        rule=lambda m, a: (
            sum(m.s[i] * m.x[i, j] for j in m.types_of[a] for i in m.M) + m.idle[a] <= m.W[a]
        ),
    )


def changed_objective(m: Any, shape: Shape, u: float) -> None:
    m.del_component(m.objective)
    m.objective = pyo.Objective(
        expr=u * sum(m.T[i, j] * m.x[i, j] for i in m.M for j in m.J)
        + (m.t if m.find_component("t") is not None else 0),
        sense=pyo.maximize,
    )


EDITS: tuple[Edit, ...] = (
    cap_on_a_variable,
    cap_on_all_variables,
    floor,
    tie,
    cap_on_the_objective,
    changed_coefficient,
    new_parameter,
    cap_of_users,
    new_variable,
    changed_objective,
)


def edited(base: Build, edit: Edit, u: float) -> Build:
    def build(shape: Shape) -> pyo.ConcreteModel:
        m = base(shape)
        with traced():
            edit(m, shape, u)
        return m

    return build


@dataclass(frozen=True)
class Written:
    """HiGHS on the rows that Pyomo writes as text, rule by rule and index by index."""

    value: float | None

    @classmethod
    def of(cls, build: Build, shape: Shape, data: dict[str, np.ndarray]) -> Written:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(gavel, "traced", nullcontext)
            patched.setitem(globals(), "traced", nullcontext)
            model = _empty_params_given(build, shape, data)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.lp"
            model.write(str(path), format="lp")
            highs = highspy.Highs()
            highs.setOptionValue("output_flag", False)
            highs.readModel(str(path))
            highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return cls(None)
        return cls(highs.getInfo().objective_function_value)


def _empty_params_given(build: Build, shape: Shape, data: dict[str, np.ndarray]) -> Any:
    """The model with its Params filled; mutable ones may be read only once they have values."""
    model = build(shape)
    for name, values in asked(model, data).items():
        parameter = model.find_component(name)
        if parameter.is_indexed():
            keys = list(parameter.index_set())
            parameter.store_values(
                dict(zip(keys, np.asarray(values).reshape(-1).tolist(), strict=True))
            )
        else:
            parameter.store_values(float(values))
    return model


def data_for(name: str, problem: AllocationProblem) -> tuple[Rates, dict[str, np.ndarray]]:
    """What the policy of a programme gives it, made here by hand."""
    rates = Rates.of(problem)
    further: dict[str, np.ndarray] = {
        "max_min_fairness:aware=true": {"r": problem.weight * rates.proportional / problem.gpus},
        "min_total_duration:aware=true": {"r": problem.steps},
        "max_sum_throughput:aware=true": {"v": rates.alone, "f": np.zeros(len(problem))},
    }[name]
    return rates, {**data_of(problem), **rates.data(), **further}


BASES = {
    "max_min_fairness:aware=true": gavel.max_min,
    "min_total_duration:aware=true": gavel.max_min,
    "max_sum_throughput:aware=true": gavel.max_total,
}


def holds(name: str, problem: AllocationProblem, build: Build) -> None:
    rates, data = data_for(name, problem)
    expected = Written.of(build, rates.shape(), data).value
    policy = replace(allocation(name), model=build)
    if expected is None:
        with pytest.raises(SolverError, match="infeasible"):
            policy.allocate(problem, Workspace())
        return
    found = policy.allocate(problem, Workspace())
    found.verify()
    value, bound = found.objective, found.bound
    if name == "min_total_duration:aware=true":
        value = 1.0 / value
        bound = None if bound is None else 1.0 / bound
    assert value == pytest.approx(expected, rel=1e-5, abs=1e-9)
    # No solver's word: the bound is on the other side, and as near.
    assert bound is not None
    assert bound >= value * (1 - 1e-7) - 1e-12
    assert bound == pytest.approx(value, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("name", sorted(BASES))
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_an_edit_takes_effect(name: str, edit: Edit) -> None:
    @settings(max_examples=3)
    @given(st.integers(0, 10**6), st.floats(0.05, 1.0), st.integers(0, 4))
    def law(seed: int, u: float, kinds: int) -> None:
        holds(name, problem_of(seed, 10, kinds=kinds), edited(BASES[name], edit, u))

    law()


# Each edit at both sizes, with and without kinds; nightly all four.
SIZED = [
    pytest.param(
        edit,
        kinds,
        jobs,
        marks=[pytest.mark.slow] if (k + a + b) % 2 else [],
        id=f"{edit.__name__}-{kinds}-{jobs}",
    )
    for k, edit in enumerate(EDITS)
    for a, kinds in enumerate((0, 5))
    for b, jobs in enumerate(SIZES[1:])
]


@pytest.mark.parametrize(("edit", "kinds", "jobs"), SIZED)
def test_an_edit_takes_effect_at_every_size(edit: Edit, kinds: int, jobs: int) -> None:
    """With 100 and 1,000 jobs structured methods would have answered the model as it was."""
    problem = problem_of(jobs + kinds, jobs, kinds=kinds)
    holds("max_min_fairness:aware=true", problem, edited(gavel.max_min, edit, 0.37))


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_an_edit_takes_effect_with_space_sharing(edit: Edit) -> None:
    """Also where only pairs that pay are given to the solver."""
    problem = problem_of(3, 40, pairs=True)
    build = edited(gavel.max_min, edit, 0.37)
    rates = Rates.of(problem, packed=True)
    data = {**data_of(problem), **rates.data()}
    data["r"] = problem.weight * rates.proportional / problem.gpus
    expected = Written.of(build, rates.shape(), data).value
    policy = replace(allocation("max_min_fairness:aware=true,packed=true"), model=build)
    found = policy.allocate(problem, Workspace())
    assert found.objective == pytest.approx(expected, rel=1e-5)


# ------------------------------------------------------------------- what was found wrong, by hand


def level_at_most(limit: float) -> Build:
    return edited(gavel.max_min, lambda m, shape, u: _limited(m, limit), 0.0)


def _limited(m: Any, limit: float) -> None:
    m.limit = pyo.Constraint(expr=m.t <= limit)


@pytest.mark.parametrize("jobs", [20, 200, 2000])
def test_a_level_is_capped_in_the_models_own_units(jobs: int) -> None:
    problem = problem_of(0, jobs)
    assert allocate(problem).objective > 0.02
    found = allocate(problem, model=level_at_most(0.01))
    assert found.objective == pytest.approx(0.01, rel=1e-9)
    assert found.bound == pytest.approx(0.01, rel=1e-6)


def test_what_stood_down_is_said_once_with_the_row() -> None:
    problem = problem_of(0, 200)
    with pytest.warns(SolverWarning, match="block-arrow was not used, row limit bounds") as caught:
        found = allocate(problem, model=level_at_most(0.01))
    assert len(caught) == 1
    assert any("block-arrow was not used" in note for note in found.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SolverWarning)
        allocate(problem)


def test_four_equal_jobs_get_the_cap_each() -> None:
    """They are one row where nothing tells them apart; that row's cap is not theirs."""
    problem = AllocationProblem.from_columns(gpu_types=["a"], capacity=[4], throughput=[[1.0]] * 4)
    capped = edited(
        gavel.max_min,
        lambda m, shape, u: m.add_component(
            "cap", pyo.Constraint(m.M, rule=lambda m, i: m.x[i, "a"] <= 0.3)
        ),
        0.0,
    )
    np.testing.assert_allclose(allocate(problem, model=capped).alone, 0.3, rtol=1e-9)


def test_a_workspace_knows_other_users() -> None:
    workspace = Workspace()
    for users in (["u", "u", "v"], ["u", "v", "v"], ["u", "u", "v"]):
        problem = AllocationProblem.from_columns(
            gpu_types=["a"], capacity=[3], throughput=[[1.0]] * 3, entity=users
        )
        policy = replace(allocation("max_sum_throughput:aware=true"), model=_total_by_user)
        found = policy.allocate(problem, workspace)
        for user in set(users):
            mine = np.array(users) == user
            assert found.alone[mine].sum() == pytest.approx(1.0)


def _total_by_user(shape: Shape) -> pyo.ConcreteModel:
    """Users are sets of the model: another call may have others."""
    m = gavel.max_total(shape)
    with traced():
        gavel.users(m, shape)
        m.cap = pyo.Constraint(
            m.U, rule=lambda m, u: sum(m.x[i, j] for i in m.jobs_of[u] for j in m.J) <= 1.0
        )
    return m


CAP = [0.2]


def _reads_a_list(shape: Shape) -> pyo.ConcreteModel:
    m = gavel.max_min(shape)
    m.t.setub(CAP[0])
    return m


def test_a_model_that_reads_what_changes_is_built_again() -> None:
    workspace = Workspace()
    policy = replace(allocation("max_min_fairness:aware=true"), model=_reads_a_list)
    problem = problem_of(0, 6)
    try:
        for cap in (0.02, 0.01):
            CAP[0] = cap
            assert policy.allocate(problem, workspace).objective == pytest.approx(cap)
    finally:
        CAP[0] = 0.2


def test_a_parameter_without_data_is_named() -> None:
    def build(shape: Shape) -> pyo.ConcreteModel:
        m = gavel.max_min(shape)
        with traced():
            m.quota = pyo.Param(m.M, mutable=True)
            m.extra = pyo.Constraint(m.M, rule=lambda m, i: m.x[i, "a"] <= m.quota[i])
        return m

    with pytest.raises(
        InputError, match=r"'quota' has no values.*there are data for.*most.*user_cap"
    ):
        allocate(problem_of(0, 5), model=build)


def test_steps_are_for_policies_that_need_them() -> None:
    def build(shape: Shape) -> pyo.ConcreteModel:
        m = gavel.max_min(shape)
        with traced():
            m.steps = pyo.Param(m.M, mutable=True)
            m.extra = pyo.Constraint(m.M, rule=lambda m, i: m.x[i, "a"] <= m.steps[i] / 1000)
        return m

    problem = problem_of(0, 5)
    allocate(problem, "min_total_duration:aware=true", model=build)
    with pytest.raises(InputError, match="'steps' has no values"):
        allocate(problem, "max_min_fairness:aware=true", model=build)


def test_data_of_a_wrong_shape_are_named() -> None:
    def build(shape: Shape) -> pyo.ConcreteModel:
        m = gavel.max_min(shape)
        with traced():
            m.user_cap = pyo.Param(m.M, mutable=True)
            m.extra = pyo.Constraint(m.M, rule=lambda m, i: m.x[i, "a"] <= m.user_cap[i])
        return m

    with pytest.raises(InputError, match=r"'user_cap': an array of shape \(3,\), expected \(5,\)"):
        allocate(problem_of(0, 5), model=build)


@pytest.mark.parametrize("name", ["water_filling:aware=true", "finish_time_fairness:aware=true"])
def test_policies_that_move_needs_refuse_a_level_that_is_more(name: str) -> None:
    with pytest.raises(
        InputError, match=r"t is in limit as well; max_min_fairness:aware=true solves it"
    ):
        allocate(problem_of(0, 5), name, model=level_at_most(0.01))


def test_water_filling_raises_levels_of_an_edited_model() -> None:
    """Two jobs on a GPU each, one of them capped at half of its time: the other goes on to 1."""
    problem = AllocationProblem.from_columns(gpu_types=["a"], capacity=[2], throughput=[[1.0]] * 2)

    def build(shape: Shape) -> pyo.ConcreteModel:
        m = gavel.max_min(shape)
        m.cap = pyo.Constraint(expr=m.x["0", "a"] <= 0.5)
        return m

    found = allocate(problem, "water_filling:aware=true", model=build)
    np.testing.assert_allclose(found.alone[:, 0], [0.5, 1.0], rtol=1e-6)
    assert "row cap, price" in explain(found)[0]


def test_explanations_name_the_added_row() -> None:
    problem = problem_of(1, 6)
    said = explain(allocate(problem, model=level_at_most(0.01)))
    assert all("bounded by row limit, price 1" in sentence for sentence in said)


def test_an_agnostic_policys_programme_takes_edits_too() -> None:
    problem = problem_of(2, 12)
    found = allocate(problem, "max_min_fairness", model=level_at_most(0.01))
    assert found.objective == pytest.approx(0.01)


def test_a_policy_without_a_model_says_so() -> None:
    with pytest.raises(InputError, match="'isolated' solves no model that could be another"):
        allocate(problem_of(0, 3), "isolated", model=gavel.max_min)


def test_the_price_of_the_check_is_part_of_the_time_that_is_told() -> None:
    problem = problem_of(0, 400)
    rates = Rates.of(problem)
    workspace = Workspace(SolverOptions(time_limit_s=60.0))
    Programme.of(gavel.max_min, problem, rates, workspace).solve(r=np.ones(400))
    assert workspace.solves == 1
    assert workspace.solver_s > 0
