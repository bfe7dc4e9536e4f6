"""The time grid: every time is a multiple of 2**-20 s, which makes float arithmetic exact.

Sums and differences of multiples of ``TICK_S`` below ``MAX_TIME_S`` are representable in
float64 without rounding. A job preempted a thousand times therefore has exactly the work left
that it should have, and a verifier can ask for equality instead of a tolerance. Real traces
come in whole seconds or milliseconds; a millisecond moves by less than half a microsecond.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.errors import InputError

TICKS_PER_S = 2**20
"""Ticks in a second."""

TICK_S = 1.0 / TICKS_PER_S
"""Length of a tick [s], about one microsecond."""

MAX_TIME_S = float(2**32)
"""Largest time accepted [s], about 136 years; sums of two such times are still exact."""

MAX_TOTAL_S = float(2**42)
"""Most GPU-seconds of all jobs of an instance together, 139,000 GPU-years: sums of ticks are 64-bit."""


def to_grid(times_s: ArrayLike) -> NDArray[np.float64]:
    """Round times [s] to the nearest grid point."""
    return np.round(np.asarray(times_s, dtype=np.float64) * TICKS_PER_S) / TICKS_PER_S


def up_to_grid(times_s: ArrayLike) -> NDArray[np.float64]:
    """Round times [s] up to the next grid point (used where a shorter time would be too short)."""
    return np.ceil(np.asarray(times_s, dtype=np.float64) * TICKS_PER_S) / TICKS_PER_S


def ceil_time(time_s: float) -> float:
    """Round one time [s] up to the next grid point; infinity stays infinite."""
    return math.ceil(time_s * TICKS_PER_S) / TICKS_PER_S if time_s < MAX_TIME_S else math.inf


def to_ticks(times_s: ArrayLike) -> NDArray[np.int64]:
    """Times [s] on the grid as whole ticks, for exact integer sums."""
    return np.round(np.asarray(times_s, dtype=np.float64) * TICKS_PER_S).astype(np.int64)


def on_grid(times_s: NDArray[np.float64]) -> NDArray[np.bool_]:
    """True where times [s] are whole numbers of ticks; infinity is, what is no number is not."""
    ticks = times_s * TICKS_PER_S
    return np.asarray(ticks == np.floor(ticks))


def check_seconds(
    what: str, value: float, *, zero: bool = False, most_s: float = MAX_TIME_S
) -> None:
    """Refuse a length of time that is not positive, too long or off the grid.

    Parameters
    ----------
    what : str
        Whose parameter it is and which, for the message.
    zero : bool
        Whether 0 is allowed.
    most_s : float
        Longest one allowed [s].

    Raises
    ------
    InputError
        Naming the parameter and its value.
    """
    inside = 0 < value <= most_s or (zero and value == 0)
    if not inside or value * TICKS_PER_S % 1:
        raise InputError(
            f"{what} is {value!r}, expected seconds {'>=' if zero else '>'} 0, a multiple of 2**-20"
        )
