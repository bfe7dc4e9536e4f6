"""Intervals within one long run: means of batches, with a test of whether the batches are long enough.

Law, "Simulation Modeling and Analysis", section 9.5.3 (recalled): a run in steady state is cut into batches of
equal length; if these are long, their means are nearly independent and normal, and Student's t gives an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from shadowprice.analysis.statistics.estimates import Estimate, estimate, signed_estimate

BATCHES = 20
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class BatchMeans:
    """An interval of the mean of one run.

    Parameters
    ----------
    estimate : Estimate
        Over the means of the batches.
    independent : bool
        False if the means follow each other too closely to be taken for independent; the interval is then
        too narrow.
    """

    estimate: Estimate
    independent: bool


def batch_means(values: NDArray[np.float64], batches: int = BATCHES) -> BatchMeans | None:
    """Interval of the mean of a series in order; None of fewer than two observations a batch.

    Of a series without a negative observation, such as completion times, the interval has none either
    (:func:`shadowprice.analysis.statistics.estimates.estimate`). What does not fill a batch is left out at the
    beginning. The test of independence is von Neumann's ratio of
    successive differences, one-sided at 5 %, by its normal approximation (Young 1941; recalled).
    """
    length = len(values) // batches
    if length < 2:
        return None
    kept = values[len(values) - length * batches :]
    means = kept.reshape(batches, length).mean(axis=1)
    over_batches = signed_estimate(means) if (values < 0).any() else estimate(means)
    squares = float(((means - means.mean()) ** 2).sum())
    if squares == 0.0:
        return BatchMeans(over_batches, independent=True)
    closeness = 1.0 - float((np.diff(means) ** 2).sum()) / (2.0 * squares)
    spread = math.sqrt((batches - 2) / (batches**2 - 1))
    limit = float(stats.norm.ppf(1.0 - SIGNIFICANCE)) * spread
    return BatchMeans(over_batches, independent=closeness < limit)
