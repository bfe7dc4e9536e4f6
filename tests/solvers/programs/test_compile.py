"""Compiling Pyomo models: the two translations agree, data can change, errors speak the model's words."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError, SolverError
from shadowprice.models.tracing import traced
from shadowprice.solvers.programs import compile as compile_module
from shadowprice.solvers.programs.compile import (
    CompiledModel,
    Solution,
    SolverOptions,
    SolverWarning,
    Status,
    compile_model,
)
from shadowprice.solvers.programs.solution import Infeasible, Unbounded
from shadowprice.solvers.programs.translation.standard_form import StandardFormModel
from support.compiled_rows import assert_same_rows, rows_of, turned

Node = tuple[Any, ...]
LETTERS = "abcd"
LOOPS = {"I": "i", "S": "s", "IS": "is", "I,S": "is", "E": "is", "R": "s"}
# Sums that depend on the index of the row: members before it, by a condition or a range, and all
# but it, with a second condition on what is left.
LOOPS |= {"before": "i", "range": "i", "others": "is"}
OF_THE_ROW = {"R", "before", "range", "others"}


@dataclass(frozen=True)
class Row:
    """One constraint: its index set, how it compares, and the two expressions it compares."""

    over: str
    relation: str
    body: Node
    other: Node
    skips: bool = False


@dataclass(frozen=True)
class Recipe:
    """A random linear model; expressions are trees, so that one rule builds it in both ways."""

    low: int
    high: int
    letters: str
    ragged: tuple[str, ...]
    edges: tuple[tuple[int, str], ...]
    rows: tuple[Row, ...]
    objective: Node
    maximise: bool
    integer: bool
    dense: bool


@cache
def numbers(known: str, depth: int) -> st.SearchStrategy[Node]:
    """Trees without variables; ``known`` are the indices bound so far."""
    leaves = [("number", c) for c in (-1.5, 0.25, 2)] + [("d",)]
    leaves += [("B",), ("index",)] if "i" in known else []
    leaves += [("C",), ("C of the first",)] if "s" in known else []
    leaves += [("A",)] if set("is") <= set(known) else []
    leaf = st.sampled_from(leaves)
    if not depth:
        return leaf
    smaller = numbers(known, depth - 1)
    divisor = st.sampled_from([("q",), ("number", 4.0)] + ([("Q",)] if "i" in known else []))
    return st.one_of(
        leaf,
        st.tuples(st.just("over"), smaller, divisor),
        st.tuples(st.just("times"), smaller, smaller),
        sums(known, lambda more: numbers(more, depth - 1)),
        *([st.tuples(st.just("later"), smaller, smaller)] if "i" in known else []),
    )


def sums(known: str, inside: Callable[[str], st.SearchStrategy[Node]]) -> st.SearchStrategy[Node]:
    loops = [loop for loop in LOOPS if loop not in OF_THE_ROW or "i" in known]
    return st.one_of(
        *(
            st.tuples(
                st.just("sum"), st.just(loop), inside("".join(sorted({*known, *LOOPS[loop]})))
            )
            for loop in loops
        )
    )


@cache
def linear(known: str, depth: int) -> st.SearchStrategy[Node]:
    """Trees that are affine in the variables."""
    leaves: list[Node] = [("z",)]
    leaves += [("y",), ("y mirrored",)] if "i" in known else []
    leaves += [("b",)] if "s" in known else []
    leaves += [("x",), ("x of the first",)] if set("is") <= set(known) else []
    leaf = st.sampled_from(leaves)
    if not depth:
        return leaf
    smaller = linear(known, depth - 1)
    return st.one_of(
        leaf,
        st.tuples(st.just("plus"), smaller, smaller),
        st.tuples(st.just("plus"), smaller, numbers(known, 1)),
        st.tuples(st.just("minus"), smaller, smaller),
        st.tuples(st.just("negative"), smaller),
        st.tuples(st.just("times"), numbers(known, 1), smaller),
        st.tuples(st.just("times"), smaller, numbers(known, 1)),
        st.tuples(st.just("over"), smaller, st.just(("q",))),
        st.tuples(
            st.just("times"),
            numbers(known, 0),
            sums(known, lambda more: linear(more, depth - 1)),
        ),
        sums(known, lambda more: linear(more, depth - 1)),
        *([st.tuples(st.just("later"), smaller, smaller)] if "i" in known else []),
    )


@st.composite
def recipes(draw: st.DrawFn, integer: bool | None = None) -> Recipe:
    low, size = draw(st.integers(-2, 3)), draw(st.integers(1, 3))
    letters = LETTERS[: draw(st.integers(1, 3))]
    subset = st.lists(st.sampled_from(letters), unique=True, max_size=3)
    ragged = tuple("".join(draw(subset)) for _ in range(size))
    pairs = [(i, s) for i in range(low, low + size) for s in letters]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1, max_size=4))
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        over = draw(st.sampled_from(["", "I", "S", "I,S", "IS", "E"]))
        known = LOOPS.get(over, "")
        relation = draw(st.sampled_from(["<=", ">=", "==", "range", "both", "left"]))
        other = linear(known, 1) if relation == "both" else numbers(known, 1)
        skips = "i" in known and draw(st.booleans())
        rows.append(Row(over, relation, draw(linear(known, 2)), draw(other), skips))
    whole = draw(st.booleans()) if integer is None else integer
    return Recipe(
        low,
        low + size - 1,
        letters,
        ragged,
        tuple(edges),
        tuple(rows),
        draw(linear("", 2)),
        draw(st.booleans()),
        whole,
        draw(st.booleans()),
    )


def evaluate(node: Node, m: Any, at: Mapping[str, Any]) -> Any:
    """The expression of a tree; indices are whatever Pyomo hands to the rule."""
    i, s, first = at.get("i"), at.get("s"), m.letter
    match node:
        case ("number", value):
            return value
        case ("index",):
            return i
        case ("sum", loop, inside):
            return _sum(loop, inside, m, at)
        case ("negative", part):
            return -evaluate(part, m, at)
        case ("later", left, right):
            # Half of the indices have one expression, half another; none where the other is taken.
            return evaluate(left if 2 * i > m.mirror else right, m, at)
        case (str() as operation, left, right):
            a, b = evaluate(left, m, at), evaluate(right, m, at)
            return {
                "plus": lambda: a + b,
                "minus": lambda: a - b,
                "times": lambda: a * b,
                "over": lambda: a / b,
            }[operation]()
    simple: dict[str, Callable[[], Any]] = {
        "A": lambda: m.A[i, s],
        "B": lambda: m.B[i],
        "C": lambda: m.C[s],
        "C of the first": lambda: m.C[first],
        "Q": lambda: m.Q[i],
        "d": lambda: m.d,
        "q": lambda: m.q,
        "x": lambda: m.x[i, s],
        "x of the first": lambda: m.x[i, first],
        "y": lambda: m.y[i],
        "y mirrored": lambda: m.y[m.mirror - i],
        "b": lambda: m.b[s],
        "z": lambda: m.z,
    }
    return simple[node[0]]()


def _sum(loop: str, inside: Node, m: Any, at: Mapping[str, Any]) -> Any:
    match loop:
        case "I":
            return sum(evaluate(inside, m, {**at, "i": i}) for i in m.I)
        case "S":
            return sum(evaluate(inside, m, {**at, "s": s}) for s in m.S)
        case "before":
            return sum(evaluate(inside, m, {**at, "i": k}) for k in m.I if k < at["i"])
        case "range":
            low = m.low
            return sum(evaluate(inside, m, {**at, "i": k}) for k in range(low, at["i"] + 1))
        case "others":
            return sum(
                evaluate(inside, m, {**at, "i": k, "s": s}) * (2 if k > at["i"] else -1)
                for k in m.I
                if k != at["i"]
                for s in m.R[k]
            )
        case "R":
            return sum(evaluate(inside, m, {**at, "s": s}) for s in m.R[at["i"]])
        case "I,S":
            return sum(evaluate(inside, m, {**at, "i": i, "s": s}) for i in m.I for s in m.S)
    pairs = m.E if loop == "E" else m.IS
    return sum(evaluate(inside, m, {**at, "i": i, "s": s}) for i, s in pairs)


def model_of(recipe: Recipe, *, trace: bool) -> Any:
    """Build the model; every row has a bounded slack of its own, so that most are feasible."""
    m: Any = pyo.ConcreteModel(name="random")
    with traced() if trace else nullcontext():
        m.low, m.mirror = recipe.low, recipe.low + recipe.high
        m.letter = recipe.letters[0]
        m.I = pyo.RangeSet(recipe.low, recipe.high)
        m.S = pyo.Set(initialize=list(recipe.letters))
        m.IS = m.I * m.S
        members = dict(zip(range(recipe.low, recipe.high + 1), recipe.ragged, strict=True))
        m.R = pyo.Set(m.I, initialize={i: list(word) for i, word in members.items()})
        m.E = pyo.Set(dimen=2, initialize=list(recipe.edges))
        m.A, m.B, m.C, m.Q = (
            pyo.Param(*sets, mutable=True) for sets in ((m.I, m.S), (m.I,), (m.S,), (m.I,))
        )
        m.d, m.q = pyo.Param(mutable=True), pyo.Param(mutable=True)
        m.x = pyo.Var(m.I, m.S, bounds=(0, 10), dense=recipe.dense)
        m.y = pyo.Var(m.I, bounds=lambda m, i: (-abs(i), 3 + abs(i)), dense=recipe.dense)
        m.b = pyo.Var(m.S, domain=pyo.Binary if recipe.integer else pyo.UnitInterval, dense=False)
        m.z = pyo.Var(bounds=(-5, 5), domain=pyo.Integers if recipe.integer else pyo.Reals)
        for k, row in enumerate(recipe.rows):
            _add_row(m, k, row)
        m.objective = pyo.Objective(
            rule=lambda m: evaluate(recipe.objective, m, {}) + _costs(m, recipe),
            sense=pyo.maximize if recipe.maximise else pyo.minimize,
        )
    return m


def _costs(m: Any, recipe: Recipe) -> Any:
    """Costs that drive every slack against its row, so that the optimum depends on all rows."""
    total = sum(m.A[i, s] * m.x[i, s] for i in m.I for s in m.S)
    total += sum(m.B[i] * m.y[i] for i in m.I) + m.d * m.z + m.d / m.q
    for k, row in enumerate(recipe.rows):
        slack = getattr(m, f"slack{k}")
        push = -1.7 if (row.relation == "<=") != recipe.maximise else 1.7
        match LOOPS.get(row.over, ""):
            case "":
                total += push * slack
            case "i" | "s":
                total += sum(push * slack[each] for each in slack.index_set())
            case _:
                total += sum(push * slack[i, s] for i, s in slack.index_set())
    return total


def _add_row(m: Any, k: int, row: Row) -> None:
    sets = {"": (), "I": (m.I,), "S": (m.S,), "I,S": (m.I, m.S), "IS": (m.IS,), "E": (m.E,)}[
        row.over
    ]
    slack = pyo.Var(*sets, bounds=(-90, 90), dense=not sets)
    m.add_component(f"slack{k}", slack)

    def rule(m: Any, *index: Any) -> Any:
        index = index if row.over else ()  # Pyomo gives a scalar rule with *index a None.
        at = dict(zip(LOOPS.get(row.over, ""), index, strict=True))
        if row.skips and at["i"] == m.low:
            return pyo.Constraint.Skip
        own = getattr(m, f"slack{k}")
        body = evaluate(row.body, m, at) + 0.3721 * (own[index] if index else own)
        other = evaluate(row.other, m, at)
        return {
            "<=": lambda: body <= other,
            ">=": lambda: body >= other,
            "==": lambda: body == other,
            "both": lambda: body >= other,
            "left": lambda: other <= body,
            "range": lambda: pyo.inequality(other, body, other + 5),
        }[row.relation]()

    m.add_component(f"row{k}", pyo.Constraint(*sets, rule=rule))


def data_of(recipe: Recipe, seed: int) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    rows, columns = recipe.high - recipe.low + 1, len(recipe.letters)

    def some(*shape: int) -> Any:
        values = draw.uniform(-2, 2, shape)
        return np.where(draw.random(shape) < 0.2, 0.0, values)

    return {
        "A": some(rows, columns),
        "B": some(rows),
        "C": some(columns),
        "Q": draw.uniform(0.5, 2, rows),
        "d": float(some()),
        "q": float(draw.uniform(0.5, 2)),
    }


def columns_of(compiled: CompiledModel) -> dict[str, tuple[float, ...]]:
    """Cost, bounds and kind of every column that matters, by name."""
    p = compiled.program
    numbers = zip(p.cost, p.lower, p.upper, p.integer, strict=True)
    return {c.name: tuple(map(float, n)) for c, n in zip(compiled.columns, numbers, strict=True)}


def solved(compiled: CompiledModel) -> Solution | None:
    try:
        return compiled.solve()
    except Infeasible:
        return None


def bound_of(compiled: CompiledModel, duals: Mapping[str, float]) -> float:
    """What prices by name of row prove about the optimum of a programme: weak duality."""
    p, sign = compiled.program, -1.0 if compiled.program.maximise else 1.0
    total = sign * p.offset
    reduced = {name: sign * numbers[0] for name, numbers in columns_of(compiled).items()}
    for name, (entries, low, high) in rows_of(compiled).items():
        price = sign * duals[name]
        price = 0.0 if abs(price) < 1e-9 else price
        total += price * (low if price > 0 else high) if price else 0.0
        for column, value in entries.items():
            reduced[column] -= price * value
    limits = columns_of(compiled)
    for column, cost in reduced.items():
        total += cost * (limits[column][1] if cost > 0 else limits[column][2])
    return sign * total


def duals_by_name(compiled: CompiledModel, solution: Solution, model: Any) -> dict[str, float]:
    found = {}
    for constraint in model.component_objects(pyo.Constraint):
        values = np.atleast_1d(compiled.dual(solution, constraint)).ravel()
        found |= {f"{constraint.name}[{k}]": float(v) for k, v in enumerate(values)}
    return found


def ordinals(model: Any) -> dict[str, str]:
    """Name of each row by constraint and position, the key of :func:`duals_by_name`."""
    found = {}
    for constraint in model.component_objects(pyo.Constraint):
        for k, key in enumerate(constraint.index_set()):
            if key in constraint:
                found[f"{constraint.name}[{k}]"] = constraint[key].name
    return found


@settings(max_examples=15)
@given(recipe=recipes(), seed=st.integers(0, 10**6))
@example(  # A comparison in a sum around another sum: cases of the outer one are not the inner's.
    recipe=Recipe(
        low=0,
        high=0,
        letters="a",
        ragged=("",),
        edges=((0, "a"),),
        rows=(
            Row("I", "<=", ("sum", "before", ("sum", "before", ("z",))), ("number", -1.5), False),
        ),
        objective=("z",),
        maximise=False,
        integer=False,
        dense=False,
    ),
    seed=0,
)
def test_the_template_and_the_fallback_compiler_agree(recipe: Recipe, seed: int) -> None:
    data = data_of(recipe, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SolverWarning)
        quick_model, slow_model = model_of(recipe, trace=True), model_of(recipe, trace=False)
        quick = compile_model(quick_model, data)
    slow = CompiledModel(StandardFormModel(slow_model, data))
    assert quick.traced
    assert_same_rows(rows_of(quick), rows_of(slow))
    mine, others = columns_of(quick), columns_of(slow)
    assert mine.keys() >= others.keys()
    for name, each in mine.items():
        assert each == pytest.approx(others.get(name, (0.0, *each[1:])), rel=1e-9, abs=1e-12)
    assert quick.program.offset == pytest.approx(slow.program.offset)
    one, two = solved(quick), solved(slow)
    assert (one is None) == (two is None)
    if one is None or two is None:
        return
    assert one.objective == pytest.approx(two.objective, rel=1e-6, abs=1e-6)
    if not quick.program.mixed:
        named, other_sign = ordinals(slow_model), turned(rows_of(quick), rows_of(slow))
        for here, there, solution, model in (
            (quick, slow, one, quick_model),
            (slow, quick, two, slow_model),
        ):
            found = duals_by_name(here, solution, model)
            assert all(found[k] == 0.0 for k in found.keys() - named)  # Rows that a rule skips.
            duals = {named[k]: found[k] for k in named}
            crossed = {name: -v if name in other_sign else v for name, v in duals.items()}
            for compiled, prices in ((here, duals), (there, crossed)):
                assert bound_of(compiled, prices) == pytest.approx(
                    one.objective, rel=1e-6, abs=1e-5
                )


@settings(max_examples=13)
@given(
    recipe=recipes(),
    trace=st.booleans(),
    changes=st.lists(
        st.tuples(
            st.lists(st.sampled_from(["A", "B", "C", "Q", "d", "q"]), min_size=1, unique=True),
            st.integers(0, 10**6),
            st.booleans(),
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_setting_data_equals_compiling_again(
    recipe: Recipe, trace: bool, changes: list[tuple[list[str], int, bool]]
) -> None:
    def compiled() -> CompiledModel:
        model = model_of(recipe, trace=trace)
        return (
            compile_model(model, data) if trace else CompiledModel(StandardFormModel(model, data))
        )

    data = data_of(recipe, 0)
    kept = compiled()
    for names, seed, solve in changes:
        if solve:
            solved(kept)
        fresh_data = data_of(recipe, seed)
        data |= {name: fresh_data[name] for name in names}
        kept.set(**{name: data[name] for name in names})
        fresh = compiled()
        assert_same_rows(rows_of(kept), rows_of(fresh))
        for name, each in columns_of(fresh).items():
            assert columns_of(kept)[name] == pytest.approx(each, rel=1e-9, abs=1e-12)
    warm, cold = solved(kept), solved(fresh)
    assume(warm is not None or cold is None)
    if warm is not None:
        assert cold is not None
        assert warm.objective == pytest.approx(cold.objective, rel=1e-7, abs=1e-7)


def transport(*, trace: bool = True, maximise: bool = False, **changes: Any) -> Any:
    """A small model with every kind of row; ``changes`` replace one rule by another."""
    m: Any = pyo.ConcreteModel(name="transport")
    with traced() if trace else nullcontext():
        m.I, m.J = pyo.RangeSet(0, 2), pyo.Set(initialize=["near", "far"])
        m.cost = pyo.Param(m.I, m.J, mutable=True)
        m.have = pyo.Param(m.I, mutable=True)
        m.want = pyo.Param(m.J, mutable=True)
        m.x = pyo.Var(m.I, m.J, bounds=(0, None), dense=False)
        rules = {
            "supply": lambda m, i: sum(m.x[i, j] for j in m.J) <= m.have[i],
            "demand": lambda m, j: sum(m.x[i, j] for i in m.I) == m.want[j],
            "band": lambda m, j: pyo.inequality(0.2, m.x[0, j] - m.x[1, j], 1.5 * m.want[j]),
        } | changes
        m.supply = pyo.Constraint(m.I, rule=rules["supply"])
        m.demand = pyo.Constraint(m.J, rule=rules["demand"])
        m.band = pyo.Constraint(m.J, rule=rules["band"])
        sign = -1 if maximise else 1
        m.total = pyo.Objective(
            rule=lambda m: sum(sign * m.cost[i, j] * m.x[i, j] for i in m.I for j in m.J) + 7,
            sense=pyo.maximize if maximise else pyo.minimize,
        )
    return m


def transport_data() -> dict[str, Any]:
    return {
        "cost": np.array([[3.1, 5.3], [2.2, 4.9], [6.7, 1.4]]),
        "have": np.array([4.0, 6.0, 2.0]),
        "want": np.array([3.0, 5.0]),
    }


def ways() -> list[Any]:
    return [pytest.param(True, id="traced"), pytest.param(False, id="row by row")]


def compiled_transport(trace: bool, **how: Any) -> tuple[Any, CompiledModel]:
    model = transport(trace=trace, **how)
    compiled = compile_model(model, transport_data())
    assert compiled.traced == trace
    return model, compiled


@pytest.mark.parametrize("trace", ways())
@pytest.mark.parametrize("maximise", [False, True])
def test_duals_are_derivatives_of_the_objective(trace: bool, maximise: bool) -> None:
    model, compiled = compiled_transport(trace, maximise=maximise)
    data = transport_data()
    solution = compiled.solve()
    step = 1e-3
    for name, constraint in (("have", model.supply), ("want", model.demand)):
        duals = compiled.dual(solution, constraint)
        assert np.abs(duals).max() > 0.1
        for k in range(len(duals)):
            moved = data[name].copy()
            moved[k] += step
            # The upper sides of band move with want as well; they have duals of the sign of <= rows.
            band = compiled.dual(solution, model.band) * 1.5 * (name == "want")
            upper = band[k % 2] if band[k % 2] * (1 if maximise else -1) > 0 else 0.0
            compiled.set(**{name: moved})
            slope = (compiled.solve().objective - solution.objective) / step
            assert slope == pytest.approx(duals[k] + upper, abs=1e-6)
            compiled.set(**{name: data[name]})


@pytest.mark.parametrize("trace", ways())
def test_duals_of_both_sides_of_a_range(trace: bool) -> None:
    m: Any = pyo.ConcreteModel()
    with traced() if trace else nullcontext():
        m.I = pyo.RangeSet(0, 1)
        m.c = pyo.Param(m.I, mutable=True, initialize={0: 2.0, 1: -3.0})
        m.x = pyo.Var(m.I)
        m.band = pyo.Constraint(m.I, rule=lambda m, i: (1, m.x[i], 4))
        m.total = pyo.Objective(rule=lambda m: sum(m.c[i] * m.x[i] for i in m.I))
    compiled = compile_model(m)
    solution = compiled.solve()
    assert solution.objective == pytest.approx(2 * 1 - 3 * 4)
    np.testing.assert_allclose(compiled.value(solution, m.x), [1, 4])
    np.testing.assert_allclose(compiled.dual(solution, m.band), [2, -3])


@pytest.mark.parametrize("trace", ways())
def test_coefficients_change_between_warm_solves(trace: bool) -> None:
    m: Any = pyo.ConcreteModel()
    with traced() if trace else nullcontext():
        m.I, m.J = pyo.RangeSet(0, 3), pyo.RangeSet(0, 2)
        m.a, m.f = pyo.Param(m.I, m.J, mutable=True), pyo.Param(m.I, mutable=True)
        m.x = pyo.Var(m.I, m.J, bounds=(0, 5))
        # A factor outside the inner sum, another inside, and a constant inside.
        m.row = pyo.Constraint(
            m.I, rule=lambda m, i: m.f[i] * sum(m.a[i, j] * m.x[i, j] + i for j in m.J) <= 40
        )
        m.total = pyo.Objective(
            rule=lambda m: sum(m.x[i, j] for i in m.I for j in m.J), sense=pyo.maximize
        )
    draw = np.random.default_rng(0)
    compiled = None
    for _ in range(6):
        a, f = draw.uniform(1, 4, (4, 3)), draw.uniform(1, 2, 4)
        if compiled is None:
            compiled = compile_model(m, {"a": a, "f": f})
        compiled.set(a=a, f=f)
        left = 40 / f - 3 * np.arange(4)
        expected = 0.0
        for i in range(4):  # A knapsack with fractions: the lightest first.
            for weight in np.sort(a[i]):
                amount = min(5.0, left[i] / weight)
                expected, left[i] = expected + amount, left[i] - amount * weight
        assert compiled.solve().objective == pytest.approx(expected, rel=1e-7)


METHODS = [
    ("auto", True),
    ("highs-simplex", True),
    ("highs-ipx", True),
    ("highs-ipx", False),
    ("highs-pdlp", True),
]


@pytest.mark.parametrize(("method", "crossover"), METHODS)
def test_every_method_finds_the_optimum(method: str, crossover: bool, capfd: Any) -> None:
    model, compiled = compiled_transport(True)
    expected = CompiledModel(StandardFormModel(transport(trace=False), transport_data())).solve()
    options = SolverOptions(method=method, crossover=crossover)
    for _ in range(2):  # The second time warm.
        solution = compiled.solve(options)
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(expected.objective, rel=1e-5)
        assert compiled.value(solution, model.x).shape == (3, 2)
        flow = compiled.value(solution, model.x).sum(axis=0)
        np.testing.assert_allclose(flow, [3.0, 5.0], atol=1e-4)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(SolverError, match="solver 'newton', expected one of auto, highs"):
        SolverOptions(method="newton")


LIMIT = {0: 4.0, 1: 6.0, 2: 2.0}
FALLING = {
    "a dictionary": {"supply": lambda m, i: sum(m.x[i, j] for j in m.J) <= LIMIT[i]},
    "a list": {"supply": lambda m, i: sum(m.x[i, j] for j in m.J) <= [4.0, 6.0, 2.0][i]},
    "a Python set": {
        "supply": lambda m, i: sum(m.x[i, j] for j in m.J) <= (m.have[i] if i in {0, 1, 2} else 0)
    },
    "a sum over a list that branches": {
        "supply": lambda m, i: sum(m.x[i, j] for j in ["near", "far"] if i < 9) <= m.have[i]
    },
}
BRANCHING = {
    "a branch": lambda m, i: (
        sum(m.x[i, j] for j in m.J) <= m.have[i] if i < 9 else m.x[i, "far"] <= 0
    ),
    "two branches": lambda m, i: (
        sum(m.x[i, j] for j in m.J) <= m.have[i]
        if 0 <= i <= 1
        else sum(m.x[i, j] for j in m.J) - m.have[i] <= 0
    ),
    "a truth value": lambda m, i: sum(m.x[i, j] for j in m.J) <= (m.have[i] if i + 1 else 0),
    "skipping": lambda m, i: (
        pyo.Constraint.Skip if i > 2 else sum(m.x[i, j] for j in m.J) <= m.have[i]
    ),
    "a member of a list": lambda m, i: (
        sum(m.x[i, j] for j in m.J) <= m.have[i] if i in [0, 1, 2] else m.x[i, "far"] <= 0
    ),
    "a sum with conditions": lambda m, i: (
        sum(m.x[k, j] for k in m.I if k == i for j in m.J) <= m.have[i]
    ),
    "a range": lambda m, i: (
        sum(m.x[k, j] for k in range(i, i + 1) for j in m.J) <= sum(m.have[i] for k in range(1))
    ),
}


def looped(m: Any, i: Any) -> Any:
    total = 0
    for j in m.J:
        total += m.x[i, j]
    return total <= m.have[i]


@pytest.mark.parametrize("rule", [*FALLING, "a loop"])
def test_a_rule_that_cannot_be_traced_is_called_row_by_row(rule: str, capfd: Any) -> None:
    model = transport(**({"supply": looped} if rule == "a loop" else FALLING[rule]))
    with pytest.warns(SolverWarning, match=r"constraint supply: .") as caught:
        compiled = compile_model(model, transport_data())
    assert len(caught) == 1
    assert not compiled.traced
    plain = compiled_transport(True)[1]
    if rule not in ("a dictionary", "a list"):
        assert_same_rows(rows_of(compiled), rows_of(plain))
    assert compiled.solve().objective == pytest.approx(plain.solve().objective)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("rule", BRANCHING)
def test_a_rule_that_branches_on_its_index_is_traced(rule: str, capfd: Any) -> None:
    model = transport(supply=BRANCHING[rule])
    compiled = compile_model(model, transport_data())
    plain = compiled_transport(True)[1]
    assert compiled.traced
    assert_same_rows(rows_of(compiled), rows_of(plain))
    assert compiled.solve().objective == pytest.approx(plain.solve().objective)
    assert capfd.readouterr() == ("", "")


def test_a_rule_outside_is_called_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    model = transport()
    model.late = pyo.Constraint(model.J, rule=lambda m, j: m.x[2, j] <= 1)
    compiled = compile_model(model, transport_data())  # Few rows cost little: nothing is said.
    assert not compiled.traced
    assert len(compiled.rows) == len({row.name for row in compiled.rows})
    assert compiled.value(compiled.solve(), model.x)[2].max() <= 1 + 1e-9
    monkeypatch.setattr(compile_module, "MANY_ROWS", 2)
    with pytest.warns(SolverWarning, match="constraint late: it was built outside") as caught:
        compile_model(model, transport_data())
    assert len(caught) == 1


def test_a_large_model_outside_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sum(len(each) for each in transport(trace=False).component_objects(pyo.Constraint))
    monkeypatch.setattr(compile_module, "MANY_ROWS", rows)
    with pytest.warns(
        SolverWarning, match=r"constraint \w+: it was built outside .*more"
    ) as caught:
        compile_model(transport(trace=False), transport_data())
    assert len(caught) == 1
    monkeypatch.setattr(compile_module, "MANY_ROWS", rows + 1)
    compile_model(transport(trace=False), transport_data())


def test_what_cannot_be_affine_in_arrays_warns_and_agrees() -> None:
    m: Any = pyo.ConcreteModel(name="odd")
    with traced():
        m.S = pyo.Set(initialize=["a", "b"])
        m.p = pyo.Param(m.S, mutable=True)
        m.x = pyo.Var(m.S, bounds=(0, 3))
        m.odd = pyo.Constraint(m.S, rule=lambda m, s: m.x[s] <= m.p[s] ** 2)
        m.total = pyo.Objective(rule=lambda m: sum(m.x[s] for s in m.S), sense=pyo.maximize)
    with pytest.warns(SolverWarning, match="constraint odd: ") as caught:
        compiled = compile_model(m, {"p": [1.0, 1.5]})
    assert len(caught) == 1
    assert compiled.solve().objective == pytest.approx(1 + 2.25)
    compiled.set(p=[0.5, 9.0])
    assert compiled.solve().objective == pytest.approx(0.25 + 3)


@pytest.mark.parametrize("trace", ways())
def test_infeasible_models_name_contradicting_constraints(trace: bool, capfd: Any) -> None:
    compiled = compiled_transport(trace)[1]
    compiled.set(want=[3.0, 50.0])
    with pytest.raises(Infeasible) as caught:
        compiled.solve()
    message = str(caught.value)
    assert "demand[far]" in message
    assert "demand[near]" not in message or "supply" in message
    # Irreducible: without any one of the rows it names, the rest can hold together.
    named = [row for row in compiled.rows if row.name in message]
    for row in named:
        again = transport(trace=False)
        for other in again.component_data_objects(pyo.Constraint):
            if other.name == row.name or other.name not in message:
                other.deactivate()
        compile_model(again, transport_data() | {"want": [3.0, 50.0]}).solve()
    compiled.set(want=[3.0, 5.0])
    assert compiled.solve().status is Status.OPTIMAL
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("trace", ways())
def test_unbounded_models_name_variables(trace: bool) -> None:
    _, compiled = compiled_transport(trace, demand=lambda m, j: sum(m.x[i, j] for i in m.I) >= 0)
    compiled.set(cost=-np.ones((3, 2)), have=np.ones(3) * 1e6)
    compiled.solve()
    m: Any = pyo.ConcreteModel()
    with traced() if trace else nullcontext():
        m.tall = pyo.Var(bounds=(0, None))
        m.least = pyo.Constraint(rule=lambda m: m.tall >= 3)
        m.total = pyo.Objective(rule=lambda m: m.tall, sense=pyo.maximize)
    with pytest.raises(Unbounded, match=r"unbounded.*tall"):
        compile_model(m).solve()


@pytest.mark.parametrize("trace", ways())
@pytest.mark.parametrize("rule", [lambda m, i: m.x[i] * m.x[i] <= 1, lambda m, i: 1 / m.x[i] <= 1])
def test_nonlinear_models_are_refused(trace: bool, rule: Any) -> None:
    m: Any = pyo.ConcreteModel(name="curved")
    with traced() if trace else nullcontext():
        m.I = pyo.RangeSet(0, 1)
        m.x = pyo.Var(m.I, bounds=(1, 2))
        m.bend = pyo.Constraint(m.I, rule=rule)
        m.total = pyo.Objective(rule=lambda m: sum(m.x[i] for i in m.I))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SolverWarning)
        with pytest.raises(SolverError, match="curved"):
            compile_model(m)


@pytest.mark.parametrize("trace", ways())
def test_data_are_checked(trace: bool, capfd: Any) -> None:
    data = transport_data()
    without = {name: value for name, value in data.items() if name != "have"}
    with pytest.raises(InputError, match="'have' has no values"):
        compile_model(transport(trace=trace), without)
    with pytest.raises(InputError, match="no Param 'price'"):
        compile_model(transport(trace=trace), data | {"price": 1.0})
    wrong: dict[str, Any]
    for wrong in ({"have": [1.0, 2.0]}, {"cost": np.ones((2, 3))}, {"want": np.ones((2, 1))}):
        with pytest.raises(InputError, match=f"Param '{next(iter(wrong))}'"):
            compile_model(transport(trace=trace), data | wrong)
        _, compiled = compiled_transport(trace)
        with pytest.raises(InputError, match=f"Param '{next(iter(wrong))}'"):
            compiled.set(**wrong)
        # A refused change changes nothing.
        assert compiled.solve().objective == pytest.approx(
            compiled_transport(trace)[1].solve().objective
        )
    _, compiled = compiled_transport(trace)
    with pytest.raises(InputError, match="no Param 'x'"):
        compiled.set(x=1.0)
    with pytest.raises((SolverError, InputError), match="cost"):
        compiled.set(cost=np.full((3, 2), np.nan))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("trace", ways())
def test_params_with_values_of_their_own_are_optional(trace: bool) -> None:
    model = transport(trace=trace)
    model.have.store_values({0: 4.0, 1: 6.0, 2: 2.0})
    data = {name: value for name, value in transport_data().items() if name != "have"}
    expected = compiled_transport(trace)[1].solve().objective
    assert compile_model(model, data).solve().objective == pytest.approx(expected)


def test_fixed_variables_and_rows_taken_out() -> None:
    plain = compiled_transport(True)[1].solve().objective
    for change in ("fixed", "row off", "constraint off", "row deleted"):
        models = [transport(trace=trace) for trace in (True, False)]
        for model in models:
            if change == "fixed":
                model.x[2, "far"].fix(0.5)
            elif change == "row off":
                model.supply[2].deactivate()
            elif change == "constraint off":
                model.band.deactivate()
            else:
                del model.supply[2]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SolverWarning)
            one, two = (compile_model(model, transport_data()) for model in models)
        assert_same_rows(rows_of(one), rows_of(two))
        assert one.solve().objective == pytest.approx(two.solve().objective)
        assert one.solve().objective != pytest.approx(plain, abs=1e-3), change


@pytest.mark.parametrize("trace", ways())
def test_blocks(trace: bool) -> None:
    m: Any = pyo.ConcreteModel(name="blocks")
    with traced() if trace else nullcontext():
        m.x = pyo.Var(bounds=(0, 9))
        m.part = pyo.Block()
        m.part.I = pyo.RangeSet(1, 2)
        m.part.p = pyo.Param(m.part.I, mutable=True)
        m.part.y = pyo.Var(m.part.I, bounds=(0, 9))
        m.part.link = pyo.Constraint(m.part.I, rule=lambda b, i: b.y[i] + m.x <= b.p[i])
        m.total = pyo.Objective(
            rule=lambda m: m.x + sum(m.part.y[i] for i in m.part.I), sense=pyo.maximize
        )
    compiled = compile_model(m, {"part.p": [3.0, 4.0]})
    solution = compiled.solve()
    assert solution.objective == pytest.approx(7)
    np.testing.assert_allclose(compiled.value(solution, m.part.y), [3, 4])
    np.testing.assert_allclose(compiled.dual(solution, m.part.link), [1, 1])
    compiled.set(**{"part.p": [1.0, 2.0]})
    assert compiled.solve().objective == pytest.approx(3)


@pytest.mark.parametrize("trace", ways())
def test_empty_sets_and_no_rows(trace: bool) -> None:
    m: Any = pyo.ConcreteModel(name="empty")
    with traced() if trace else nullcontext():
        m.I, m.N = pyo.RangeSet(0, 1), pyo.RangeSet(0, -1)
        m.x = pyo.Var(m.I, bounds=(0, 2))
        m.none = pyo.Var(m.N, bounds=(0, 1), dense=False)
        m.never = pyo.Constraint(m.N, rule=lambda m, k: m.none[k] <= 0)
        m.total = pyo.Objective(
            rule=lambda m: sum(m.x[i] for i in m.I) + sum(m.none[k] for k in m.N),
            sense=pyo.maximize,
        )
    compiled = compile_model(m)
    solution = compiled.solve()
    assert solution.objective == pytest.approx(4)
    assert compiled.value(solution, m.none).shape == (0,)
    assert compiled.dual(solution, m.never).shape == (0,)
    np.testing.assert_allclose(compiled.value(solution, m.x), [2, 2])


@pytest.mark.parametrize("trace", ways())
def test_a_time_limit_is_reported(trace: bool) -> None:
    size, draw = 100, np.random.default_rng(0)
    weights = draw.integers(20, 100, (5, size)).astype(float)
    m: Any = pyo.ConcreteModel(name="knapsacks")
    with traced() if trace else nullcontext():
        m.I, m.K = pyo.RangeSet(0, size - 1), pyo.RangeSet(0, 4)
        m.w, m.v = pyo.Param(m.K, m.I, mutable=True), pyo.Param(m.I, mutable=True)
        m.x = pyo.Var(m.I, domain=pyo.Binary)
        m.fit = pyo.Constraint(m.K, rule=lambda m, k: sum(m.w[k, i] * m.x[i] for i in m.I) <= 1500)
        m.total = pyo.Objective(
            rule=lambda m: sum(m.v[i] * m.x[i] for i in m.I), sense=pyo.maximize
        )
    compiled = compile_model(m, {"w": weights, "v": weights.sum(axis=0)})
    start = dict.fromkeys(range(size), 0.0)
    solution = compiled.solve(SolverOptions(time_limit_s=0.1), start)
    assert solution.status is Status.TIME_LIMIT
    assert solution.bound >= solution.objective - 1e-6
    assert solution.gap > 0


@pytest.mark.parametrize("trace", ways())
def test_integers_and_binaries(trace: bool) -> None:
    m: Any = pyo.ConcreteModel(name="whole")
    with traced() if trace else nullcontext():
        m.I = pyo.Set(initialize=["a", "b"])
        m.x = pyo.Var(m.I, domain=pyo.NonNegativeIntegers, dense=False)
        m.b = pyo.Var(m.I, domain=pyo.Binary, dense=False)
        m.open = pyo.Constraint(m.I, rule=lambda m, i: 2 * m.x[i] <= 7 * m.b[i])
        m.one = pyo.Constraint(rule=lambda m: sum(m.b[i] for i in m.I) <= 1.5)
        m.total = pyo.Objective(rule=lambda m: sum(m.x[i] for i in m.I), sense=pyo.maximize)
    compiled = compile_model(m)
    solution = compiled.solve()
    assert solution.objective == pytest.approx(3)
    assert sorted(compiled.value(solution, m.x)) == pytest.approx([0, 3])
    with pytest.raises(
        SolverError, match=r"constraint .open. has no price, .* with integer or binary variables"
    ):
        compiled.dual(solution, m.open)
