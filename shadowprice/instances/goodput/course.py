r"""Course of a job through its epochs, exactly: how far it is, how far it comes, and when it is complete.

Goodput g is a double, progress a multiple of 2^-220, so that progress g t of t ticks is exact. In a run that makes
progress for t ticks a job goes from epoch to epoch: one of which w is left takes the fewest ticks t with g t >= w,
and the next begins with the tick after it, at its own goodput. On *whole seconds* it takes w / g seconds rounded to
the nearest whole number, as Pollux' simulator has it; it is then over, and its job seen to be complete, not before
w / g have passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from shadowprice.brief import Brief
from shadowprice.instances.grid import TICKS_PER_S

_BITS = 200
UNIT = 2 ** (_BITS + 20)
"""Units of progress in one."""


class Position(NamedTuple):
    """Epochs that are over, and progress in units since the end of the last of them."""

    epoch: int = 0
    done: int = 0


class CourseEnd(NamedTuple):
    """Ticks of progress until a job is complete, and until that is seen."""

    ticks: int
    seen: int


def units_of(progress: float) -> int:
    """Progress in units, exactly; of differences of ends, and of goodput a tick, all of which are doubles."""
    return int(Fraction(progress) * UNIT)


def per_tick(rate: float) -> int:
    """Units of progress a tick at a goodput a second; exact from 2^-140 on, 0 below."""
    above, below = rate.as_integer_ratio()
    return above * 2**_BITS // below if rate >= 2.0**-140 else 0


def lengths_of(ends: Sequence[float]) -> tuple[int, ...]:
    """Units of progress of each epoch, from progress at the ends; exact differences."""
    units = [0, *(units_of(end) for end in ends)]
    return tuple(max(b - a, 0) for a, b in pairwise(units))


@dataclass(frozen=True, eq=False, repr=False)
class Course(Brief):
    """Epochs of a job in one run.

    Parameters
    ----------
    lengths : tuple of int
        Progress of each epoch [units].
    rate : tuple of int
        Goodput in each epoch [units a tick]; above 0 in those with progress to make.
    whole_seconds : bool
        Whether epochs end at the nearest whole second.
    """

    lengths: tuple[int, ...]
    rate: tuple[int, ...]
    whole_seconds: bool = False

    def ending(self, position: Position) -> CourseEnd:
        """Time until the last epoch is over; O(epochs that are left)."""
        ticks = seen = 0
        done = position.done
        for epoch in range(position.epoch, len(self.lengths)):
            last, true = self._epoch(self.lengths[epoch] - done, self.rate[epoch])
            seen = max(seen, ticks + true, ticks + last)
            ticks, done = ticks + last, 0
        return CourseEnd(ticks, seen)

    def after(self, position: Position, ticks: int) -> Position:
        """Position after some ticks of progress; O(epochs that end)."""
        epoch, done = position
        while epoch < len(self.lengths):
            left, rate = self.lengths[epoch] - done, self.rate[epoch]
            last, true = self._epoch(left, rate)
            if true > ticks:
                return Position(epoch, done + rate * ticks)
            ticks = max(ticks - last, 0)
            epoch, done = epoch + 1, 0
        return Position(epoch)

    def share_left(self, position: Position) -> float:
        """Share of the time of the whole job that is left."""
        return self.ending(position).ticks / self._whole if self._whole else 0.0

    def whole_ticks(self) -> int:
        """Ticks of all epochs."""
        return self._whole

    @cached_property
    def _whole(self) -> int:
        return self.ending(Position()).ticks

    def _epoch(self, left: int, rate: int) -> tuple[int, int]:
        """Ticks that the rest of an epoch takes, and ticks until all its progress is made."""
        if left <= 0:
            return 0, 0
        true = -(-left // rate)
        if not self.whole_seconds:
            return true, true
        return round(Fraction(left, rate * TICKS_PER_S)) * TICKS_PER_S, true
