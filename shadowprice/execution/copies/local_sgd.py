r"""Local SGD behind a schedule of copies: what averaging copies does to a model, on a small scale.

HadarE counts a step of any copy as a step of its job. That is an assumption on statistical
efficiency (ours to state: steps of copies that start a round from one model and are averaged after
it are those of local SGD, Stich, ICLR 2019, not of sequential SGD). Here every job trains a logistic
regression on synthetic data of its own, once as its copies did, with the average

.. math:: w \leftarrow \sum_c \frac{s_c}{\sum_d s_d} w_c

after every round (s_c: steps of copy c), and once with as many steps on one copy. Both losses are
reported; nothing here says that they are those of a large network.

Steps of the schedule stand for fewer real ones: a job trains at most ``max_steps``, divided between
rounds and copies as in the schedule, cumulatively rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule

if TYPE_CHECKING:
    import pandas as pd


Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Losses(Brief):
    """Mean logistic loss on held-out data after training, all of shape (n,).

    Parameters
    ----------
    id : ndarray of str
        Names of the jobs.
    initial, in_copies, one_copy : ndarray
        Before training; after training in copies; after as many steps on one copy.
    steps, averages : ndarray of int
        Real steps trained, and rounds in which more than one model was averaged.
    """

    id: NDArray[np.object_]
    initial: Vector
    in_copies: Vector
    one_copy: Vector
    steps: NDArray[np.int64]
    averages: NDArray[np.int64]

    def to_frame(self) -> pd.DataFrame:
        """One row a job, with the difference that copies make."""
        import pandas as pd

        return pd.DataFrame({**vars(self), "difference": self.in_copies - self.one_copy})

    def sentence(self) -> str:
        """Summary in words."""
        if not len(self.in_copies):
            return "no jobs, so no models were trained"
        copies, alone = float(self.in_copies.mean()), float(self.one_copy.mean())
        worse = int(np.count_nonzero(self.in_copies > self.one_copy))
        return (
            f"mean held-out loss {copies:.4f} in copies, {alone:.4f} in one piece with as many steps "
            f"({copies - alone:+.4f}); before training {float(self.initial.mean()):.4f}; copies "
            f"are worse for {worse} of {len(self.in_copies)} jobs. Logistic regressions on synthetic "
            "data, not the jobs' own models"
        )


@dataclass(frozen=True)
class LocalSgd:
    """A small training job for each simulated one.

    Parameters
    ----------
    seed : int
        Seed of data and batches.
    max_steps : int
        Largest number of real steps of a job.
    samples, features, batch : int
        Size of the data for training (as much again is held out) and of a batch.
    learning_rate : float
        Step size, constant.
    noise : float
        Share of labels that are flipped.

    Raises
    ------
    InputError
        If a number is out of range.
    """

    seed: int = 0
    max_steps: int = 1000
    samples: int = 512
    features: int = 16
    batch: int = 8
    learning_rate: float = 0.2
    noise: float = 0.1

    def __post_init__(self) -> None:
        for name in ("max_steps", "samples", "features", "batch"):
            if getattr(self, name) < 1:
                raise InputError(f"local SGD: {name} is {getattr(self, name)!r}, expected >= 1")
        if self.seed < 0 or not self.learning_rate > 0 or not 0 <= self.noise <= 1:
            raise InputError(
                f"local SGD: seed {self.seed!r}, learning_rate {self.learning_rate!r}, noise "
                f"{self.noise!r}, expected >= 0, > 0 and a share from 0 to 1"
            )

    def train(self, instance: Instance, schedule: Schedule) -> Losses:
        """Train all jobs as their copies did; O(steps) for min(max_steps, steps) a job, twice.

        Raises
        ------
        InputError
            If jobs ran as one gang each.
        """
        if schedule.copy is None or schedule.steps is None:
            raise InputError(
                f"{instance.workload.source}: its jobs ran as one gang, expected several copies"
            )
        count = len(instance.workload)
        order = np.lexsort((schedule.copy, schedule.start_s, schedule.job))
        first = np.searchsorted(schedule.job[order], np.arange(count + 1))
        losses, numbers = np.empty((3, count)), np.empty((2, count), dtype=np.int64)
        for job in range(count):
            rows = order[first[job] : first[job + 1]]
            if instance.restarts and instance.copies is not None:
                rows = rows[_last_chain(schedule, rows, instance.copies.round_s)]
            steps = self._real(schedule.steps[rows])
            problem = _Problem(self, job)
            model, averages = problem.in_copies(schedule.start_s[rows], schedule.copy[rows], steps)
            alone = problem.steps(problem.start, problem.stream(0), int(steps.sum()))
            losses[:, job] = [problem.loss(w) for w in (problem.start, model, alone)]
            numbers[:, job] = steps.sum(), averages
        return Losses(instance.workload.id, *losses.copy(), *numbers.copy())

    def _real(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Real steps of each row: no more in all than allowed, in proportion, rounded as they add up."""
        done = np.concatenate(([0], np.cumsum(steps)))
        total = int(done[-1])
        if total <= self.max_steps:
            return steps
        scaled = np.rint(done * (self.max_steps / total)).astype(np.int64)
        return scaled[1:] - scaled[:-1]


def _last_chain(schedule: Schedule, rows: NDArray[np.int64], round_s: float) -> NDArray[np.bool_]:
    """True for the rows of a job from which on it goes on without a break: what was trained before is lost."""
    assert schedule.steps is not None
    begin_s, number = np.unique(schedule.start_s[rows], return_inverse=True)
    done = np.bincount(number, schedule.steps[rows], len(begin_s))
    broken = (np.diff(begin_s) > round_s) | (done[:-1] == 0)
    first = int(np.flatnonzero(broken)[-1]) + 1 if broken.any() else 0
    kept: NDArray[np.bool_] = number >= first
    return kept


class _Problem:
    """Data and batches of one job, from (seed, job) alone."""

    def __init__(self, options: LocalSgd, job: int) -> None:
        self.options, self.job = options, job
        rng = np.random.default_rng([options.seed, job])
        truth = rng.standard_normal(options.features)
        self.inputs = rng.standard_normal((2 * options.samples, options.features))
        right = rng.random(2 * options.samples) >= options.noise
        self.labels = np.where((self.inputs @ truth > 0) == right, 1.0, -1.0)
        self.start = np.zeros(options.features)

    def stream(self, copy: int) -> np.random.Generator:
        """Batches of a copy, by its number from 0; a stream goes on from round to round."""
        return np.random.default_rng([self.options.seed, self.job, 1 + copy])

    def loss(self, model: Vector) -> float:
        """Mean logistic loss on the held-out half."""
        held = slice(self.options.samples, None)
        return float(np.mean(np.logaddexp(0.0, -self.labels[held] * (self.inputs[held] @ model))))

    def steps(self, model: Vector, rng: np.random.Generator, count: int) -> Vector:
        """Plain SGD for a number of steps; the model given is left as it is."""
        options, model = self.options, model.copy()
        for _ in range(count):
            rows = rng.integers(options.samples, size=options.batch)
            inputs, labels = self.inputs[rows], self.labels[rows]
            # Derivative of log(1 + exp(-m)) in the margin m, in a form that cannot overflow.
            slope = -0.5 * labels * (1.0 - np.tanh(0.5 * labels * (inputs @ model)))
            model -= options.learning_rate / options.batch * (slope @ inputs)
        return model

    def in_copies(
        self, begins_s: Vector, copies: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> tuple[Vector, int]:
        """Train in copies, rows in order of rounds; the model and how often several were averaged."""
        model, averages = self.start, 0
        streams = {copy: self.stream(copy) for copy in np.unique(copies).tolist()}
        for begin_s in np.unique(begins_s).tolist():
            here = np.flatnonzero((begins_s == begin_s) & (steps > 0))
            done = int(steps[here].sum())
            if not done:
                continue
            average = np.zeros_like(model)
            for row in here.tolist():
                count = int(steps[row])
                trained = self.steps(model, streams[int(copies[row])], count)
                average += count / done * trained
            model = average
            averages += len(here) > 1
        return model, averages
