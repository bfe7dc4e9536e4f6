"""Sets and Params made from arrays are what Pyomo's own are, and what is wrong with them is one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.models.arrays import TuplePositions, param, subsets, tuples
from shadowprice.models.tracing import traced
from shadowprice.solvers.programs.compile import compile_model

PAIRS = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(0, 2), st.integers(-50, 10**9)),
    unique=True,
    max_size=12,
)


@given(rows=PAIRS, asked=PAIRS)
def test_positions_are_those_of_a_dictionary(
    rows: list[tuple[int, int, int]], asked: list[tuple[int, int, int]]
) -> None:
    if not rows:
        return
    known = {row: k for k, row in enumerate(rows)}
    places = TuplePositions(np.array(rows).T)
    wanted = [*asked, *rows]
    found = places.positions(np.array(wanted).T)
    assert found.tolist() == [known.get(each, -1) for each in wanted]


@given(rows=PAIRS, low=st.integers(-4, -3), high=st.integers(3, 5))
def test_subsets_are_groups(rows: list[tuple[int, int, int]], low: int, high: int) -> None:
    m: Any = pyo.ConcreteModel()
    m.K = pyo.RangeSet(low, high)
    m.KL = m.K * pyo.RangeSet(0, 2)
    key, second, third = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    m.of_key = subsets(m.K, key, second, third)
    m.of_pair = subsets(m.KL, (key, second), third)
    for k in m.K:
        assert list(m.of_key[k]) == [row[1:] for row in rows if row[0] == k]
        for s in range(3):
            assert list(m.of_pair[k, s]) == [row[2] for row in rows if row[:2] == (k, s)]
    assert list(m.of_key.nonempty) == sorted({row[0] for row in rows})
    assert list(m.of_pair.nonempty) == sorted({row[:2] for row in rows})


@given(rows=PAIRS)
def test_a_set_of_tuples_and_a_param_over_it(rows: list[tuple[int, int, int]]) -> None:
    m: Any = pyo.ConcreteModel()
    m.S = tuples(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)
    m.p = param(np.arange(len(rows)) + 0.5, m.S)
    assert list(m.S) == rows
    assert len(m.S) == len(rows)
    assert m.S.dimen == 3
    assert all(row in m.S for row in rows)
    assert (99, 99, 99) not in m.S
    assert [pyo.value(m.p[row]) for row in rows] == [k + 0.5 for k in range(len(rows))]


def test_whole_values_stay_whole_and_others_may_be_set() -> None:
    m: Any = pyo.ConcreteModel()
    m.I = pyo.RangeSet(1, 3)
    m.whole = param([4, 5, 6], m.I, mutable=False)
    m.other = param([4.0, 5.0, 6.0], m.I)
    assert list(range(m.whole[2])) == [0, 1, 2, 3, 4]
    m.other[3] = 7.5
    assert [pyo.value(m.other[i]) for i in m.I] == [4.0, 5.0, 7.5]
    m.x = pyo.Var(m.I, bounds=lambda m, i: (0, m.other[i]), dense=False)
    with traced():
        m.total = pyo.Objective(rule=lambda m: sum(m.x[i] for i in m.I), sense=pyo.maximize)
    compiled = compile_model(m)
    assert compiled.solve().objective == pytest.approx(16.5)
    compiled.set(other=[1.0, 1.0, 2.0])
    assert compiled.solve().objective == pytest.approx(4.0)
    with pytest.raises(InputError, match="Param 'whole' is constant"):
        compiled.set(whole=[1, 2, 3])


def test_a_copy_of_a_model_is_one_of_its_own() -> None:
    m: Any = pyo.ConcreteModel()
    with traced():
        m.I = pyo.RangeSet(0, 3)
        m.S = tuples([0, 1, 3])
        m.p = param([1.0, 2.0, 3.0], m.S)
        m.x = pyo.Var(m.I, bounds=(0, 5), dense=False)
        m.cap = pyo.Constraint(m.S, rule=lambda m, i: m.x[i] <= m.p[i] if i else m.x[i] <= 4)
        m.total = pyo.Objective(rule=lambda m: sum(m.x[i] for i in m.I), sense=pyo.maximize)
    copy: Any = m.clone()
    copy.x[2].fix(1.0)
    copy.p[3] = 0.0
    assert compile_model(copy).solve().objective == pytest.approx(4 + 2 + 1 + 0)
    assert compile_model(m).solve().objective == pytest.approx(4 + 2 + 5 + 3)


def test_what_is_wrong_is_named() -> None:
    m: Any = pyo.ConcreteModel()
    m.I = pyo.RangeSet(0, 2)
    with pytest.raises(InputError, match=r"shape \(2,\), expected one dimension .*\(3\)"):
        tuples([0, 1, 2], [0, 1])
    with pytest.raises(InputError, match="float64, expected whole numbers"):
        tuples([0.5, 1.0])
    with pytest.raises(InputError, match="no arrays"):
        tuples()
    with pytest.raises(InputError, match=r"\(3,\) is not in the index set"):
        subsets(m.I, [0, 3], [1, 2])
    with pytest.raises(InputError, match=r"shape \(2,\), expected \(3,\)"):
        param([1.0, 2.0], m.I)
    with pytest.raises(InputError, match="expected a number"):
        param([1.0, 2.0])
    with pytest.raises(InputError, match="expected numbers"):
        param(["a"], m.I)
