"""Predictions from a job's own group: the median of its completed runs, or the last of them.

Cold start: a job whose group has no completed run gets the median of its user's jobs, else of all
jobs, else :data:`.history.UNKNOWN_ITERATIONS`. Jobs of no group (an empty one) are no recurrence
of one another and start cold always. O(log n) a completion, O(1) a prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.predictors.history import Medians, completed_iterations
from shadowprice.solvers.predictors.predictor import Features, Predictor, refuse_truth


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
