"""Intervals, warm-up, paired differences, growth and rankings: against brute force, and by how often they hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shadowprice.analysis.statistics.estimates import estimate, signed_estimate
from shadowprice.studies.statistics.batch_means import batch_means
from shadowprice.studies.statistics.paired import paired_difference, ratio_of_means, seeds_needed
from shadowprice.studies.statistics.ranking import ranking_agreement
from shadowprice.studies.statistics.stability import mean_present, queue_growth
from shadowprice.studies.statistics.warm_up import BATCH, mser5

NUMBERS = st.lists(st.integers(-1000, 1000), min_size=20, max_size=120)


@given(NUMBERS)
def test_mser5_is_the_smallest_of_all_cuts(values: list[int]) -> None:
    series = np.array(values, dtype=np.float64)
    found = mser5(series)
    means = series[: len(series) // BATCH * BATCH].reshape(-1, BATCH).mean(axis=1)
    cuts = [
        ((means[d:] - means[d:].mean()) ** 2).sum() / (len(means) - d) ** 2
        for d in range(len(means) // 2 + 1)
    ]
    assert cuts[found.count // BATCH] == pytest.approx(min(cuts), abs=1e-6)
    assert found.steady == (found.count // BATCH < len(means) // 2)


def test_mser5_leaves_out_a_start_that_is_higher_and_refuses_what_never_ends() -> None:
    rng = np.random.default_rng(1)
    series = rng.normal(10.0, 1.0, 1000)
    series[:100] += 40.0
    assert 95 <= mser5(series).count <= 130
    assert mser5(np.linspace(0.0, 1.0, 400)).steady is False
    assert mser5(np.ones(19)).count == 0
    with pytest.raises(ValueError, match="finite"):
        mser5(np.array([1.0] * 30 + [np.inf]))


@given(st.floats(0.01, 100.0), st.floats(0.5, 5.0))
def test_seeds_needed_are_the_fewest(deviation: float, width: float) -> None:
    def half(seeds: int) -> float:
        return float(stats.t.ppf(0.975, seeds - 1)) * deviation / float(np.sqrt(seeds))

    needed = seeds_needed(deviation, width)
    assert needed is not None
    assert half(needed) <= width
    assert needed == 2 or half(needed - 1) > width


def test_paired_differences_are_those_of_scipy() -> None:
    rng = np.random.default_rng(2)
    one, other = rng.normal(size=12), rng.normal(size=12)
    found = paired_difference(one.tolist(), other.tolist())
    low, high = stats.ttest_rel(one, other).confidence_interval(0.95)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((low, high))
    assert paired_difference([2.0], [1.0]).clear is False
    assert paired_difference([2.0], [1.0]).seeds_needed(1.0) is None
    with pytest.raises(ValueError, match="as many"):
        paired_difference([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="> 0"):
        seeds_needed(1.0, 0.0)
    assert seeds_needed(1e9, 1e-9) is None


def test_a_ratio_of_means_is_no_mean_of_ratios() -> None:
    one, other = [10.0, 10.0, 10.0, 10.0], [0.01, 5.0, 5.0, 10.0]
    found = ratio_of_means(one, other)
    assert found.mean == pytest.approx(40.0 / 20.01)
    # Over numbers that are all alike it is the t interval of the mean.
    rng = np.random.default_rng(6)
    values = rng.exponential(size=9)
    scaled = ratio_of_means(values.tolist(), [4.0] * 9)
    plain = estimate(values / 4.0)
    assert (scaled.mean, scaled.low, scaled.high) == pytest.approx(
        (plain.mean, plain.low, plain.high)
    )
    assert ratio_of_means([6.0], [3.0]).mean == 2.0
    for wrong in (([1.0], []), ([], []), ([1.0, 2.0], [1.0, 0.0])):
        with pytest.raises(ValueError, match="a ratio of means"):
            ratio_of_means(*wrong)


@given(st.lists(st.permutations([1.0, 2.0, 3.0, 4.0]), min_size=2, max_size=8))
def test_concordance_is_that_of_friedmans_test(rows: list[list[float]]) -> None:
    table = pd.DataFrame(rows, columns=list("abcd"))
    found = ranking_agreement(table)
    assert found is not None
    chi = stats.friedmanchisquare(*table.to_numpy().T).statistic
    assert found.concordance == pytest.approx(chi / (len(rows) * 3))
    assert found.same == all(row == rows[0] for row in rows)


def test_policies_with_equal_numbers_are_in_no_order() -> None:
    found = ranking_agreement(
        pd.DataFrame({"easy": [2.0, 5.0], "fifo": [2.0, 5.0], "las": [3.0, 5.0]})
    )
    assert found is not None
    assert found.sentence("seeds") == "the same order in all 2 seeds: easy = fifo, las"


def test_a_ranking_names_who_changes_places() -> None:
    table = pd.DataFrame({"fifo": [3.0, 3.0], "easy": [2.0, 1.0], "srtf": [1.0, 2.0]})
    found = ranking_agreement(table)
    assert found is not None
    assert found.reversed_pairs == (("easy", "srtf"),)
    assert "easy and srtf change places; easy is first in 50%" in found.sentence("seeds")
    assert ranking_agreement(pd.DataFrame({"a": [np.nan]})) is None


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), min_size=3, max_size=15))
def test_growth_is_what_counting_every_second_gives(jobs: list[tuple[int, int]]) -> None:
    arrival = np.array([each[0] for each in jobs], dtype=np.float64)
    end = arrival + [each[1] for each in jobs]
    present = [((arrival <= t) & (t < end)).sum() for t in range(40)]
    assert mean_present(arrival, end, 10.0, 20.0) == pytest.approx(np.mean(present[10:20]))
    growth = queue_growth(arrival, end, 0.0, 40.0)
    came = ((arrival >= 15) & (arrival < 35)).sum()
    if came == 0:
        assert growth is None
    else:
        expected = (np.mean(present[30:40]) - np.mean(present[10:20])) / came
        assert growth == pytest.approx(expected)


def test_growth_is_one_where_nobody_is_served_and_none_in_a_steady_queue() -> None:
    arrival = np.arange(0.0, 1000.0)
    assert queue_growth(arrival, np.full(1000, np.inf), 0.0, 999.0) == pytest.approx(1.0, abs=0.01)
    assert queue_growth(arrival, arrival + 7.0, 0.0, 999.0) == pytest.approx(0.0, abs=0.01)


def covered(intervals: list[tuple[float, float]], mean: float) -> float:
    return float(np.mean([low <= mean <= high for low, high in intervals]))


@pytest.mark.slow
def test_intervals_over_seeds_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    normal = [signed_estimate(rng.normal(5.0, 2.0, 5)) for _ in range(20_000)]
    assert covered([(each.low, each.high) for each in normal], 5.0) == pytest.approx(
        0.95, abs=0.005
    )
    # Of skewed numbers less often; of means of many jobs, as a seed gives, nearly as often.
    runs = [estimate(rng.exponential(5.0, (10, 200)).mean(axis=1)) for _ in range(5_000)]
    assert covered([(each.low, each.high) for each in runs], 5.0) == pytest.approx(0.95, abs=0.01)


@pytest.mark.slow
def test_intervals_of_ratios_of_means_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    found = []
    for _ in range(5_000):
        common = rng.gamma(20.0, 1.0, 10)
        one = common * 3.0 + rng.normal(0.0, 4.0, 10)
        other = common + rng.normal(0.0, 1.0, 10)
        found.append(ratio_of_means(one.tolist(), other.tolist()))
    assert covered([(each.low, each.high) for each in found], 3.0) == pytest.approx(0.95, abs=0.015)


@pytest.mark.slow
def test_batch_means_hold_for_a_correlated_series_if_it_is_long() -> None:
    rng = np.random.default_rng(4)
    phi, long, short = 0.9, 40_000, 300

    def series(count: int) -> np.ndarray:
        from scipy.signal import lfilter

        return np.asarray(lfilter([1.0], [1.0, -phi], rng.normal(size=count + 200))[200:])

    found = [batch_means(series(long)) for _ in range(1_000)]
    spans = [(each.estimate.low, each.estimate.high) for each in found if each is not None]
    assert covered(spans, 0.0) == pytest.approx(0.95, abs=0.025)
    assert np.mean([each.independent for each in found if each is not None]) > 0.9
    # Too short: the interval is too narrow, and the test says so more often than not.
    few = [batch_means(series(short)) for _ in range(1_000)]
    spans = [(each.estimate.low, each.estimate.high) for each in few if each is not None]
    assert covered(spans, 0.0) < 0.85
    assert np.mean([each.independent for each in few if each is not None]) < 0.5


def test_batch_means_of_few_or_equal_observations() -> None:
    assert batch_means(np.ones(39)) is None
    found = batch_means(np.ones(100))
    assert found is not None
    assert (found.estimate.mean, found.independent) == (1.0, True)
