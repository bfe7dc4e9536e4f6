"""Random-forest regression of log n on user, group, name, model and gang, retrained online.

Source: random forests and recurrence are from the abstract of Luo et al., INFOCOM'25 (A-SRPT); 100
trees, the logarithmic target, the range [1, largest seen], the cold start and retraining every so
many completions are derived, not read. Ours are the encoding (below), by which trees
predict log n less the job's base, weights (one over the spread of the job's group), and the
growing gaps between trainings: statistics of categories follow every completion at once, the
forest only learns how far to trust which of them, and that changes slowly.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.predictors.grouped import Medians, completed_iterations
from shadowprice.solvers.predictors.predictor import Features, Predictor, refuse_truth

# Categories of jobs as numbers: statistics of the logarithm of iterations of completed jobs.
#
# A user, group, name or model that occurs thousands of times, or never before, is described by what
# its completed jobs took: their number and the mean of log n over them. The mean of a user or model
# is shrunk towards that of all jobs, a name's towards its user's. The *base* of a job is the mean of
# its group, or of its name where the group has no completed job; targets and means are counted from
# it, so that a tree need not approximate the identity by steps. An unseen category has the mean of
# the one above and the number 0, and is no special case. Completed jobs are encoded for training
# from those completed before them alone (ordered target statistics, Prokhorenkova et al.,
# NeurIPS'18, recalled), so that no training row contains its own target.


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


# A trained forest as flat arrays: predictions one job at a time without fixed costs.
#
# scikit-learn spends milliseconds a call on checks and on dispatching to each tree, whatever the
# number of rows; a scheduler asks for one job at almost every arrival. Following all trees at once
# through flat arrays takes tens of microseconds and gives the same numbers up to the order of
# summation.


ROWS_AT_ONCE = 512
"""Bounds the memory of a call: this many rows times the trees."""


@dataclass(frozen=True, eq=False)
class FlatForest:
    """Regression trees, their nodes one after another.

    A leaf leads to itself on both sides, so that all trees can be followed the same number of
    steps.

    Parameters
    ----------
    roots : ndarray of int, shape (trees,)
        Node where each tree begins.
    feature : ndarray of int, shape (nodes,)
        Column compared at a node.
    threshold : ndarray, shape (nodes,)
        To the left where the feature is at most this.
    child : ndarray of int, shape (2 nodes,)
        Left and right child of each node, in turns.
    value : ndarray, shape (nodes,)
        Mean target of the training rows of a node.
    depth : int
        Most steps from a root to a leaf.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    child: NDArray[np.int64]
    value: NDArray[np.float64]
    depth: int

    @classmethod
    def of(cls, forest: Any) -> FlatForest:
        """Flatten a fitted ``sklearn.ensemble.RandomForestRegressor`` of one output."""
        trees = [estimator.tree_ for estimator in forest.estimators_]
        sizes = np.array([tree.node_count for tree in trees], dtype=np.int64)
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        left, right, feature, threshold, value = (
            np.concatenate([np.asarray(getattr(tree, column)).reshape(-1) for tree in trees])
            for column in ("children_left", "children_right", "feature", "threshold", "value")
        )
        shift, itself = np.repeat(roots, sizes), np.arange(sizes.sum())
        leaf = left < 0
        child = np.empty(2 * len(leaf), dtype=np.int64)
        child[0::2] = np.where(leaf, itself, left + shift)
        child[1::2] = np.where(leaf, itself, right + shift)
        return cls(
            roots=roots,
            feature=np.where(leaf, 0, feature),
            threshold=np.where(leaf, np.inf, threshold),
            child=child,
            value=value,
            depth=max(int(tree.max_depth) for tree in trees),
        )

    def predict(self, rows: NDArray[np.float64], *, often: bool = False) -> NDArray[np.float64]:
        """Mean over trees of the leaves that rows fall into, shape (n,); O(n trees depth).

        Parameters
        ----------
        often : bool
            Whether it is worth loading compiled code, which gives the same numbers.
        """
        # scikit-learn compares features in single precision.
        rows = rows.astype(np.float32).astype(np.float64)
        follow = _compiled_leaves() if often else None
        if follow is not None:
            columns = (self.roots, self.feature, self.threshold, self.child, self.value)
            leaves = follow(np.ascontiguousarray(rows), *columns, self.depth)
            compiled: NDArray[np.float64] = leaves.mean(axis=1)
            return compiled
        parts = [self._means(rows[k : k + ROWS_AT_ONCE]) for k in range(0, len(rows), ROWS_AT_ONCE)]
        return np.concatenate([np.zeros(0), *parts])

    def _means(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        n, columns = rows.shape
        values = rows.reshape(-1)
        row = np.arange(0, n * columns, columns).repeat(len(self.roots))
        node = np.tile(self.roots, n)
        for _ in range(self.depth):
            at = self.feature.take(node) if n == 1 else self.feature.take(node) + row
            right = values.take(at) > self.threshold.take(node)
            node = self.child.take(2 * node + right)
        means: NDArray[np.float64] = self.value.take(node).reshape(n, -1).mean(axis=1)
        return means


@cache
def _compiled_leaves() -> Callable[..., NDArray[np.float64]] | None:
    """:func:`_leaves`, compiled or read from numba's cache; None without numba."""
    try:
        from numba import njit
    except ImportError:
        return None
    leaves: Callable[..., NDArray[np.float64]] = njit(cache=True)(_leaves)
    return leaves


def _leaves(
    rows: NDArray[np.float64],
    roots: NDArray[np.int64],
    feature: NDArray[np.int64],
    threshold: NDArray[np.float64],
    child: NDArray[np.int64],
    value: NDArray[np.float64],
    depth: int,
) -> NDArray[np.float64]:
    """Value of the leaf of each tree that each row falls into, shape (n, trees)."""
    found = np.empty((len(rows), len(roots)))
    for k in range(len(rows)):
        for tree in range(len(roots)):
            node = roots[tree]
            for _ in range(depth):
                right = rows[k, feature[node]] > threshold[node]
                node = child[2 * node + right]
            found[k, tree] = value[node]
    return found


MAX_SETTING = 10_000_000

OFTEN = 1_000
"""Predictions from which on loading compiled code is worth it."""

FEATURES_PER_SPLIT = 1 / 3
"""Share of features that a split chooses from, Breiman's for regression (2001, recalled)."""


@dataclass(frozen=True)
class ForestSettings:
    """Size and schedule of a forest.

    Parameters
    ----------
    trees : int
        Number of trees.
    retrain_every : int
        Fewest completions between two trainings.
    retrain_growth : float
        Fewest completions between two trainings, as a share of those at the last one: 0 retrains
        every ``retrain_every``, more spaces trainings geometrically.
    first_training : int
        Completions before the first training; until then predictions are the cold start: the
        median of the user's completed jobs, else of all, else
        :data:`.history.UNKNOWN_ITERATIONS`.
    window : int
        Most recent completions that a training sees.
    sample : int
        Most rows that one tree is trained on, drawn with replacement.
    depth : int
        Deepest level of a tree.
    leaf : int
        Fewest rows of a leaf.
    """

    trees: int = 100
    retrain_every: int = 500
    retrain_growth: float = 0.5
    first_training: int = 50
    window: int = 20_000
    sample: int = 1_000
    depth: int = 8
    leaf: int = 10


@dataclass(eq=False)
class Forest:
    """The random forest.

    A prediction is O(trees depth), a completion O(log n), and a training
    O(trees sample log(sample)): with geometric gaps O(log n) trainings in all.
    """

    settings: ForestSettings = ForestSettings()
    seed: int = 0
    name: str = "forest"
    clairvoyant: bool = False
    trained_at: list[int] = field(default_factory=list)
    """Completions at every training so far."""

    _encoding: Encoding = field(default_factory=Encoding, repr=False)
    _medians: Medians = field(default_factory=Medians, repr=False)
    _trees: FlatForest | None = field(default=None, repr=False)
    _asked: int = field(default=0, repr=False)
    _largest: float = field(default=1.0, repr=False)
    _rows: deque[tuple[list[float], float]] = field(default_factory=deque, repr=False)

    def predict(
        self, features: Features, iterations: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Predicted iterations, shape (n,), in [1, largest completed job]."""
        refuse_truth(self.name, iterations)
        if self._trees is None:
            known = self._medians.first_known
            return np.array([known(user) for user in features.user.tolist()], dtype=np.float64)
        rows = [self._encoding.row(job) for job in jobs_of(features)]
        if not rows:
            return np.zeros(0)
        columns = np.array(rows)
        self._asked += len(columns)
        often = self._asked >= OFTEN
        logs = columns[:, BASE] + self._trees.predict(columns, often=often)
        clipped: NDArray[np.float64] = np.clip(np.exp(logs), 1.0, self._largest)
        return clipped

    def learn(self, features: Features, iterations: NDArray[np.float64]) -> None:
        """Take in completed jobs, and retrain where it is time."""
        values = completed_iterations(self.name, features, iterations)
        for job, value in zip(jobs_of(features), values, strict=True):
            self._add(job, value)
            if self._medians.completed >= self._next_training():
                self._train()

    def _add(self, job: CategoryKey, iterations: float) -> None:
        log_iterations = math.log(iterations)
        row = self._encoding.row(job)
        self._rows.append((row, log_iterations - row[BASE]))
        if len(self._rows) > self.settings.window:
            self._rows.popleft()
        self._encoding.add(job, log_iterations)
        self._medians.add(iterations, job[0])
        self._largest = max(self._largest, iterations)

    def _next_training(self) -> float:
        if not self.trained_at:
            return self.settings.first_training
        last = self.trained_at[-1]
        gap = max(self.settings.retrain_every, self.settings.retrain_growth * last)
        return last + gap

    def _train(self) -> None:
        # scikit-learn takes most of a second to import, and most runs do not need it.
        from sklearn.ensemble import RandomForestRegressor

        done, settings = self._medians.completed, self.settings
        entropy = np.random.SeedSequence([self.seed, done])
        forest: Any = RandomForestRegressor(
            n_estimators=settings.trees,
            max_depth=settings.depth,
            min_samples_leaf=settings.leaf,
            max_features=FEATURES_PER_SPLIT,
            max_samples=min(settings.sample, len(self._rows)),
            random_state=int(entropy.generate_state(1)[0]),
            n_jobs=1,
        )
        rows = np.array([row for row, _ in self._rows])
        targets = np.array([target for _, target in self._rows])
        # Else groups that vary widely, and new ones, would have the trees fit their noise.
        forest.fit(rows, targets, sample_weight=1.0 / rows[:, SPREAD])
        self._trees = FlatForest.of(forest)
        self.trained_at.append(done)


def _build(settings: str, seed: int) -> Predictor:
    """A forest of a specification ``forest:KEY=VALUE,...``."""
    if find_spec("sklearn") is None:
        raise InputError(
            "predictor 'forest': the package scikit-learn is not installed; pip install 'shadowprice[forest]'"
        )
    if not 0 <= seed < 2**128:
        raise InputError(f"predictor 'forest': seed is {seed!r}, expected 0 <= seed < 2^128")
    default = ForestSettings()
    names = [each.name for each in fields(ForestSettings)]
    values: dict[str, Any] = {}
    for setting in settings.split(",") if settings else []:
        key, equals, text = setting.partition("=")
        if not equals or key not in names:
            raise InputError(
                f"predictor 'forest': parameter {setting!r}, expected NAME=VALUE with one of "
                f"{', '.join(names)}"
            )
        values[key] = _number(key, text, type(getattr(default, key)))
    name = f"forest:{settings}" if settings else "forest"
    return Forest(replace(default, **values), seed, name)


def _number(key: str, text: str, kind: type) -> float:
    least = 1 if kind is int else 0
    try:
        value: float = kind(text)
    except ValueError:
        value = math.nan
    if not least <= value <= MAX_SETTING:
        what = "an integer" if kind is int else "a number"
        raise InputError(
            f"predictor 'forest': parameter {key}: got {text!r}, expected {what} from {least} "
            f"to {MAX_SETTING}"
        )
    return value


PREDICTORS = {"forest": _build}
