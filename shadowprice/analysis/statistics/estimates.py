"""Means over seeds with Student's t intervals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

CONFIDENCE = 0.95


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


def estimate(values: Iterable[float]) -> Estimate:
    """Mean of independent values, with Student's t interval of 95 % (Student 1908).

    The interval supposes values drawn from one normal law; for ratios of few seeds that is a
    convention, not a fact.

    Raises
    ------
    ValueError
        If there are no values, or one is not finite.
    """
    numbers = np.asarray(list(values), dtype=np.float64)
    if not len(numbers) or not np.isfinite(numbers).all():
        raise ValueError("an estimate needs at least one value, all finite")
    mean = float(numbers.mean())
    if len(numbers) < 2:
        return Estimate(mean, mean, mean, 1)
    error = float(numbers.std(ddof=1)) / float(np.sqrt(len(numbers)))
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(numbers) - 1)) * error
    return Estimate(mean, mean - half, mean + half, len(numbers))


def ratio_by_seed(
    table: pd.DataFrame, *, better: str, than: str, column: str, on: str = "policy"
) -> Estimate | None:
    """Times that one policy's number is another's, seed by seed: ``than`` over ``better``.

    Parameters
    ----------
    table : DataFrame
        Columns ``seed``, ``on`` and ``column``; several rows of a seed and policy are averaged first.
    better, than : str
        Entries of column ``on``.

    Returns
    -------
    Estimate or None
        None if no seed has both.
    """
    wide = table.pivot_table(index="seed", columns=on, values=column)
    if better not in wide or than not in wide:
        return None
    ratios = (wide[than] / wide[better]).dropna()
    return estimate(ratios) if len(ratios) else None
