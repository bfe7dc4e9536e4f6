"""Wording of what is proven: factors and amounts, rounded so that the sentence stays true; numbers with nouns."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

_UP = Context(prec=4, rounding=ROUND_CEILING)
_DOWN = Context(prec=4, rounding=ROUND_FLOOR)
_AMOUNT_UP = Context(prec=6, rounding=ROUND_CEILING)
_AMOUNT_DOWN = Context(prec=6, rounding=ROUND_FLOOR)


def at_most(ratio: Fraction | float) -> str:
    """A ratio that is an upper limit, as ``2.079x``: four significant digits, rounded up.

    Rounded to nearest, the printed number could be smaller than what was proven. From 1,000 on all
    digits before the point are printed, from a million on an exponent (``1.000E+310x``): ratios may
    be beyond the range of floats.

    Raises
    ------
    ValueError
        If the ratio is not a number.

    Examples
    --------
    >>> at_most(Fraction(20781, 10000)), at_most(1), at_most(float("inf"))
    ('2.079x', '1x', 'infx')
    """
    return "infx" if ratio == math.inf else _written(Fraction(ratio), _UP, math.ceil)


def at_least(ratio: Fraction | float) -> str:
    """A ratio that is a lower limit, as ``1.944x``: as :func:`at_most`, rounded down.

    Examples
    --------
    >>> at_least(Fraction(35, 18)), at_least(2.0)
    ('1.944x', '2x')
    """
    return _written(Fraction(ratio), _DOWN, math.floor)


def _written(ratio: Fraction, digits: Context, whole: Callable[[Fraction], int]) -> str:
    """A ratio with four digits, rounded as the context and the function for whole numbers do."""
    if (ratio.denominator == 1 or ratio > 1_000) and ratio < 1_000_000:
        return f"{whole(ratio)}x"
    return f"{digits.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))}x"


def amount_at_most(amount: Fraction | float) -> str:
    """An amount that is an upper limit, in six significant digits, rounded up.

    Of a float that is the number that JSON has of it.

    Examples
    --------
    >>> amount_at_most(32.04), amount_at_most(Fraction(2, 3)), amount_at_most(1234567)
    ('32.04', '0.666667', '1.23457e+06')
    """
    return _amount(amount, _AMOUNT_UP)


def amount_at_least(amount: Fraction | float) -> str:
    """An amount that is a lower limit: as :func:`amount_at_most`, rounded down.

    Examples
    --------
    >>> amount_at_least(32.04), amount_at_least(Fraction(2, 3)), amount_at_least(1234567)
    ('32.04', '0.666666', '1.23456e+06')
    """
    return _amount(amount, _AMOUNT_DOWN)


def _amount(amount: Fraction | float, digits: Context) -> str:
    exact = Fraction(repr(amount)) if isinstance(amount, float) else amount
    # The nearest float of six digits is written with these digits again.
    return f"{float(digits.divide(Decimal(exact.numerator), Decimal(exact.denominator))):.6g}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(2000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
