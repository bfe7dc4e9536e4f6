"""Sets of models hold names of jobs, types and nodes; numbers only where the paper counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyomo.core.base.set import IndexedSet, SetData, SetProduct

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.names import NameCodes, Names
from shadowprice.instances.workload import Workload
from shadowprice.models import gavel
from shadowprice.models.arrays import param, subsets, tuples
from shadowprice.models.gavel import Shape
from shadowprice.models.tracing import traced
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.programs.catalogue import OF_INSTANCE, model_files
from shadowprice.solvers.programs.compile import SolverWarning, compile_model
from shadowprice.solvers.programs.model_text import DistinctLabels, write_model
from support.compiled_rows import assert_same_rows, rows_of
from support.model_instances import INSTANCES

SLOT, ROUND, INTERVAL, WIDTH, PIECE = "slot", "round", "interval", "GPUs", "piece of an interval"
NTH = "n-th replica on a node"
COUNTED: dict[str, dict[str, dict[int, str]]] = {
    "afs": {each: {-1: WIDTH} for each in ("A", "of_phase", "of_job", "K", "JK")},
    "asrpt": {
        **{each: {-1: NTH} for each in ("sharers", "several", "several_on", "N")},
        **{each: {3: NTH, 4: NTH} for each in ("P", "beside")},
    },
    "asrpt_joint": {
        **{each: {-1: SLOT} for each in ("T", "JT", "slots_of")},
        **{each: {-1: NTH} for each in ("sharers", "several", "several_on")},
    },
    # Nobody has a name before there is an instance: a job is the n-th to arrive.
    "bilevel": {
        "J": {0: "n-th job"},
        "T": {0: SLOT},
        "R": {0: SLOT},
        "P": {0: SLOT},
        "G": {0: WIDTH},
    },
    "hadar": {
        **{each: {0: ROUND} for each in ("T", "after_first", "until")},
        "S": {1: "n-th plan"},
    },
    "hadare": {
        **{each: {-1: ROUND} for each in ("T", "JHT", "JT", "HT", "copies_of", "before_last")},
    },
    "interval_lp": {
        **{each: {-1: INTERVAL} for each in ("K", "JK", "intervals_of")},
        "S": {0: PIECE},
    },
    "pollux": {each: {-1: WIDTH} for each in ("P", "points", "local", "across")},
    "preemptive": {each: {-1: SLOT} for each in ("T", "JT", "slots_of")},
    "sia": {each: {-1: WIDTH} for each in ("C", "of_job", "of_type")},
    "synergy": {each: {-1: "n-th point of a profile"} for each in ("P", "points")},
    "time_indexed": {each: {-1: SLOT} for each in ("T", "JT", "S", "running")},
    "typed_interval_lp": {
        "K": {0: INTERVAL},
        "KQ": {0: INTERVAL},
        "JKRL": {1: INTERVAL, 3: PIECE},
        "of_job": {0: INTERVAL, 2: PIECE},
        "of_pool": {2: PIECE},
        **{each: {1: INTERVAL, 2: PIECE} for each in ("JKL", "shared")},
    },
}
"""Places of sets that hold numbers, by file and set, and what is counted there."""


def sets_of(model: Any) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Sets of a model and of its blocks, and their members as tuples."""
    for component in model.component_objects():
        if isinstance(component, SetData | IndexedSet) and not isinstance(component, SetProduct):
            own = component.values() if component.is_indexed() else [component]
            members = [each for one in own for each in one]
            rows = [each if isinstance(each, tuple) else (each,) for each in members]
            yield component.local_name, rows


@pytest.mark.parametrize("name", sorted(model_files()))
def test_sets_hold_names_but_where_something_is_counted(name: str) -> None:
    counted = COUNTED.get(name, {})
    for seed in range(8):
        for label, rows in sets_of(INSTANCES[name](3, np.random.default_rng(seed))):
            for row in rows:
                places = {place % len(row) for place in counted.get(label, {})}
                for place, member in enumerate(row):
                    expected = int if place in places else str
                    assert type(member) is expected, f"set {label}, member {row}, place {place}"


JOBS = ("ada-1", "ada-2", "bob-1")


@pytest.mark.parametrize(
    "name", [name for name, each in model_files().items() if each.displayed_by == OF_INSTANCE]
)
def test_a_model_of_an_instance_has_the_names_of_its_jobs_and_types(name: str) -> None:
    jobs = Workload.from_columns(
        id=JOBS,
        arrival_s=[0, 0, 360],
        gpus=[1, 2, 1],
        work=[360, 720, 360],
        throughput=[[1.0, 0.5]] * 3,
        gpu_types=("v100", "k80"),
    )
    model = model_files()[name].build(Instance(Cluster.parse("1x2:v100,1x2:k80"), jobs))
    texts = {
        place for _, rows in sets_of(model) for row in rows for place in row if type(place) is str
    }
    assert set(JOBS) <= texts <= {*JOBS, "v100", "k80", "node-0", "node-1"}
    assert "job-0" not in " ".join(each.name for each in model.component_data_objects(pyo.Var))


# Names as arrays.

WORDS = st.lists(st.sampled_from(["a", "b", "job-3", "3", "v100", ""]), max_size=6)
KEYS = st.one_of(
    st.integers(-3, 3), st.sampled_from(["a", "3", "", "job-3"]), st.sampled_from([1.5, 2.0])
)


@given(words=WORDS, where=st.lists(st.integers(0, 5), max_size=8))
def test_an_array_of_names_is_a_list_of_them(words: list[str], where: list[int]) -> None:
    names = Names.of(words)
    assert list(names) == words
    assert list(names.different) == list(dict.fromkeys(words))
    if words:
        places = [k % len(words) for k in where]
        assert names[np.array(places, dtype=np.int64)].tolist() == [words[k] for k in places]


@given(tables=st.lists(WORDS, max_size=4), others=st.lists(KEYS, max_size=6))
def test_names_have_equal_codes_if_they_are_equal(
    tables: list[list[str]], others: list[Any]
) -> None:
    codes = NameCodes()
    members: list[Any] = list(others)
    given_codes = codes.column(others).tolist()
    for words in tables:
        members += words
        given_codes += codes.column(Names.of(words)).tolist()
    for one, code in zip(members, given_codes, strict=True):
        for other, its in zip(members, given_codes, strict=True):
            assert (one == other) == (code == its)


def test_names_that_occur_twice_are_refused() -> None:
    with pytest.raises(InputError, match="'a' occurs twice"):
        Names(["a", "b", "a"]).tolist()
    with pytest.raises(InputError, match="2 of 3 times 'job', expected all or none"):
        Names.known(["a", "b"], "job", 3)


# Rules that speak of names.

Rule = Callable[[Any, str], Any]


def transport(rule: Rule, *, trace: bool) -> Any:
    """Two plants send to three towns, whose demands a rule makes rows of."""
    m: Any = pyo.ConcreteModel()
    town = Names(["ulm", "rome", "oslo"])
    m.I, m.J = pyo.Set(initialize=["north", "south"]), tuples(town)
    m.near = subsets(m.I, ["north", "north", "south"], town[np.array([0, 2, 1])])
    m.want = param([1.0, 2.0, 3.0], m.J)
    m.x = pyo.Var(m.I, m.J, bounds=(0, None), dense=False)

    def build() -> None:
        m.demand = pyo.Constraint(m.J, rule=rule)
        m.cost = pyo.Objective(rule=lambda m: sum(m.x[i, j] for i in m.I for j in m.J))

    if trace:
        with traced():
            build()
    else:
        build()
    return m


TRACED: dict[str, Rule] = {
    "equal": lambda m, j: sum(m.x[i, j] for i in m.I) >= (5 if j == "rome" else m.want[j]),
    "unequal": lambda m, j: m.x["north", j] >= 1 if j != "oslo" else m.x["south", j] >= 2,
    "the other way round": lambda m, j: m.x["north", j] >= (1 if "ulm" == j else 0),  # noqa: SIM300
    "one of several": lambda m, j: (
        m.x["north", j] >= 1 if j in ("ulm", "oslo") else pyo.Constraint.Skip
    ),
    "in a sum": lambda m, j: sum(m.x[i, j] for i in m.I if i != "south") >= m.want[j],
    "of two indices": lambda m, j: sum(m.x[i, k] for i in m.I for k in m.J if k == j) >= 1,
    "nobody has it": lambda m, j: m.x["north", j] >= (1 if j == "nowhere" else 2),
}
ROW_BY_ROW: dict[str, Rule] = {
    "a set by name": lambda m, j: (
        m.x["north", j] + sum(m.x["south", k] for k in m.near["north"]) >= 2
    ),
    "text": lambda m, j: m.x["north", j] >= {"to ulm": 1, "to rome": 2}.get(f"to {j}", 3),
    "a letter": lambda m, j: m.x["north", j] >= (1 if j[0] == "u" else 2),
    "an order": lambda m, j: m.x["north", j] >= (1 if j < "p" else 2),
    "a number": lambda m, j: m.x["north", j] >= (1 if j == 0 else 2),
}


@pytest.mark.parametrize("rule", TRACED)
def test_a_rule_may_compare_an_index_with_a_name(rule: str) -> None:
    compiled = compile_model(transport(TRACED[rule], trace=True))
    assert compiled.traced
    assert_same_rows(
        rows_of(compiled), rows_of(compile_model(transport(TRACED[rule], trace=False)))
    )


@pytest.mark.parametrize("rule", ROW_BY_ROW)
def test_what_else_a_rule_does_with_a_name_is_done_row_by_row(rule: str) -> None:
    with pytest.warns(SolverWarning, match="demand"):
        compiled = compile_model(transport(ROW_BY_ROW[rule], trace=True))
    assert_same_rows(
        rows_of(compiled), rows_of(compile_model(transport(ROW_BY_ROW[rule], trace=False)))
    )


# One compiled model for as many jobs, whatever their names, unless the model looks at them.


def named(m: Any, shape: Shape) -> None:
    m.mine = pyo.Constraint(expr=m.x["bob", "v100"] <= 0.25)


def named_in_a_rule(m: Any, shape: Shape) -> None:
    with traced():
        m.mine = pyo.Constraint(m.J, rule=lambda m, j: m.x["bob", j] <= 0.25)


def compared(m: Any, shape: Shape) -> None:
    with traced():
        m.mine = pyo.Constraint(
            m.M, rule=lambda m, i: m.x[i, "v100"] <= (0.25 if i == "bob" else 1)
        )


def asked_of_the_shape(m: Any, shape: Shape) -> None:
    with traced():
        bob = list(shape.jobs).index("bob")
        m.cap = param(np.where(np.arange(len(shape.jobs)) == bob, 0.25, 1.0), m.M)
        m.mine = pyo.Constraint(m.M, rule=lambda m, i: m.x[i, "v100"] <= m.cap[i])


def row_by_row(m: Any, shape: Shape) -> None:
    m.mine = pyo.Constraint(
        m.M, rule=lambda m, i: m.x[i, "v100"] <= (0.25 if i.startswith("b") else 1)
    )


def dense(m: Any, shape: Shape) -> None:
    m.most = pyo.Var(m.M, bounds=lambda m, i: (0, 0.25 if i == "bob" else 1))
    with traced():
        m.mine = pyo.Constraint(m.M, rule=lambda m, i: m.x[i, "v100"] <= m.most[i])


def unnamed(m: Any, shape: Shape) -> None:
    with traced():
        m.mine = pyo.Constraint(m.M, rule=lambda m, i: m.x[i, "v100"] <= 0.5)


READING = (named, named_in_a_rule, compared, asked_of_the_shape, row_by_row, dense)


def shares(workspace: Workspace, build: Any, jobs: list[str]) -> dict[str, float]:
    """Fractions of time on V100s by name."""
    shape = Shape.of(jobs, ["v100"])
    ones = np.ones(len(jobs))
    data = {"T": ones[:, None], "v": ones[:, None], "f": 0 * ones, "s": ones, "W": np.array([9.0])}
    solved = workspace.solve(build, shape, data)
    names = [solved.compiled.row_name(k) for k in solved.compiled.place(solved.model.time)]
    assert names == [f"time[{name}]" for name in jobs]
    return dict(zip(jobs, solved.value("x")[:, 0].tolist(), strict=True))


@pytest.mark.filterwarnings("ignore::shadowprice.solvers.programs.compile.SolverWarning")
@pytest.mark.parametrize("edit", READING, ids=lambda edit: edit.__name__)
def test_a_model_that_speaks_of_a_job_by_name_is_about_that_job(edit: Any) -> None:
    def build(shape: Shape) -> pyo.ConcreteModel:
        m = gavel.max_total(shape)
        edit(m, shape)
        return m

    workspace = Workspace()
    for jobs in (["ada", "bob", "eve"], ["bob", "eve", "kim"], ["eve", "kim", "bob"]):
        found = shares(workspace, build, jobs)
        assert found == pytest.approx({name: 0.25 if name == "bob" else 1.0 for name in jobs})


def test_a_model_that_does_not_is_compiled_once() -> None:
    def build(shape: Shape) -> pyo.ConcreteModel:
        m = gavel.max_total(shape)
        unnamed(m, shape)
        return m

    workspace, compiled = Workspace(), []
    for jobs in (["ada", "bob"], ["bob", "eve"], ["x", "y"]):
        assert shares(workspace, build, jobs) == pytest.approx(dict.fromkeys(jobs, 0.5))
        compiled += [each.compiled for each in workspace._models.values()]
    assert len(compiled) == 3
    assert compiled[0] is compiled[1] is compiled[2]


def test_rows_of_a_file_have_different_names(tmp_path: Any) -> None:
    labels = DistinctLabels(lambda name: name.replace("-", "_"))
    assert [labels(name) for name in ("a-1", "a_1", "b", "a-1")] == ["a_1", "a_1.2", "b", "a_1.3"]
    model = gavel.max_total(Shape.of(["a-1", "a_1"], ["v100"]))
    for component in model.component_objects(pyo.Param):
        component.store_values(dict.fromkeys(component.index_set(), 1.0))
    for ending in ("lp", "mps"):
        path = tmp_path / f"model.{ending}"
        write_model(model, compile_model(model), path)
        text = path.read_text("utf-8")
        assert "x(a_1_v100)" in text
        assert "x(a_1_v100).2" in text
