"""Completed runs by category: running medians, means of logarithms, last runs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING

import numpy as np

from shadowprice.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shadowprice.solvers.predictors.predictor import Features

UNKNOWN_ITERATIONS = 1000.0
"""Prediction before any job has completed. Arbitrary: only the order of predictions matters to a
scheduler, and equal predictions leave the order of arrival."""


class RunningMedian:
    """Median of the numbers added so far; O(log n) to add, O(1) to read."""

    __slots__ = ("_high", "_low")

    def __init__(self) -> None:
        self._low: list[float] = []  # Lower half, negated: a heap's top is its least.
        self._high: list[float] = []

    def add(self, value: float) -> None:
        """Take in a number."""
        if len(self._low) > len(self._high):
            heappush(self._high, -heappushpop(self._low, -value))
        else:
            heappush(self._low, -heappushpop(self._high, value))

    def median(self) -> float:
        """The median; the mean of the middle two of an even number, as NumPy has it."""
        if len(self._low) > len(self._high):
            return -self._low[0]
        return (self._high[0] - self._low[0]) / 2


@dataclass
class Medians:
    """Medians of the iterations of completed jobs by category, and of all.

    A job is O(log n).
    """

    overall: RunningMedian = field(default_factory=RunningMedian)
    by: dict[Hashable, RunningMedian] = field(default_factory=dict)
    completed: int = 0

    def add(self, iterations: float, *categories: Hashable) -> None:
        """Take in a completed job."""
        self.completed += 1
        self.overall.add(iterations)
        for category in categories:
            found = self.by.get(category)
            if found is None:
                found = self.by[category] = RunningMedian()
            found.add(iterations)

    def first_known(self, *categories: Hashable) -> float:
        """Median of the first category with a completed job, else of all jobs, else a default."""
        for category in categories:
            found = self.by.get(category)
            if found is not None:
                return found.median()
        return self.overall.median() if self.completed else UNKNOWN_ITERATIONS


def completed_iterations(
    name: str, features: Features, iterations: NDArray[np.float64]
) -> list[float]:
    """Iterations of completed jobs, one a row of features.

    Raises
    ------
    InputError
        If their number differs or one is not a number > 0.
    """
    values = np.asarray(iterations, dtype=np.float64)
    if values.shape != (len(features),):
        raise InputError(
            f"predictor {name!r}: iterations have shape {values.shape}, expected ({len(features)},)"
        )
    listed: list[float] = values.tolist()
    for k, value in enumerate(listed):
        if not 0.0 < value < float("inf"):
            job = features.id[k]
            raise InputError(
                f"predictor {name!r}: job {job!r}: iterations are {value!r}, expected a number > 0"
            )
    return listed
