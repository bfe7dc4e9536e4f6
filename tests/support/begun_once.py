"""Least costs of schedules in which each job begins once, of a few jobs in whole numbers, by trying every start.

Nothing here is of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple


class FewJobs(NamedTuple):
    """Jobs that hold their gangs for their lengths, on so many GPUs."""

    release: list[int]
    length: list[int]
    gang: list[int]
    weight: list[Fraction]
    gpus: int

    @property
    def horizon(self) -> int:
        """A moment by which all can be done, one after the other."""
        return max(self.release) + sum(self.length)

    def fit(self, starts: list[int]) -> bool:
        """True if the first jobs, which start then, never hold more GPUs than there are."""
        for at in starts:
            held = sum(
                gang
                for start, length, gang in zip(starts, self.length, self.gang, strict=False)
                if start <= at < start + length
            )
            if held > self.gpus:
                return False
        return True

    def total(self, starts: list[int]) -> Fraction:
        """Total weighted completion time."""
        ends = (start + length for start, length in zip(starts, self.length, strict=True))
        return sum((w * end for w, end in zip(self.weight, ends, strict=True)), Fraction(0))

    def last(self, starts: list[int]) -> Fraction:
        """Last completion."""
        ends = (start + length for start, length in zip(starts, self.length, strict=True))
        return Fraction(max(ends))

    def least(self, cost: Callable[[list[int]], Fraction]) -> Fraction:
        """Least cost, by trying every start of every job."""
        found: list[Fraction] = []

        def start(starts: list[int]) -> None:
            if len(starts) == len(self.release):
                found.append(cost(starts))
                return
            j = len(starts)
            for at in range(self.release[j], self.horizon - self.length[j] + 1):
                if self.fit([*starts, at]):
                    start([*starts, at])

        start([])
        return min(found)
