"""Wording of what is proven: factors and amounts, rounded so that the sentence stays true; numbers with nouns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shadowprice.instances.objective import BoundedCost


_DIGITS = 4
"""Significant digits of a ratio."""

_MOST_DECIMALS = 20
"""Decimals that a table has at most: bounds below them print as 0."""

_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING)
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
_AMOUNT_DIGITS, _MOST_DIGITS = 6, 16
"""Significant digits of an amount, and those of a float."""


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


def amount_at_most(amount: Fraction | float, digits: int = _AMOUNT_DIGITS) -> str:
    """An amount that is an upper limit, in six significant digits if not told otherwise, rounded up.

    Of a float that is the number that JSON has of it.

    Examples
    --------
    >>> amount_at_most(32.04), amount_at_most(Fraction(2, 3)), amount_at_most(1234567)
    ('32.04', '0.666667', '1.23457e+06')
    """
    return _amount(amount, Context(prec=digits, rounding=ROUND_CEILING))


def amount_at_least(amount: Fraction | float, digits: int = _AMOUNT_DIGITS) -> str:
    """An amount that is a lower limit: as :func:`amount_at_most`, rounded down.

    Examples
    --------
    >>> amount_at_least(32.04), amount_at_least(Fraction(2, 3)), amount_at_least(1234567)
    ('32.04', '0.666666', '1.23456e+06')
    """
    return _amount(amount, Context(prec=digits, rounding=ROUND_FLOOR))


def _amount(amount: Fraction | float, digits: Context) -> str:
    exact = Fraction(repr(amount)) if isinstance(amount, float) else amount
    # The nearest float of so few digits is written with these digits again.
    value = float(digits.divide(Decimal(exact.numerator), Decimal(exact.denominator)))
    return f"{value:.{digits.prec}g}"


def utility_cells(rows: Sequence[tuple[float, float, float]]) -> list[tuple[str, str, str]]:
    """Utilities, upper bounds and their ratios in a table, in as few digits as let every ratio follow.

    Utilities are rounded down, bounds and ratios up.

    Parameters
    ----------
    rows : sequence of (float, float, float)
        Utility, bound, and the bound over the utility, which is infinite where nothing is earned.
    """
    for digits in range(_AMOUNT_DIGITS, _MOST_DIGITS):
        cells = [
            (amount_at_least(mine, digits), amount_at_most(bound, digits), at_most(ratio))
            for mine, bound, ratio in rows
        ]
        if all(
            float(mine) <= 0 or follows(ratio, Fraction(bound), Fraction(mine))
            for mine, bound, ratio in cells
        ):
            break
    return cells


def follows(ratio: str, above: Fraction, below: Fraction) -> bool:
    """True if the quotient of two printed numbers is a printed ratio but for one in its last digit.

    Parameters
    ----------
    ratio : str
        As :func:`at_most` and :func:`at_least` write it.

    Examples
    --------
    >>> follows("1.799x", Fraction(10), Fraction(5)), follows("1.799x", Fraction(10), Fraction("5.56"))
    (False, True)
    """
    if below <= 0:
        return False
    written = Decimal(ratio.removesuffix("x"))
    least = written.adjusted() - _DIGITS + 1
    last = Fraction(10) ** (min(least, 0) if written < 1_000_000 else least)
    return abs(above / below - Fraction(written)) <= last


def cost_cells(rows: Sequence[tuple[Fraction, Fraction]]) -> list[tuple[str, str, str]]:
    """Costs, lower bounds and their ratios in a table, in as few decimals as let every ratio follow from the numbers.

    Costs are rounded to nearest, bounds down, ratios up; ``-`` where a bound is 0 and the cost is not.

    Parameters
    ----------
    rows : sequence of (Fraction, Fraction)
        Cost and bound, at most as large; both in one unit.

    Examples
    --------
    >>> cost_cells([(Fraction(10), Fraction(50, 9))]), cost_cells([(Fraction(51_757), Fraction(25_116))])
    ([('10.000', '5.555', '1.8x')], [('51,757', '25,116', '2.061x')])
    """
    ratios = [_ratio_cell(*row) for row in rows]
    asked = [place for place, (_, bound) in enumerate(rows) if bound > 0]
    for decimals in range(_MOST_DECIMALS):
        numbers = [
            (_rounded(cost, decimals), _rounded(bound, decimals, down=True)) for cost, bound in rows
        ]
        if all(follows(ratios[place], *numbers[place]) for place in asked):
            break
    return [
        (_with_decimals(cost, decimals), _with_decimals(bound, decimals), ratio)
        for (cost, bound), ratio in zip(numbers, ratios, strict=True)
    ]


def _ratio_cell(cost: Fraction, bound: Fraction) -> str:
    if bound > 0:
        return at_most(cost / bound)
    return "-" if cost else at_most(1)


def _rounded(number: Fraction, decimals: int, *, down: bool = False) -> Fraction:
    scaled = number * 10**decimals
    return Fraction(math.floor(scaled) if down else round(scaled), 10**decimals)


def _with_decimals(number: Fraction, decimals: int) -> str:
    whole, part = divmod(round(number * 10**decimals), 10**decimals)
    return f"{whole:,}.{part:0{decimals}d}" if decimals else f"{whole:,}"


def cost_in_words(bounded: BoundedCost) -> str:
    """A cost against its bound, in words."""
    cost, bound = bounded.exact_s()
    least = "no bound" if bound is None else f"bound {amount_at_least(bound)} s"
    if cost is None or bound is None:
        return f"no schedule, {least}" if cost is None else f"cost {float(cost):.6g} s, {least}"
    ((text, bound_text, ratio),) = cost_cells([(cost, bound)])
    return f"cost {text} s, bound {bound_text} s, ratio at most {ratio}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "run"), counted(2000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
