"""Predictions from a job's own group: the median of its completed runs, or the last of them.

Cold start: a job whose group has no completed run gets the median of its user's jobs, else of all
jobs, else :data:`.history.UNKNOWN_ITERATIONS`. Jobs of no group (an empty one) are no recurrence
of one another and start cold always. O(log n) a completion, O(1) a prediction.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from heapq import heappush, heappushpop

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.predictors.predictor import Features, Predictor, refuse_truth

# Completed runs by category: running medians, means of logarithms, last runs.


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


@dataclass(eq=False)
class MedianOfGroup:
    """The median of the iterations of the group's completed runs."""

    name: str = "median"
    clairvoyant: bool = False
    _medians: Medians = field(default_factory=Medians, repr=False)

    def predict(
        self, features: Features, iterations: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Predicted iterations, shape (n,)."""
        refuse_truth(self.name, iterations)
        pairs = zip(features.group.tolist(), features.user.tolist(), strict=True)
        known = self._medians.first_known
        return np.array([known(("group", group), ("user", user)) for group, user in pairs])

    def learn(self, features: Features, iterations: NDArray[np.float64]) -> None:
        """Take in completed jobs."""
        values = completed_iterations(self.name, features, iterations)
        rows = zip(features.group.tolist(), features.user.tolist(), values, strict=True)
        for group, user, value in rows:
            categories = [("user", user)] if group == "" else [("group", group), ("user", user)]
            self._medians.add(value, *categories)


@dataclass(eq=False)
class LastOfGroup:
    """The iterations of the group's run that completed last."""

    name: str = "last"
    clairvoyant: bool = False
    _last: dict[str, float] = field(default_factory=dict, repr=False)
    _medians: Medians = field(default_factory=Medians, repr=False)

    def predict(
        self, features: Features, iterations: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Predicted iterations, shape (n,)."""
        refuse_truth(self.name, iterations)
        predicted = []
        for group, user in zip(features.group.tolist(), features.user.tolist(), strict=True):
            last = self._last.get(group)
            predicted.append(self._medians.first_known(user) if last is None else last)
        return np.array(predicted, dtype=np.float64)

    def learn(self, features: Features, iterations: NDArray[np.float64]) -> None:
        """Take in completed jobs."""
        values = completed_iterations(self.name, features, iterations)
        rows = zip(features.group.tolist(), features.user.tolist(), values, strict=True)
        for group, user, value in rows:
            if group != "":
                self._last[group] = value
            self._medians.add(value, user)


def _median(settings: str, seed: int) -> Predictor:
    return MedianOfGroup(_plain("median", settings))


def _last(settings: str, seed: int) -> Predictor:
    return LastOfGroup(_plain("last", settings))


def _plain(name: str, settings: str) -> str:
    if settings:
        raise InputError(f"predictor {name!r}: got {settings!r}, but it takes no parameters")
    return name


PREDICTORS = {"median": _median, "last": _last}
