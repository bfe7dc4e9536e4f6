"""Loops of searches: what they say of an order is what the engine makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.metrics import end_s
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.library.collection import library_instance
from shadowprice.library.search import list_loops
from shadowprice.library.search.engine_orders import maker
from shadowprice.library.search.ranked.plain import RankedGangs
from shadowprice.library.search.ranked.planned import RankedOnce
from shadowprice.library.search.rated_orders import compiled_ends
from shadowprice.models.slotted import Slotted
from shadowprice.solvers.offline import list_search

GPUS = 4


@st.composite
def jobs_in_order(draw: st.DrawFn) -> tuple[np.ndarray, ...]:
    """Releases, run times and gangs in whole units, and an order of the jobs."""
    n = draw(st.integers(1, 9))
    each = [
        st.lists(st.integers(low, high), min_size=n, max_size=n)
        for low, high in ((0, 12), (1, 9), (1, GPUS))
    ]
    columns = [np.array(draw(column), dtype=np.int64) for column in each]
    columns[0].sort()
    return (*columns, np.array(draw(st.permutations(range(n))), dtype=np.int64))


def records(release: np.ndarray, work: np.ndarray, gang: np.ndarray) -> np.ndarray:
    jobs = np.zeros(len(release), dtype=list_loops.JOB)
    jobs["release"], jobs["work"], jobs["gang"], jobs["weight"] = release, work, gang, 1.0
    return jobs


def ranks(order: np.ndarray) -> np.ndarray:
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank


@given(jobs_in_order())
def test_the_preemptive_loop_ends_jobs_as_the_engine_does(jobs: tuple[np.ndarray, ...]) -> None:
    release, work, gang, order = jobs
    rows = np.empty((100, 3), np.int64)
    found, arrivals = records(release, work, gang), np.argsort(release, kind="stable")
    found["rank"] = ranks(order)
    made = list_loops.preemptive_ends(found, arrivals, GPUS, rows)
    workload = Workload.from_columns(
        arrival_s=release.astype(float), gpus=gang, work=work.astype(float)
    )
    instance = Instance(Cluster.parse(f"1x{GPUS}"), workload)
    policy = RankedGangs(ranks(order), np.zeros_like(order), True)
    ends = end_s(instance, run(instance, policy).schedule)
    assert found["end"].tolist() == ends.tolist()
    held = np.zeros(len(order), dtype=np.int64)
    np.add.at(held, rows[:made, 0], rows[:made, 2] - rows[:made, 1])
    assert held.tolist() == work.tolist()


@given(jobs_in_order())
def test_loops_of_jobs_that_begin_once_put_them_where_they_fit_first(
    jobs: tuple[np.ndarray, ...],
) -> None:
    release, work, gang, order = jobs
    slotted = Slotted(release, work, gang, np.ones(len(order)), GPUS, 1, True)
    expected = (list_search.place(slotted, order.tolist()) + work).tolist()
    found = records(release, work, gang)
    list_loops.once_ends(found, order, GPUS)
    assert found["end"].tolist() == expected
    none, one = np.zeros_like(order), np.array([GPUS])
    list_loops.planned_starts(found, order, work[:, None], one, none, none.copy())
    assert found["end"].tolist() == expected


@given(jobs_in_order(), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_moves_never_end_worse_than_they_began(
    jobs: tuple[np.ndarray, ...], once: bool, span: bool, seed: int
) -> None:
    release, work, gang, order = jobs
    arrivals, found = np.argsort(release, kind="stable"), records(release, work, gang)
    draws = np.random.default_rng(seed).random((40, 4))
    _, began = list_loops.anneal(found, order, arrivals, GPUS, once, span, draws[:0], 0.0)
    best, cost = list_loops.anneal(found, order, arrivals, GPUS, once, span, draws, 5.0)
    assert cost <= began
    assert sorted(best.tolist()) == list(range(len(order)))
    again, same = list_loops.anneal(found, best, arrivals, GPUS, once, span, draws[:0], 0.0)
    assert (again.tolist(), same) == (best.tolist(), cost)


@pytest.mark.parametrize(
    "name",
    [
        "types-10-recurrent-1",
        "widths-10-lognormal-1",
        "widths-10-lognormal-2",
        "failures-10-lognormal-1",
        "failures-10-lognormal-2",
        "sharing-10-gandiva-1",
        "sharing-10-gandiva-2",
    ],
)
def test_rated_loops_end_jobs_about_when_the_engine_does(name: str) -> None:
    instance = library_instance(name).instance()
    ends = compiled_ends(instance, preemptive=True)
    assert ends is not None
    make, choices = maker(instance, preemptive=True)
    rng = np.random.default_rng(5)
    for _ in range(10):
        rank, choice = rng.permutation(len(choices)), rng.integers(0, choices)
        found = end_s(instance, run(instance, make(rank, choice)).schedule)
        assert ends(rank, choice) == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize(
    "name", ["amounts-10-synergy-1", "graphs-10-recurrent-2", "gangs-10-lognormal-2"]
)
def test_other_instances_are_left_to_the_engine(name: str) -> None:
    which = library_instance(name)
    assert compiled_ends(which.instance(), preemptive=which.preemptive) is None


def test_a_plan_is_carried_out_on_the_types_and_at_the_times_that_it_says() -> None:
    instance = library_instance("types-10-recurrent-2").instance()
    make, choices = maker(instance, preemptive=False)
    rng = np.random.default_rng(2)
    for _ in range(10):
        policy = make(rng.permutation(len(choices)), rng.integers(0, choices))
        assert isinstance(policy, RankedOnce)
        schedule = run(instance, policy).schedule
        begin_s = np.full(len(choices), np.inf)
        np.minimum.at(begin_s, schedule.job, schedule.start_s)
        assert begin_s.tolist() == policy.start_s.tolist()
        types = instance.cluster.type_of_node[schedule.node]
        assert types.tolist() == policy.pool[schedule.job].tolist()
