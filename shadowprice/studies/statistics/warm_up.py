"""Warm-up of a run: the first observations that a mean is better without, by MSER-5.

White, Cobb and Spratt (2000), "A comparison of five steady-state truncation heuristics for simulation", section 2
(recalled): with means Y_1 .. Y_m of five observations each, leave out the first d that minimise

    MSER(d) = sum over i > d of (Y_i - mean of Y_{d+1} .. Y_m)^2 / (m - d)^2

over d up to m / 2. Where the minimum lies at m / 2 the run is too short to tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BATCH = 5
"""Observations of a mean."""


@dataclass(frozen=True)
class WarmUp:
    """Observations that are left out, the first ones.

    Parameters
    ----------
    count : int
        How many, a multiple of five.
    steady : bool
        False if the run is too short to tell: the rule then leaves out half of it.
    """

    count: int
    steady: bool


def mser5(values: NDArray[np.float64]) -> WarmUp:
    """Warm-up of a series in the order in which it was observed; none of fewer than 20. O(n).

    Raises
    ------
    ValueError
        If a value is not finite.
    """
    if not np.isfinite(values).all():
        raise ValueError("the warm-up of a series needs finite values")
    batches = len(values) // BATCH
    if batches < 4:
        return WarmUp(0, steady=False)
    means = values[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    # Sums from the end, about the mean of all, which keeps digits.
    centred = means - means.mean()
    first = np.cumsum(centred[::-1])[::-1]
    second = np.cumsum(centred[::-1] ** 2)[::-1]
    most = batches // 2
    kept = batches - np.arange(most + 1)
    squares = second[: most + 1] - first[: most + 1] ** 2 / kept
    cut = int(np.argmin(np.maximum(squares, 0.0) / kept**2))
    return WarmUp(cut * BATCH, steady=cut < most)
