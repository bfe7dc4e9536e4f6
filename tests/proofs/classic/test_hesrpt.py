"""heSRPT: the least total completion time of jobs with speed k^p, in shares and in whole widths."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.instances.terms.widths import Growth
from shadowprice.proofs.classic.hesrpt import bound, check, coefficients, least_total
from shadowprice.solvers.classic.hesrpt import HeSrpt, optimal_parts, whole_widths

SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=7)
JOB = st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(1, 40))


def in_shares(sizes: list[int], gpus: int, p: float) -> float:
    """Total completion time of the optimal parts, followed without rounding."""
    left, now, total = sorted(map(float, sizes), reverse=True), 0.0, 0.0
    while left:
        speed = [(gpus * part) ** p for part in optimal_parts(p, len(left))]
        lasts = left[-1] / speed[-1]
        now += lasts
        total += now
        left = [x - lasts * v for x, v in zip(left[:-1], speed[:-1], strict=True)]
    return total


@given(SIZES, st.integers(1, 64), st.sampled_from([0.1, 0.5, 0.848, 0.99]))
def test_the_parts_attain_the_least_total(sizes: list[int], gpus: int, p: float) -> None:
    least = least_total([Decimal(x) for x in sizes], gpus, Decimal(p))
    assert in_shares(sizes, gpus, p) == pytest.approx(float(least), rel=1e-9)


@given(st.tuples(st.integers(1, 60), st.integers(1, 60)), st.floats(0.05, 0.95))
def test_two_jobs_by_trying_all_parts(sizes: tuple[int, int], p: float) -> None:
    """A part of 64 GPUs for the first until one ends; then the other has all."""
    least = float(least_total([Decimal(x) for x in sizes], 64, Decimal(p)))
    one = np.linspace(0.0, 1.0, 4001)[1:-1]
    speed = np.array([(64 * one) ** p, (64 * (1 - one)) ** p])
    ends = np.array(sizes)[:, None] / speed
    first = ends.min(axis=0)
    left = np.array(sizes)[:, None] - first * speed
    total = 2 * first + left.max(axis=0) / 64**p
    both = float(total.min())
    in_turn = (min(sizes) * 2 + max(sizes)) / 64**p
    assert min(both, in_turn) >= least * (1 - 1e-9)
    assert min(both, in_turn) <= least * 1.001


@given(
    st.lists(JOB, min_size=1, max_size=8),
    st.sampled_from(["hesrpt", "hesrpt:exponent=0.3", "srtf", "gandiva"]),
    st.sampled_from([0.6, 0.9, 1.0]),
)
@settings(max_examples=25)
def test_no_run_costs_less(jobs: list[tuple[int, int, int]], name: str, efficiency: float) -> None:
    arrival, gpus, work = (list(each) for each in zip(*jobs, strict=True))
    loads = sp.Workload.from_columns(arrival_s=arrival, gpus=gpus, work=work)
    options = sp.RunOptions(growth=Growth(6, efficiency))
    outcome = sp.simulate(loads, "1x6", name, options)
    total = sum(map(Fraction, outcome.end_s.tolist()))
    assert check(outcome.instance, total)


def test_the_policy_is_near_the_bound() -> None:
    draw = np.random.default_rng(1)
    work = np.ceil(draw.lognormal(5, 1, 12))
    jobs = sp.Workload.from_columns(arrival_s=np.zeros(12), gpus=np.ones(12, int), work=work)
    outcome = sp.simulate(jobs, "1x64", "hesrpt", sp.RunOptions(growth=Growth(64, 0.9)))
    assert outcome.end_s.sum() <= 1.01 * float(bound(outcome.instance))


def test_worked_parts_and_widths() -> None:
    """p = 1/2: of two jobs the larger gets a quarter."""
    assert optimal_parts(0.5, 2) == (0.25, 0.75)
    assert sum(optimal_parts(0.848, 9)) == pytest.approx(1.0)
    assert coefficients(3, Decimal(1)) == [1, 2, 3]
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[8, 4])
    options = sp.RunOptions(growth=Growth(4, math.sqrt(0.5)))
    outcome = sp.simulate(jobs, "1x4", "hesrpt:exponent=0.5", options)
    first = outcome.schedule.start_s == 0
    held = dict(zip(outcome.schedule.job[first], outcome.schedule.gpus[first], strict=True))
    assert held == {0: 1, 1: 3}
    assert outcome.end_s[1] == pytest.approx(4 / math.sqrt(3), abs=1e-5)


@given(
    st.lists(
        st.tuples(st.floats(0, 12), st.integers(1, 5), st.integers(0, 6)), min_size=1, max_size=8
    ),
    st.integers(0, 16),
)
def test_widths_are_possible_and_leave_nothing_idle(
    jobs: list[tuple[float, int, int]], total: int
) -> None:
    ideal = [wish for wish, _, _ in jobs]
    gangs = [gang for _, gang, _ in jobs]
    most = [gang + more for _, gang, more in jobs]
    widths = whole_widths(ideal, gangs, most, total)
    left = total - sum(widths)
    assert left >= 0
    for width, gang, limit in zip(widths, gangs, most, strict=True):
        assert width == 0 or gang <= width <= limit
        assert not left or (width == limit if width else gang > left)


def test_without_growth_it_is_least_service_first() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0, 1], gpus=[2, 1, 1], work=[3, 4, 1])
    ends = [sp.simulate(jobs, "1x2", name).end_s.tolist() for name in ("hesrpt", "srsf")]
    assert ends[0] == ends[1]


def test_wrong_exponents_are_refused() -> None:
    with pytest.raises(InputError, match=r"exponent is 1\.0, expected a number from 0 to 0\.999"):
        HeSrpt(exponent=1.0)
