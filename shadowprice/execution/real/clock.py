"""Time of a run: seconds since it began, across restarts of its driver."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, Protocol

from shadowprice.execution.supervision.processes import machine
from shadowprice.instances.grid import TICKS_PER_S


class Clock(Protocol):
    """Clock from which the run takes its time."""

    def now_s(self) -> float:
        """Time since the run began [s], a multiple of 2**-20; never decreases."""

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""


def passed_s(facts: Mapping[str, Any], last_s: float) -> float:
    """Time since a run began [s].

    By the monotonic clock while the machine is the one of the last driver and was not started again,
    whatever became of the date; else the date tells how much time passed.

    Parameters
    ----------
    facts : mapping
        ``began_unix``, the date at which the run began [s since 1970], and ``clock`` as
        :meth:`WallClock.record` gives it, or None.
    last_s : float
        The latest time that was recorded [s]; it is no earlier.
    """
    clock = facts.get("clock")
    if isinstance(clock, Mapping) and clock.get("boot") == _boot():
        return max(time.monotonic() - float(clock["zero_s"]), last_s)
    return max(time.time() - float(facts["began_unix"]), last_s)


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
        return {"boot": _boot(), "zero_s": self._zero_s}

    def now_s(self) -> float:
        """Time since the run began [s]."""
        return math.floor((time.monotonic() - self._zero_s) * TICKS_PER_S) / TICKS_PER_S

    def sleep(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(max(seconds, 0.0))


def _boot() -> str:
    """Identifier of one running system."""
    return machine().rpartition("/")[0]
