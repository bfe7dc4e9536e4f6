"""Verdicts on published numbers, and estimates over seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shadowprice.analysis.figures import (
    Cause,
    Estimate,
    Published,
    ReproductionVerdict,
    estimate,
    ratio_by_seed,
    signed_estimate,
)
from shadowprice.analysis.figures.published import verdict

POSITIVE = st.floats(0.01, 100.0)


def exact(value: float) -> Estimate:
    return Estimate(value, value, value, 1)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=12))
def test_the_interval_is_that_of_students_t_test(values: list[float]) -> None:
    """Its ends are the means that the test of one sample would just not refuse."""
    found = signed_estimate(values)
    if np.std(values) < 1e-6:
        return
    for end in (found.low, found.high):
        assert stats.ttest_1samp(values, end).pvalue == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_an_estimate_of_nothing_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one value, all finite"):
        estimate(values)


@pytest.mark.parametrize(
    ("value", "unit", "ours", "expected"),
    [
        (3.5, "x", exact(3.34), ReproductionVerdict.REPRODUCED),
        (3.5, "x", exact(3.3), ReproductionVerdict.IN_SHAPE),
        (3.5, "x", exact(2.3), ReproductionVerdict.NOT),
        (1.2, "x", exact(0.9), ReproductionVerdict.NOT),  # Within 1.5, on the other side.
        (1.2, "x", exact(1.02), ReproductionVerdict.IN_SHAPE),
        (3.5, "x", Estimate(3.0, 2.0, 4.0, 3), ReproductionVerdict.REPRODUCED),
        (
            3.5,
            "x",
            Estimate(1.5, -9.0, 12.0, 2),
            ReproductionVerdict.NOT,
        ),  # An interval that holds everything.
        # An interval that holds 'no difference'.
        (2.5, "x", Estimate(3.3, 0.2, 6.4, 3), ReproductionVerdict.IN_SHAPE),
        (-50.0, "%", Estimate(-45.0, -95.0, 5.0, 2), ReproductionVerdict.IN_SHAPE),
        (8.0, "h", Estimate(9.0, -1.0, 19.0, 2), ReproductionVerdict.IN_SHAPE),
        (8.0, "h", Estimate(9.0, 7.0, 11.0, 2), ReproductionVerdict.REPRODUCED),
        (-50.0, "%", exact(-64.0), ReproductionVerdict.IN_SHAPE),
        (-50.0, "%", exact(5.0), ReproductionVerdict.NOT),
        (26.4, "h", exact(26.3), ReproductionVerdict.REPRODUCED),
        (0.0, "%", exact(0.0), ReproductionVerdict.REPRODUCED),
    ],
)
def test_verdicts(value: float, unit: str, ours: Estimate, expected: ReproductionVerdict) -> None:
    assert verdict(value, unit, ours) is expected


@given(POSITIVE, POSITIVE)
def test_a_verdict_does_not_depend_on_the_unit_of_length(value: float, ours: float) -> None:
    assert verdict(value, "h", exact(ours)) is verdict(value * 64, "min", exact(ours * 64))


def test_ratios_are_taken_seed_by_seed() -> None:
    table = pd.DataFrame(
        {
            "seed": [0, 0, 1, 1, 2],
            "policy": ["LAS", "Gavel", "LAS", "Gavel", "LAS"],
            "jct_h": [6.0, 2.0, 8.0, 4.0, 5.0],
        }
    )
    found = ratio_by_seed(table, better="Gavel", than="LAS", column="jct_h")
    assert found is not None
    assert (found.mean, found.count) == (2.5, 2)
    assert ratio_by_seed(table, better="FIFO", than="LAS", column="jct_h") is None


def test_cannot_be_right_needs_a_limit_that_shows_it() -> None:
    def claim(limit: float | None) -> Published:
        ours, told = lambda _: exact(1.2), lambda _: limit
        why = Cause.IMPOSSIBLE
        return Published("A", "Table 1", "JCT", 2.5, "x", ours, "toy", cause=why, limit=told)

    shown = claim(2.25).compared(pd.DataFrame())
    assert shown is not None
    assert "no scheduler can exceed 2.25x: not (cannot be right)." in shown.sentence()
    for limit in (None, 2.5, 3.0):
        with pytest.raises(ValueError, match=r"needs a limit below 2\.5"):
            claim(limit).compared(pd.DataFrame())


@pytest.mark.parametrize(
    ("value", "expected"), [(33_270.0, "33,300"), (0.809, "0.809"), (5.5, "5.5"), (1e-5, "1e-05")]
)
def test_numbers_are_shown_as_a_person_writes_them(value: float, expected: str) -> None:
    assert exact(value).text() == expected
