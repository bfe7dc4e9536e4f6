"""Ratios and their geometric mean, computed in whole numbers and printed in so many digits on every machine.

A ratio is a cost over a lower bound of it. What is lost counts as :data:`LOST`, and nothing counts for more, so that
whoever completes an instance is never worse off than who does not. The combined score is one over the geometric mean:
1 if every schedule costs its bound, and the more the better.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import prod

LOST = Fraction(1000)
"""Ratio of an instance that was lost, and the most that any counts for."""

DECIMALS = 6
"""Decimals in which ratios and scores are printed."""

_SCALE = 10**DECIMALS


def geometric_mean(ratios: Iterable[Fraction | None]) -> Fraction:
    """Geometric mean of ratios, None for what was lost; rounded up to the printed decimals.

    >>> str(decimal_text(geometric_mean([Fraction(2), Fraction(8)])))
    '4.000000'
    >>> geometric_mean([Fraction(1), None]) ** 2 >= 1000
    True
    """
    counted = [LOST if ratio is None else min(ratio, LOST) for ratio in ratios]
    if not counted:
        return Fraction(1)
    number, power = prod(counted, start=Fraction(1)), len(counted)
    scaled = number * _SCALE**power
    root = _whole_root(-(-scaled.numerator // scaled.denominator), power)
    return Fraction(root if root**power >= scaled else root + 1, _SCALE)


def combined_score(ratios: Iterable[Fraction | None]) -> Fraction:
    """One over the geometric mean, rounded down to the printed decimals: at most 1, the more the better.

    >>> decimal_text(combined_score([Fraction(2), Fraction(8)]))
    '0.250000'
    """
    mean = geometric_mean(ratios)
    return Fraction(_SCALE * mean.denominator // mean.numerator, _SCALE)


def decimal_text(value: Fraction, decimals: int = DECIMALS) -> str:
    """A number of 0 or more as a decimal, rounded up, so that a ratio is at most what is printed.

    >>> decimal_text(Fraction(1, 3)), decimal_text(Fraction(5, 4), 2)
    ('0.333334', '1.25')
    """
    scaled = value * 10**decimals
    whole = -(-scaled.numerator // scaled.denominator)
    before, after = divmod(whole, 10**decimals)
    return f"{before}.{after:0{decimals}d}" if decimals else str(before)


def _whole_root(number: int, power: int) -> int:
    """The largest whole number whose power is no more than a number of 1 or more; Newton's method on integers."""
    root = 1 << -(-number.bit_length() // power)
    while True:
        lower = ((power - 1) * root + number // root ** (power - 1)) // power
        if lower >= root:
            return root
        root = lower
