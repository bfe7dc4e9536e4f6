r"""Growth of queues: whether the jobs of a class leave as fast as they come.

While jobs arrive, let N(t) be the number of a class that is present, and compare its average over the last quarter
of the time of arrivals with that over the second quarter. Of a queue in steady state the difference is 0 in the mean;
of one whose jobs are not served it is the number that came between the middles of the two quarters. The growth

.. math:: g = \frac{\bar N_4 - \bar N_2}{A}, \qquad A = \text{arrivals of the class between the two middles}

is thus the share of the class's arrivals that pile up (derived). It is a number a run; over seeds it has an interval.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

QUARTERS = ((0.25, 0.5), (0.75, 1.0))


def queue_growth(
    arrival_s: NDArray[np.float64],
    end_s: NDArray[np.float64],
    first_s: float,
    last_s: float,
) -> float | None:
    """Share of a class's arrivals that pile up; None where none came between the middles. O(n).

    Parameters
    ----------
    arrival_s, end_s : ndarray, shape (n,)
        Arrivals and completions of the class's jobs [s]; infinite of jobs that are not complete.
    first_s, last_s : float
        First and last arrival of any class [s].
    """
    span_s = last_s - first_s
    middle = [first_s + span_s * (low + high) / 2 for low, high in QUARTERS]
    came = int(((arrival_s >= middle[0]) & (arrival_s < middle[1])).sum())
    if came == 0 or span_s <= 0:
        return None
    before, after = (
        mean_present(arrival_s, end_s, first_s + span_s * low, first_s + span_s * high)
        for low, high in QUARTERS
    )
    return (after - before) / came


def mean_present(
    arrival_s: NDArray[np.float64], end_s: NDArray[np.float64], from_s: float, to_s: float
) -> float:
    """Number of jobs present, on average over a time."""
    stays = np.minimum(end_s, to_s) - np.maximum(arrival_s, from_s)
    return float(np.maximum(stays, 0.0).sum()) / (to_s - from_s)
