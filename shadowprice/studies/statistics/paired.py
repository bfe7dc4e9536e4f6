"""Differences between policies on the same seeds, and how many seeds an interval of a given width needs.

With common random numbers two policies meet the same jobs, and the variance of their difference lacks what the jobs
have in common (Law, "Simulation Modeling and Analysis", section 11.2; recalled).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from shadowprice.analysis.statistics.estimates import (
    CONFIDENCE,
    Estimate,
    estimate,
    log_interval,
    signed_estimate,
)
from shadowprice.brief import Brief

MOST_SEEDS = 10_000_000
"""Number beyond which nobody would run seeds."""


@dataclass(frozen=True, repr=False)
class PairedDifference(Brief):
    """One policy's number minus another's, seed by seed.

    Parameters
    ----------
    estimate : Estimate
        Of the mean difference.
    deviation : float
        Standard deviation of the differences; 0 of a single one.
    """

    estimate: Estimate
    deviation: float

    @property
    def clear(self) -> bool:
        """True if the interval of 95 % leaves 0 out; False of a single seed."""
        found = self.estimate
        return found.count > 1 and (found.low > 0 or found.high < 0)

    def seeds_needed(self, half_width: float) -> int | None:
        """Seeds for an interval of the mean difference that reaches so far to each side.

        The deviation is taken to be the one seen. None if there is none, of a single seed, or if more than
        ten million would be needed.
        """
        if self.estimate.count < 2:
            return None
        return seeds_needed(self.deviation, half_width)


def paired_difference(one: Sequence[float], other: Sequence[float]) -> PairedDifference:
    """Differences of numbers that belong together.

    Raises
    ------
    ValueError
        If there are none, not as many of one as of the other, or one is not finite.
    """
    differences = np.subtract(one, other, dtype=np.float64)
    if len(one) != len(other):
        raise ValueError("paired differences need as many numbers of one as of the other")
    deviation = float(differences.std(ddof=1)) if len(differences) > 1 else 0.0
    return PairedDifference(signed_estimate(differences), deviation)


def ratio_of_means(one: Sequence[float], other: Sequence[float]) -> Estimate:
    """Mean of one over the mean of the other, of numbers that belong together, with the jackknife's interval of 95 %.

    Quenouille's and Tukey's jackknife (Miller 1974, "The jackknife - a review", section 2; recalled): a mean of ratios
    would follow the pairs whose second number is small. The interval is that of the ratio's logarithm, as of other
    numbers that are never negative (:mod:`shadowprice.analysis.statistics.estimates`).

    Raises
    ------
    ValueError
        If there are none, not as many of one as of the other, one is negative or not finite, or the mean of the others
        is not above 0 without one of them.
    """
    above, below = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if len(above) != len(below) or not len(above):
        raise ValueError("a ratio of means needs as many numbers of one as of the other")
    if (above < 0).any() or (below < 0).any():
        raise ValueError("a ratio of means needs numbers that are not negative")
    count = len(above)
    if count == 1:
        return estimate(above / below)
    left = below.sum() - below
    if not (left > 0).all():
        raise ValueError("a ratio of means needs numbers above 0 to divide by")
    whole = float(above.sum() / below.sum())
    pseudo = count * whole - (count - 1) * (above.sum() - above) / left
    found = signed_estimate(pseudo)
    return Estimate(whole, *log_interval(whole, (found.high - found.low) / 2), count)


def seeds_needed(deviation: float, half_width: float) -> int | None:
    """Smallest number of seeds, at least 2, whose t interval is no wider; None beyond ten million.

    Raises
    ------
    ValueError
        If the width is not above 0.
    """
    if not half_width > 0:
        raise ValueError(f"half width is {half_width!r}, expected a number > 0")
    if not _narrow(MOST_SEEDS, deviation, half_width):
        return None
    few, enough = 1, 2
    while not _narrow(enough, deviation, half_width):
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        if _narrow(middle, deviation, half_width):
            enough = middle
        else:
            few = middle
    return enough


def _narrow(seeds: int, deviation: float, half_width: float) -> bool:
    quantile = float(stats.t.ppf(0.5 + CONFIDENCE / 2, seeds - 1))
    return quantile * deviation / float(np.sqrt(seeds)) <= half_width
