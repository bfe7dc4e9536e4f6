"""Jobs and a cluster, a data frame of jobs, or an instance: one reader, and the same answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example
from hypothesis import given as over
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.run_options import OF_THE_INSTANCE, RunOptions
from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.instances.traces import load_trace
from shadowprice.instances.traces.csv_table import ALIASES, load_frame
from support.feature_instances import instance_with

CLUSTER = "2x4+24cpu+500gb"
POLICIES = ("fifo", "srtf")

EVERY_S = RunOptions(round_s=1.0)

CALLS: dict[str, Callable[..., Any]] = {
    "simulate": lambda *jobs: sp.simulate(*jobs, policy="srtf").schedule.to_frame(),
    "compare": lambda *jobs: sp.compare(*jobs, policies=POLICIES, budget_s=0.0).rows,
    "compare_utility": lambda *jobs: (
        sp.compare_utility(*jobs, policies=POLICIES, options=EVERY_S, budget_s=0.0).rows
    ),
    "strongest_bound": lambda *jobs: sp.strongest_bound(*jobs, preemptive=True, budget_s=0.0),
    "optimum": lambda *jobs: costs(sp.optimum(*jobs, budget_s=20.0)),
    "preemptive_optimum": lambda *jobs: costs(sp.preemptive_optimum(*jobs, budget_s=20.0)),
    "copies_optimum": lambda *jobs: costs(sp.copies_optimum(*jobs, budget_s=20.0)),
    "slotted_preemptive_optimum": lambda *jobs: costs(
        sp.slotted_preemptive_optimum(*jobs, budget_s=20.0)
    ),
}
"""Every public function of jobs on a cluster, with an answer that can be compared."""


def costs(found: Any) -> tuple[float, float]:
    return found.lower_s, found.upper_s


def same(one: Any, other: Any) -> bool:
    return bool(one.equals(other)) if isinstance(one, pd.DataFrame) else bool(one == other)


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {"gpus": [1, 4, 2, 4], "submit": [0, 2, 1, 3], "duration": [6.0, 2.0, 3.0, 1.0]}
    )


def jobs() -> sp.Workload:
    return sp.Workload.from_columns(
        arrival_s=[0, 1, 2, 3],
        gpus=[1, 2, 4, 4],
        work=[6.0, 3.0, 2.0, 1.0],
        id=["0", "2", "1", "3"],
    )


def test_every_public_function_of_jobs_begins_with_the_same_arguments() -> None:
    functions = {
        name: list(inspect.signature(thing).parameters.values())
        for name in sp.__all__
        if inspect.isfunction(thing := getattr(sp, name))
    }
    of_jobs = {
        name: [each.name for each in parameters[:2]]
        for name, parameters in functions.items()
        if {"cluster", "workload", "instance"} & {each.name for each in parameters}
    }
    assert of_jobs.pop("verify") == ["instance", "schedule"]  # It is of what was settled.
    assert of_jobs.pop("audit") == ["log", "cluster"]  # It is of what was run.
    assert of_jobs == {name: ["jobs", "cluster"] for name in CALLS}


@pytest.mark.parametrize("name", CALLS)
def test_a_table_and_an_instance_give_the_answer_of_the_jobs(name: str) -> None:
    call = CALLS[name]
    cluster = sp.Cluster.parse("1x4")
    expected = call(jobs(), "1x4")
    assert same(call(jobs(), cluster), expected)
    assert same(call(table(), "1x4"), expected)
    assert same(call(sp.load(table()), cluster), expected)
    assert same(call(sp.Instance(cluster, jobs())), expected)
    assert not same(call(sp.Instance(sp.Cluster.parse("1x8"), jobs())), expected)


@pytest.mark.parametrize("name", CALLS)
def test_what_stands_for_the_jobs_is_said_in_one_sentence(name: str) -> None:
    call, instance = CALLS[name], sp.Instance(sp.Cluster.parse("1x4"), jobs())
    wrong = {
        "workload: jobs are given without a cluster, expected one such as '16x4'": (jobs(),),
        "cluster '1x4': an instance has a cluster of its own; expected": (instance, "1x4"),
        "jobs: got 'jobs.csv', expected a Workload, a data frame,": ("jobs.csv", "1x4"),
        "frame: row 2, column 'gpus': got 0, expected an integer from 1": (
            table().assign(gpus=[1, 0, 1, 1]),
            "1x4",
        ),
        "frame: no column for gpus, expected one of gpus, num_gpus,": (
            table().drop(columns="gpus"),
            "1x4",
        ),
        ": never ends, expected a window of jobs": (
            sp.endless("gavel-published", jobs_per_hour=1.0),
            "1x4",
        ),
    }
    for message, given in wrong.items():
        with pytest.raises(InputError) as refusal:
            call(*given)
        assert message in str(refusal.value)
        assert "\n" not in str(refusal.value)


# Data frames and files.


def cells() -> st.SearchStrategy[Any]:
    """Values of a cell, good and bad."""
    numbers = st.sampled_from([0, 1, 2, 3.5, 1e9, -1, 4])
    return st.one_of(numbers, numbers, numbers, st.sampled_from([None, "x", " 2 ", "2026-01-31"]))


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Tables under known names, most of whose values are those of jobs."""
    rows = draw(st.integers(0, 4))
    names = [draw(st.sampled_from(ALIASES[each])) for each in ("arrival_s", "gpus", "work")]
    more = [draw(st.sampled_from(each)) for each in ALIASES.values()]
    chosen = [*names, *draw(st.lists(st.sampled_from([*more, "other"]), max_size=4))]
    if not draw(st.integers(0, 4)):
        chosen = chosen[1:]
    cases = st.sampled_from([str.upper, str.lower])
    columns = {draw(cases)(name): None for name in chosen}
    some = draw(st.sampled_from([cells(), st.sampled_from([1, 2, 3]), st.just("2026-01-31")]))
    plain = st.sampled_from([1, 2, 3])
    return pd.DataFrame(
        {
            name: draw(
                st.lists(some if draw(st.booleans()) else plain, min_size=rows, max_size=rows)
            )
            for name in columns
        }
    )


@over(tables())
@example(pd.DataFrame({"job": [" a", "b "], "submit": [0, 1], "gpus": [1, 1], "run_time": [2, 3]}))
@example(
    pd.DataFrame(
        {
            "submit": ["2026-01-01", "2026-01-02"],
            "gpus": ["1", " 2"],
            "duration": [1.5, 2.0],
            "deadline": [20260103, 20260104],
        }
    )
)
@example(pd.DataFrame({"submit": [0, 1], "gpus": [1, 2], "duration": [1, 1], "queue": [None, "q"]}))
def test_a_table_in_memory_is_read_as_its_file(tmp_path_factory: Any, frame: pd.DataFrame) -> None:
    """The same jobs, or the same message about the same row and column, but for how it shows the value."""
    path = Path(tmp_path_factory.getbasetemp()) / "table.csv"
    frame.to_csv(path, index=False)
    read = outcome_of(lambda: load_trace(path, format="csv"), str(path))
    assert outcome_of(lambda: load_frame(frame), "frame") == read


def outcome_of(load: Callable[[], Any], source: str) -> Any:
    try:
        found = load()
    except InputError as error:
        said = str(error).removeprefix(source)
        before, got, after = said.partition(": got ")
        return before, got, after.partition(", expected")[2]
    return found.workload, found.notes, [each.why for each in found.report]


def test_a_table_of_ones_own_types_is_read() -> None:
    """Missing values of every kind are empty cells, and dates are dates."""
    given = pd.DataFrame(
        {
            "Job": pd.Categorical(["a", "b"]),
            "submit_time": pd.to_datetime(["2026-01-01 00:00", "2026-01-01 00:01"]),
            "gpus": pd.array([1, 2], dtype="Int64"),
            "duration": np.array([10, 20], dtype=np.float32),
            "weight": pd.array([None, 3], dtype="Int64"),
            "deadline": pd.to_datetime([None, "2026-01-02"]),
        },
        index=[7, 7],
    )
    read = sp.load(given)
    assert read.id.tolist() == ["a", "b"]
    assert read.arrival_s.tolist() == [0.0, 60.0]
    assert read.weight.tolist() == [1.0, 3.0]
    assert read.deadline_s.tolist() == [np.inf, 86400.0]
    with pytest.raises(InputError, match="row 1, column 'duration': got True"):
        sp.load(given.assign(duration=[True, False]))
    with pytest.raises(InputError, match="format 'csv': is of files"):
        sp.load(given, format="csv")
    with pytest.raises(InputError, match="column 'gpus' appears twice"):
        sp.load(pd.concat([given, given[["gpus"]]], axis=1))


def test_a_table_that_was_written_is_read_without_loss() -> None:
    mine = sp.generate("lognormal", jobs=40, seed=1, gpus_total=8)
    typed = replace(mine, throughput=np.ones((40, 2)), gpu_types=("a", "b"))
    for each in (mine, typed, mine.select(np.zeros(40, dtype=bool))):
        assert sp.load(each.to_frame()) == each


# Instances.


@pytest.mark.parametrize(
    "feature", [f for f in Feature if f not in (Feature.COPIES, Feature.STOPPED)]
)
@pytest.mark.parametrize("policy", POLICIES)
def test_an_instance_given_twice_over_gives_the_same_run(policy: str, feature: Feature) -> None:
    instance = instance_with(feature)
    once = sp.simulate(instance, policy=policy)
    assert once.instance.features == instance.features
    assert ("until_complete" in once.settings) is (feature is Feature.WINDOW)
    # A run that a window ended has the jobs that had come by then, and no later ones.
    again = instance if feature is Feature.WINDOW else once.instance
    twice = sp.simulate(again, policy=policy)
    assert twice.schedule.to_frame().equals(once.schedule.to_frame())
    assert twice.settings == once.settings


def test_jobs_of_an_instance_run_as_copies_by_one_rule() -> None:
    once = sp.simulate(jobs(), "2x4", "hadare")
    twice = sp.simulate(once.instance, policy="hadare")
    assert twice.schedule.to_frame().equals(once.schedule.to_frame())
    with pytest.raises(InputError, match="other rules than those of hadare"):
        sp.simulate(instance_with(Feature.COPIES), policy="hadare")


def test_an_instance_says_itself_what_is_given() -> None:
    """Each switch is of the instance, which then has it alone, or of the run."""
    instance = sp.Instance(sp.Cluster.parse(CLUSTER), jobs())
    names = [each.name for each in fields(RunOptions)]
    assert set(OF_THE_INSTANCE) < set(names)
    for name in OF_THE_INSTANCE:
        value = sp.Preemption.RESTART if name == "preemption" else "gavel"
        with pytest.raises(InputError, match=f"an instance is given, and {name} by the options"):
            sp.simulate(instance, policy="srtf", options=RunOptions(**{name: value}))
    rounds = RunOptions(round_s=4.0, placement="pack")
    there = sp.simulate(instance, policy="srtf", options=rounds)
    same_run = sp.simulate(jobs(), CLUSTER, "srtf", rounds)
    assert there.schedule.to_frame().equals(same_run.schedule.to_frame())
    assert there.settings == same_run.settings
