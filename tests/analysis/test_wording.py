from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.wording import (
    amount_at_least,
    amount_at_most,
    at_least,
    at_most,
    cost_cells,
    follows,
    utility_cells,
)


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


def number(cell: str) -> Fraction:
    return Fraction(cell.replace(",", "").removesuffix("x"))


def last_digit(ratio: str) -> Fraction:
    """What one more in the last of four digits is worth; of a ratio from 1,000 to a million one."""
    value = number(ratio)
    if 1000 <= value < 1_000_000:
        return Fraction(1)
    size = -1
    while Fraction(10) ** (size + 1) <= value:
        size += 1
    return Fraction(10) ** (size - 3)


BOUNDS = st.fractions(Fraction(1, 10**6), 10**9)


@given(st.lists(st.tuples(BOUNDS, st.fractions(1, 10**7)), min_size=1, max_size=4))
def test_a_printed_ratio_follows_from_the_printed_cost_and_bound(
    rows: list[tuple[Fraction, Fraction]],
) -> None:
    given_rows = [(bound * factor, bound) for bound, factor in rows]
    printed = cost_cells(given_rows)
    assert len({cell.partition(".")[2] == "" for row in printed for cell in row[:2]}) == 1
    for (cost, bound), (cost_cell, bound_cell, ratio) in zip(given_rows, printed, strict=True):
        assert number(bound_cell) <= bound, "rounded down"
        assert number(ratio) >= cost / bound, "rounded up"
        quotient = number(cost_cell) / number(bound_cell)
        assert abs(quotient - number(ratio)) <= last_digit(ratio)
        assert ratio == at_most(cost / bound)


def test_a_table_has_no_more_decimals_than_its_ratios_ask_for() -> None:
    assert cost_cells([(Fraction(10), Fraction(556, 100))]) == [("10.00", "5.56", "1.799x")]
    large = [(Fraction(5_175_792), Fraction(2_511_681)), (Fraction(2_672_203), Fraction(2_511_681))]
    assert cost_cells(large) == [
        ("5,175,792", "2,511,681", "2.061x"),
        ("2,672,203", "2,511,681", "1.064x"),
    ]
    assert cost_cells([(Fraction(3), Fraction(0)), (Fraction(0), Fraction(0))]) == [
        ("3", "0", "-"),
        ("0", "0", "1x"),
    ]


@given(st.floats(1e-6, 1e12), st.floats(1.0, 1e9))
def test_a_printed_ratio_follows_from_the_printed_utility_and_bound(
    utility: float, factor: float
) -> None:
    bound = utility * factor
    ratio = float(Fraction(bound) / Fraction(utility))
    ((mine, most, printed),) = utility_cells([(utility, bound, ratio)])
    assert Fraction(mine) <= Fraction(repr(utility))
    assert Fraction(most) >= Fraction(repr(bound))
    assert abs(Fraction(most) / Fraction(mine) - number(printed)) <= last_digit(printed)


def test_ratios_that_follow_and_one_that_does_not() -> None:
    assert follows("1.799x", Fraction(10), Fraction("5.56"))
    assert not follows("1.799x", Fraction(10), Fraction(5))
    assert not follows("1.799x", Fraction(10), Fraction(0))
    assert follows("123456x", Fraction(123_456), Fraction(1))
    assert not follows("123456x", Fraction(123_458), Fraction(1))
