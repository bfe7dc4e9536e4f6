"""Methods that know a model as published are not used where it is edited: the model itself is solved."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import publish_models
from shadowprice.analysis.bounds import bounds_of, strongest_bound
from shadowprice.analysis.certificates import cascade
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.optimum import optimum, slotted_preemptive_optimum
from shadowprice.errors import InputError, SolverError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.graphs.iteration_time import Network, iteration_s
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.models import asrpt, gandiva, preemptive, time_indexed
from shadowprice.solvers.gandiva.exact import best_packing, fewest_migrations
from shadowprice.solvers.graph_placement.exact import Exact
from shadowprice.solvers.programs import published
from shadowprice.solvers.programs.published import (
    DIGESTS,
    EditedModelWarning,
    digest,
    falls_back,
    is_published,
)
from shadowprice.solvers.programs.solution import Infeasible

pytestmark = pytest.mark.filterwarnings(
    "ignore::shadowprice.solvers.programs.published.EditedModelWarning"
)


def test_the_digests_are_those_of_the_models() -> None:
    """After an edit of a model: teach the methods that know it, then run docs/publish_models.py."""
    import json

    assert json.loads(DIGESTS.read_text("utf-8")) == publish_models.digests()


def test_words_about_a_model_are_no_edit_and_a_number_is() -> None:
    source = Path(time_indexed.__file__).read_text("utf-8")
    same = source.replace('"""The programme', '"""Programme', 1) + "\n# A remark.\n"
    assert same != source
    assert digest(same) == digest(source)
    assert digest(source.replace("== 1", "<= 1", 1)) != digest(source)
    assert digest(source.replace("\n    return m\n", "\n        return m\n")) != digest(source)


@pytest.fixture
def all_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of models as after an edit."""
    monkeypatch.setattr(published, "_as_published", lambda module: False)


def test_an_edited_file_is_seen(all_edited: None) -> None:
    assert not is_published(time_indexed.build)
    with pytest.warns(
        EditedModelWarning, match=r"time_indexed\.build is not the published model: x"
    ):
        assert falls_back(time_indexed.build, "x")


def test_models_from_elsewhere_are_not_published() -> None:
    assert is_published(time_indexed.build)
    assert not is_published(lambda *given, **how: time_indexed.build(*given, **how))


# ---------------------------------------------------------------------------- the offline optimum


def instance_of(arrival_s: list[int], duration_s: list[int], gpus: list[int]) -> Instance:
    jobs = Workload.from_columns(
        id=[str(k) for k in range(len(gpus))], arrival_s=arrival_s, work=duration_s, gpus=gpus
    )
    return Instance(Cluster.parse("1x4"), jobs)


small = st.integers(1, 4).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 3), min_size=n, max_size=n).map(sorted),
        st.lists(st.integers(1, 4), min_size=n, max_size=n),
        st.lists(st.integers(1, 4), min_size=n, max_size=n),
    )
)


def same(*given: Any, **how: Any) -> Any:
    return time_indexed.build(*given, **how)


@settings(max_examples=15)
@given(small, st.sampled_from(["completion", "makespan"]))
def test_the_model_alone_finds_the_optimum_that_all_methods_find(given: Any, goal: str) -> None:
    """An edit that changes nothing changes nothing."""
    instance = instance_of(*given)
    expected = optimum(instance, objective=goal, budget_s=20.0)
    found = optimum(instance, objective=goal, budget_s=20.0, model=same)
    assert expected.proven
    assert found.edited
    assert found.proven
    assert found.upper_s == pytest.approx(expected.upper_s)
    assert found.schedule is not None


@settings(max_examples=15)
@given(small, st.data())
def test_a_deadline_takes_effect(given: Any, data: st.DataObject) -> None:
    """Over all starts on the grid, the best that keeps a deadline of one job."""
    arrival, duration, gpus = given
    late = data.draw(st.integers(0, len(gpus) - 1))
    instance = instance_of(*given)
    end = arrival[late] + duration[late] + data.draw(st.integers(0, 2))

    def build(jobs: Any, starts: Any, **how: Any) -> Any:
        m = time_indexed.build(jobs, starts, **how)
        p = int(jobs.duration[late])
        m.deadline = pyo.Constraint(
            expr=sum((t + p) * m.x[j, t] for j, t in m.JT if j == jobs.id[late])
            <= end / jobs.slot_s
        )
        return m

    found = optimum(instance, budget_s=20.0, model=build)
    assert found.proven
    assert found.upper_s == pytest.approx(cheapest(arrival, duration, gpus, late, end))


def cheapest(
    arrival: list[int], duration: list[int], gpus: list[int], late: int, end: int
) -> float:
    """Least total completion time over all starts in whole seconds."""
    from itertools import product

    latest = max(arrival) + sum(duration)
    best = float("inf")
    for starts in product(*(range(a, latest + 1) for a in arrival)):
        ends = [s + p for s, p in zip(starts, duration, strict=True)]
        if ends[late] > end or sum(ends) >= best:
            continue
        used = np.zeros(max(ends), dtype=int)
        for s, e, g in zip(starts, ends, gpus, strict=True):
            used[s:e] += g
        if used.max() <= 4:
            best = sum(ends)
    return best


def test_a_deadline_nobody_can_keep_is_named() -> None:
    instance = instance_of([0, 0], [2, 2], [4, 4])

    def build(jobs: Any, starts: Any, **how: Any) -> Any:
        m = time_indexed.build(jobs, starts, **how)
        m.deadline = pyo.Constraint(m.J, rule=lambda m, j: m.x[j, 0] == 1)
        return m

    with pytest.raises(SolverError, match="deadline"):
        optimum(instance, model=build)


def test_cp_sat_knows_the_published_model_only() -> None:
    instance = instance_of([0], [1], [1])
    with pytest.raises(InputError, match="'cp-sat' knows the published model only"):
        optimum(instance, method="cp-sat", model=same)
    with pytest.raises(InputError, match="'cp-sat' knows the published model only"):
        slotted_preemptive_optimum(
            instance, method="cp-sat", model=lambda *g, **h: preemptive.build(*g, **h)
        )


@settings(max_examples=15)
@given(small)
def test_the_preemptive_model_alone_finds_its_optimum(given: Any) -> None:
    instance = instance_of(*given)
    expected = slotted_preemptive_optimum(instance)
    found = slotted_preemptive_optimum(instance, model=lambda *g, **h: preemptive.build(*g, **h))
    assert found.upper_s == pytest.approx(expected.upper_s)
    assert found.edited
    assert found.schedule is not None


def test_a_slot_a_job_must_not_use_takes_effect() -> None:
    instance = instance_of([0], [2], [1])

    def build(jobs: Any, horizon: int, **how: Any) -> Any:
        m = preemptive.build(jobs, horizon, **how)
        m.y["0", 0].fix(0)
        return m

    assert slotted_preemptive_optimum(instance).upper_s == 2.0
    assert slotted_preemptive_optimum(instance, model=build).upper_s == 4.0  # Slots of 2 s.


def test_an_edited_optimum_bounds_no_schedules(
    all_edited: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds that compare and certify print are of schedules; an edited model's optimum is not."""
    # Lists of so few jobs would say all that there is to say.
    monkeypatch.setattr(cascade, "non_preemptive_bounds", lambda *words: iter(()))
    instance = instance_of([0, 0, 1], [3, 2, 4], [4, 2, 3])
    kinds = {
        bound.kind
        for bound in bounds_of(instance, "completion", BoundEffort(2.0), preemptive=False)
    }
    assert not kinds & {"milp", "cp-sat", "time-indexed-lp"}
    with pytest.warns(EditedModelWarning, match="left aside as a bound"):
        strongest_bound(instance, objective="completion", preemptive=False, budget_s=2.0)


# --------------------------------------------------------------------------------------- placement


NETWORK = Network(100e9, 10e9, 8)


def job_graphs(seed: int) -> JobGraph:
    random = np.random.default_rng(seed)
    stages = tuple(
        Stage(f"s{k}", int(random.integers(1, 4)), 0.01, 0.02, float(random.choice([0.0, 1e8])))
        for k in range(int(random.integers(1, 4)))
    )
    pairs = [(s, t) for s in range(len(stages)) for t in range(s + 1, len(stages))]
    links = tuple(Link(s, t, float(random.choice([1e8, 1e9]))) for s, t in pairs)
    return JobGraph("job", stages, links, 0)


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from(["time", "cut"]))
def test_a_placement_model_alone_finds_the_best_placement(seed: int, objective: str) -> None:
    """Without symmetries, Heavy-Edge and its bound the value is the same."""
    graph, room = job_graphs(seed), np.array([2, 0, 3, 2, 4])
    build = asrpt.least_time if objective == "time" else asrpt.least_cut
    known = Exact(objective=objective).place(graph, room, NETWORK)
    alone = Exact(objective=objective, model=lambda given, **how: build(given, **how)).place(
        graph, room, NETWORK
    )
    if known is None:
        assert alone is None
        return
    assert alone is not None
    value = Exact(objective=objective)._value
    assert value(graph, alone, NETWORK) == pytest.approx(value(graph, known, NETWORK), rel=1e-5)


def test_a_rack_limit_takes_effect_on_the_nodes_that_it_names() -> None:
    """Nodes 0 and 1 are a rack that a job may hold two GPUs of; node 2 has the others."""
    graph = JobGraph("job", (Stage("only", 4, 0.01, 0.02, 1e8),), (), 0)
    room = np.array([4, 4, 4])

    def build(given: Any, **how: Any) -> Any:
        m = asrpt.least_time(given, **how)
        m.rack = pyo.Constraint(expr=sum(m.x[s, i] for s in m.S for i in ("node-0", "node-1")) <= 2)
        return m

    free = Exact().place(graph, room, NETWORK)
    assert free is not None
    assert len(free) == 1
    limited = Exact(model=build).place(graph, room, NETWORK)
    assert limited is not None
    assert sum(sum(row) for node, row in limited if node in (0, 1)) <= 2
    assert iteration_s(graph, limited, NETWORK) == pytest.approx(
        iteration_s(graph, ((2, (4,)),), NETWORK)
    )
    # With node 2 nearly full the rack has to take two, and no other node takes the rest.
    assert Exact(model=build).place(graph, np.array([4, 4, 1]), NETWORK) is None


# ----------------------------------------------------------------------------------- Gandiva


def test_a_ban_on_a_packing_takes_effect() -> None:
    packings = gandiva.Packings(4, ((0, 1), (2, 3), (0, 2), (1, 3)), (0.5, 0.5, 0.4, 0.4))

    def build(given: Any) -> Any:
        m = gandiva.packing(given)
        m.seen = pyo.Var(bounds=(0, 1))  # A variable of one's own does not get in the way.
        m.ban = pyo.Constraint(expr=m.x["job-0+job-1"] <= m.seen - 1)
        return m

    assert best_packing(packings) == [(0, 1), (2, 3)]
    assert best_packing(packings, model=build) == [(0, 2), (1, 3)]


def test_a_server_that_takes_nobody_takes_effect() -> None:
    homes = gandiva.Homes((4, 4, 4), (3, 2, 4), (0, 1, -1))

    def build(given: Any, **how: Any) -> Any:
        m = gandiva.defragmentation(given, **how)
        m.closed = pyo.Constraint(expr=m.y["job-2", "server-2"] == 0)
        return m

    assert fewest_migrations(homes) == (0, 1, 2)
    with pytest.raises(Infeasible, match="closed"):
        fewest_migrations(homes, model=lambda g, **h: _pinned(build(g, **h)))
    moved = fewest_migrations(homes, model=build)
    assert moved[2] != 2
    assert sum(a != b for a, b in zip(moved[:2], homes.node[:2], strict=True)) == 1


def _pinned(m: Any) -> Any:
    m.stay = pyo.Constraint(expr=m.y["job-0", "server-0"] + m.y["job-1", "server-1"] == 2)
    return m


def test_an_unedited_model_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", EditedModelWarning)
        optimum(instance_of([0], [1], [1]))
        Exact().place(job_graphs(1), np.array([4, 4]), NETWORK)
