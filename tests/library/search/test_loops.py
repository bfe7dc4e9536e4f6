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


@given(jobs_in_order())
def test_the_preemptive_loop_ends_jobs_as_the_engine_does(jobs: tuple[np.ndarray, ...]) -> None:
    release, work, gang, order = jobs
    rank, ends = np.empty_like(order), np.empty_like(order)
    rank[order] = np.arange(len(order))
    rows = np.empty((100, 3), np.int64)
    arrivals = np.argsort(release, kind="stable")
    made = list_loops.preemptive_ends(rank, arrivals, release, work, gang, GPUS, ends, rows)
    workload = Workload.from_columns(
        arrival_s=release.astype(float), gpus=gang, work=work.astype(float)
    )
    instance = Instance(Cluster.parse(f"1x{GPUS}"), workload)
    policy = RankedGangs(rank, np.zeros_like(rank), True)
    assert ends.tolist() == end_s(instance, run(instance, policy).schedule).tolist()
    held = np.zeros(len(order), dtype=np.int64)
    np.add.at(held, rows[:made, 0], rows[:made, 2] - rows[:made, 1])
    assert held.tolist() == work.tolist()


@given(jobs_in_order())
def test_the_loop_of_jobs_that_begin_once_puts_them_where_they_fit_first(
    jobs: tuple[np.ndarray, ...],
) -> None:
    release, work, gang, order = jobs
    ends = np.empty_like(order)
    list_loops.once_ends(order, release, work, gang, GPUS, ends)
    slotted = Slotted(release, work, gang, np.ones(len(order)), GPUS, 1, True)
    assert ends.tolist() == (list_search.place(slotted, order.tolist()) + work).tolist()


@given(jobs_in_order(), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_moves_never_end_worse_than_they_began(
    jobs: tuple[np.ndarray, ...], once: bool, span: bool, seed: int
) -> None:
    release, work, gang, order = jobs
    arrivals, weight = np.argsort(release, kind="stable"), np.ones(len(order))
    draws = np.random.default_rng(seed).random((40, 4))
    arguments = (arrivals, release, work, gang, weight, GPUS, once, span)
    _, began = list_loops.anneal(order, *arguments, draws[:0], 3, 0.0)
    best, cost = list_loops.anneal(order, *arguments, draws, 3, 5.0)
    assert cost <= began
    assert sorted(best.tolist()) == list(range(len(order)))
    again, same = list_loops.anneal(best, *arguments, draws[:0], 3, 0.0)
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
