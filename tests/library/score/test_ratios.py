"""Ratios and their mean in whole numbers."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from shadowprice.library.score.ratios import (
    LOST,
    combined_score,
    decimal_text,
    geometric_mean,
)

RATIOS = st.lists(
    st.fractions(min_value=1, max_value=2000, max_denominator=10**9), min_size=1, max_size=12
)


@given(RATIOS)
def test_the_mean_is_the_least_decimal_that_is_no_less(ratios: list[Fraction]) -> None:
    mean, power = geometric_mean(ratios), len(ratios)
    product = Fraction(1)
    for ratio in ratios:
        product *= min(ratio, LOST)
    assert mean**power >= product
    assert (mean - Fraction(1, 10**6)) ** power < product


@given(RATIOS)
def test_logarithms_say_the_same(ratios: list[Fraction]) -> None:
    getcontext().prec = 40
    logs = [(Decimal(r.numerator) / r.denominator).ln() for r in (min(r, LOST) for r in ratios)]
    mean = (sum(logs, Decimal(0)) / len(logs)).exp()
    assert abs(Decimal(decimal_text(geometric_mean(ratios))) - mean) <= Decimal("1.000001e-6")


@given(RATIOS)
def test_the_score_is_no_more_than_one_over_the_mean(ratios: list[Fraction]) -> None:
    score, mean = combined_score(ratios), geometric_mean(ratios)
    assert score <= 1 / mean < score + Fraction(1, 10**6)


@given(RATIOS, st.integers(0, 11))
def test_who_loses_an_instance_is_never_better_off(ratios: list[Fraction], place: int) -> None:
    lost = [None if k == place % len(ratios) else r for k, r in enumerate(ratios)]
    assert geometric_mean(lost) >= geometric_mean(ratios)


@given(st.fractions(min_value=0, max_value=10**6), st.integers(0, 8))
def test_decimals_are_rounded_up(value: Fraction, decimals: int) -> None:
    printed = Fraction(decimal_text(value, decimals))
    assert value <= printed < value + Fraction(1, 10**decimals)
