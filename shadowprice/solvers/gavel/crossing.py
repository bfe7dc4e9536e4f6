"""The parameter at which a bound is met: a root of a monotone function whose parameter may span any decades."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq


def crossing(excess: Callable[[float], float], low: float, high: float) -> float:
    """A parameter between two, not below 0, at which a monotone function changes its sign.

    Where Brent's method does not get there, for it halves differences and not decades, the order of the
    floating-point numbers is halved: 64 steps whatever they span.

    Parameters
    ----------
    excess : callable
        Of different signs, or 0, at low and at high.
    """
    if np.isfinite(high):
        found, about = brentq(
            excess,
            low,
            high,
            xtol=1e-300,
            rtol=4 * np.finfo(float).eps,
            full_output=True,
            disp=False,
        )
        if about.converged:
            return float(found)
    below, above = (int(np.float64(abs(end)).view(np.int64)) for end in (low, high))
    starts_above = excess(low) > 0
    while above - below > 1:
        middle = (below + above) // 2
        if (excess(float(np.int64(middle).view(np.float64))) > 0) == starts_above:
            below = middle
        else:
            above = middle
    return float(np.int64(above).view(np.float64))
