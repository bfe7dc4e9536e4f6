"""Intervals of what is never negative, or never below 1: none reaches below what is possible."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shadowprice.analysis.statistics.estimates import (
    Estimate,
    estimate,
    signed_estimate,
)
from shadowprice.studies.statistics.paired import ratio_of_means

TIMES = st.lists(st.floats(0.0, 1e9), min_size=2, max_size=12)
POSITIVE = st.lists(st.floats(1e-6, 1e9), min_size=2, max_size=12)
RATIOS = st.lists(st.floats(1.0, 1e6), min_size=2, max_size=12)


def holds(found: Estimate, value: float) -> bool:
    return found.low <= value <= found.high


@given(TIMES)
def test_an_interval_of_times_is_positive_and_holds_the_mean(values: list[float]) -> None:
    found = estimate(values)
    assert holds(found, found.mean)
    assert math.isfinite(found.high)
    assert found.low > 0 or (found.low, found.high) == (0.0, 0.0) or max(values) < 1e-300
    # At most that many times the mean, whatever the values: a single one that is not 0.
    assert signed_estimate(values).low <= found.low


@given(TIMES, st.floats(1e-3, 1e3))
def test_an_interval_is_the_same_in_other_units(values: list[float], unit: float) -> None:
    found, scaled = estimate(values), estimate([unit * each for each in values])
    assume(max(values) == 0 or max(values) > 1e-200)
    expected = [unit * each for each in (found.mean, found.low, found.high)]
    assert [scaled.mean, scaled.low, scaled.high] == pytest.approx(expected, rel=1e-6)


@given(RATIOS)
def test_an_interval_of_what_is_at_least_1_is_at_least_1(values: list[float]) -> None:
    found, plain = estimate(values, least=1.0), estimate(values)
    assert found.low == max(plain.low, 1.0)
    assert (found.mean, found.high) == (plain.mean, plain.high)
    assert holds(found, found.mean)


@given(POSITIVE, st.randoms(use_true_random=False))
def test_an_interval_of_a_ratio_of_means_is_positive(values: list[float], rng: object) -> None:
    others = [each * 3.0 + 1.0 for each in reversed(values)]
    found = ratio_of_means(values, others)
    assert found.low >= 0
    assert holds(found, found.mean)


def test_the_intervals_that_reached_below_what_is_possible() -> None:
    # Mean slowdown of two seeds, ratio at most of two, times as fast of three.
    assert estimate([72.0, 94.0]).low > 0
    assert estimate([1.11, 1.77], least=1.0).low == 1.0
    assert signed_estimate([72.0, 94.0]).low < 0, "Student's interval does"
    assert estimate([1.11, 1.77], least=1.0).text().startswith("1.44 [1, ")


def test_numbers_that_are_0_and_numbers_that_are_all_alike() -> None:
    assert estimate([0.0, 0.0, 0.0]) == Estimate(0.0, 0.0, 0.0, 3)
    assert estimate([0.1, 0.1, 0.1]) == Estimate(0.1, 0.1, 0.1, 3)
    queueing = estimate([0.0, 0.0, 0.0, 0.0, 10.0])
    # s / sqrt n is the mean: the ends are exp(t) times it and below it.
    assert (queueing.low, queueing.high) == pytest.approx(
        (2.0 * math.exp(-2.7764), 2.0 * math.exp(2.7764)), rel=1e-4
    )
    assert estimate([3.0]) == Estimate(3.0, 3.0, 3.0, 1)


@pytest.mark.parametrize(
    ("values", "least"), [([1.0, -1e-9], 0.0), ([2.0, 0.99], 1.0), ([], 0.0), ([math.inf], 0.0)]
)
def test_an_estimate_refuses_what_cannot_be(values: list[float], least: float) -> None:
    with pytest.raises(ValueError, match="an estimate"):
        estimate(values, least=least)
    if values and math.isfinite(values[0]):
        assert signed_estimate(values).count == len(values)


def test_a_ratio_of_means_refuses_negative_numbers() -> None:
    with pytest.raises(ValueError, match="not negative"):
        ratio_of_means([1.0, -1.0], [1.0, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_intervals_of_lognormal_numbers_hold_nearly_as_often_as_they_say(
    sigma: float, seeds: int
) -> None:
    """Coverage of the mean exp(sigma^2 / 2): never below 92 %, never below that of Student's interval by 1 %."""
    rng = np.random.default_rng(7)
    mean = math.exp(sigma**2 / 2)
    drawn = rng.lognormal(0.0, sigma, (10_000, seeds))
    mine = np.mean([holds(estimate(each), mean) for each in drawn])
    students = np.mean([holds(signed_estimate(each), mean) for each in drawn])
    assert mine > 0.92
    assert mine > students - 0.01


def test_an_interval_of_a_share_ends_at_1_and_a_picture_has_both_of_its_lengths() -> None:
    share = estimate([0.5, 0.9, 0.95], most=1.0)
    assert (share.high, share.reach) == (1.0, (share.mean - share.low, 1.0 - share.mean))
    assert estimate([0.5, 0.9, 0.95]).high > 1.0
    with pytest.raises(ValueError, match="an estimate"):
        estimate([0.5, 1.1], most=1.0)
    # A quotient of rounded numbers.
    assert estimate([1.0 - 1e-12, 1.5], least=1.0).mean == 1.25


@given(RATIOS)
def test_no_change_is_below_minus_100_percent(ratios: list[float]) -> None:
    changes = [100.0 * (1.0 / each - 1.0) for each in ratios]
    found, ratio = estimate(changes, least=-100.0), estimate([1.0 / each for each in ratios])
    assert -100.0 <= found.low <= found.mean <= found.high
    ends = [100.0 * (each - 1.0) for each in (ratio.mean, ratio.low, ratio.high)]
    assert [found.mean, found.low, found.high] == pytest.approx(ends, rel=1e-6, abs=1e-6)
    with pytest.raises(ValueError, match="an estimate"):
        estimate([-101.0], least=-100.0)
