"""Workloads: what is accepted, what is refused and how it is named, and what holds of all."""

from __future__ import annotations

import csv
import datetime
import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from shadowprice.errors import InfeasibleJobError, InputError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, TICKS_PER_S, on_grid
from shadowprice.instances.instance import Instance
from shadowprice.instances.strategies import instances, workloads
from shadowprice.instances.traces import load_trace
from shadowprice.instances.workload import MAX_GANG, Workload
from shadowprice.instances.workload_files import read_table, read_workload, write_workload
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.classic.fifo import Fifo

TWO: dict[str, Any] = {"arrival_s": [0, 1], "gpus": [1, 2], "work": [3, 4]}


def two(**columns: Any) -> Workload:
    return Workload.from_columns(**{**TWO, **columns})


# One column, a value that cannot stand in its second row, and the start of what is expected there.
NAN, INF = math.nan, math.inf
BAD: list[tuple[str, str, list[Any]]] = [
    ("arrival_s", "a number of seconds >= 0", [-1, -1e-9, NAN, INF, 2 * MAX_TIME_S]),
    ("arrival_s", "a number of seconds >= 0", ["x", "", None, True, "1_0", "0x10", 1j, b"1", [1]]),
    ("arrival_s", "a number of seconds >= 0", [datetime.datetime(2020, 1, 1), pd.NaT]),
    ("work", "a number > 0", [0, -0.0, -5, NAN, INF, 2 * MAX_TIME_S, 10**400, "1,5", None, pd.NA]),
    ("gpus", "an integer from 1 to", [0, -1, 1.5, NAN, INF, MAX_GANG + 1, 10**30, 10**5000]),
    ("gpus", "an integer from 1 to", ["two", None, True, np.True_]),
    ("weight", "a number >= 0", [-1, NAN, INF, "heavy", None, True]),
    ("deadline_s", "seconds >= 0, or inf", [-1, -INF, NAN, "soon", None, "2020-01-01", True]),
    ("id", "a name that is not empty", ["", None, NAN, pd.NA]),
    ("id", "text", [("a",), b"a", [1], {"a": 1}]),
    ("tenant", "text", [("a",), b"a"]),
    ("limit_s", "seconds > 0, or inf", [0, -1, NAN, "soon", None]),
    ("nodes", "an integer from 0 to", [-1, 1.5, "two", None]),
    ("gpu_milli", "an integer from 1 to 1000", [0, 1001, 0.5, "half"]),
    ("gpu_milli", "1000, or a job of one GPU", [999]),
    ("outcome", "completed, failed, cancelled, or nothing", ["Completed", "Pass"]),
    ("allowed_types", "names of GPU types with bars between them", ["a|", "|", "a||b"]),
    (
        "model",
        "text on one line",
        ["a\0b", "a\ud800", "a\nb", "a\rb", "a\x1b[2K", "a\u2028b", "a\u202eb"],
    ),
]
BAD_VALUES = [
    pytest.param(column, bad, expected, id=f"{column}-{number}-{place}")
    for number, (column, expected, values) in enumerate(BAD)
    for place, bad in enumerate(values)
]


@pytest.mark.parametrize(("column", "bad", "expected"), BAD_VALUES)
def test_a_bad_value_is_named_with_its_row(column: str, bad: Any, expected: str) -> None:
    texts = ("id", "tenant", "model", "allowed_types")
    good = "a" if column in texts else "failed" if column == "outcome" else 1
    with pytest.raises(InputError) as caught:
        two(**{column: [good, bad]}, source="jobs.csv")
    message = str(caught.value)
    assert message.startswith(f"jobs.csv: row 2, column {column!r}: got ")
    assert f"expected {expected}" in message
    assert len(message) < 300


SUBMITTED: dict[str, tuple[Any, Any]] = {
    "job_class": ("Spot", "HP"),
    "outcome": ("failed", ""),
    "limit_s": (3600.0, math.inf),
    "nodes": (2, 0),
    "allowed_types": ("V100M16|V100M32", ""),
    "gpu_milli": (250, 1000),
}


@given(st.sets(st.sampled_from(sorted(SUBMITTED))), st.sampled_from([".csv", ".parquet"]))
def test_what_was_submitted_is_written_and_read(
    tmp_path_factory: pytest.TempPathFactory, names: set[str], suffix: str
) -> None:
    path = tmp_path_factory.mktemp("jobs") / f"jobs{suffix}"
    jobs = two(**{name: SUBMITTED[name] for name in names})
    write_workload(jobs, path)
    assert read_workload(path) == jobs == load_trace(path).workload
    assert set(jobs.to_frame().columns) & set(SUBMITTED) == names
    assert jobs.select(np.array([True, False])).gpu_milli.tolist() == [jobs.gpu_milli[0]]


@given(
    st.lists(st.sampled_from(["", "a", "b", "a|c", "b|a"]), min_size=1, max_size=4),
    st.sampled_from(["1x2:a,1x2:b", "1x2:c,1x2:a", "2x2", "1x2:b,1x2"]),
    st.booleans(),
)
def test_jobs_run_on_the_types_they_are_allowed(
    allowed: list[str], nodes: str, rates: bool
) -> None:
    cluster, n = Cluster.parse(nodes), len(allowed)
    table = {"throughput": np.full((n, 4), 2.0), "gpu_types": ("a", "b", "c", "gpu")}
    jobs = Workload.from_columns(
        arrival_s=range(n), gpus=2, work=3, allowed_types=allowed, **(table if rates else {})
    )
    instance, dropped = Instance.feasible(cluster, jobs)
    able = {
        name: [not each or kind == "gpu" or kind in each.split("|") for kind in cluster.gpu_types]
        for name, each in enumerate(allowed)
    }
    assert set(dropped.tolist()) == {str(name) for name, fits in able.items() if not any(fits)}
    for row, name in enumerate(instance.workload.id.tolist()):
        assert np.isfinite(instance.processing_s[row]).tolist() == able[int(name)]
    schedule = run(instance, Fifo()).schedule
    verify(instance, schedule)
    for row, kind in itertools.product(range(len(schedule)), range(len(cluster.nodes))):
        job = int(schedule.job[row])
        if able[int(instance.workload.id[job])][cluster.type_of_node[kind]]:
            continue
        node = schedule.node.copy()
        node[schedule.job == job] = kind
        with pytest.raises(VerificationError, match="type: "):
            verify(instance, replace(schedule, node=node))


@pytest.mark.parametrize("kind", ["bool", "complex128", "datetime64[s]", "timedelta64[s]"])
@pytest.mark.parametrize("column", ["arrival_s", "gpus", "work", "weight", "deadline_s"])
def test_arrays_of_other_kinds_are_no_numbers(column: str, kind: str) -> None:
    with pytest.raises(InputError, match=f"row 1, column {column!r}"):
        two(**{column: np.array([1, 1]).astype(kind)})


@pytest.mark.parametrize("column", ["gpus", "work", "weight", "deadline_s", "id", "tenant"])
@pytest.mark.parametrize("values", [[], ["1"], ["1", "2", "3"], [["1"], ["2"]], np.ones((2, 2))])
def test_columns_of_another_length_are_refused(column: str, values: Any) -> None:
    with pytest.raises(InputError, match=f"column {column!r} has .* expected 2 rows"):
        two(**{column: values})


def test_rows_and_columns_are_named_as_in_the_source() -> None:
    names = {"work": "duration"}
    with pytest.raises(InputError, match="row 17, column 'duration': got -4"):
        two(work=[3, -4], rows=[12, 17], names=names)
    with pytest.raises(InputError, match="row 17, column 'id': got 'a', expected an id not used"):
        two(id=["a", "a"], rows=[12, 17])
    with pytest.raises(InputError, match="column 'arrival_s' has 2 rows, expected 1"):
        two(rows=[1])
    with pytest.raises(InputError, match="arrival_s is 5"):
        two(arrival_s=5)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"throughput": [[1, 2], [3]], "gpu_types": ("a", "b")}, "has shape"),
        (
            {"throughput": [[1, "x"], [3, 1]], "gpu_types": ("a", "b")},
            "row 1, column 'throughput:b': got 'x'",
        ),
        (
            {"throughput": [[1, 2], [-3, 1]], "gpu_types": ("a", "b")},
            "row 2, column 'throughput:a': got -3",
        ),
        (
            {"throughput": [[1], [math.nan]], "gpu_types": ("a",)},
            "row 2, column 'throughput:a': got nan",
        ),
        (
            {"throughput": [[1], [math.inf]], "gpu_types": ("a",)},
            "row 2, column 'throughput:a': got inf",
        ),
        (
            {"throughput": [[1, 1], [0, 0]], "gpu_types": ("a", "b")},
            "row 2, .* a GPU type on which",
        ),
        ({"throughput": [1, 2], "gpu_types": ("a",)}, r"has shape \(2,\)"),
        ({"throughput": [[1], [1]]}, r"expected \(2, 0\)"),
        ({"throughput": [[1, 2], [3, 1]], "gpu_types": ("a", "a")}, "different names"),
        ({"throughput": [[1, 2], [3, 1]], "gpu_types": ("a", 1)}, "different names"),
        ({"throughput": [[1, 2], [3, 1]], "gpu_types": ("a", "")}, "different names"),
        ({"throughput": [[1, 2], [3, 1]], "gpu_types": "ab"}, "throughput has shape"),
        ({"gpu_types": ("a",)}, "without throughputs"),
    ],
)
def test_throughput_tables_that_are_wrong(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        two(**columns)


def test_numbers_of_every_kind_are_read_exactly() -> None:
    kinds = [1, 1.0, "1", " 1e0 ", np.int8(1), np.float32(1), Fraction(2, 2), Decimal(1)]
    jobs = Workload.from_columns(arrival_s=kinds, gpus=kinds, work=kinds, weight=kinds)
    for column in (jobs.arrival_s, jobs.gpus, jobs.work, jobs.weight):
        assert column.tolist() == [1.0] * len(kinds)
    texts = [repr(number) for number in (0.1, 1 / 3, 5e-324, 12345678901.234567)]
    weights = Workload.from_columns(arrival_s=[0] * 4, gpus=1, work=1, weight=texts).weight
    assert [repr(weight) for weight in weights.tolist()] == texts


def test_missing_texts_and_numbers_as_ids() -> None:
    jobs = two(id=[7, "007"], tenant=[None, np.nan], model=[pd.NA, "m"])
    assert jobs.id.tolist() == ["7", "007"]
    assert jobs.tenant.tolist() == ["", ""]
    assert jobs.model.tolist() == ["", "m"]
    assert two().id.tolist() == ["0", "1"]
    assert two(weight=2, tenant="t").tenant.tolist() == ["t", "t"]


def test_no_jobs_are_a_workload() -> None:
    none = Workload.from_columns(arrival_s=[], gpus=[], work=[])
    typed = Workload.from_columns(arrival_s=[], gpus=[], work=[], throughput=[], gpu_types=("a",))
    assert len(none) == len(typed) == 0
    assert none != typed
    assert Workload.from_frame(typed.to_frame()) == typed


def test_frames_that_are_wrong() -> None:
    good = two().to_frame()
    with pytest.raises(InputError, match="column 'gpus' is missing, found id, arrival_s"):
        Workload.from_frame(good.drop(columns="gpus"))
    with pytest.raises(InputError, match="column 'work' appears twice"):
        Workload.from_frame(pd.concat([good, good[["work"]]], axis=1))
    with pytest.raises(InputError, match="row 2, column 'gpus': got"):
        Workload.from_frame(good.assign(gpus=pd.array([1, None], dtype="Int64")))
    with pytest.raises(InputError, match="row 1, column 'throughput:a': got 'x'"):
        Workload.from_frame(good.assign(**{"throughput:a": ["x", 1]}))


def test_columns_cannot_be_changed_and_are_not_the_callers() -> None:
    arrival = np.array([0.0, 1.0])
    jobs = two(arrival_s=arrival)
    arrival[0] = 99
    assert jobs.arrival_s.tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        jobs.work[0] = 5


@given(workload=workloads(whole_seconds=False))
def test_frames_give_the_workload_back(workload: Workload) -> None:
    assert Workload.from_frame(workload.to_frame()) == workload


@given(workload=workloads(whole_seconds=False), data=st.data())
def test_the_order_of_rows_does_not_matter(workload: Workload, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(workload))))
    again = Workload.from_frame(workload.to_frame().iloc[order])
    assert np.array_equal(again.arrival_s, workload.arrival_s)
    assert (
        again.to_frame()
        .sort_values("id", ignore_index=True)
        .equals(workload.to_frame().sort_values("id", ignore_index=True))
    )


@given(
    times=st.lists(st.tuples(st.floats(0, MAX_TIME_S), st.floats(1e-300, MAX_TIME_S)), min_size=1)
)
def test_times_lie_on_the_grid_near_what_was_given(times: list[tuple[float, float]]) -> None:
    arrival, work = (np.array(column) for column in zip(*times, strict=True))
    jobs = Workload.from_columns(arrival_s=arrival, gpus=1, work=work)
    order = [int(name) for name in jobs.id]
    for ours, given_s in ((jobs.arrival_s, arrival[order]), (jobs.work, work[order])):
        assert np.all(ours * TICKS_PER_S == np.floor(ours * TICKS_PER_S))
        assert np.all(np.abs(ours - given_s) <= TICK_S)
    assert np.all(jobs.work >= TICK_S)
    assert np.all(np.diff(jobs.arrival_s) >= 0)


def test_equal_arrivals_keep_their_order() -> None:
    jobs = Workload.from_columns(id=list("dbca"), arrival_s=[1, 0, 1, 0], gpus=1, work=1)
    assert jobs.id.tolist() == ["b", "a", "d", "c"]
    many = Workload.from_columns(arrival_s=[k % 2 for k in range(200)], gpus=1, work=1)
    assert [int(name) for name in many.id] == [*range(0, 200, 2), *range(1, 200, 2)]
    assert jobs.row_of == {"b": 0, "a": 1, "d": 2, "c": 3}
    assert jobs.select(np.array([True, False, True, True])).id.tolist() == ["b", "d", "c"]


def test_run_times_on_types() -> None:
    jobs = two(work=[100, 1e-300], throughput=[[10, 0], [3, 1e300]], gpu_types=("k80", "v100"))
    times = jobs.processing_s(Cluster.parse("1x1:k80,1x8:v100"))
    assert times[0].tolist() == [10.0, math.inf]
    # Two GPUs do not fit the only k80; work that vanishes still takes a tick.
    assert times[1].tolist() == [math.inf, TICK_S]
    with pytest.raises(InputError, match="no throughput for GPU type 'a100' of the cluster"):
        jobs.processing_s(Cluster.parse("1x1:a100"))


def test_run_times_are_never_shorter_than_the_exact_quotient() -> None:
    rng = np.random.default_rng(0)
    work, rate = rng.integers(1, 10**6, 200), rng.uniform(0.01, 50, 200)
    jobs = Workload.from_columns(
        arrival_s=np.zeros(200), gpus=1, work=work, throughput=rate[:, None], gpu_types=("gpu",)
    )
    times = jobs.processing_s(Cluster.parse("1x1"))[:, 0]
    for steps, per_s, time_s in zip(work.tolist(), rate.tolist(), times.tolist(), strict=True):
        exact = Fraction(steps) / Fraction(per_s)
        # The float quotient may lie half an ulp below the exact one, far less than a tick.
        assert abs(Fraction(time_s) - exact) <= Fraction(TICK_S) * (1 + Fraction(1, 1000))


def test_jobs_that_never_fit_are_named_or_left_out() -> None:
    cluster, jobs = Cluster.parse("2x4"), two(id=["a", "wide"], gpus=[8, 9])
    with pytest.raises(InfeasibleJobError, match="job 'wide' needs 9 GPUs"):
        Instance(cluster, jobs)
    instance, dropped = Instance.feasible(cluster, jobs)
    assert instance.workload.id.tolist() == ["a"]
    assert dropped.tolist() == ["wide"]


@given(instance=instances(max_nodes=2, max_gpus=3, max_jobs=5, max_arrival_s=9, max_work_s=7))
def test_drawn_instances_keep_their_bounds(instance: Instance) -> None:
    jobs, cluster = instance.workload, instance.cluster
    assert 1 <= len(jobs) <= 5
    assert jobs.arrival_s.max() <= 9
    assert jobs.work.max() <= 7
    assert jobs.gpus.max() <= cluster.total_gpus <= 6
    assert np.all(jobs.work == np.floor(jobs.work))
    assert np.all(np.isfinite(instance.shortest_s))


@given(workload=workloads(max_arrival_s=9, max_work_s=7, max_gang=2, whole_seconds=False))
def test_drawn_fractions_of_seconds_keep_their_bounds(workload: Workload) -> None:
    assert workload.arrival_s.max() <= 9
    assert workload.work.max() <= 7
    assert workload.gpus.max() <= 2


def test_fractions_of_seconds_are_drawn_where_asked() -> None:
    found = find(workloads(whole_seconds=False), lambda jobs: bool(np.any(jobs.work % 1 > 0)))
    assert len(found) == 1


@given(workload=workloads(max_jobs=3, distinct_arrivals=True, min_jobs=0))
def test_drawn_arrivals_are_distinct_where_asked(workload: Workload) -> None:
    assert len(set(workload.arrival_s.tolist())) == len(workload) <= 3


def test_the_grid_is_multiples_of_a_tick() -> None:
    times_s = np.array([0.0, 1.5, TICK_S, TICK_S / 2, 1 + TICK_S / 4, np.inf, np.nan])
    assert on_grid(times_s).tolist() == [True, True, True, False, False, True, False]


@given(
    st.lists(
        st.tuples(*[st.text(st.sampled_from('ab \t\u00a0\x1f"'), max_size=4)] * 2), min_size=1
    ),
    st.sampled_from(",|;"),
)
def test_values_of_tables_have_no_space_around(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], delimiter: str
) -> None:
    path = tmp_path_factory.mktemp("table") / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([("x", "y"), *rows])
    table = read_table(path)
    assert table["x"].tolist() == [row[0].strip() for row in rows]
    assert table["y"].tolist() == [row[1].strip() for row in rows]


def test_who_asks_for_an_amount() -> None:
    jobs = Workload.from_columns(
        arrival_s=[0, 0, 0], gpus=1, work=1, cpus=[0.5, 0, 0], memory_gb=[0, 0.5, 0]
    )
    assert jobs.asking.tolist() == [True, True, False]
