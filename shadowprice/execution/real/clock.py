"""Time of a run: seconds since it began, across restarts of its driver."""

from __future__ import annotations

import math
import time
from typing import Protocol

from shadowprice.instances.grid import TICKS_PER_S


class Clock(Protocol):
    """Clock from which the run takes its time."""

    def now_s(self) -> float:
        """Time since the run began [s], a multiple of 2**-20; never decreases."""

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""


class WallClock:
    """Monotonic while a driver lives; between drivers the date tells how much time passed.

    A date that was set back therefore costs nothing but the time between two drivers, and one that
    jumps while a driver lives changes nothing.

    Parameters
    ----------
    began_unix : float
        Date at which the run began [s since 1970].
    last_s : float
        The latest time that was recorded [s]; the clock starts no earlier.
    """

    def __init__(self, began_unix: float, last_s: float = 0.0) -> None:
        passed_s = max(time.time() - began_unix, last_s)
        self._zero_s = time.monotonic() - passed_s

    def now_s(self) -> float:
        """Time since the run began [s]."""
        return math.floor((time.monotonic() - self._zero_s) * TICKS_PER_S) / TICKS_PER_S

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(max(seconds, 0.0))
