from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.wording import amount_at_least, amount_at_most, at_least, at_most


@given(st.fractions(min_value=0, max_value=10**12) | st.floats(0, 1e308))
def test_what_is_printed_is_never_less_than_the_ratio_and_hardly_more(ratio: Fraction | float):
    printed = Fraction(at_most(ratio).removesuffix("x"))
    exact = Fraction(ratio)
    assert exact <= printed <= exact * Fraction(1001, 1000)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1, "1x"),
        (2.0, "2x"),
        (Fraction(20781, 10000), "2.079x"),
        (1 + 1e-12, "1.001x"),
        (1000.667, "1001x"),
        (Fraction(10**310), "1.000E+310x"),
        (float("inf"), "infx"),
    ],
)
def test_a_ratio_is_printed_as_a_factor(ratio: Fraction | float, text: str):
    assert at_most(ratio) == text


@given(st.fractions(min_value=0, max_value=10**12) | st.floats(0, 1e308))
def test_a_lower_limit_is_never_more_than_the_ratio_and_hardly_less(ratio: Fraction | float):
    printed = Fraction(at_least(ratio).removesuffix("x"))
    exact = Fraction(ratio)
    assert exact * Fraction(999, 1000) <= printed <= exact


@given(st.fractions(min_value=0, max_value=10**12) | st.floats(0, 1e307))
def test_an_amount_is_rounded_away_from_what_would_be_more_than_proven(amount: Fraction | float):
    """Six digits, and of floats the number that JSON has."""
    exact = Fraction(repr(amount)) if isinstance(amount, float) else amount
    least, most = Fraction(amount_at_least(amount)), Fraction(amount_at_most(amount))
    assert least <= exact <= most
    assert most * (1 - Fraction(1, 10**5)) <= exact <= least / (1 - Fraction(1, 10**5))
