"""Categories of jobs as numbers: statistics of the logarithm of iterations of completed jobs.

A user, group, name or model that occurs thousands of times, or never before, is described by what
its completed jobs took: their number and the mean of log n over them. The mean of a user or model
is shrunk towards that of all jobs, a name's towards its user's. The *base* of a job is the mean of
its group, or of its name where the group has no completed job; targets and means are counted from
it, so that a tree need not approximate the identity by steps. An unseen category has the mean of
the one above and the number 0, and is no special case. Completed jobs are encoded for training
from those completed before them alone (ordered target statistics, Prokhorenkova et al.,
NeurIPS'18, recalled), so that no training row contains its own target.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from shadowprice.solvers.predictors.predictor import Features

COLUMNS = (
    "gang",
    "base",
    "group jobs",
    "group spread",
    "last - base",
    "name - base",
    "name jobs",
    "user - base",
    "user jobs",
    "model - base",
)
"""What each feature of a row is; the second is the base that targets are counted from."""

BASE, SPREAD = COLUMNS.index("base"), COLUMNS.index("group spread")

SHRINKAGE = 1.0
"""Number of jobs that the category above counts for in a mean."""

UNKNOWN_SPREAD = 1.0
"""Standard deviation of log n about the base in a group without completed jobs."""

PRIOR_VARIANCE = 0.1
"""Variance of log n that a group with completed jobs is expected to have."""

CategoryKey = tuple[str, str, str, str, int]
"""User, group, name, model, gang."""


@dataclass
class _Sums:
    """Completed jobs of a category: number, sum and last of log n."""

    jobs: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    last: float = 0.0

    def mean(self, above: float) -> float:
        return (self.total + SHRINKAGE * above) / (self.jobs + SHRINKAGE)

    def spread(self) -> float:
        """Standard deviation of log n, as if one job more had the variance of the prior."""
        if not self.jobs:
            return UNKNOWN_SPREAD
        around = max(self.squares - self.total * self.total / self.jobs, 0.0)
        return math.sqrt((around + PRIOR_VARIANCE) / (self.jobs + 1.0))

    def add(self, log_iterations: float) -> None:
        self.jobs += 1.0
        self.total += log_iterations
        self.squares += log_iterations * log_iterations
        self.last = log_iterations


_NONE = _Sums()
"""A category without completed jobs; never added to."""


@dataclass
class Encoding:
    """Statistics of completed jobs; O(1) a job."""

    _all: _Sums = field(default_factory=_Sums)
    _users: dict[str, _Sums] = field(default_factory=dict)
    _groups: dict[str, _Sums] = field(default_factory=dict)
    _names: dict[tuple[str, str], _Sums] = field(default_factory=dict)
    _models: dict[str, _Sums] = field(default_factory=dict)

    def row(self, job: CategoryKey) -> list[float]:
        """Features of a job, as many as :data:`COLUMNS`; logarithms of iterations and of numbers."""
        user, group, name, model, gang = job
        overall = self._all.total / self._all.jobs if self._all.jobs else 0.0
        of_user = self._users.get(user, _NONE)
        of_name = self._names.get((user, name), _NONE)
        of_group = self._groups.get(group, _NONE)
        user_mean = of_user.mean(overall)
        name_mean = of_name.mean(user_mean)
        base = of_group.total / of_group.jobs if of_group.jobs else name_mean
        return [
            math.log2(gang),
            base,
            math.log1p(of_group.jobs),
            of_group.spread(),
            of_group.last - base if of_group.jobs else 0.0,
            name_mean - base,
            math.log1p(of_name.jobs),
            user_mean - base,
            math.log1p(of_user.jobs),
            self._models.get(model, _NONE).mean(overall) - base,
        ]

    def add(self, job: CategoryKey, log_iterations: float) -> None:
        """Take in a completed job. A job of no group is no recurrence of another."""
        user, group, name, model, _ = job
        self._all.add(log_iterations)
        self._users.setdefault(user, _Sums()).add(log_iterations)
        self._names.setdefault((user, name), _Sums()).add(log_iterations)
        self._models.setdefault(model, _Sums()).add(log_iterations)
        if group != "":
            self._groups.setdefault(group, _Sums()).add(log_iterations)


def jobs_of(features: Features) -> Iterator[CategoryKey]:
    """Rows of features one by one."""
    return zip(
        features.user.tolist(),
        features.group.tolist(),
        features.name.tolist(),
        features.model.tolist(),
        features.gpus.tolist(),
        strict=True,
    )
