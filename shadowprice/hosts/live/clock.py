"""Time of a run: seconds since it began, across restarts of its driver."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, Protocol

from shadowprice.hosts.live.state_directory import boot, passed_s
from shadowprice.instances.grid import TICKS_PER_S


class Clock(Protocol):
    """Clock from which the run takes its time."""

    def now_s(self) -> float:
        """Time since the run began [s], a multiple of 2**-20; never decreases."""

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""


def suspended_s() -> float:
    """Time for which this machine was suspended since it was started [s]; the monotonic clock stops then."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


class WallClock:
    """Monotonic clock of a driver.

    A date that jumps changes nothing, but where the machine was started again, or is another one,
    since the last driver; one that was set back then costs nothing but the time between the two.

    Parameters
    ----------
    facts : mapping
        See :func:`passed_s`.
    last_s : float
        The latest time that was recorded [s]; the clock starts no earlier.
    """

    def __init__(self, facts: Mapping[str, Any], last_s: float = 0.0) -> None:
        self._zero_s = time.monotonic() - passed_s(facts, last_s)

    def record(self) -> dict[str, Any]:
        """Running system and its monotonic time at which the run began [s], for who comes later."""
        return {"boot": boot(), "zero_s": self._zero_s}

    def now_s(self) -> float:
        """Time since the run began [s]."""
        return math.floor((time.monotonic() - self._zero_s) * TICKS_PER_S) / TICKS_PER_S

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(max(seconds, 0.0))
