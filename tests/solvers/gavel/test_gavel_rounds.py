"""Gavel's rounds: who runs is the plain greedy choice, and one model serves any number of jobs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.names import Names
from shadowprice.models import gavel
from shadowprice.models.arrays import tuples
from shadowprice.models.gavel import Shape
from shadowprice.models.tracing import traced
from shadowprice.solvers.gavel import workspace as workspace_module
from shadowprice.solvers.gavel.rounds import Combinations, select
from shadowprice.solvers.gavel.workspace import Workspace, asked
from shadowprice.solvers.programs.compile import CompiledModel, compile_model

few = st.integers(0, 3).map(float)
"""Keys of which many are equal."""


@st.composite
def queues(draw: st.DrawFn) -> tuple[Combinations, list[Any], Any]:
    """Jobs alone, sometimes pairs of them, keys with ties, and capacities."""
    jobs, types = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    gang = np.array(draw(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=jobs, max_size=jobs)))
    pairs = [(i, j) for i in range(jobs) for j in range(i) if gang[i] == gang[j]]
    some = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=4)) if pairs else []
    first = np.array([*range(jobs), *(j for _, j in some)])
    second = np.array([*range(jobs), *(i for i, _ in some)])
    size = len(first) * types

    def table(numbers: st.SearchStrategy[Any]) -> Any:
        return np.array(draw(st.lists(numbers, min_size=size, max_size=size))).reshape(-1, types)

    rows = Combinations(first, second, gang[first], table(st.booleans()))
    capacity = np.array(draw(st.lists(st.integers(0, 12), min_size=types, max_size=types)))
    return rows, [table(few) for _ in range(3)], capacity


@given(queue=queues(), one_queue=st.booleans(), only_positive=st.booleans())
def test_who_runs_is_the_greedy_choice(
    queue: tuple[Combinations, list[Any], Any], one_queue: bool, only_positive: bool
) -> None:
    rows, keys, capacity = queue
    types = range(len(capacity))
    left, taken, expected = capacity.tolist(), set[int](), []
    for served in [types] if one_queue else [[j] for j in types]:
        entries = [(m, j) for j in served for m in range(len(rows)) if rows.runnable[m, j]]
        entries.sort(key=lambda at: tuple(-key[at] for key in keys))
        for m, j in entries:
            both = {int(rows.first[m]), int(rows.second[m])}
            fits = rows.gpus[m] <= left[j] and not both & taken
            if fits and (not only_positive or keys[0][m, j] > 0):
                left[j] -= rows.gpus[m]
                taken |= both
                expected.append((m, j))
    chosen = select(rows, keys, capacity, one_queue=one_queue, only_positive=only_positive)
    assert list(zip(chosen.row.tolist(), chosen.gpu_type.tolist(), strict=True)) == expected


def test_of_equals_the_earlier_run() -> None:
    jobs = np.arange(500)
    rows = Combinations(jobs, jobs, np.ones_like(jobs), np.ones((500, 1), dtype=bool))
    best, alike = np.zeros((500, 1)), np.zeros((500, 1))
    best[::7] = 2.0
    best[3::7] = 1.0
    alike[14], alike[10] = 1.0, 1.0
    expected = [14, *(j for j in range(0, 500, 7) if j != 14), 10, 3, 17]
    chosen = select(rows, [best, alike], np.array([75]))
    assert chosen.row.tolist() == expected


def data(shape: Shape, seed: int) -> dict[str, Any]:
    """Values of all Params that the models have."""
    rng = np.random.default_rng(seed)
    table = {name: rng.uniform(1.0, 2.0, (len(shape.jobs), len(shape.types))) for name in "Tvc"}
    column = {name: rng.uniform(0.1, 0.2, len(shape.jobs)) for name in "srf"}
    return {**table, **column, "W": np.full(len(shape.accelerators), 3.0)}


def numbered(word: str, jobs: int) -> Shape:
    """Jobs with names by a word, on two GPU types."""
    return Shape(Names.numbered(word, jobs), ("v100", "k80"))


@pytest.mark.parametrize("build", gavel.OF_ANY_SIZE)
def test_one_model_serves_any_number_of_jobs(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []

    def counted(shape: Shape) -> Any:
        built.append(len(shape.jobs))
        return build(shape)

    monkeypatch.setattr(gavel, "OF_ANY_SIZE", (counted,))
    monkeypatch.setattr("shadowprice.solvers.gavel.workspace.OF_ANY_SIZE", (counted,))
    workspace, solved = Workspace(), {}
    for jobs in (4, 7, 3, 7, 4, 90, 7):
        shape = numbered(f"round{len(solved)}", jobs)
        numbers = data(shape, seed=len(solved))
        # A function that reads a list is built for every solve: the shared model is for others.
        monkeypatch.setattr("shadowprice.solvers.gavel.workspace.values_read", lambda _: ())
        found = workspace.solve(counted, shape, numbers)
        own = build(shape)
        fresh = compile_model(own, asked(own, numbers))
        same(found.compiled, fresh)
        assert found.value("x").shape == (jobs, 2)
        for name in ("x", "time", "workers"):
            mine, theirs = found.model.component(name), own.component(name)
            at = found.compiled.place(mine)
            np.testing.assert_array_equal(at, fresh.place(theirs))
            values = np.arange(1.0 + at.max())
            parts = [
                each._translation.part(values, part)
                for each, part in ((found.compiled, mine), (fresh, theirs))
            ]
            np.testing.assert_array_equal(*parts)
        solved[len(solved)] = found
    # With room for more jobs, and once more where that does not suffice; each compared at two sizes.
    assert built == [4, 20, 2, 90, 117, 2]
    # Names are those of a model of exactly these jobs, whatever it was solved for last.
    again, shape = solved[3].compiled, numbered("round6", 7)
    assert again is solved[1].compiled is solved[6].compiled
    same_names(again, compile_model(own := build(shape), asked(own, data(shape, 1))))


def test_pairs_of_other_jobs_name_the_model_that_is_used_again() -> None:
    workspace, pair = Workspace(), (np.array([0]), np.array([2]))
    tables = {name: np.ones((1, 2)) for name in ("T1", "T2")}
    solved, shapes = (
        [],
        [Shape(Names.numbered(word, 3), ("v100", "k80"), (), *pair) for word in ("one", "other")],
    )
    for shape in (*shapes, shapes[0]):
        numbers = data(shape, seed=0) | tables | {"s2": np.ones(1)}
        solved.append(workspace.solve(gavel.max_min, shape, numbers))
        again = solved[-1].compiled
        assert again is solved[0].compiled
        own = gavel.max_min(shape)
        same_names(again, compile_model(own, asked(own, numbers)))


def test_models_of_any_size_that_are_used_in_turn_have_their_own_numbers() -> None:
    """Arrays of the larger model are shared: what is not given anew is filled in again."""
    larger, shapes = numbered("job", 9), [numbered("one", 5), numbered("other", 3)]
    model, numbers = gavel.max_min(larger), [data(shape, seed=k) for k, shape in enumerate(shapes)]
    whole = compile_model(model, asked(model, data(larger, seed=2)))
    firsts = [
        whole.first(model.M, len(shape.jobs), asked(model, own), lambda s=shape: gavel.max_min(s))
        for shape, own in zip(shapes, numbers, strict=True)
    ]
    for _ in range(2):
        for compiled, shape, own in zip(firsts, shapes, numbers, strict=True):
            own["s"] = own["s"] + 1.0
            compiled.set(s=own["s"])
            alone = gavel.max_min(shape)
            same(compiled, compile_model(alone, asked(alone, own)))
    with pytest.raises(InputError, match=r"'s': an array of shape \(9,\), expected \(5,\)"):
        firsts[0].set(s=np.ones(9))
    with pytest.raises(InputError, match="has no Param 'q'"):
        firsts[0].set(q=1.0)
    same(firsts[0], compile_model(one := gavel.max_min(shapes[0]), asked(one, numbers[0])))


def test_members_without_a_row_have_none_in_the_model_of_the_first_either() -> None:
    def build(size: int) -> Any:
        with traced():
            m = pyo.ConcreteModel(name="skips")
            m.M = tuples(np.arange(size))
            m.c = pyo.Param(m.M, mutable=True)
            m.k = pyo.Param(mutable=True)
            m.x = pyo.Var(m.M, bounds=(0, None), dense=False)

            @m.Objective(sense=pyo.maximize)
            def objective(m: Any) -> Any:
                return sum(m.c[i] * m.x[i] for i in m.M)

            @m.Constraint(m.M)
            def most(m: Any, i: int) -> Any:
                return pyo.Constraint.Skip if i == 1 else m.x[i] <= 2

            @m.Constraint()
            def total(m: Any) -> Any:
                return sum(m.x[i] for i in m.M) <= m.k

        return m

    larger, own = build(6), build(4)
    numbers: dict[str, Any] = {"c": np.arange(1.0, 5.0), "k": 5.0}
    compiled = compile_model(larger, {"c": 0.0, "k": 0.0}).first(
        larger.M, 4, numbers, lambda: build(4)
    )
    alone = compile_model(own, numbers)
    same(compiled, alone)
    same_names(compiled, alone)
    assert compiled.place(larger.most).tolist() == alone.place(own.most).tolist() == [0, 1, 2]
    duals = compiled.dual(compiled.solve(), larger.most)
    assert duals.tolist() == alone.dual(alone.solve(), own.most).tolist()
    assert duals[1] == 0.0 < duals[3]
    # What its owner writes into an array is of no matter until it is filled in.
    numbers["c"][:] = 7.0
    compiled.set(k=6.0)
    same(compiled, compile_model(own, {"c": np.arange(1.0, 5.0), "k": 6.0}))


def ends_by_number(m: Any) -> Any:
    return sum(m.x[i, j] for i in m.M for j in m.J) <= len(m.M) / 2


def ends_by_few(m: Any) -> Any:
    return sum(m.x[i, j] for i in m.M for j in m.J) <= min(len(m.M), 4) / 2


def ends_by_last(m: Any) -> Any:
    return sum(m.x[m.M.last(), j] for j in m.J) <= 0.25


def ends_by_value_of_last(m: Any) -> Any:
    return m.x[m.M.first(), "k80"] <= m.s[m.M.last()] / 4


def ends_by_other_set(m: Any) -> Any:
    m.N = pyo.Set(initialize=list(m.M))
    m.z = pyo.Var(m.N, bounds=(0, 1))
    return sum(m.z[i] for i in m.N) + sum(m.x[i, j] for i in m.M for j in m.J) <= 2.5


@pytest.mark.parametrize(
    "rule",
    [ends_by_number, ends_by_few, ends_by_last, ends_by_value_of_last, ends_by_other_set],
)
def test_an_edited_model_is_the_exact_one_for_every_number_of_jobs(
    rule: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edited(shape: Shape) -> Any:
        with traced():
            m = gavel.max_total(shape)
            m.extra = pyo.Constraint(expr=rule(m))
        return m

    monkeypatch.setattr("shadowprice.solvers.gavel.workspace.OF_ANY_SIZE", (edited,))
    workspace = Workspace()
    for jobs in (9, 3, 5, 9, 12, 5):
        shape = numbered("own", jobs)
        numbers = data(shape, seed=jobs) | {"f": np.zeros(jobs)}
        solved = workspace.solve(edited, shape, numbers)
        own = edited(shape)
        fresh = compile_model(own, asked(own, numbers))
        same(solved.compiled, fresh)
        assert solved.solution.objective == fresh.solve().objective


def test_a_model_that_reads_names_has_no_room_for_more_jobs() -> None:
    """Names that a model reads are those of its jobs: with room for more it would read others."""
    jobs = Shape(Names(["ada", "bob", "eve"]), ("v100", "k80"))
    exact = workspace_module._exactly(gavel.max_total, jobs, data(jobs, 0))
    assert workspace_module._room(gavel.max_total, exact, data(jobs, 0)) is not None

    def named(shape: Shape) -> Any:
        m = gavel.max_total(shape)
        if "job-0" in list(shape.jobs):
            m.x["job-0", "k80"].setub(0.0)
        return m

    exact = workspace_module._exactly(named, jobs, data(jobs, 0))
    assert workspace_module._room(named, exact, data(jobs, 0)) is None


def test_entries_of_a_model_with_room_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, entries = Workspace(), []
    for jobs in (4, 5, 6):
        shape = numbered("job", jobs)
        workspace.solve(gavel.max_total, shape, data(shape, seed=0) | {"f": np.zeros(jobs)})
        entries.append(workspace._entries())
    # Rows of time, workers and SLO name every fraction of time once: 3 * 2 a job, and 20 jobs have room.
    assert entries == [6 * (20 + 4), 6 * (20 + 4 + 5), 6 * (20 + 4 + 5 + 6)]
    monkeypatch.setattr("shadowprice.solvers.gavel.workspace.MOST_ENTRIES", 6 * (20 + 6 + 7))
    shape = numbered("job", 7)
    workspace.solve(gavel.max_total, shape, data(shape, seed=0) | {"f": np.zeros(7)})
    assert workspace._entries() == 6 * (20 + 6 + 7)


def same(one: CompiledModel, other: CompiledModel) -> None:
    """Assert that two compiled models are one programme."""
    for name in ("cost", "lower", "upper", "row_lower", "row_upper", "start", "index", "value"):
        np.testing.assert_array_equal(
            getattr(one.program, name), getattr(other.program, name), err_msg=name
        )


def same_names(one: CompiledModel, other: CompiledModel) -> None:
    """Assert that rows and columns have the same names."""
    for mine, theirs in ((one.rows, other.rows), (one.columns, other.columns)):
        assert [each.name for each in mine] == [each.name for each in theirs]
