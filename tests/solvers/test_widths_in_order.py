"""Widths of least parallelisable first: their order, the largest sum of speeds, and who is told speed-ups."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import PolicyError
from shadowprice.execution.engine import run
from shadowprice.instances.terms.widths import Elasticity, Growth, speed_up
from shadowprice.solvers.classic.least_parallelisable import (
    LeastParallelisableFirst,
    Widths,
    widths_in_order,
)
from shadowprice.solvers.policy import Knowledge
from shadowprice.solvers.registry import policy
from support.states import state_of

EFFICIENCY = st.sampled_from([0.55, 0.75, 0.95, 1.0])


def given_to(jobs: list[tuple[int, int, float]], total: int) -> list[int]:
    """Widths of jobs of a gang, a widest and an efficiency, in this order."""
    widths = [Widths(gang, most if e == 1.0 else gang, most) for gang, most, e in jobs]

    def speed(k: int, width: int) -> float:
        gang, _, efficiency = jobs[k]
        return gang * speed_up(efficiency, gang, width)

    return widths_in_order(widths, speed, total)


@given(
    st.lists(st.tuples(st.integers(1, 4), EFFICIENCY), min_size=1, max_size=4), st.integers(0, 6)
)
def test_no_widths_of_one_gpu_jobs_have_a_larger_sum_of_speeds(
    rows: list[tuple[int, float]], total: int
) -> None:
    jobs = [(1, most, e) for most, e in rows]

    def speeds(widths: tuple[int, ...]) -> float:
        pairs = zip(jobs, widths, strict=True)
        return sum(speed_up(e, 1, width) for (_, _, e), width in pairs if width)

    found = tuple(given_to(jobs, total))
    possible = product(*(range(most + 1) for most, _ in rows))
    best = max(speeds(widths) for widths in possible if sum(widths) <= total)
    assert sum(found) <= total
    assert speeds(found) == pytest.approx(best, rel=1e-12)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4), EFFICIENCY), min_size=1, max_size=6),
    st.integers(0, 12),
)
def test_widths_are_possible_and_leave_nothing_that_somebody_could_use(
    rows: list[tuple[int, int, float]], total: int
) -> None:
    jobs = [(gang, gang + more, e) for gang, more, e in rows]
    widths = given_to(jobs, total)
    left = total - sum(widths)
    assert left >= 0
    for width, (gang, most, _) in zip(widths, jobs, strict=True):
        assert width == 0 or gang <= width <= most
        assert not left or (width == most if width else gang > left)


def test_who_grows_without_a_loss_has_all_before_the_next() -> None:
    linear, lossy = (1, 4, 1.0), (1, 4, 0.75)
    assert given_to([(1, 1, 1.0), linear, linear], 6) == [1, 4, 1]
    # Half a GPU more at 2 GPUs, less at 3: each in turn, the first of equals.
    assert given_to([lossy, lossy, (1, 1, 1.0)], 6) == [3, 2, 1]
    assert given_to([lossy, linear], 4) == [1, 3]


def test_levels_are_the_largest_speeds() -> None:
    """On two GPUs, all there at 0: one that is no faster on more, one of speed 3^(1/2), one of two GPUs, linear."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0, 0], gpus=[1, 1, 1], work=[8, 8, 8])
    elastic = Elasticity(np.array([2, 3, 1]), np.array([1.0, np.sqrt(0.5), 1.0]))
    instance = sp.Instance(sp.Cluster.parse("1x2"), jobs, elasticity=elastic)
    schedule = run(instance, LeastParallelisableFirst()).schedule
    assert sorted(schedule.job[schedule.start_s == 0].tolist()) == [1, 2]


def test_speed_ups_are_told_to_those_who_declare_them() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[2], work=[8])
    cluster = sp.Cluster.parse("1x8")
    growing = replace(
        sp.Instance(cluster, jobs),
        elasticity=Growth(6, 0.75).of(jobs, cluster),
    )
    state = state_of(growing, [Knowledge.SPEED_UP])
    assert [state.speed_up(0, width) for width in (2, 4)] == [1.0, 1.5]
    with pytest.raises(PolicyError, match="speed of job 0 on 7 GPUs, expected 2 to 6"):
        state.speed_up(0, 7)
    with pytest.raises(PolicyError, match="reads 'speed-up', but declares that it knows duration"):
        state_of(growing, [Knowledge.DURATION]).speed_up(0, 4)
    plain = state_of(sp.Instance(cluster, jobs), [Knowledge.SPEED_UP])
    assert plain.speed_up(0, 2) == 1.0
    assert policy("lpf").knows == {Knowledge.SPEED_UP}


def test_without_growth_it_is_the_narrowest_first() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0, 1], gpus=[2, 1, 1], work=[3, 4, 2])
    assert sp.simulate(jobs, "1x2", "lpf").end_s.tolist() == [7, 4, 3]


@pytest.mark.parametrize("name", ["hesrpt", "lpf"])
def test_who_has_no_room_for_its_width_goes_on_or_has_its_gang(name: str) -> None:
    """Job 0 has the memory for two GPUs of a node, and wants four: alone it would wait for ever."""
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0], gpus=1, work=[30, 22], model="m", memory_gb=[100, 0]
    )
    cluster = sp.Cluster.parse("1x4+16cpu+256gb,1x4+16cpu+256gb")
    schedule = sp.simulate(jobs, cluster, name, sp.RunOptions(growth=Growth(4, 0.9))).schedule
    assert sorted(zip(schedule.job, schedule.gpus, strict=True)) == [(0, 1), (1, 4)]
    assert schedule.start_s.tolist() == [0.0, 0.0]
