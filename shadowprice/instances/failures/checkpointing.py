"""Checkpoints of a run: how often it saves its progress, and how long that takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S, check_seconds


@dataclass(frozen=True)
class Checkpointing:
    """Periodic checkpoints, the rule of Young (CACM 1974): a fixed time of progress, then a checkpoint.

    After every ``interval_s`` in which a run made progress it writes a checkpoint for ``cost_s``, in
    which it makes none and holds its GPUs. What was done before the last checkpoint that was written
    to its end is saved. A run that completes its job writes none at that moment. Who is preempted
    saves all that was done, within the charge for that; the next run begins a new interval.

    Parameters
    ----------
    interval_s : float
        Progress between checkpoints [s]; infinity for none.
    cost_s : float
        Time that one takes [s].

    Raises
    ------
    InputError
        If a time is negative, the interval 0, or one not a multiple of 2**-20 s; or if checkpoints that
        are never written have a cost.
    """

    interval_s: float = math.inf
    cost_s: float = 0.0

    def __post_init__(self) -> None:
        if self.interval_s != math.inf:
            check_seconds("checkpoints: interval_s", self.interval_s)
        check_seconds("checkpoints: cost_s", self.cost_s, zero=True)
        if self.cost_s and self.interval_s == math.inf:
            raise InputError(
                f"checkpoints: cost_s is {self.cost_s!r} without an interval, expected interval_s as well"
            )

    def expect_none(self, who: str, why: str) -> None:
        """Refuse checkpoints of jobs that write none.

        Raises
        ------
        InputError
            Saying who they are, and why they write none.
        """
        if self.interval_s != math.inf:
            raise InputError(
                f"{who} and write checkpoints every {self.interval_s:.10g} s of progress, expected none: {why}"
            )

    def elapsed_ticks(self, progress: int) -> int:
        """Time that a run takes for some progress, the checkpoints before its last tick included [ticks]."""
        if not self.cost_s or progress <= 0:
            return progress
        interval, cost = self._ticks()
        return progress + (progress - 1) // interval * cost

    def progress_ticks(self, elapsed: int) -> int:
        """Progress that a run has made after some time without overheads [ticks]."""
        if not self.cost_s:
            return elapsed
        interval, cost = self._ticks()
        cycles, rest = divmod(elapsed, interval + cost)
        return cycles * interval + min(rest, interval)

    def saved_ticks(self, elapsed: int) -> int:
        """Progress that is saved in checkpoints after some time without overheads [ticks]."""
        if self.interval_s == math.inf:
            return 0
        interval, cost = self._ticks()
        return elapsed // (interval + cost) * interval

    def progress_s(self, elapsed_s: ArrayLike) -> NDArray[np.float64]:
        """:meth:`progress_ticks` of many runs, in seconds on the time grid; exact."""
        elapsed = np.asarray(elapsed_s, dtype=np.float64)
        if not self.cost_s:
            return elapsed
        # The remainder of floats is exact, and so is all else of whole ticks.
        cycle_s = self.interval_s + self.cost_s
        rest_s = np.fmod(elapsed, cycle_s)
        cycles = (elapsed - rest_s) / cycle_s
        return np.asarray(cycles * self.interval_s + np.minimum(rest_s, self.interval_s))

    def elapsed_s(self, progress_s: ArrayLike) -> NDArray[np.float64]:
        """:meth:`elapsed_ticks` of many runs, in seconds on the time grid; exact, infinity for infinite progress."""
        progress = np.array(progress_s, dtype=np.float64)
        if self.cost_s:
            some = np.isfinite(progress) & (progress > 0)
            rest_s = np.fmod(progress[some], self.interval_s)
            written = (progress[some] - rest_s) / self.interval_s - (rest_s == 0)
            progress[some] += written * self.cost_s
        return progress

    def _ticks(self) -> tuple[int, int]:
        return int(self.interval_s * TICKS_PER_S), int(self.cost_s * TICKS_PER_S)
