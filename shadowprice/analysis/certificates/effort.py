"""BoundEffort that is made for a bound: an amount of time, or of work."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class BoundEffort:
    """BoundEffort of a search for multipliers.

    Parameters
    ----------
    seconds : float
        Time [s]; 0 for the bounds alone that need no search. Not looked at where there are ``columns``.
    columns : int or None
        Size of each interval LP. Then nobody looks at a clock, searches that do are left out, and the bounds are
        the same on every run.
    plans_s : float
        With ``columns``, steps of a search of prices at which jobs plan, counted as so many seconds of a common
        machine [s].

    Examples
    --------
    >>> BoundEffort(20.0).repeatable, BoundEffort(0.0).repeatable, BoundEffort.of_size(20_000).repeatable
    (False, True, True)
    """

    seconds: float
    columns: int | None = None
    plans_s: float = 0.0

    @classmethod
    def of_size(cls, columns: int) -> BoundEffort:
        """A fixed amount of work: interval LPs of so many columns."""
        return cls(math.inf, columns)

    @classmethod
    def of_plans(cls, plans_s: float) -> BoundEffort:
        """A fixed amount of work that asks no solver: steps of prices at which jobs plan.

        Bounds are then the same wherever floats are IEEE's.
        """
        return cls(math.inf, 0, plans_s)

    @property
    def repeatable(self) -> bool:
        """True if the same bounds are found on every run."""
        return self.columns is not None or self.seconds <= 0

    @property
    def programmes(self) -> bool:
        """True if interval LPs may be solved."""
        return self.seconds > 0 if self.columns is None else self.columns > 0

    def begin(self) -> Timer:
        """A timer that begins now."""
        return Timer(time.monotonic() + self.seconds, self.columns)


@dataclass(frozen=True)
class Timer:
    """Rest of an effort.

    Parameters
    ----------
    end : float
        Moment of ``time.monotonic()`` at which it is spent; infinite for an amount of work.
    columns : int or None
        As of :class:`BoundEffort`.
    """

    end: float
    columns: int | None

    @property
    def left_s(self) -> float:
        """Time that is left [s], 0 at least."""
        return max(self.end - time.monotonic(), 0.0)

    def share(self, part: float) -> Timer:
        """A timer of a part of what is left."""
        return Timer(time.monotonic() + part * self.left_s, self.columns)
