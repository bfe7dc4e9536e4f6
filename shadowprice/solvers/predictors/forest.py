"""Random-forest regression of log n on user, group, name, model and gang, retrained online.

Source: random forests and recurrence are from the abstract of Luo et al., INFOCOM'25 (A-SRPT); 100
trees, the logarithmic target, the range [1, largest seen], the cold start and retraining every so
many completions are derived, not read. Ours are the encoding (:mod:`.encoding`), by which trees
predict log n less the job's base, weights (one over the spread of the job's group), and the
growing gaps between trainings: statistics of categories follow every completion at once, the
forest only learns how far to trust which of them, and that changes slowly.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.predictors.encoding import BASE, SPREAD, CategoryKey, Encoding, jobs_of
from shadowprice.solvers.predictors.flat_forest import FlatForest
from shadowprice.solvers.predictors.history import Medians, completed_iterations
from shadowprice.solvers.predictors.predictor import Features, Predictor
from shadowprice.solvers.predictors.truth import refuse_truth

MAX_SETTING = 10_000_000

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
        logs = columns[:, BASE] + self._trees.predict(columns)
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
