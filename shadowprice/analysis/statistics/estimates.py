r"""Means over seeds with intervals of 95 %.

Times, ratios, shares and counts are never negative, and a cost over a lower bound of it is never below 1. Student's
interval :math:`\bar x \pm h` of few seeds knows nothing of that and reaches below what is possible. The interval here
is that of the logarithm of the mean, by the delta method:

.. math:: \left[\bar x e^{-h / \bar x}, \; \bar x e^{h / \bar x}\right],
          \qquad h = t_{0.975, \, n - 1} \, \frac{s}{\sqrt n}

(Meeker and Escobar, "Statistical Methods for Reliability Data", 1998, chapter 7, of positive parameters, there with
the normal quantile; recalled). It is positive, holds the mean, and is as many times as wide in seconds as in hours. It
takes the logarithm of the mean alone: single numbers may be 0, such as the queueing of a seed without a queue. As
:math:`s / \sqrt n \le \bar x` of numbers that are not negative, its ends are finite. If all numbers are 0, both are 0.

Where the least that is possible is known, such as 1, the interval is cut off there: what is sought is never in the part
that is cut off, so that the interval holds it as often as before.

Of lognormal numbers with :math:`\sigma` up to 0.6 it holds their mean in at least 92 % of draws of 3 to 10, and more
often than Student's. Differences have any sign, and take Student's interval (:func:`signed_estimate`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

CONFIDENCE = 0.95
_LARGEST_EXPONENT = 700.0
"""About the largest of which a float has the exponential."""


@dataclass(frozen=True)
class Estimate:
    """A mean and its interval of 95 %; of a single value both ends are the value.

    Parameters
    ----------
    mean, low, high : float
        In the unit of the values.
    count : int
        Number of values.
    """

    mean: float
    low: float
    high: float
    count: int

    def text(self) -> str:
        """``3.48 [3.18, 3.79]``, or the mean alone where there is one value; three digits."""
        if self.count < 2:
            return shown(self.mean)
        return f"{shown(self.mean)} [{shown(self.low)}, {shown(self.high)}]"


def shown(value: float, digits: int = 3) -> str:
    """A number in so many digits, without an exponent: ``33,300``."""
    return f"{float(f'{value:.{digits}g}'):,.15g}"


def log_interval(mean: float, half: float, least: float = 0.0) -> tuple[float, float]:
    """Ends of an interval of a mean that is never below ``least``, from half the width of a symmetric one.

    Parameters
    ----------
    mean : float
        At least ``least``, which is at least 0.
    half : float
        Half the width of Student's interval.

    Examples
    --------
    >>> [round(end, 3) for end in log_interval(4.0, 2.0)], log_interval(1.5, 3.0, least=1.0)[0]
    ([2.426, 6.595], 1.0)
    """
    if mean <= 0 or half <= 0:
        return mean, mean
    exponent = half / mean
    high = mean * math.exp(exponent) if exponent < _LARGEST_EXPONENT else math.inf
    return max(mean * math.exp(-exponent), least), high


def estimate(values: Iterable[float], *, least: float = 0.0) -> Estimate:
    """Mean of independent values that are never negative, with the interval of 95 % of this file's formula.

    It supposes that means of so many values are nearly normal, on a logarithmic scale; for few seeds that is a
    convention, not a fact.

    Parameters
    ----------
    least : float
        Least that a value can be, whatever the seed: 1 of a cost over a lower bound.

    Raises
    ------
    ValueError
        If there are no values, or one is not finite or below ``least``.
    """
    numbers = _expect_numbers(values)
    if least < 0 or numbers.min() < least:
        raise ValueError(
            f"an estimate of values of at least {least:g} has {numbers.min():g}; differences have signed_estimate"
        )
    mean, half = _mean_and_half(numbers)
    return Estimate(mean, *log_interval(mean, half, least), len(numbers))


def signed_estimate(values: Iterable[float]) -> Estimate:
    """Mean of independent values of any sign, such as differences, with Student's t interval of 95 % (Student 1908).

    The interval supposes values drawn from one normal law.

    Raises
    ------
    ValueError
        If there are no values, or one is not finite.
    """
    numbers = _expect_numbers(values)
    mean, half = _mean_and_half(numbers)
    return Estimate(mean, mean - half, mean + half, len(numbers))


def _expect_numbers(values: Iterable[float]) -> NDArray[np.float64]:
    numbers = np.asarray(list(values), dtype=np.float64)
    if not len(numbers) or not np.isfinite(numbers).all():
        raise ValueError("an estimate needs at least one value, all finite")
    return numbers


def _mean_and_half(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """Mean, and half the width of its t interval; 0 of a single number."""
    mean, count = float(numbers.mean()), len(numbers)
    if count < 2 or (numbers == numbers[0]).all():
        return float(numbers[0]), 0.0
    error = float(numbers.std(ddof=1)) / math.sqrt(count)
    return mean, float(stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1)) * error


def ratio_by_seed(
    table: pd.DataFrame,
    *,
    better: str,
    than: str,
    column: str,
    on: str = "policy",
    least: float = 0.0,
) -> Estimate | None:
    """Times that one policy's number is another's, seed by seed: ``than`` over ``better``.

    Parameters
    ----------
    table : DataFrame
        Columns ``seed``, ``on`` and ``column``; several rows of a seed and policy are averaged first.
    better, than : str
        Entries of column ``on``.
    least : float
        Least that the ratio can be: 1 where ``better`` is a lower bound.

    Returns
    -------
    Estimate or None
        None if no seed has both.
    """
    wide = table.pivot_table(index="seed", columns=on, values=column)
    if better not in wide or than not in wide:
        return None
    ratios = (wide[than] / wide[better]).dropna()
    return estimate(ratios, least=least) if len(ratios) else None
